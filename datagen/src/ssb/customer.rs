use super::geography::{nations, places};
use super::text::{Addresses, Phones, labels, push_padded, strings};
use super::{Dialect, field};
use crate::lehmer::{Stream, Uniform};
use arrow::array::{ArrayRef, Int32Array};
use arrow::datatypes::DataType::{Int32, Utf8};
use arrow::datatypes::Field;
use std::ops::Range;
use std::sync::Arc;

const ADDRESS_SEED: i64 = 881_155_353;
const NATION_SEED: i64 = 1_489_529_863;
const SEGMENT_SEED: i64 = 1_140_279_430;
const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"];

pub(super) fn fields() -> Vec<Field> {
    vec![
        field("c_custkey", Int32),
        field("c_name", Utf8),
        field("c_address", Utf8),
        field("c_city", Utf8),
        field("c_nation", Utf8),
        field("c_region", Utf8),
        field("c_phone", Utf8),
        field("c_mktsegment", Utf8),
    ]
}

/// The columns of `rows`, counted from 0.
pub(super) fn columns(dialect: Dialect, rows: Range<u32>) -> Vec<ArrayRef> {
    let first = rows.start;
    let nations = nations(NATION_SEED, first, rows.len());
    let [city, nation, region] = places(dialect, first, &nations);
    let mut addresses = Addresses::new(ADDRESS_SEED, first);
    let mut phones = Phones::new(first);
    vec![
        Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| (row + 1).cast_signed()))),
        strings(rows.clone(), 18, |row, name| {
            name.push_str("Customer#");
            push_padded(name, row + 1, 9);
        }),
        strings(rows.clone(), 15, |_, address| addresses.push(address)),
        city,
        nation,
        region,
        strings(nations.iter(), 15, |&nation, phone| phones.push(phone, nation)),
        segments(rows),
    ]
}

fn segments(rows: Range<u32>) -> ArrayRef {
    let values = Uniform::new(0, 4);
    let mut stream = Stream::new(SEGMENT_SEED, rows.start.into());
    labels(rows.map(|_| SEGMENTS[stream.draw(values) as usize]))
}
