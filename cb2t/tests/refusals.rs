//! SPEC.md section 9, line by line: what a reader must refuse, with every checksum right, so that nothing else finds it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]

mod samples;
mod surgery;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int32Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use cb2t::{DictionaryLimits, REGISTRY, WriterOptions};
use codec_core::conformance::Random;
use samples::every_type::every_type;
use samples::{PLAIN, options, outcome, two_columns, words, write};
use surgery::{Anatomy, Part, Place};

/// A file that is about to be damaged.
struct Patient {
    bytes: Vec<u8>,
    anatomy: Anatomy,
}

impl Patient {
    fn of(bytes: Vec<u8>) -> Self {
        let anatomy = Anatomy::of(&bytes).unwrap();
        Self { bytes, anatomy }
    }

    /// Two columns in two row groups, stored plainly and without dictionaries.
    fn plain() -> Self {
        Self::of(write(&two_columns(6), &PLAIN, without_dictionaries(3)))
    }

    fn coded() -> Self {
        Self::of(write(&words(60), &PLAIN, options(30)))
    }

    fn column(array: ArrayRef) -> Self {
        Self::of(write(
            &RecordBatch::try_from_iter([("c", array)]).unwrap(),
            &PLAIN,
            without_dictionaries(1 << 20),
        ))
    }

    /// Where the `index`-th structure of a part begins.
    fn at(&self, part: Part, index: usize) -> usize {
        self.anatomy.all(part).nth(index).unwrap().range.start
    }

    /// Where entry `entry` of the `index`-th table of a part begins.
    fn entry(&self, part: Part, index: usize, entry: usize) -> usize {
        let place: &Place = self.anatomy.all(part).nth(index).unwrap();
        let at = place.range.start + entry * place.entry_bytes;
        assert!(at < place.range.end);
        at
    }

    /// The tile of the only tile of block `index` of column `column`.
    fn tile(&self, column: usize, index: usize) -> Range<usize> {
        self.anatomy.columns[column].blocks[index].tiles[0].clone()
    }

    fn get(&self, at: usize, width: usize) -> u64 {
        let mut value = [0; 8];
        value[..width].copy_from_slice(&self.bytes[at..at + width]);
        u64::from_le_bytes(value)
    }

    /// The error that a field of `width` bytes with another value gives.
    fn with(&self, at: usize, width: usize, value: u64) -> String {
        let mut bytes = self.bytes.clone();
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        self.sealed(bytes)
    }

    /// The error that reading the damaged bytes gives once their checksums are right. Proving them is an error, too.
    fn sealed(&self, mut bytes: Vec<u8>) -> String {
        self.anatomy.seal(&mut bytes);
        error_of(&bytes)
    }

    /// The error of proving a file that can be read.
    fn proven_with(&self, at: usize, width: usize, value: u64) -> String {
        let mut bytes = self.bytes.clone();
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        self.anatomy.seal(&mut bytes);
        outcome(&bytes, &|| format!("{at} is {value}")).verified.unwrap_err()
    }
}

/// Strings stay strings, however few they are.
fn without_dictionaries(rows: u64) -> WriterOptions {
    WriterOptions { dictionary_limits: DictionaryLimits { entries: 0, bytes: 0 }, ..options(rows) }
}

fn error_of(bytes: &[u8]) -> String {
    let outcome = outcome(bytes, &String::new);
    assert!(outcome.verified.is_err(), "it is proven");
    outcome.read.err().unwrap_or_else(|| panic!("it is read; the proof says {:?}", outcome.verified))
}

/// Asserts that an error says all of `words`.
fn says(error: &str, words: &[&str]) {
    assert!(words.iter().all(|word| error.contains(word)), "{words:?} are not in: {error}");
}

#[test]
fn line_1_short_files_wrong_magics_and_other_versions() {
    let patient = Patient::plain();
    says(&error_of(&patient.bytes[..95]), &["95"]);
    says(&error_of(b"PAR1"), &["magic", "not a cb2t file"]);
    says(&error_of(&[]), &["magic"]);
    let trailer = patient.anatomy.trailer;
    for (at, what) in
        [(0, "file header"), (7, "file header"), (trailer + 24, "trailer"), (trailer + 31, "trailer")]
    {
        says(&patient.with(at, 1, 0), &[what, "magic"]);
    }
    says(&patient.with(patient.at(Part::BlockHeader, 0), 1, 0), &["block 0", "magic"]);
    for (at, what) in
        [(8, "file header"), (trailer + 20, "trailer"), (patient.at(Part::BlockHeader, 0) + 4, "block")]
    {
        says(&patient.with(at, 2, 513), &[what, "version 513", "version 0"]);
    }
}

#[test]
fn line_2_checksums_that_do_not_match() {
    let patient = Patient::plain();
    let block = &patient.anatomy.columns[0].blocks[0];
    let column = &patient.anatomy.columns[0];
    let places = [
        (block.tiles[0].start, "tile 0: checksum"),
        (block.checksums, "block header has checksum"),
        (block.range.start + 32, "block header has checksum"),
        (block.range.start + 60, "block: its header_checksum is"),
        (column.section.start + 40, "column section has checksum"),
        (column.entry + 16, "footer has checksum"),
        (patient.anatomy.footer.start, "footer has checksum"),
        (patient.anatomy.trailer + 16, "footer has checksum"),
    ];
    for (at, what) in places {
        let mut bytes = patient.bytes.clone();
        bytes[at] ^= 1;
        says(&error_of(&bytes), &[what]);
    }
}

#[test]
fn line_3_reserved_bytes_and_padding_that_are_not_zero() {
    let (patient, coded) = (Patient::plain(), Patient::coded());
    let block = patient.at(Part::BlockHeader, 0);
    let reserved = [
        (&patient, 10..64, "file header"),
        (&patient, block + 11..block + 12, "block"),
        (&patient, block + 56..block + 60, "block"),
        (&patient, patient.anatomy.footer.start + 28..patient.anatomy.footer.start + 64, "footer"),
        (
            &patient,
            patient.anatomy.columns[1].entry + 20..patient.anatomy.columns[1].entry + 24,
            "column entry",
        ),
        (
            &patient,
            patient.at(Part::SectionHeader, 0) + 24..patient.at(Part::SectionHeader, 0) + 32,
            "section",
        ),
        (&patient, patient.at(Part::NodeChunks, 1) + 52..patient.at(Part::NodeChunks, 1) + 64, "node chunk"),
        (&coded, coded.at(Part::Dictionaries, 0) + 24..coded.at(Part::Dictionaries, 0) + 32, "dictionary"),
        (
            &patient,
            patient.entry(Part::BlockEntries, 0, 1) + 20..patient.entry(Part::BlockEntries, 0, 1) + 24,
            "block entry",
        ),
        (&patient, patient.anatomy.trailer + 22..patient.anatomy.trailer + 24, "trailer"),
    ];
    for (patient, range, what) in reserved {
        for at in range {
            says(&patient.with(at, 1, 1), &[what, "not zero"]);
        }
    }
    // Behind each table of a block, up to the next multiple of 16.
    let tables: Vec<_> = patient.anatomy.all(Part::TileTables).map(|place| place.range.end).collect();
    for end in tables.into_iter().filter(|end| !end.is_multiple_of(16)) {
        says(&patient.with(end, 1, 1), &["tile tables", "not zero"]);
    }
    // Between structures: the proof looks there.
    let blocks = patient.anatomy.columns.iter().flat_map(|column| &column.blocks);
    let end = blocks.map(|block| block.range.end).find(|end| !end.is_multiple_of(64)).unwrap();
    says(&patient.proven_with(end, 1, 1), &["padding", &end.to_string()]);
}

#[test]
fn line_4_lengths_that_do_not_add_up_and_offsets_outside() {
    let patient = Patient::plain();
    let (footer, trailer) = (patient.anatomy.footer.start, patient.anatomy.trailer);
    for (at, width) in [(8, 4), (12, 4), (16, 8), (24, 4)] {
        for value in [patient.get(footer + at, width) + 1, 0, 1 << 31, u32::MAX.into()] {
            says(&patient.with(footer + at, width, value), &["footer has", "add up"]);
        }
    }
    for value in [1 << 32, 1 << 63, u64::MAX] {
        says(&patient.with(footer + 16, 8, value), &["footer has", "add up"]);
    }
    let section = patient.anatomy.columns[0].section.start;
    for at in [0, 8, 12, 16, 20] {
        for value in [patient.get(section + at, 4) + 1, 1 << 31, u32::MAX.into()] {
            says(&patient.with(section + at, 4, value), &["column n", "section has", "add up"]);
        }
    }
    let entry = patient.anatomy.columns[0].entry;
    let offset = patient.get(entry, 8);
    for value in [offset + 1, 0, footer as u64 + 64, patient.bytes.len() as u64, 1 << 63, u64::MAX - 63] {
        says(&patient.with(entry, 8, value), &["column entry: section_"]);
    }
    // A section that is the footer itself, or reaches into it.
    says(&patient.with(entry, 8, footer as u64), &["column entry: section_"]);
    for value in [footer as u64 - offset + 1, u32::MAX.into(), u64::MAX] {
        says(&patient.with(entry + 8, 8, value), &["column entry: section_"]);
    }
    let block = patient.entry(Part::BlockEntries, 0, 0);
    for value in [patient.get(block, 8) + 1, 0, footer as u64, 1 << 63, u64::MAX - 63] {
        says(&patient.with(block, 8, value), &["column n", "block entry"]);
    }
    for value in [1 << 31, u64::from(u32::MAX)] {
        says(&patient.with(block + 8, 4, value), &["column n", "block entry: block_bytes"]);
    }
    // A block in the section that names it, and a footer that begins within itself.
    says(&patient.with(block, 8, section as u64), &["column n"]);
    says(&patient.with(trailer, 8, footer as u64 + 8), &["trailer: footer_"]);
    for value in [footer as u64 + 1, 0, footer as u64 + 64, u64::MAX] {
        says(&patient.with(trailer, 8, value), &["trailer: footer_"]);
    }
    for value in [0, patient.get(trailer + 8, 8) + 64, u64::MAX] {
        says(&patient.with(trailer + 8, 8, value), &["trailer: footer_bytes"]);
    }
}

#[test]
fn line_4_sections_that_share_bytes_or_are_out_of_order() {
    let patient = Patient::plain();
    let (first, second) = (&patient.anatomy.columns[0], &patient.anatomy.columns[1]);
    let mut bytes = patient.bytes.clone();
    bytes.copy_within(first.entry..first.entry + 24, second.entry);
    says(&patient.sealed(bytes), &["column entry: section_offset"]);
    let mut bytes = patient.bytes.clone();
    let saved = bytes[second.entry..second.entry + 24].to_vec();
    bytes.copy_within(first.entry..first.entry + 24, second.entry);
    bytes[first.entry..first.entry + 24].copy_from_slice(&saved);
    says(&patient.sealed(bytes), &["column entry: section_offset"]);
}

#[test]
fn line_5_rows_and_counts_that_contradict_each_other() {
    let patient = Patient::plain();
    let footer = patient.anatomy.footer.start;
    let group = patient.at(Part::RowGroups, 0);
    for value in [0, 5, 7, u64::MAX] {
        says(&patient.with(footer, 8, value), &["row_count"]);
    }
    says(&patient.with(group, 8, 0), &["row group: row_count is 0"]);
    says(&patient.with(group, 8, 4), &["row_count"]);
    // Rows whose sum wraps around to the right number, or stops at the largest.
    for rows in [6, u64::MAX] {
        let mut bytes = patient.bytes.clone();
        bytes[footer..footer + 8].copy_from_slice(&rows.to_le_bytes());
        bytes[group..group + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        bytes[group + 8..group + 16].copy_from_slice(&7_u64.to_le_bytes());
        says(&patient.sealed(bytes), &["row group: row_count"]);
    }
    // Rows moved from one row group to the other: the nodes know better.
    let mut bytes = patient.bytes.clone();
    bytes[group..group + 8].copy_from_slice(&4_u64.to_le_bytes());
    bytes[group + 8..group + 16].copy_from_slice(&2_u64.to_le_bytes());
    says(&patient.sealed(bytes), &["row group 0", "slot_count is 3, expected 4"]);
    let section = patient.anatomy.columns[1].section.start;
    for value in [0, 1, 3, u32::MAX.into()] {
        says(&patient.with(section + 4, 4, value), &["column t", "row_group_count", "expected 2"]);
    }
    // One node with two row groups as two nodes with one: as long, but not the schema's.
    let one = Patient::of(write(&two_columns(6), &PLAIN, options(6)));
    let other = write(&every_type(6).project(&[1]).unwrap(), &PLAIN, options(6));
    let foreign = Anatomy::of(&other).unwrap();
    let mut bytes = one.bytes.clone();
    let nodes = one.anatomy.columns[0].section.start;
    bytes[nodes..nodes + 4].copy_from_slice(&2_u32.to_le_bytes());
    says(&one.sealed(bytes), &["column n", "section has", "add up"]);
    assert_eq!(foreign.columns.len(), 1);
}

#[test]
fn line_5_another_number_of_columns_than_the_schema() {
    let patient = Patient::plain();
    let footer = patient.anatomy.footer.start;
    let columns = patient.get(footer + 12, 4);
    // The last column entry becomes part of the schema's bytes, and back: lengths add up, counts do not.
    let mut bytes = patient.bytes.clone();
    bytes[footer + 12..footer + 16].copy_from_slice(&(columns as u32 - 1).to_le_bytes());
    let schema_bytes = patient.get(footer + 16, 8) + 24;
    bytes[footer + 16..footer + 24].copy_from_slice(&schema_bytes.to_le_bytes());
    let entry = patient.anatomy.columns[1].entry;
    let schema = patient.anatomy.all(Part::Schema).next().unwrap().range.clone();
    bytes.copy_within(schema.clone(), entry);
    Anatomy::of(&bytes).unwrap().seal(&mut bytes);
    says(&error_of(&bytes), &["schema", "2 columns", "footer 1"]);
}

#[test]
fn line_6_indexes_beyond_tables_and_unknown_enumerations() {
    let (patient, coded) = (Patient::plain(), Patient::coded());
    let chunk = patient.entry(Part::NodeChunks, 0, 0);
    for value in [1, 2, 1 << 31, u32::MAX.into()] {
        says(&patient.with(chunk + 32, 4, value), &["column n", "node chunk: first_buffer"]);
    }
    for value in [0, 2, 0xFFFF] {
        says(&patient.with(chunk + 36, 2, value), &["column n"]);
    }
    says(&patient.with(chunk + 38, 1, 2), &["encoding is 2"]);
    says(&patient.with(chunk + 38, 1, 1), &["dictionary"]);
    says(&patient.with(chunk + 39, 1, 2), &["statistics is 2"]);
    for (at, width, value) in
        [(40, 4, 1 << 31), (40, 4, u32::MAX.into()), (44, 2, 65), (44, 2, 0xFFFF), (46, 2, 0xFFFF)]
    {
        says(&patient.with(chunk + at, width, value), &["statistics"]);
    }
    says(&patient.with(chunk + 48, 4, 0), &["dictionary is 0"]);
    let chunk = coded.entry(Part::NodeChunks, 0, 0);
    for value in [1, 2, u32::MAX.into()] {
        says(&coded.with(chunk + 48, 4, value), &["dictionary"]);
    }
    let dictionary = coded.entry(Part::Dictionaries, 0, 0);
    for value in [1, u32::MAX.into()] {
        says(&coded.with(dictionary, 4, value), &["dictionary: node"]);
    }
    says(&coded.with(dictionary + 4, 4, 2), &["dictionary: flags is 2"]);
    says(&coded.with(dictionary + 16, 4, 0), &["dictionary: first_buffer"]);
    for value in [0, 2, 4, u32::MAX.into()] {
        says(&coded.with(dictionary + 20, 4, value), &["column w", "buffer"]);
    }
    let buffer = patient.entry(Part::Buffers, 0, 0);
    says(&patient.with(buffer, 1, 7), &["role is 7"]);
    says(&patient.with(buffer + 1, 1, 2), &["kind is 2"]);
    for width in [0, 1, 24, 128] {
        says(&patient.with(buffer + 2, 1, width), &["value_width is"]);
    }
    for value in [1, u32::MAX.into()] {
        says(&patient.with(buffer + 8, 4, value), &["first_block"]);
    }
    let block = patient.at(Part::BlockHeader, 0);
    says(&patient.with(block + 8, 1, 2), &["block: kind is 2"]);
    says(&patient.with(block + 9, 1, 24), &["block: value_width is 24"]);
    for value in [4, 255] {
        says(&patient.with(block + 10, 1, value), &["block: order is"]);
    }
    says(&patient.with(block + 12, 4, 513), &["block: tile_size is 513"]);
}

#[test]
fn line_6_a_dictionary_of_a_node_that_can_have_none_or_has_one() {
    let coded = Patient::coded();
    let struct_of_both = every_type(60).column_by_name("struct").unwrap().clone();
    let patient = Patient::column(struct_of_both);
    let Some(dictionary) = patient.anatomy.all(Part::Dictionaries).next() else {
        // Its strings were too few for a dictionary: the file of words stands for it.
        says(&coded.with(coded.entry(Part::Dictionaries, 0, 0), 4, 1), &["dictionary: node is 1"]);
        return;
    };
    for node in [0, 1] {
        says(&patient.with(dictionary.range.start, 4, node), &["dictionary: node is"]);
    }
}

#[test]
fn line_7_buffers_that_are_not_the_nodes() {
    let patient = Patient::plain();
    let buffer = patient.entry(Part::Buffers, 0, 0);
    says(&patient.with(buffer, 1, 0), &["column n, row group 0", "role is 0, expected 2"]);
    says(&patient.with(buffer + 1, 2, 0x0801), &["column n: buffer"]);
    says(&patient.with(buffer + 2, 1, 64), &["value_width is 64"]);
    says(&patient.with(buffer + 3, 1, 1), &["limb is 1, expected 0"]);
    for value in [2, 4, 1 << 40, u64::MAX] {
        says(&patient.with(buffer + 16, 8, value), &["value_count is"]);
    }
    for value in [0, 1, 513, 0xFFFF_FFFF] {
        says(&patient.with(buffer + 12, 4, value), &["values_per_block is"]);
    }
    let block = patient.entry(Part::BlockEntries, 0, 0);
    for value in [0, 2, 4, u32::MAX.into()] {
        says(&patient.with(block + 12, 4, value), &["column n", "is"]);
    }
    says(&patient.with(block + 8, 4, 64), &["column n"]);
    // An entry and a buffer that agree, and a block that does not.
    let mut bytes = patient.bytes.clone();
    bytes[block + 12] = 4;
    bytes[buffer + 16] = 4;
    let chunk = patient.entry(Part::NodeChunks, 0, 0);
    let group = patient.at(Part::RowGroups, 0);
    bytes[chunk] = 4;
    bytes[group] = 4;
    bytes[patient.anatomy.footer.start] = 7;
    says(&patient.sealed(bytes), &["column", "is 3, expected 4"]);
    // A union is never null, and a null column always.
    for (name, at) in [("sparse_union", 8), ("null", 8)] {
        let patient = Patient::column(every_type(6).column_by_name(name).unwrap().clone());
        let chunk = patient.entry(Part::NodeChunks, 0, 0);
        says(&patient.with(chunk + at, 8, 1), &["null_count is 1"]);
    }
}

#[test]
fn line_7_a_block_of_another_column_or_twice_the_same() {
    let patient = Patient::plain();
    let columns = &patient.anatomy.columns;
    // The strings' first block where the numbers' should be: other kind, width or count.
    let mut bytes = patient.bytes.clone();
    let (to, from) = (columns[0].blocks[0].range.clone(), columns[1].blocks[0].range.clone());
    let length = to.len().min(from.len());
    bytes.copy_within(from.start..from.start + length, to.start);
    says(&patient.sealed(bytes), &["column n, row group 0, values: block 0"]);
    // One block entered twice, and both in exchange.
    let entries = [patient.entry(Part::BlockEntries, 0, 0), patient.entry(Part::BlockEntries, 0, 1)];
    let mut bytes = patient.bytes.clone();
    bytes.copy_within(entries[0]..entries[0] + 24, entries[1]);
    says(&patient.sealed(bytes), &["block entry: offset"]);
    let mut bytes = patient.bytes.clone();
    let saved = bytes[entries[0]..entries[0] + 24].to_vec();
    bytes.copy_within(entries[1]..entries[1] + 24, entries[0]);
    bytes[entries[1]..entries[1] + 24].copy_from_slice(&saved);
    says(&patient.sealed(bytes), &["block entry: offset"]);
    // A block that begins within another.
    says(&patient.with(entries[1], 8, patient.get(entries[0], 8) + 64), &["block entry: offset"]);
}

#[test]
fn line_7_a_block_that_its_entry_does_not_name() {
    for (patient, place) in
        [(Patient::plain(), "column n, row group 0, values"), (Patient::coded(), "column w, dictionary")]
    {
        // The last blocks of the coded column are its dictionary's: ends, bytes and rank, which only the proof reads.
        let blocks = &patient.anatomy.columns[0].blocks;
        let index = if place.contains("dictionary") { blocks.len() - 2 } else { 0 };
        let entry = patient.entry(Part::BlockEntries, 0, index) + 16;
        let stored = patient.get(blocks[index].range.start + 60, 4);
        assert_eq!(patient.get(entry, 4), stored);
        for value in [0, stored ^ 1, u64::from(u32::MAX)] {
            let mut bytes = patient.bytes.clone();
            bytes[entry..entry + 4].copy_from_slice(&value.to_le_bytes()[..4]);
            patient.anatomy.seal_sections(&mut bytes);
            let names = format!("{stored:08x}, but its entry names {value:08x}");
            says(&error_of(&bytes), &[place, "block 0: ", &names, "does not belong here"]);
        }
    }
}

#[test]
fn line_7_orders_are_proven() {
    let patient = Patient::plain();
    says(&patient.proven_with(patient.at(Part::BlockHeader, 0) + 10, 1, 1), &["order is 1, expected 2"]);
}

#[test]
fn line_8_unknown_codecs_and_broken_tile_tables() {
    let mut two_tiles = options(1 << 20);
    two_tiles.encode.block_bytes = 1 << 20;
    let patient = Patient::of(write(&two_columns(600), &PLAIN, two_tiles));
    let block = patient.at(Part::BlockHeader, 0);
    for id in [999, 0xF000, 0xFFFF] {
        says(&patient.with(block + 6, 2, id), &["column n", "block 0", &format!("codec id {id}")]);
    }
    // A constant block has nothing behind its header.
    assert!(!patient.with(block + 6, 2, 0).is_empty());
    for value in [0, 1, 3, u64::from(u32::MAX)] {
        says(&patient.with(block + 20, 4, value), &["block: tile_count"]);
    }
    for value in [1, 1 << 31, u64::from(u32::MAX)] {
        assert!(!patient.with(block + 24, 4, value).is_empty());
    }
    for value in [0, 64, 1 << 31, u64::from(u32::MAX)] {
        says(&patient.with(block + 28, 4, value), &["block has"]);
    }
    for value in [0, 599, 601, u64::from(u32::MAX)] {
        says(&patient.with(block + 16, 4, value), &["value_count"]);
    }
    says(&patient.with(block + 48, 8, 1), &["constant is 1"]);
    says(&patient.with(block + 32, 8, 1 << 32), &["min is"]);
    says(&patient.with(block + 40, 8, 1 << 32), &["max is"]);
    let offsets = patient.at(Part::TileTables, 0);
    let second = patient.get(offsets + 4, 4);
    for (index, value) in [(0, 64), (1, second + 1), (1, 0), (1, second + (1 << 20)), (2, second), (2, 0)] {
        let error = patient.with(offsets + 4 * index, 4, value);
        assert!(error.contains("tile") || error.contains("block has"), "{error}");
    }
}

#[test]
fn line_8_tiles_that_their_codec_refuses() {
    for codec in ["flbp", "rfor", "dfor"] {
        let codec = REGISTRY.by_name(codec).unwrap();
        let mut options = options(1 << 20);
        options.encode.choice = cb2t::Choice::Prefer(codec);
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..600).map(|row| row / 3)));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let patient = Patient::of(write(&batch, &REGISTRY, options));
        let tile = patient.tile(0, 0);
        let refused: Vec<String> = (0..16)
            .filter_map(|at| {
                let mut bytes = patient.bytes.clone();
                bytes[tile.start + at] = 0xFF;
                patient.anatomy.seal(&mut bytes);
                outcome(&bytes, &String::new).read.err()
            })
            .collect();
        assert!(!refused.is_empty(), "{}", codec.name());
        for error in refused {
            says(&error, &["column n, row group 0, values: block 0: tile 0", codec.name()]);
        }
    }
}

/// The error of a file of one column, one value of whose `block`-th block became another.
fn with_value(patient: &Patient, block: usize, index: usize, width: usize, value: u64) -> String {
    patient.with(patient.tile(0, block).start + index * width, width, value)
}

#[test]
fn line_9_ends_that_descend_or_miss_the_child() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["ab", "c", "def"]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(3)]),
    ]));
    for (array, place) in [(texts, "column c"), (lists, "column c")] {
        let patient = Patient::column(array);
        says(&with_value(&patient, 0, 0, 4, 1 << 31), &[place, "an end of"]);
        says(&with_value(&patient, 0, 1, 4, 0), &[place, "an end of 0 after 2"]);
        let last = patient.anatomy.columns[0].blocks[0].tiles[0].start;
        let count = (0..4).take_while(|index| patient.get(last + 4 * index, 4) > 0).count();
        let before = patient.get(last + 4 * (count - 2), 4);
        says(&with_value(&patient, 0, count - 1, 4, before), &[place, &format!("the ends stop at {before}")]);
    }
}

#[test]
fn line_9_codes_beyond_the_dictionary() {
    let coded = Patient::coded();
    for code in [3, 255] {
        says(
            &with_value(&coded, 0, 0, 1, code),
            &["column w, row group 0", &format!("code {code} of a dictionary of 3")],
        );
    }
}

#[test]
fn line_9_type_ids_that_the_type_does_not_have() {
    for name in ["dense_union", "sparse_union"] {
        let patient = Patient::column(every_type(6).column_by_name(name).unwrap().clone());
        for id in [1, 4, 127, 128, 255] {
            says(&with_value(&patient, 0, 0, 1, id), &["column c, row group 0: type id"]);
        }
    }
    // One slot more of one type, and one less of another, than the children have.
    let patient = Patient::column(every_type(6).column_by_name("dense_union").unwrap().clone());
    says(&with_value(&patient, 0, 0, 1, 5), &["slots are selected of"]);
}

#[test]
fn line_9_validity_and_booleans_that_are_neither_0_nor_1() {
    let booleans: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let patient = Patient::column(booleans);
    for value in [2, 255] {
        says(&with_value(&patient, 0, 0, 1, value), &["column c, row group 0: validity of"]);
        says(&with_value(&patient, 1, 0, 1, value), &["column c, row group 0: values of"]);
    }
    says(&with_value(&patient, 0, 0, 1, 0), &["validity has 2 nulls, null_count is 1"]);
    says(&with_value(&patient, 0, 1, 1, 1), &["validity has 0 nulls, null_count is 1"]);
    let chunk = patient.entry(Part::NodeChunks, 0, 0);
    for value in [2, 3] {
        says(&patient.with(chunk + 8, 8, value), &["null_count"]);
    }
    for value in [4, u64::MAX] {
        says(&patient.with(chunk + 8, 8, value), &["node chunk: null_count is"]);
        says(&patient.with(chunk + 16, 8, value), &["node chunk: nan_count is"]);
    }
}

#[test]
fn line_9_strings_that_are_not_utf_8() {
    for name in ["utf8", "large_utf8", "utf8_view"] {
        let patient = Patient::column(every_type(6).column_by_name(name).unwrap().clone());
        // Validity, ends, bytes.
        says(&with_value(&patient, 2, 0, 1, 0xFF), &["column c", "UTF8"]);
    }
    // An end within a character: each half alone is none.
    let patient = Patient::column(Arc::new(StringArray::from(vec!["é", "è"])));
    says(&with_value(&patient, 0, 0, 4, 1), &["column c"]);
}

#[test]
fn line_9_nulls_where_the_schema_allows_none() {
    use arrow::datatypes::{DataType, Field, Schema};
    let field = Field::new("c", DataType::Int32, false);
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![numbers]).unwrap();
    let strict = Patient::of(write(&batch, &PLAIN, options(9)));
    let nullable = RecordBatch::try_from_iter_with_nullable([(
        "c",
        Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])) as ArrayRef,
        true,
    )])
    .unwrap();
    let patient = Patient::of(write(&nullable, &PLAIN, options(9)));
    // The strict schema over the nullable column: both messages are as long, and differ in the one flag.
    let (from, to) = (
        strict.anatomy.all(Part::Schema).next().unwrap().range.clone(),
        patient.anatomy.all(Part::Schema).next().unwrap().range.clone(),
    );
    assert_eq!(from.len(), to.len());
    let mut bytes = patient.bytes.clone();
    bytes[to].copy_from_slice(&strict.bytes[from]);
    says(&patient.sealed(bytes), &["c", "null"]);
}

#[test]
fn line_9_ranks_and_orders_of_dictionaries_are_proven() {
    let coded = Patient::coded();
    let blocks = coded.anatomy.columns[0].blocks.len();
    let rank = coded.tile(0, blocks - 1).start;
    for (value, what) in
        [(7, "rank 7 is no permutation"), (u32::MAX.into(), "is no permutation"), (1, "permutation")]
    {
        let error = coded.proven_with(rank, 4, value);
        assert!(error.contains(what) || error.contains("min") || error.contains("max"), "{error}");
    }
    // Without its rank the dictionary would have to ascend, and have one buffer less.
    let flags = coded.entry(Part::Dictionaries, 0, 0) + 4;
    says(&coded.with(flags, 4, 1), &["buffer_count"]);
}

#[test]
fn line_9_counts_and_statistics_are_proven() {
    let patient = Patient::plain();
    let chunk = patient.entry(Part::NodeChunks, 0, 1);
    let heap = patient.anatomy.all(Part::Heap).next().unwrap().range.clone();
    says(&patient.proven_with(heap.start, 1, 77), &["column n, row group 0", "min"]);
    says(&patient.proven_with(heap.end - 1, 1, 77), &["column n, row group 1", "max"]);
    says(&patient.proven_with(chunk + 16, 8, 1), &["column n, row group 1", "nan_count"]);
    let block = patient.at(Part::BlockHeader, 0);
    says(&patient.proven_with(block + 32, 1, 77), &["min is 77"]);
    says(&patient.proven_with(block + 40, 1, 77), &["max is 77"]);
    // Statistics of values that are none: known, but empty.
    let lists = Patient::column(every_type(6).column_by_name("list").unwrap().clone());
    says(&lists.proven_with(lists.entry(Part::NodeChunks, 0, 0) + 39, 1, 1), &["statistics"]);
}

#[test]
fn line_10_bytes_of_two_structures_or_of_none() {
    let patient = Patient::plain();
    let columns = &patient.anatomy.columns;
    // A block of the second column is the first column's: within each section nothing is wrong.
    let (mine, other) = (patient.entry(Part::BlockEntries, 0, 0), patient.entry(Part::BlockEntries, 1, 0));
    assert!(columns[0].blocks[0].range.start < columns[1].blocks[0].range.start);
    let mut bytes = patient.bytes.clone();
    bytes.copy_within(mine..mine + 8, other);
    patient.anatomy.seal(&mut bytes);
    let error = outcome(&bytes, &String::new).verified.unwrap_err();
    says(&error, &["belong to two structures"]);
    // Sixty-four bytes between the blocks and the sections that nothing names.
    let start = columns[0].section.start;
    let mut bytes = patient.bytes[..start].to_vec();
    bytes.extend_from_slice(&[0; 64]);
    bytes.extend_from_slice(&patient.bytes[start..]);
    for column in columns {
        let entry = column.entry + 64;
        let offset = patient.get(column.entry, 8) + 64;
        bytes[entry..entry + 8].copy_from_slice(&offset.to_le_bytes());
    }
    let trailer = patient.anatomy.trailer + 64;
    let footer = patient.anatomy.footer.start as u64 + 64;
    bytes[trailer..trailer + 8].copy_from_slice(&footer.to_le_bytes());
    let moved = Anatomy::of(&bytes).unwrap();
    moved.seal(&mut bytes);
    let outcome = outcome(&bytes, &String::new);
    says(&outcome.verified.unwrap_err(), &["belong to no structure"]);
    assert!(outcome.read.is_ok());
}

/// No line of its own: what a section says about buffers and blocks must add up without a rest.
#[test]
fn buffers_and_blocks_that_nothing_refers_to() {
    let coded = Patient::coded();
    let chunk = coded.entry(Part::NodeChunks, 0, 0);
    // The first row group gives up its buffer: the next one does not begin where it ends.
    let mut bytes = coded.bytes.clone();
    bytes[chunk + 36..chunk + 38].copy_from_slice(&[0, 0]);
    says(&coded.sealed(bytes), &["first_buffer is 1, expected 0"]);
    let mut random = Random(3);
    let last = coded.entry(Part::Buffers, 0, 0);
    for _ in 0..20 {
        let value = random.draw() % 5 + 2;
        says(&coded.with(last + 4, 4, value), &["column w"]);
    }
}
