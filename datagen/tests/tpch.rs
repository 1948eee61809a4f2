//! The tables of TPC-H: sizes, parts and known answers.
#![allow(clippy::unwrap_used)]
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int64Type};
use datagen::tpch::{Generator, Table};
use datagen::{DEFAULT_BATCH_ROWS, Error, Scale};
use std::collections::{BTreeMap, HashSet};

fn generator(factor: f64) -> Generator {
    Generator::new(Scale::new(factor).unwrap()).unwrap()
}

fn whole(generator: &Generator, table: Table) -> RecordBatch {
    let batches: Vec<_> = generator.batches(table, 0, 1, 4096).unwrap().map(Result::unwrap).collect();
    concat_batches(&generator.schema(table), &batches).unwrap()
}

#[test]
fn tables_have_their_row_counts() {
    let expected = [60_175, 15_000, 8_000, 2_000, 1_500, 100, 25, 5];
    let generator = generator(0.01);
    for (table, rows) in Table::ALL.into_iter().zip(expected) {
        assert_eq!(generator.row_count(table), rows, "{table}");
        assert_eq!(whole(&generator, table).num_rows() as u64, rows, "{table}");
    }
    assert_eq!(self::generator(1.0).row_count(Table::Lineitem), 6_001_215);
    assert_eq!(self::generator(100.0).row_count(Table::Lineitem), 600_037_902);
}

#[test]
fn columns_have_the_documented_types_and_no_nulls() {
    let generator = generator(0.001);
    for table in Table::ALL {
        let rows = whole(&generator, table);
        assert_eq!(rows.schema(), generator.schema(table));
        for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
            let name = field.name();
            assert_eq!(column.null_count(), 0, "{name}");
            let data_type = column.data_type();
            if name.ends_with("key") {
                assert_eq!(data_type, &DataType::Int64, "{name}");
            } else if name.ends_with("date") {
                assert_eq!(data_type, &DataType::Date32, "{name}");
            } else if name.contains("price") || name.ends_with("bal") || name.ends_with("discount") {
                assert_eq!(data_type, &DataType::Decimal128(15, 2), "{name}");
            } else if name.ends_with("comment") || name.ends_with("name") {
                assert_eq!(data_type, &DataType::Utf8View, "{name}");
            }
        }
    }
}

#[test]
fn any_number_of_parts_and_threads_gives_the_same_rows() {
    let generator = generator(0.01);
    for table in Table::ALL {
        let expected = whole(&generator, table);
        let schema = generator.schema(table);
        for part_count in [2, 7] {
            let parts =
                (0..part_count).flat_map(|part| generator.batches(table, part, part_count, 1000).unwrap());
            let parts: Vec<_> = parts.map(Result::unwrap).collect();
            assert!(parts.iter().all(|batch| batch.num_rows() <= 1000));
            assert!(concat_batches(&schema, &parts).unwrap() == expected, "{table} in {part_count} parts");
        }
        for (threads, batch_rows) in [(1, 100_000), (3, 500)] {
            let stream = generator.stream(table, threads, batch_rows).unwrap();
            let batches: Vec<_> = stream.map(Result::unwrap).collect();
            assert!(batches.iter().all(|batch| batch.num_rows() <= batch_rows * 2));
            assert!(concat_batches(&schema, &batches).unwrap() == expected, "{table} on {threads} threads");
        }
    }
}

#[test]
fn foreign_keys_refer_to_rows() {
    let generator = generator(0.01);
    let keys = |table, column: &str| -> HashSet<i64> {
        let rows = whole(&generator, table);
        rows.column_by_name(column).unwrap().as_primitive::<Int64Type>().values().iter().copied().collect()
    };
    for (table, column, parent, parent_column) in [
        (Table::Lineitem, "l_orderkey", Table::Orders, "o_orderkey"),
        (Table::Lineitem, "l_partkey", Table::Part, "p_partkey"),
        (Table::Lineitem, "l_suppkey", Table::Supplier, "s_suppkey"),
        (Table::Orders, "o_custkey", Table::Customer, "c_custkey"),
        (Table::Partsupp, "ps_partkey", Table::Part, "p_partkey"),
        (Table::Partsupp, "ps_suppkey", Table::Supplier, "s_suppkey"),
        (Table::Customer, "c_nationkey", Table::Nation, "n_nationkey"),
        (Table::Supplier, "s_nationkey", Table::Nation, "n_nationkey"),
        (Table::Nation, "n_regionkey", Table::Region, "r_regionkey"),
    ] {
        assert!(keys(table, column).is_subset(&keys(parent, parent_column)), "{column}");
    }
}

/// Q1's groups: return flag and line status; quantity, base price, discounted price, charge (scales 2, 2, 4, 6), rows.
type PricingSummary = BTreeMap<(String, String), [i128; 5]>;

/// Q1 and Q6 (scale 4).
fn pricing(generator: &Generator) -> (PricingSummary, i128) {
    const DAY_1994: i32 = 8_766;
    const DAY_1995: i32 = 9_131;
    const DAY_1998_09_02: i32 = 10_471;
    let mut summary = PricingSummary::new();
    let mut forecast = 0;
    for batch in generator.stream(Table::Lineitem, 2, DEFAULT_BATCH_ROWS).unwrap() {
        let batch = batch.unwrap();
        let decimal = |name| batch.column_by_name(name).unwrap().as_primitive::<Decimal128Type>().values();
        let (quantities, prices) = (decimal("l_quantity"), decimal("l_extendedprice"));
        let (discounts, taxes) = (decimal("l_discount"), decimal("l_tax"));
        let dates = batch.column_by_name("l_shipdate").unwrap().as_primitive::<Date32Type>().values();
        let flags = batch.column_by_name("l_returnflag").unwrap().as_string_view();
        let statuses = batch.column_by_name("l_linestatus").unwrap().as_string_view();
        for row in 0..batch.num_rows() {
            let (quantity, price, discount) = (quantities[row], prices[row], discounts[row]);
            let discounted = price * (100 - discount);
            if dates[row] <= DAY_1998_09_02 {
                let group = (flags.value(row).to_owned(), statuses.value(row).to_owned());
                let sums = summary.entry(group).or_default();
                let values = [quantity, price, discounted, discounted * (100 + taxes[row]), 1];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            if (DAY_1994..DAY_1995).contains(&dates[row]) && (5..=7).contains(&discount) && quantity < 2400 {
                forecast += price * discount;
            }
        }
    }
    (summary, forecast)
}

#[test]
fn scale_one_hundredth_gives_the_known_answers() {
    let (summary, forecast) = pricing(&generator(0.01));
    let expected = [
        (("A", "F"), [38045600, 53234821165, 5058224414861, 526165934000839, 14876]),
        (("N", "F"), [897100, 1238480137, 117982572080, 12282485056933, 348]),
        (("N", "O"), [74280200, 104150284145, 9897375186346, 1029418531523350, 29181]),
        (("R", "F"), [38144900, 53459444535, 5079964544067, 528524219358903, 14902]),
    ];
    let expected = expected.map(|((flag, status), sums)| ((flag.to_owned(), status.to_owned()), sums));
    assert_eq!(summary, PricingSummary::from(expected));
    assert_eq!(forecast, 11_930_532_253);
}

#[test]
#[ignore = "generates 6 million rows with their texts"]
fn scale_1_gives_the_published_answers() {
    let (summary, forecast) = pricing(&generator(1.0));
    let published = tpchgen::q_and_a::answers_sf1::Q1_ANSWER;
    let cents = |text: &str| text.replace('.', "").parse::<i128>().unwrap();
    let rows: Vec<Vec<&str>> =
        published.trim().lines().skip(1).map(|row| row.split('|').map(str::trim).collect()).collect();
    assert_eq!(rows.len(), summary.len());
    for row in rows {
        let [quantity, price, discounted, charge, count] = summary[&(row[0].to_owned(), row[1].to_owned())];
        assert_eq!([quantity, price], [cents(row[2]), cents(row[3])]);
        let rounded = |sum: i128, unit: i128| (sum + unit / 2) / unit;
        assert_eq!([rounded(discounted, 100), rounded(charge, 10_000)], [cents(row[4]), cents(row[5])]);
        assert_eq!(count.to_string(), row[9]);
    }
    assert_eq!((forecast + 50) / 100, 12_314_107_823);
}

#[test]
fn impossible_requests_are_refused() {
    let generator = generator(0.01);
    for (part, part_count) in [(0, 0), (1, 1), (7, 3), (0, u32::MAX)] {
        let refused = generator.batches(Table::Orders, part, part_count, 1).err();
        assert!(matches!(refused, Some(Error::Part { .. })), "{part} of {part_count}");
    }
    assert!(matches!(generator.batches(Table::Orders, 0, 1, 0).err(), Some(Error::BatchRows { .. })));
    assert!(matches!(generator.stream(Table::Orders, 1, usize::MAX).err(), Some(Error::BatchRows { .. })));
    assert!(matches!(Generator::new(Scale::new(0.00005).unwrap()), Err(Error::EmptyTable { .. })));
}

#[test]
fn the_smallest_scale_has_rows_in_every_table() {
    let smallest = generator(0.0001);
    for table in Table::ALL {
        assert_eq!(whole(&smallest, table).num_rows() as u64, smallest.row_count(table), "{table}");
        assert_ne!(smallest.row_count(table), 0, "{table}");
    }
}

#[test]
fn estimates_are_within_five_percent_of_the_buffers() {
    let generator = generator(0.02);
    for table in Table::ALL {
        let columns = whole(&generator, table).columns().to_vec();
        let bytes: usize =
            columns.iter().flat_map(|column| column.to_data().buffers().to_vec()).map(|b| b.len()).sum();
        let ratio = generator.bytes_estimate(table) as f64 / bytes as f64;
        assert!((0.95..1.05).contains(&ratio), "{table}: {ratio}");
    }
}

#[test]
fn names_are_parsed() {
    for table in Table::ALL {
        assert_eq!(table.to_string().parse::<Table>().unwrap(), table);
    }
    assert!(matches!("lineorder".parse::<Table>(), Err(Error::UnknownTable { .. })));
}
