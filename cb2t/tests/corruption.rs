//! Every kind of accident to every bit of small files: it is found, and nothing wrong is ever read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]

mod samples;
mod surgery;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use cb2t::REGISTRY;
use codec_core::conformance::Random;
use container::{ContainerReader, Source};
use format_spec::Role;
use rayon::prelude::*;
use samples::{
    Outcome, PLAIN, Sample, every_type_alone, golden_files, is_same, look, options, outcome, shapes,
    two_columns, write,
};
use surgery::{Anatomy, Block, Part, mutate};

/// Runs `check` on every sample, in parallel.
fn each_sample(check: impl Fn(&Sample) + Send + Sync) {
    every_type_alone().par_iter().chain(shapes().par_iter()).for_each(check);
}

/// Damage that is not sealed is found by the proof, and reading gives an error or the old values.
fn assert_found(sample: &Sample, damaged: &[u8], place: &dyn Fn() -> String) {
    let Outcome { verified, read } = outcome(damaged, place);
    assert!(verified.is_err(), "not found: {}", place());
    if let Ok(batches) = read {
        assert!(is_same(&batches, &sample.batch), "other values: {}", place());
    }
}

#[test]
fn the_samples_are_sound() {
    each_sample(|sample| {
        let Outcome { verified, read } = outcome(&sample.bytes, &|| sample.name.clone());
        verified.unwrap_or_else(|error| panic!("{}: {error}", sample.name));
        assert!(is_same(&read.unwrap(), &sample.batch), "{}", sample.name);
    });
}

#[test]
fn every_flipped_bit_is_found() {
    each_sample(|sample| {
        let mut damaged = sample.bytes.clone();
        for position in 0..damaged.len() {
            for bit in 0..8 {
                damaged[position] ^= 1 << bit;
                assert_found(sample, &damaged, &|| format!("{}: bit {bit} of byte {position}", sample.name));
                damaged[position] ^= 1 << bit;
            }
        }
    });
}

#[test]
fn every_byte_that_becomes_zeros_or_ones_is_found() {
    each_sample(|sample| {
        let mut damaged = sample.bytes.clone();
        for position in 0..damaged.len() {
            let old = damaged[position];
            for new in [0x00, 0xFF] {
                damaged[position] = new;
                if new != old {
                    assert_found(sample, &damaged, &|| format!("{}: byte {position} is {new}", sample.name));
                }
            }
            damaged[position] = old;
        }
    });
}

#[test]
fn every_truncation_is_refused() {
    each_sample(|sample| {
        for length in 0..sample.bytes.len() {
            let error = cb2t::open_bytes(sample.bytes[..length].to_vec()).err();
            assert!(error.is_some(), "{}: {length} bytes are a file", sample.name);
        }
    });
}

#[test]
fn what_is_behind_the_end_or_before_the_beginning_is_refused() {
    each_sample(|sample| {
        for extra in [&[0_u8][..], &[0; 64], b"\ncb2tend"] {
            assert!(cb2t::open_bytes([&sample.bytes, extra].concat()).is_err(), "{}", sample.name);
            assert!(cb2t::open_bytes([extra, &sample.bytes].concat()).is_err(), "{}", sample.name);
        }
    });
}

/// Any two blocks of one length trade places, with their checksums: each is refused where the other belongs.
#[test]
fn swapped_blocks_are_refused() {
    each_sample(|sample| {
        let anatomy = Anatomy::of(&sample.bytes).unwrap();
        let blocks: Vec<_> = anatomy.columns.iter().flat_map(|column| &column.blocks).collect();
        for (index, first) in blocks.iter().enumerate() {
            for second in blocks[index + 1..].iter().filter(|other| other.range.len() == first.range.len()) {
                let Some(damaged) = swapped(&sample.bytes, first, second) else { continue };
                let place = || format!("{}: {:?} and {:?}", sample.name, first.range, second.range);
                let Outcome { verified, read } = outcome(&damaged, &place);
                for error in [verified.expect_err(&place()), read.expect_err(&place())] {
                    assert!(error.contains("does not belong here"), "{error}: {}", place());
                }
            }
        }
    });
}

/// The bytes with two blocks of one length in exchange; `None` where they are equal.
fn swapped(bytes: &[u8], first: &Block, second: &Block) -> Option<Vec<u8>> {
    let mut damaged = bytes.to_vec();
    damaged.copy_within(second.range.clone(), first.range.start);
    damaged[second.range.clone()].copy_from_slice(&bytes[first.range.clone()]);
    (damaged != bytes).then_some(damaged)
}

/// Two blocks of one column and row group, with the same kind, width, count and order of values, the same codec and the same length: only their
/// entries tell them apart.
#[test]
fn swapped_blocks_of_one_row_group_are_named() {
    let rows = 3 * 512;
    let bytes = write(&two_columns(rows), &PLAIN, options(1 << 20));
    let anatomy = Anatomy::of(&bytes).unwrap();
    let blocks = &anatomy.columns[0].blocks;
    assert!(blocks.len() == 3 && blocks.iter().all(|block| block.range.len() == blocks[0].range.len()));
    for (first, second) in [(0, 1), (1, 2)] {
        let damaged = swapped(&bytes, &blocks[first], &blocks[second]).unwrap();
        let Outcome { verified, read } = outcome(&damaged, &String::new);
        let block = format!("column n, row group 0, values: block {first}: ");
        for error in [verified.unwrap_err(), read.unwrap_err()] {
            assert!(error.contains(&block) && error.contains("does not belong here"), "{error}");
        }
        let table = cb2t::open_bytes(damaged).unwrap();
        let error = table.inspect(0).unwrap_err().to_string();
        assert!(error.contains(&block), "{error}");
        // Single rows of each, and of the block that is where it belongs.
        for (row, belongs) in
            [(first * 512 + 7, false), (second * 512 + 7, false), ((3 - first - second) * 512, true)]
        {
            assert_eq!(table.take(&[row as u64], Some(vec![0])).is_ok(), belongs, "row {row}");
        }
    }
}

#[test]
fn swapped_blocks_of_dictionaries_are_refused() {
    // Entries of two blocks of bytes, and of ends.
    let entries: StringArray = (0..2048).map(|entry| Some(format!("{entry:08}"))).collect();
    let twice: Vec<ArrayRef> = vec![Arc::new(entries.clone()), Arc::new(entries.clone()), Arc::new(entries)];
    let texts = arrow::compute::concat(&twice.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap();
    let batch = RecordBatch::try_from_iter([("w", texts)]).unwrap();
    let bytes = write(&batch, &PLAIN, options(1 << 20));
    let table = cb2t::open_bytes(bytes.clone()).unwrap();
    let section = &table.column(0).unwrap().section;
    let dictionary = section.dictionaries.first().expect("a dictionary");
    let anatomy = Anatomy::of(&bytes).unwrap();
    for buffer in section.dictionary_buffers(dictionary) {
        let first = buffer.first_block.get() as usize;
        assert!(buffer.block_count.get() > 1);
        let blocks = &anatomy.columns[0].blocks;
        let damaged = swapped(&bytes, &blocks[first], &blocks[first + 1]).unwrap();
        let Outcome { verified, read } = outcome(&damaged, &String::new);
        // Ranks are not needed for the values, so only the proof looks at them.
        let read = (buffer.role != Role::Rank as u8).then(|| read.unwrap_err());
        for error in read.into_iter().chain([verified.unwrap_err()]) {
            let words = ["column w, dictionary", "block 0: ", "does not belong here"];
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
    }
}

#[test]
fn every_truncation_of_golden_files_is_refused() {
    golden_files().par_iter().for_each(|(name, bytes)| {
        for length in 0..bytes.len() {
            let error = ContainerReader::open(Source::memory(&bytes[..length])).err();
            assert!(error.is_some(), "{name}: {length} bytes are a file");
        }
    });
}

/// Every bit of a block's header and tables, and a bit of every byte of its tiles, is found by what proves a block.
#[test]
fn flipped_bits_of_blocks_of_golden_files_are_found() {
    golden_files().par_iter().for_each(|(name, bytes)| {
        let anatomy = Anatomy::of(bytes).unwrap();
        for block in anatomy.columns.iter().flat_map(|column| &column.blocks) {
            let mut damaged = bytes[block.range.clone()].to_vec();
            assert!(is_sound(&damaged), "{name}");
            for position in 0..damaged.len() {
                let bits = if position < block.first_tile { 0..8 } else { position % 8..position % 8 + 1 };
                for bit in bits {
                    damaged[position] ^= 1 << bit;
                    assert!(!is_sound(&damaged), "{name}: block at {}: byte {position}", block.range.start);
                    damaged[position] ^= 1 << bit;
                }
            }
        }
    });
}

fn is_sound(block: &[u8]) -> bool {
    codec_core::Block::parse(block, &REGISTRY).and_then(|block| block.check().map(drop)).is_ok()
}

/// Every byte outside of blocks is found by opening the file, reading its sections, and looking between them.
#[test]
fn every_byte_around_the_blocks_of_golden_files_is_proven() {
    golden_files().par_iter().for_each(|(name, bytes)| {
        let anatomy = Anatomy::of(bytes).unwrap();
        let mut in_block = vec![false; bytes.len()];
        for block in anatomy.columns.iter().flat_map(|column| &column.blocks) {
            in_block[block.range.clone()].fill(true);
        }
        assert!(has_sound_structures(bytes), "{name}");
        let mut damaged = bytes.clone();
        for position in (0..bytes.len()).filter(|&position| !in_block[position]) {
            let old = bytes[position];
            for new in [old ^ (1 << (position % 8)), 0x00, 0xFF] {
                damaged[position] = new;
                assert!(new == old || !has_sound_structures(&damaged), "{name}: byte {position} is {new}");
            }
            damaged[position] = old;
        }
    });
}

fn has_sound_structures(bytes: &[u8]) -> bool {
    let Ok(container) = ContainerReader::open(Source::memory(bytes)) else { return false };
    let sections = (0..container.column_count()).map(|column| container.section(column));
    sections.collect::<Result<Vec<_>, _>>().and_then(|sections| container.verify_extents(&sections)).is_ok()
}

/// The whole proof does all that, wherever the bit is.
#[test]
fn flipped_bits_of_golden_files_are_found_by_the_proof() {
    golden_files().par_iter().for_each(|(name, bytes)| {
        // A step that is no divisor of any structure's length.
        let mut random = Random(bytes.len() as u64);
        let step = (bytes.len() / 60).max(1) | 1;
        for position in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << (random.draw() % 8);
            let error = cb2t::open_bytes(damaged).and_then(|table| table.verify(&|_, _| {})).err();
            assert!(error.is_some(), "{name}: a bit of byte {position} was not found");
        }
    });
}

/// Values at the edges of what fields of so many bytes can mean.
const EDGES: [(usize, &[u64]); 3] = [
    (1, &[2, 0xFF]),
    (4, &[0, 1, 3, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF]),
    (8, &[0x1_0000_0000, 1 << 60, 1 << 63, u64::MAX]),
];

/// With every checksum right, a changed field is an error or gives other values of the type, and what is proven can be read.
#[test]
fn every_field_at_its_edges_gives_errors_or_values() {
    // Every second type: neighbours have the same structures.
    let types = every_type_alone();
    types.par_iter().step_by(2).chain(shapes().par_iter()).for_each(|sample| {
        let anatomy = Anatomy::of(&sample.bytes).unwrap();
        for place in anatomy.places.iter().filter(|place| place.part != Part::Schema) {
            // Entries of a table are all alike: the first two stand for them.
            let reach = place.range.len().min(2 * place.entry_bytes.max(16));
            for (width, edges) in EDGES {
                for at in (place.range.start..place.range.start + reach).step_by(width) {
                    for &edge in edges {
                        let mut damaged = sample.bytes.clone();
                        let Some(field) = damaged.get_mut(at..at + width) else { continue };
                        field.copy_from_slice(&edge.to_le_bytes()[..width]);
                        anatomy.seal(&mut damaged);
                        let place =
                            || format!("{}: {:?} at {at} is {edge} in {width}", sample.name, place.part);
                        assert_error_or_values(&damaged, &place);
                    }
                }
            }
        }
    });
}

#[test]
fn random_damage_of_structures_gives_errors_or_values() {
    each_sample(|sample| {
        for seed in 0..300 {
            let mut damaged = sample.bytes.clone();
            let done = mutate::mutate(&mut damaged, &mut Random(seed)).unwrap();
            let place = || format!("{}: seed {seed}: {done}", sample.name);
            assert_error_or_values(&damaged, &place);
        }
    });
}

fn assert_error_or_values(damaged: &[u8], place: &dyn Fn() -> String) {
    let Outcome { verified, read } = outcome(damaged, place);
    look(damaged, place);
    if let Err(error) = read {
        assert!(!error.is_empty(), "{}", place());
        assert!(verified.is_err(), "proven, but cannot be read: {error}: {}", place());
    }
}

/// With a schema of other bytes and the checksum right: another schema, or an error.
#[test]
fn damaged_schemas_give_errors_or_values() {
    each_sample(|sample| {
        let anatomy = Anatomy::of(&sample.bytes).unwrap();
        let Some(schema) = anatomy.all(Part::Schema).next() else { return };
        let mut random = Random(1);
        for position in schema.range.clone() {
            let mut damaged = sample.bytes.clone();
            damaged[position] ^= 1 << (random.draw() % 8);
            anatomy.seal(&mut damaged);
            assert_error_or_values(&damaged, &|| format!("{}: schema byte {position}", sample.name));
        }
    });
}
