//! Bytes become Arrow arrays of any type.
//!
//! The input chooses types, lengths and patterns; values come from a generator that the input seeds, so that few bytes make a whole table.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow::array::{
    Array, ArrayData, ArrayRef, Int16Array, Int32Array, Int64Array, NullArray, RecordBatch,
    RecordBatchOptions, UInt64Array, UnionArray, make_array, new_empty_array,
};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, Fields, IntervalUnit, Schema, TimeUnit, UnionFields, UnionMode,
};
use codec_core::conformance::Random;

const MAX_ROWS: usize = 300;
const MAX_DEPTH: usize = 3;

/// A table of up to four columns.
///
/// # Errors
/// The input ends.
pub fn batch(u: &mut Unstructured<'_>) -> Result<RecordBatch> {
    let rows = u.int_in_range(0..=MAX_ROWS)?;
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for index in 0..u.int_in_range(0..=4)? {
        let data_type = data_type(u, 0)?;
        // A slice of a longer array, so that offsets are not always 0.
        let skipped = u.int_in_range(0..=9)?;
        let array = array(u, &data_type, rows + skipped)?.slice(skipped, rows);
        let nullable = array.null_count() > 0 || bool::arbitrary_bit(u)?;
        fields.push(Field::new(format!("c{index}"), data_type, nullable));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .expect("arrays of the schema"))
}

trait Bit {
    fn arbitrary_bit(u: &mut Unstructured<'_>) -> Result<bool>;
}

impl Bit for bool {
    fn arbitrary_bit(u: &mut Unstructured<'_>) -> Result<bool> {
        u.arbitrary()
    }
}

fn data_type(u: &mut Unstructured<'_>, depth: usize) -> Result<DataType> {
    let most = if depth < MAX_DEPTH { 50 } else { 40 };
    let unit = |u: &mut Unstructured<'_>| {
        u.choose(&[TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond])
            .copied()
    };
    Ok(match u.int_in_range(0..=most)? {
        0 => DataType::Null,
        1 => DataType::Boolean,
        2 => DataType::Int8,
        3 => DataType::Int16,
        4 => DataType::Int32,
        5 => DataType::Int64,
        6 => DataType::UInt8,
        7 => DataType::UInt16,
        8 => DataType::UInt32,
        9 => DataType::UInt64,
        10 => DataType::Float16,
        11 => DataType::Float32,
        12 => DataType::Float64,
        13 => DataType::Date32,
        14 => DataType::Date64,
        15 => DataType::Time32(TimeUnit::Second),
        16 => DataType::Time32(TimeUnit::Millisecond),
        17 => DataType::Time64(TimeUnit::Microsecond),
        18 => DataType::Time64(TimeUnit::Nanosecond),
        19 => DataType::Timestamp(unit(u)?, None),
        20 => DataType::Timestamp(unit(u)?, Some((*u.choose(&["UTC", "+01:00", "Nowhere/Real"])?).into())),
        21 => DataType::Duration(unit(u)?),
        22 => DataType::Interval(IntervalUnit::YearMonth),
        23 => DataType::Interval(IntervalUnit::DayTime),
        24 => DataType::Interval(IntervalUnit::MonthDayNano),
        25 => DataType::Decimal32(u.int_in_range(1..=9)?, u.int_in_range(-3..=9)?),
        26 => DataType::Decimal64(u.int_in_range(1..=18)?, u.int_in_range(-3..=18)?),
        27 => DataType::Decimal128(u.int_in_range(1..=38)?, u.int_in_range(-3..=38)?),
        28 => DataType::Decimal256(u.int_in_range(1..=76)?, u.int_in_range(-3..=76)?),
        29 => DataType::FixedSizeBinary(u.int_in_range(0..=70)?),
        30 => DataType::Utf8,
        31 => DataType::LargeUtf8,
        32 => DataType::Utf8View,
        33 => DataType::Binary,
        34 => DataType::LargeBinary,
        35 => DataType::BinaryView,
        36..=38 => DataType::Dictionary(Box::new(key_type(u)?), Box::new(dictionary_values(u)?)),
        39..=40 => DataType::RunEndEncoded(
            Arc::new(Field::new("run_ends", run_end_type(u)?, false)),
            Arc::new(Field::new("values", dictionary_values(u)?, true)),
        ),
        41 => DataType::List(item(u, depth)?),
        42 => DataType::LargeList(item(u, depth)?),
        43 => DataType::ListView(item(u, depth)?),
        44 => DataType::LargeListView(item(u, depth)?),
        45 => DataType::FixedSizeList(item(u, depth)?, u.int_in_range(0..=3)?),
        46 => DataType::Map(entries(u, depth)?, false),
        47..=48 => DataType::Struct(children(u, depth)?),
        49 => DataType::Union(union_fields(u, depth)?, UnionMode::Sparse),
        _ => DataType::Union(union_fields(u, depth)?, UnionMode::Dense),
    })
}

fn key_type(u: &mut Unstructured<'_>) -> Result<DataType> {
    let keys = [DataType::Int16, DataType::Int32, DataType::Int64, DataType::UInt16, DataType::UInt32];
    u.choose(&keys).cloned()
}

fn run_end_type(u: &mut Unstructured<'_>) -> Result<DataType> {
    u.choose(&[DataType::Int16, DataType::Int32, DataType::Int64]).cloned()
}

/// Types of dictionaries' and runs' values.
fn dictionary_values(u: &mut Unstructured<'_>) -> Result<DataType> {
    let values = [
        DataType::Utf8,
        DataType::Int32,
        DataType::UInt64,
        DataType::Float64,
        DataType::Binary,
        DataType::LargeUtf8,
        DataType::Boolean,
        DataType::Utf8View,
        DataType::Decimal128(20, 3),
        DataType::FixedSizeBinary(5),
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Millisecond, None),
    ];
    u.choose(&values).cloned()
}

fn item(u: &mut Unstructured<'_>, depth: usize) -> Result<FieldRef> {
    Ok(Arc::new(Field::new_list_field(data_type(u, depth + 1)?, true)))
}

fn entries(u: &mut Unstructured<'_>, depth: usize) -> Result<FieldRef> {
    let key = u.choose(&[DataType::Utf8, DataType::Int32]).cloned()?;
    let fields = Fields::from(vec![
        Field::new("key", key, false),
        Field::new("value", data_type(u, depth + 1)?, true),
    ]);
    Ok(Arc::new(Field::new("entries", DataType::Struct(fields), false)))
}

fn children(u: &mut Unstructured<'_>, depth: usize) -> Result<Fields> {
    let count = u.int_in_range(0..=3)?;
    (0..count).map(|index| Ok(Field::new(format!("f{index}"), data_type(u, depth + 1)?, true))).collect()
}

fn union_fields(u: &mut Unstructured<'_>, depth: usize) -> Result<UnionFields> {
    let count = u.int_in_range(1..=3)?;
    let fields = (0..count).map(|index| {
        let field = Field::new(format!("u{index}"), data_type(u, depth + 1)?, true);
        Ok((index * 60, Arc::new(field)))
    });
    Ok(fields.collect::<Result<Vec<(i8, FieldRef)>>>()?.into_iter().collect())
}

/// An array of `length` slots.
fn array(u: &mut Unstructured<'_>, data_type: &DataType, length: usize) -> Result<ArrayRef> {
    let mut random = Random(u.arbitrary()?);
    let nulls = nulls(u, length, &mut random)?;
    let builder = |data_type: &DataType| {
        ArrayData::builder(data_type.clone()).len(length).nulls(nulls.clone()).align_buffers(true)
    };
    let data = match data_type {
        DataType::Null => return Ok(Arc::new(NullArray::new(length))),
        DataType::Boolean => builder(data_type).add_buffer(values(u, length.div_ceil(8), 1, &mut random)?),
        DataType::FixedSizeBinary(width) => {
            builder(data_type).add_buffer(values(u, length, *width as usize, &mut random)?)
        }
        DataType::Utf8 | DataType::Binary => {
            let (ends, bytes) = strings(u, length, data_type == &DataType::Utf8, &mut random)?;
            let ends: Vec<i32> = ends.into_iter().map(|end| end as i32).collect();
            builder(data_type).add_buffer(Buffer::from_vec(ends)).add_buffer(bytes)
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let (ends, bytes) = strings(u, length, data_type == &DataType::LargeUtf8, &mut random)?;
            let ends: Vec<i64> = ends.into_iter().map(|end| end as i64).collect();
            builder(data_type).add_buffer(Buffer::from_vec(ends)).add_buffer(bytes)
        }
        DataType::Utf8View => return Ok(cast(&array(u, &DataType::Utf8, length)?, data_type).unwrap()),
        DataType::BinaryView => return Ok(cast(&array(u, &DataType::Binary, length)?, data_type).unwrap()),
        DataType::Dictionary(key, of) => {
            let distinct = u.int_in_range(1..=20)?;
            let keys = Int64Array::from_iter_values((0..length).map(|_| (random.draw() % distinct) as i64));
            let keys = cast(&keys, key).expect("small keys").to_data().into_builder().nulls(nulls);
            let values = array(u, of, distinct as usize)?.to_data();
            keys.data_type(data_type.clone()).add_child_data(values)
        }
        DataType::RunEndEncoded(ends, of) => {
            return runs(u, data_type, ends.data_type(), of.data_type(), length);
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
            let (ends, total) = ends(u, length, &mut random)?;
            let child = match item.data_type() {
                DataType::Struct(fields) if matches!(data_type, DataType::Map(..)) => {
                    pairs(u, fields, total)?
                }
                other => array(u, other, total)?,
            };
            let ends = if matches!(data_type, DataType::LargeList(_)) {
                Buffer::from_vec(ends.into_iter().map(|end| end as i64).collect::<Vec<_>>())
            } else {
                Buffer::from_vec(ends.into_iter().map(|end| end as i32).collect::<Vec<_>>())
            };
            builder(data_type).add_buffer(ends).add_child_data(child.to_data())
        }
        DataType::ListView(item) | DataType::LargeListView(item) => {
            let total = u.int_in_range(0..=100)?;
            let child = array(u, item.data_type(), total)?;
            let places: Vec<(usize, usize)> = (0..length)
                .map(|_| {
                    let start = random.draw() as usize % (total + 1);
                    (start, random.draw() as usize % (total + 1 - start).min(5))
                })
                .collect();
            let buffers = if matches!(data_type, DataType::ListView(_)) {
                [
                    Buffer::from_vec(places.iter().map(|place| place.0 as i32).collect::<Vec<_>>()),
                    Buffer::from_vec(places.iter().map(|place| place.1 as i32).collect::<Vec<_>>()),
                ]
            } else {
                [
                    Buffer::from_vec(places.iter().map(|place| place.0 as i64).collect::<Vec<_>>()),
                    Buffer::from_vec(places.iter().map(|place| place.1 as i64).collect::<Vec<_>>()),
                ]
            };
            builder(data_type).buffers(buffers.to_vec()).add_child_data(child.to_data())
        }
        DataType::FixedSizeList(item, size) => {
            let child = array(u, item.data_type(), length * *size as usize)?;
            builder(data_type).add_child_data(child.to_data())
        }
        DataType::Struct(fields) => {
            let mut data = builder(data_type);
            for field in fields {
                data = data.add_child_data(array(u, field.data_type(), length)?.to_data());
            }
            data
        }
        DataType::Union(fields, mode) => return union(u, fields, *mode, length, &mut random),
        other => {
            let width = other.primitive_width().expect("a type of a fixed width");
            builder(data_type).add_buffer(values(u, length, width, &mut random)?)
        }
    };
    Ok(make_array(data.build().expect("an array of the type")))
}

fn nulls(u: &mut Unstructured<'_>, length: usize, random: &mut Random) -> Result<Option<NullBuffer>> {
    let every = match u.int_in_range(0..=5)? {
        0..=1 => return Ok(None),
        2 => 1,
        3 => 2,
        _ => 10,
    };
    Ok(Some((0..length).map(|_| !random.draw().is_multiple_of(every)).collect()))
}

/// `length` values of `width` bytes: constant, small, ascending, runs, or any bits.
fn values(u: &mut Unstructured<'_>, length: usize, width: usize, random: &mut Random) -> Result<Buffer> {
    let pattern = u.int_in_range(0..=5)?;
    let base = random.draw();
    let mut run = base;
    let mut bytes = Vec::with_capacity(length * width);
    for index in 0..length as u64 {
        let value = match pattern {
            0 => base,
            1 => base.wrapping_add(random.draw() % 9),
            2 => base.wrapping_add(index * 3),
            3 => {
                if random.draw().is_multiple_of(7) {
                    run = random.draw();
                }
                run
            }
            4 => [0, 1, u64::MAX, 1 << 63, 0x7FF8_0000_0000_0000][random.draw() as usize % 5],
            _ => random.draw(),
        };
        let mut left = width;
        let mut part = value;
        while left > 0 {
            let taken = left.min(8);
            bytes.extend_from_slice(&part.to_le_bytes()[..taken]);
            left -= taken;
            part = if pattern == 5 { random.draw() } else { 0_u64.wrapping_sub(value >> 63) };
        }
    }
    Ok(Buffer::from_vec(bytes))
}

/// Ends of `length` slots of up to four, and their sum.
fn ends(u: &mut Unstructured<'_>, length: usize, random: &mut Random) -> Result<(Vec<usize>, usize)> {
    let most = u.int_in_range(0..=4)?;
    let mut end = 0;
    let ends: Vec<usize> = std::iter::once(0)
        .chain((0..length).map(|_| {
            end += random.draw() as usize % (most + 1);
            end
        }))
        .collect();
    Ok((ends, end))
}

fn strings(
    u: &mut Unstructured<'_>,
    length: usize,
    text: bool,
    random: &mut Random,
) -> Result<(Vec<usize>, Buffer)> {
    let (distinct, long) = (u.int_in_range(1..=40)?, bool::arbitrary_bit(u)?);
    let words: Vec<Vec<u8>> = (0..distinct)
        .map(|_| {
            let count = random.draw() as usize % if long { 90 } else { 6 };
            let word: String =
                (0..count).map(|_| ['a', 'b', 'é', '🦀', '\0', '"'][random.draw() as usize % 6]).collect();
            if text { word.into_bytes() } else { word.bytes().map(|byte| byte ^ 0x80).collect() }
        })
        .collect();
    let mut bytes = Vec::new();
    let mut ends = vec![0];
    for _ in 0..length {
        bytes.extend_from_slice(&words[random.draw() as usize % distinct]);
        ends.push(bytes.len());
    }
    Ok((ends, Buffer::from_vec(bytes)))
}

/// Entries of a map: keys are not null.
fn pairs(u: &mut Unstructured<'_>, fields: &Fields, length: usize) -> Result<ArrayRef> {
    let keys = array(u, fields[0].data_type(), length)?.to_data();
    let keys = keys.into_builder().nulls(None).build().expect("keys without nulls");
    let values = array(u, fields[1].data_type(), length)?.to_data();
    let data = ArrayData::builder(DataType::Struct(fields.clone())).len(length);
    Ok(make_array(data.add_child_data(keys).add_child_data(values).build().expect("pairs")))
}

fn runs(
    u: &mut Unstructured<'_>,
    data_type: &DataType,
    ends_type: &DataType,
    values_type: &DataType,
    length: usize,
) -> Result<ArrayRef> {
    if length == 0 {
        return Ok(new_empty_array(data_type));
    }
    let step = u.int_in_range(1..=20)?;
    let ends: Vec<usize> = (step..length).step_by(step).chain([length]).collect();
    let values = array(u, values_type, ends.len())?;
    let ends: ArrayRef = match ends_type {
        DataType::Int16 => Arc::new(Int16Array::from_iter_values(ends.iter().map(|&end| end as i16))),
        DataType::Int32 => Arc::new(Int32Array::from_iter_values(ends.iter().map(|&end| end as i32))),
        _ => Arc::new(Int64Array::from_iter_values(ends.iter().map(|&end| end as i64))),
    };
    let data = ArrayData::builder(data_type.clone()).len(length);
    Ok(make_array(
        data.add_child_data(ends.to_data()).add_child_data(values.to_data()).build().expect("runs"),
    ))
}

fn union(
    u: &mut Unstructured<'_>,
    fields: &UnionFields,
    mode: UnionMode,
    length: usize,
    random: &mut Random,
) -> Result<ArrayRef> {
    let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    let chosen: Vec<i8> = (0..length).map(|_| ids[random.draw() as usize % ids.len()]).collect();
    let mut counts = [0_i32; 128];
    let offsets: ScalarBuffer<i32> = chosen
        .iter()
        .map(|&id| {
            counts[id as usize] += 1;
            counts[id as usize] - 1
        })
        .collect();
    let children = fields.iter().map(|(id, field)| {
        let count = if mode == UnionMode::Sparse { length } else { counts[id as usize] as usize };
        array(u, field.data_type(), count)
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    let offsets = (mode == UnionMode::Dense).then_some(offsets);
    let array = UnionArray::try_new(fields.clone(), chosen.into(), offsets, children).expect("a union");
    // Some slots in another order, so that dense offsets do not simply ascend.
    if mode == UnionMode::Dense && bool::arbitrary_bit(u)? && length > 0 {
        let places = UInt64Array::from_iter_values((0..length as u64).rev());
        if let Ok(reversed) = arrow::compute::take(&array, &places, None) {
            return Ok(reversed);
        }
    }
    Ok(Arc::new(array))
}
