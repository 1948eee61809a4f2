//! Random tables with every border that files have: small row groups and blocks, partial tiles, nulls, narrow codes, constants.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt8Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_io::table::{Table, TableWriter, WriterOptions};
use codec_core::{Choice, EncodeOptions};
use container::Source;
use query_demo::plan::{Buffer, Input, Range};

use super::random::Random;

/// How a table is cut.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Rows of the table.
    pub rows: usize,
    /// Values a tile: 512 or 1024.
    pub tile_size: u32,
    /// Most rows of a row group.
    pub row_group_rows: u64,
    /// Bytes of a block before compression.
    pub block_bytes: u32,
}

/// Cuts with full and partial tiles, one and many row groups and blocks, and no rows at all.
pub const CUTS: [Cut; 5] = [
    Cut { rows: 0, tile_size: 1024, row_group_rows: 1000, block_bytes: 4096 },
    Cut { rows: 513, tile_size: 512, row_group_rows: 1000, block_bytes: 4096 },
    Cut { rows: 7001, tile_size: 512, row_group_rows: 1700, block_bytes: 2048 },
    Cut { rows: 9000, tile_size: 1024, row_group_rows: 3000, block_bytes: 8192 },
    Cut { rows: 34_000, tile_size: 512, row_group_rows: 1 << 20, block_bytes: 1 << 16 },
];

fn write(schema: &SchemaRef, arrays: Vec<ArrayRef>, cut: Cut, choice: Choice) -> Arc<Table> {
    let (block_bytes, tile_size) = (cut.block_bytes, cut.tile_size);
    let encode = EncodeOptions { block_bytes, tile_size, choice, ..EncodeOptions::default() };
    let options = WriterOptions { encode, row_group_rows: cut.row_group_rows, ..WriterOptions::default() };
    let mut writer = TableWriter::new(Vec::new(), Arc::clone(schema), &codecs::REGISTRY, options).unwrap();
    let batch = RecordBatch::try_new(Arc::clone(schema), arrays).unwrap();
    if batch.num_rows() > 0 {
        writer.write(&batch).unwrap();
    }
    let (sink, _) = writer.finish().unwrap();
    Arc::new(Table::from_source(Source::memory(sink), &codecs::REGISTRY).unwrap())
}

/// A table that facts come from, with the inputs that [`fact_inputs`] names.
pub fn facts(cut: Cut) -> Arc<Table> {
    facts_encoded(cut, Choice::Auto)
}

/// As [`facts`], with these codecs.
pub fn facts_encoded(cut: Cut, choice: Choice) -> Arc<Table> {
    let mut random = Random::new(cut.rows as u64 + 1);
    let rows = 0..cut.rows as i64;
    let mut int = |low: i64, high: i64| rows.clone().map(|_| random.within(low, high)).collect::<Vec<i64>>();
    let tiny: Int8Array = int(-5, 5).into_iter().map(|value| Some(value as i8)).collect();
    let small: Int32Array = int(1, 50).into_iter().map(|value| Some(value as i32)).collect();
    let nulls = int(1, 7);
    let keys = int(KEYS.min - 20, KEYS.max + 20);
    let key: Int32Array =
        keys.iter().zip(&nulls).map(|(&key, &null)| (null > 1).then_some(key as i32)).collect();
    let dates: Int64Array = rows.clone().map(|row| Some(row / 3 - 3000)).collect();
    // The first rows have few names, so the codes of later row groups are wider.
    let names = int(0, 399);
    let name: StringArray = rows
        .clone()
        .zip(names.iter().zip(&nulls))
        .map(|(row, (name, &null))| {
            let name = if row < 2000 { name % 10 } else { *name };
            (null != 2).then(|| format!("name {name}"))
        })
        .collect();
    let flags = int(0, 2);
    let flag: BooleanArray = flags.iter().map(|&flag| (flag < 2).then_some(flag == 1)).collect();
    let price: Decimal128Array =
        int(-1_000_000, 90_000_000).into_iter().map(|value| Some(value.into())).collect();
    let price = price.with_precision_and_scale(12, 2).unwrap();
    let constant: Int16Array = rows.clone().map(|_| Some(-7)).collect();
    let byte: UInt8Array = int(0, 255).into_iter().map(|value| Some(value as u8)).collect();
    // Nulls only in the first row group: the others store no validity.
    let holes: Int32Array = rows
        .clone()
        .zip(int(-9, 9))
        .map(|(row, value)| (row > 900 || value != 0).then_some(value as i32))
        .collect();
    let field = |name: &str, data_type: DataType, nullable| Field::new(name, data_type, nullable);
    let schema = Arc::new(Schema::new(vec![
        field("tiny", DataType::Int8, false),
        field("small", DataType::Int32, false),
        field("key", DataType::Int32, true),
        field("date", DataType::Int64, false),
        field("name", DataType::Utf8, true),
        field("flag", DataType::Boolean, true),
        field("price", DataType::Decimal128(12, 2), false),
        field("constant", DataType::Int16, false),
        field("byte", DataType::UInt8, false),
        field("holes", DataType::Int32, true),
    ]));
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(tiny),
        Arc::new(small),
        Arc::new(key),
        Arc::new(dates),
        Arc::new(name),
        Arc::new(flag),
        Arc::new(price),
        Arc::new(constant),
        Arc::new(byte),
        Arc::new(holes),
    ];
    write(&schema, arrays, cut, choice)
}

/// A table of items: ids of [`KEYS`] that are distinct, some missing, and what they have.
pub fn items(cut: Cut, distinct: bool) -> Arc<Table> {
    let mut random = Random::new(7);
    let mut ids: Vec<i64> = (KEYS.min..=KEYS.max).filter(|id| id % 5 != 0).collect();
    random.shuffle(&mut ids);
    if !distinct {
        ids.extend_from_within(..100);
    }
    let rows = ids.len();
    let id: Int32Array = ids.iter().map(|&id| Some(id as i32)).collect();
    let color: UInt8Array = (0..rows).map(|_| Some(random.within(0, 6) as u8)).collect();
    let weight: Int32Array =
        (0..rows).map(|_| (!random.percent(25)).then(|| random.within(-500, 500) as i32)).collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        Field::new("color", DataType::UInt8, false),
        Field::new("weight", DataType::Int32, true),
    ]));
    write(&schema, vec![Arc::new(id), Arc::new(color), Arc::new(weight)], cut, Choice::Auto)
}

/// The range of items' ids.
pub const KEYS: Range = Range { min: -150, max: 450 };

/// The inputs of facts, in the order of [`fact`]'s constants.
pub fn fact_inputs() -> Vec<Input> {
    let range = |min, max| Range { min, max };
    let values = |column, name: &str, value_width, signed, range| Input {
        column,
        name: name.to_owned(),
        buffer: Buffer::Values,
        value_width,
        signed,
        range,
    };
    let validity = |column, name: &str| Input {
        column,
        name: name.to_owned(),
        buffer: Buffer::Validity,
        value_width: 8,
        signed: false,
        range: Range { min: 0, max: 1 },
    };
    vec![
        values(0, "tiny", 8, true, range(-5, 5)),
        values(1, "small", 32, true, range(1, 50)),
        values(2, "key", 32, true, range(KEYS.min - 20, KEYS.max + 20)),
        validity(2, "key"),
        values(3, "date", 64, true, range(-3000, 21_000)),
        values(4, "name", 32, false, range(0, 399)),
        validity(4, "name"),
        values(5, "flag", 8, false, range(0, 1)),
        validity(5, "flag"),
        values(6, "price", 64, true, range(-1_000_000, 90_000_000)),
        values(7, "constant", 16, true, range(-7, -7)),
        values(8, "byte", 8, false, range(0, 255)),
        values(9, "holes", 32, true, range(-9, 9)),
        validity(9, "holes"),
    ]
}

/// Indexes of facts' inputs.
pub mod fact {
    pub const TINY: usize = 0;
    pub const SMALL: usize = 1;
    pub const KEY: usize = 2;
    pub const KEY_VALID: usize = 3;
    pub const DATE: usize = 4;
    pub const NAME: usize = 5;
    pub const NAME_VALID: usize = 6;
    pub const FLAG: usize = 7;
    pub const FLAG_VALID: usize = 8;
    pub const PRICE: usize = 9;
    pub const CONSTANT: usize = 10;
    pub const BYTE: usize = 11;
    pub const HOLES: usize = 12;
    pub const HOLES_VALID: usize = 13;
}

/// The inputs of items: id, color, weight, and where weight is not null.
pub fn item_inputs() -> Vec<Input> {
    let input = |column, name: &str, buffer, value_width, signed, min, max| Input {
        column,
        name: name.to_owned(),
        buffer,
        value_width,
        signed,
        range: Range { min, max },
    };
    vec![
        input(0, "id", Buffer::Values, 32, true, KEYS.min, KEYS.max),
        input(1, "color", Buffer::Values, 8, false, 0, 6),
        input(2, "weight", Buffer::Values, 32, true, -500, 500),
        input(2, "weight", Buffer::Validity, 8, false, 0, 1),
    ]
}
