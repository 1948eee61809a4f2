use super::geography::{nations, places};
use super::text::{Addresses, Phones, push_padded, strings};
use super::{Dialect, field};
use arrow::array::{ArrayRef, Int32Array};
use arrow::datatypes::DataType::{Int32, Utf8};
use arrow::datatypes::Field;
use std::ops::Range;
use std::sync::Arc;

const ADDRESS_SEED: i64 = 706_178_559;
const NATION_SEED: i64 = 110_356_601;

pub(super) fn fields() -> Vec<Field> {
    vec![
        field("s_suppkey", Int32),
        field("s_name", Utf8),
        field("s_address", Utf8),
        field("s_city", Utf8),
        field("s_nation", Utf8),
        field("s_region", Utf8),
        field("s_phone", Utf8),
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
            name.push_str("Supplier#");
            push_padded(name, row + 1, 9);
        }),
        strings(rows, 15, |_, address| addresses.push(address)),
        city,
        nation,
        region,
        strings(nations.iter(), 15, |&nation, phone| phones.push(phone, nation)),
    ]
}
