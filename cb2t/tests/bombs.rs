//! Files of a few hundred bytes that claim gigabytes: what they cost in memory is bounded by the file's length and the reader's limit, never by the claim.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]

mod craft;
mod samples;
mod surgery;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow_io::columns::schema::{decode_schema, encode_schema};
use cb2t::{ReadOptions, Table};
use codec_core::conformance::Random;
use craft::{Column, Node, bytes, file, node, values};
use format_spec::Role;
use surgery::mutate::mutate;

/// The system's allocator, and how much it has given out.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn add(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to `System` as it is; the counters are not memory that anything else sees.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::add(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time: the counters are everyone's.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that `run` had at most at once, beyond what there was before.
fn peak_of(run: impl FnOnce()) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    run();
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}

/// What reading may take at once, as the tests ask for it.
const LIMIT: usize = 32 << 20;

/// The limit counts what stays, and in part what is dropped before the arrays are whole.
const MOST: usize = 5 * LIMIT / 2;

/// The first rows of a table.
fn read_some(table: &Table, columns: Option<Vec<usize>>) -> Result<usize, String> {
    let options = ReadOptions { columns, memory_bytes: LIMIT as u64, ..ReadOptions::default() };
    let mut rows = 0;
    for batch in table.read(&options).map_err(|error| error.to_string())?.take(3) {
        rows += batch.map_err(|error| error.to_string())?.num_rows();
    }
    Ok(rows)
}

/// Reads the first rows of a file within bounds.
fn assert_bounded(name: &str, file: &[u8]) -> Result<usize, String> {
    let mut outcome = Ok(0);
    let peak = peak_of(|| {
        outcome = cb2t::open_bytes(file.to_vec())
            .map_err(|error| error.to_string())
            .and_then(|table| read_some(&table, None));
    });
    assert!(peak < MOST + 8 * file.len(), "{name}: {} MiB of memory, {outcome:?}", peak >> 20);
    outcome
}

fn nullable(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn column(data_type: DataType, nodes: Vec<Node>) -> Column {
    Column { field: nullable("c", data_type), nodes, dictionary: None }
}

/// Many rows of one value.
const ROWS: u64 = (1 << 40) + 7;

#[test]
fn constant_blocks_of_any_type_are_read_in_parts() {
    let _alone = alone();
    let widths = [
        (DataType::Int8, 8),
        (DataType::UInt16, 16),
        (DataType::Float32, 32),
        (DataType::Int64, 64),
        (DataType::Boolean, 8),
    ];
    for (data_type, width) in widths {
        let constant = node(ROWS, vec![values(Role::Values, width, ROWS, 1)]);
        let file = file(ROWS, &[column(data_type.clone(), vec![constant])]);
        assert!(assert_bounded(&data_type.to_string(), &file).unwrap() > 0);
    }
}

#[test]
fn keys_and_run_ends_count_against_the_limit() {
    let _alone = alone();
    let keyed = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Int8));
    let runs = DataType::RunEndEncoded(
        Arc::new(Field::new("run_ends", DataType::Int64, false)),
        Arc::new(nullable("values", DataType::Int8)),
    );
    for data_type in [keyed(DataType::Int64), keyed(DataType::Int8), runs] {
        let name = data_type.to_string();
        let constant = node(ROWS, vec![values(Role::Values, 8, ROWS, 1)]);
        assert!(assert_bounded(&name, &file(ROWS, &[column(data_type, vec![constant])])).unwrap() > 0);
    }
}

#[test]
fn codes_of_long_entries_count_as_their_copies() {
    let _alone = alone();
    let entry_bytes = 1 << 20;
    let dictionary = Some((1, vec![values(Role::Ends, 32, 1, entry_bytes), bytes(entry_bytes)]));
    let codes = Node { coded: true, ..node(ROWS, vec![values(Role::Codes, 8, ROWS, 0)]) };
    let keyed = DataType::Dictionary(Box::new(DataType::Int64), Box::new(DataType::Utf8));
    for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, keyed] {
        let name = data_type.to_string();
        let field = nullable("c", data_type);
        let column = Column { field, nodes: vec![codes.clone()], dictionary: dictionary.clone() };
        assert!(assert_bounded(&name, &file(ROWS, &[column])).unwrap() > 0);
    }
}

#[test]
fn dictionaries_beyond_the_limit_are_refused_column_after_column() {
    let _alone = alone();
    // Each within the limit, together far beyond it; and one that is alone beyond it.
    for (entry_bytes, columns) in [(LIMIT as u64 / 2, 40), (1 << 31, 1)] {
        let dictionary = Some((1, vec![values(Role::Ends, 32, 1, entry_bytes), bytes(entry_bytes)]));
        let codes = Node { coded: true, ..node(9, vec![values(Role::Codes, 8, 9, 0)]) };
        let keyed = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let field = nullable("c", keyed);
        let column = Column { field, nodes: vec![codes], dictionary };
        let file = file(9, &vec![column; columns]);
        let error = assert_bounded("dictionaries", &file).unwrap_err();
        assert!(error.contains("raise the limit"), "{error}");
    }
}

#[test]
fn strings_and_lists_of_one_huge_slot_are_refused_and_others_read_in_parts() {
    let _alone = alone();
    let (huge, slots) = (1_u64 << 40, 1_u64 << 33);
    let texts = |ends: u64| node(slots, vec![values(Role::Ends, 64, slots, ends), bytes(ends)]);
    let error =
        assert_bounded("text", &file(slots, &[column(DataType::LargeUtf8, vec![texts(huge)])])).unwrap_err();
    assert!(error.contains("column c") && error.contains("limit"), "{error}");
    assert!(assert_bounded("text", &file(slots, &[column(DataType::Utf8, vec![texts(3)])])).unwrap() > 0);
    let item = Arc::new(nullable("item", DataType::Int8));
    let lists = [
        DataType::List(item.clone()),
        DataType::LargeList(item.clone()),
        DataType::ListView(item.clone()),
        DataType::LargeListView(item),
    ];
    for data_type in lists {
        let name = data_type.to_string();
        for end in [huge, 3] {
            let nodes = vec![
                node(slots, vec![values(Role::Ends, 64, slots, end)]),
                node(end, vec![values(Role::Values, 8, end, 1)]),
            ];
            let outcome = assert_bounded(&name, &file(slots, &[column(data_type.clone(), nodes)]));
            assert_eq!(outcome.is_err(), end == huge, "{name}: {outcome:?}");
        }
    }
}

#[test]
fn fixed_lists_and_wide_binary_multiply_without_harm() {
    let _alone = alone();
    let size = i32::MAX;
    let slots = 1_u64 << 20;
    let product = slots * u64::from(size.unsigned_abs());
    let list = |child: DataType| DataType::FixedSizeList(Arc::new(nullable("item", child)), size);
    let of_numbers = vec![node(slots, vec![]), node(product, vec![values(Role::Values, 8, product, 1)])];
    assert!(assert_bounded("numbers", &file(slots, &[column(list(DataType::Int8), of_numbers)])).is_err());
    let of_nulls = vec![node(slots, vec![]), Node { null_count: product, ..node(product, vec![]) }];
    let _ = assert_bounded("nulls", &file(slots, &[column(list(DataType::Null), of_nulls)]));
    let binary = vec![node(slots, vec![bytes(product)])];
    assert!(
        assert_bounded("binary", &file(slots, &[column(DataType::FixedSizeBinary(size), binary)])).is_err()
    );
}

#[test]
fn rows_without_any_bytes_are_read_in_parts() {
    let _alone = alone();
    let nulls = Node { null_count: ROWS, ..node(ROWS, vec![]) };
    assert!(assert_bounded("null", &file(ROWS, &[column(DataType::Null, vec![nulls])])).unwrap() > 0);
    let empty = DataType::Struct(Fields::empty());
    assert!(assert_bounded("struct", &file(ROWS, &[column(empty, vec![node(ROWS, vec![])])])).unwrap() > 0);
    assert!(assert_bounded("no columns", &file(ROWS, &[])).unwrap() > 0);
    for rows in [u64::MAX, 1 << 63] {
        let nulls = Node { null_count: rows, ..node(rows, vec![]) };
        let _ = assert_bounded("null", &file(rows, &[column(DataType::Null, vec![nulls])]));
    }
}

#[test]
fn many_columns_share_the_limit() {
    let _alone = alone();
    let constant = column(DataType::Int8, vec![node(ROWS, vec![values(Role::Values, 8, ROWS, 1)])]);
    assert!(assert_bounded("columns", &file(ROWS, &vec![constant; 300])).unwrap() > 0);
}

/// The proof decodes everything, and keeps none of it.
#[test]
fn proving_takes_no_more_than_its_share() {
    let _alone = alone();
    let rows = 1 << 26;
    let constant = column(DataType::Int64, vec![node(rows, vec![values(Role::Values, 64, rows, 0)])]);
    let file = file(rows, &[constant]);
    let peak = peak_of(|| {
        let table = cb2t::open_bytes(file).unwrap();
        // The blocks of this file say "unsigned" where the type is signed, which is looked at first: all else holds.
        let error = table.verify(&|_, _| {}).unwrap_err().to_string();
        assert!(error.contains("order"), "{error}");
    });
    assert!(peak < 1 << 20, "{} MiB", peak >> 20);
    let unsigned = column(DataType::UInt64, vec![node(rows, vec![values(Role::Values, 64, rows, 0)])]);
    let file = craft::file(rows, &[unsigned]);
    let peak = peak_of(|| {
        let verified = cb2t::open_bytes(file).unwrap().verify(&|_, _| {}).unwrap();
        assert_eq!(verified.row_count, rows);
    });
    // 512 MiB of values, of which the proof holds 256 MiB at most in all its threads.
    assert!(peak < 256 << 20, "{} MiB", peak >> 20);
}

/// Tables of a flatbuffer may refer to the same names and children again and again.
#[test]
fn schemas_whose_parts_are_shared_are_refused() {
    let _alone = alone();
    for depth in [12, 15, 60] {
        let message = shared_schema(depth);
        let mut error = None;
        let peak = peak_of(|| error = decode_schema(&message).err());
        assert!(error.is_some(), "{depth} levels");
        assert!(peak < 4 << 20, "{depth} levels: {} MiB for {} bytes", peak >> 20, message.len());
    }
    // A name of a million bytes above sixty levels would be in the path of each.
    let mut data_type = DataType::Int8;
    for _ in 0..60 {
        data_type = DataType::Struct(vec![Field::new("s", data_type, true)].into());
    }
    let mut error = None;
    let schema = Schema::new(vec![Field::new("n".repeat(1 << 20), data_type, true)]);
    let peak = peak_of(|| error = encode_schema(&schema).err());
    assert!(error.unwrap().to_string().contains("too often"));
    assert!(peak < 16 << 20, "{} MiB", peak >> 20);
}

/// An IPC message of a schema of 2^depth fields, all pairs of which share their children.
fn shared_schema(depth: usize) -> Vec<u8> {
    use arrow::ipc::{
        FieldBuilder, MessageBuilder, MessageHeader, MetadataVersion, NullBuilder, SchemaBuilder,
        Struct_Builder, Type,
    };
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    let name = builder.create_string("f");
    let null = NullBuilder::new(&mut builder).finish();
    let mut field = FieldBuilder::new(&mut builder);
    field.add_name(name);
    field.add_type_type(Type::Null);
    field.add_type_(null.as_union_value());
    let mut child = field.finish();
    for _ in 0..depth {
        let children = builder.create_vector(&[child, child]);
        let of_struct = Struct_Builder::new(&mut builder).finish();
        let mut field = FieldBuilder::new(&mut builder);
        field.add_name(name);
        field.add_type_type(Type::Struct_);
        field.add_type_(of_struct.as_union_value());
        field.add_children(children);
        child = field.finish();
    }
    let fields = builder.create_vector(&[child]);
    let mut schema = SchemaBuilder::new(&mut builder);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

/// Whatever is damaged: memory stays within a small multiple of the file and the limit.
#[test]
fn damaged_files_take_no_more_than_sound_ones() {
    let _alone = alone();
    let samples = samples::shapes().into_iter().chain(samples::every_type_alone().into_iter().step_by(3));
    for sample in samples {
        for seed in 0..60 {
            let mut damaged = sample.bytes.clone();
            let done = mutate(&mut damaged, &mut Random(seed)).unwrap();
            let _ = assert_bounded(&format!("{}: seed {seed}: {done}", sample.name), &damaged);
        }
    }
}
