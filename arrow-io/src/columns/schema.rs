//! The schema as a file holds it: an Arrow IPC message.

use arrow::datatypes::Schema;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow::ipc::{
    DateUnit, Endianness, Field, IntervalUnit, KeyValue, Precision, Schema as SchemaMessage, TimeUnit, Type,
    UnionMode, root_as_message,
};

use crate::error::TableError;

/// Fields nested deeper than this are refused.
const MAX_DEPTH: usize = 64;

/// The message for `schema`.
///
/// # Errors
/// Arrow's IPC form cannot hold a part of the schema.
pub fn encode_schema(schema: &Schema) -> Result<Vec<u8>, TableError> {
    let mut dictionaries = DictionaryTracker::new(false);
    let message = IpcDataGenerator::default()
        .schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &IpcWriteOptions::default())
        .ipc_message;
    let decoded = decode_schema(&message)?;
    if decoded == *schema {
        return Ok(message);
    }
    let differs = schema.fields().iter().zip(decoded.fields()).find(|(left, right)| left != right);
    let reason = match differs {
        Some((field, _)) => {
            format!("column {}: Arrow's IPC form cannot hold type {}", field.name(), field.data_type())
        }
        None => "Arrow's IPC form cannot hold its metadata".to_owned(),
    };
    Err(TableError::Schema { reason })
}

/// The schema of a message.
///
/// # Errors
/// Bytes that are no such message, or types that Arrow does not have.
pub fn decode_schema(message: &[u8]) -> Result<Schema, TableError> {
    let refuse = |reason: String| TableError::Schema { reason };
    let message_bytes = message.len();
    let message =
        root_as_message(message).map_err(|error| refuse(format!("no Arrow IPC message: {error}")))?;
    let schema = message.header_as_schema().ok_or_else(|| refuse("the message holds no schema".into()))?;
    let mut room = Room(ROOM_BYTES.saturating_mul(message_bytes).saturating_add(LEAST_ROOM_BYTES));
    check_schema(schema, &mut room).map_err(refuse)?;
    Ok(fb_to_schema(schema))
}

/// Bytes that the decoded schema may take for each byte of the message, and in any case. The tables of a flatbuffer may share what they refer to, so that a few
/// bytes could stand for gigabytes of names.
const ROOM_BYTES: usize = 32;
const LEAST_ROOM_BYTES: usize = 1 << 20;

/// What a field takes besides its texts.
const FIELD_BYTES: usize = 256;

/// Bytes that the decoded schema may still take.
struct Room(usize);

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.0 = self.0.checked_sub(bytes).ok_or("its parts refer to the same bytes too often")?;
        Ok(())
    }

    fn take_metadata<'a>(&mut self, mut pairs: impl Iterator<Item = KeyValue<'a>>) -> Result<(), String> {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        pairs.try_for_each(|pair| self.take(FIELD_BYTES + length(pair.key()) + length(pair.value())))
    }
}

/// Arrow's own conversion panics on what it does not expect, so everything that it expects is proven first.
fn check_schema(schema: SchemaMessage<'_>, room: &mut Room) -> Result<(), String> {
    if schema.endianness() != Endianness::Little {
        return Err("it is not little-endian".into());
    }
    let fields = schema.fields().ok_or("it has no fields")?;
    room.take_metadata(schema.custom_metadata().into_iter().flatten())?;
    fields.iter().try_for_each(|field| check_field(field, 0, 0, room))
}

fn check_field(field: Field<'_>, depth: usize, path_bytes: usize, room: &mut Room) -> Result<(), String> {
    let name = field.name().unwrap_or_default();
    // A node's path holds the names of all above it.
    let path_bytes = path_bytes + name.len();
    let zone = field.type_as_timestamp().and_then(|timestamp| timestamp.timezone());
    room.take(FIELD_BYTES + name.len() + path_bytes + zone.map_or(0, str::len))?;
    room.take_metadata(field.custom_metadata().into_iter().flatten())?;
    let refuse = |reason: &str| Err(format!("column {name}: {reason}"));
    if depth > MAX_DEPTH {
        return refuse("nested too deeply");
    }
    if let Some(dictionary) = field.dictionary() {
        match dictionary.indexType().map(|index| index.bitWidth()) {
            Some(8 | 16 | 32 | 64) => {}
            _ => return refuse("dictionary keys of an unknown type"),
        }
    }
    if !is_known_type(field) {
        return refuse("a type that this version of Arrow does not have");
    }
    if let Some(children) = field.children() {
        for child in children {
            check_field(child, depth + 1, path_bytes, room)?;
        }
    }
    Ok(())
}

/// Whether the type is one that Arrow's conversion takes, with as many children as it takes.
fn is_known_type(field: Field<'_>) -> bool {
    let child_count = field.children().map_or(0, |children| children.len());
    match field.type_type() {
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8
        | Type::Struct_ => true,
        Type::Int => field.type_as_int().is_some_and(|int| matches!(int.bitWidth(), 8 | 16 | 32 | 64)),
        Type::FixedSizeBinary => {
            field.type_as_fixed_size_binary().is_some_and(|binary| binary.byteWidth() >= 0)
        }
        Type::FloatingPoint => field.type_as_floating_point().is_some_and(|float| {
            [Precision::HALF, Precision::SINGLE, Precision::DOUBLE].contains(&float.precision())
        }),
        Type::Date => field
            .type_as_date()
            .is_some_and(|date| [DateUnit::DAY, DateUnit::MILLISECOND].contains(&date.unit())),
        Type::Time => field.type_as_time().is_some_and(|time| match time.bitWidth() {
            32 => [TimeUnit::SECOND, TimeUnit::MILLISECOND].contains(&time.unit()),
            64 => [TimeUnit::MICROSECOND, TimeUnit::NANOSECOND].contains(&time.unit()),
            _ => false,
        }),
        Type::Timestamp => field.type_as_timestamp().is_some_and(|timestamp| is_time_unit(timestamp.unit())),
        Type::Duration => field.type_as_duration().is_some_and(|duration| is_time_unit(duration.unit())),
        Type::Interval => field.type_as_interval().is_some_and(|interval| {
            [IntervalUnit::YEAR_MONTH, IntervalUnit::DAY_TIME, IntervalUnit::MONTH_DAY_NANO]
                .contains(&interval.unit())
        }),
        Type::Decimal => field.type_as_decimal().is_some_and(|decimal| {
            let most_digits = match decimal.bitWidth() {
                32 => 9,
                64 => 18,
                128 => 38,
                256 => 76,
                _ => return false,
            };
            (1..=most_digits).contains(&decimal.precision()) && i8::try_from(decimal.scale()).is_ok()
        }),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => child_count == 1,
        Type::FixedSizeList => {
            child_count == 1 && field.type_as_fixed_size_list().is_some_and(|list| list.listSize() >= 0)
        }
        Type::Map => child_count == 1 && field.type_as_map().is_some(),
        Type::RunEndEncoded => child_count == 2 && has_run_ends(field),
        Type::Union => is_known_union(field, child_count),
        _ => false,
    }
}

fn is_time_unit(unit: TimeUnit) -> bool {
    [TimeUnit::SECOND, TimeUnit::MILLISECOND, TimeUnit::MICROSECOND, TimeUnit::NANOSECOND].contains(&unit)
}

fn has_run_ends(field: Field<'_>) -> bool {
    let Some(run_ends) = field.children().map(|children| children.get(0)) else { return false };
    let int = run_ends.type_as_int();
    run_ends.dictionary().is_none()
        && int.is_some_and(|int| int.is_signed() && matches!(int.bitWidth(), 16 | 32 | 64))
}

fn is_known_union(field: Field<'_>, child_count: usize) -> bool {
    let Some(union) = field.type_as_union() else { return false };
    let known_mode = [UnionMode::Dense, UnionMode::Sparse].contains(&union.mode());
    let ids_fit = match union.typeIds() {
        None => child_count <= 128,
        Some(ids) if ids.len() != child_count => false,
        Some(ids) => {
            let mut sorted: Vec<i32> = ids.iter().collect();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.len() == child_count && sorted.iter().all(|id| (0..=127).contains(id))
        }
    };
    known_mode && ids_fit
}
