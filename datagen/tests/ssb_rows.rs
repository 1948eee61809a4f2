//! The rows of single columns: published rows of `ssb-dbgen`, and a slow generator that follows its rules word for word.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
use arrow::array::{AsArray, RecordBatch, RecordBatchReader};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datagen::ssb::{Dialect, Generator, Table};
use datagen::{Error, Scale};

fn generator(factor: f64, dialect: Dialect) -> Generator {
    Generator::new(Scale::new(factor).unwrap(), dialect)
}

/// Rows as dbgen prints them: values separated by '|', flags as 0 and 1.
fn printed(batches: impl IntoIterator<Item = RecordBatch>) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values: Vec<String> = batch
                .columns()
                .iter()
                .map(|column| match column.data_type() {
                    DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
                    DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
                    DataType::Boolean => u8::from(column.as_boolean().value(row)).to_string(),
                    _ => column.as_string::<i32>().value(row).to_owned(),
                })
                .collect();
            rows.push(values.join("|"));
        }
    }
    rows
}

fn rows(generator: &Generator, table: Table, units: std::ops::Range<u64>) -> Vec<String> {
    printed(generator.batches(table, units).unwrap().map(Result::unwrap))
}

#[test]
fn classic_rows_are_the_published_ones() {
    let generator = generator(1.0, Dialect::Classic);
    assert_eq!(
        rows(&generator, Table::Customer, 0..4),
        [
            "1|Customer#000000001|j5JsirBM9P|MOROCCO  0|MOROCCO|AFRICA|25-989-741-2988|BUILDING",
            "2|Customer#000000002|487LW1dovn6Q4dMVym|JORDAN   1|JORDAN|MIDDLE EAST|23-768-687-3665|AUTOMOBILE",
            "3|Customer#000000003|fkRGN8n|ARGENTINA7|ARGENTINA|AMERICA|11-719-748-3364|AUTOMOBILE",
            "4|Customer#000000004|4u58h f|EGYPT    4|EGYPT|MIDDLE EAST|14-128-190-5944|MACHINERY",
        ]
    );
    assert_eq!(
        rows(&generator, Table::Supplier, 0..1),
        ["1|Supplier#000000001|sdrGnXCDRcfriBvY0KL,i|PERU     0|PERU|AMERICA|27-989-741-2988"]
    );
    assert_eq!(
        rows(&generator, Table::Part, 0..10),
        [
            "1|lace spring|MFGR#1|MFGR#11|MFGR#1121|goldenrod|PROMO BURNISHED COPPER|7|JUMBO PKG",
            "2|rosy metallic|MFGR#4|MFGR#43|MFGR#4318|blush|LARGE BRUSHED BRASS|1|LG CASE",
            "3|green antique|MFGR#3|MFGR#32|MFGR#3210|dark|STANDARD POLISHED BRASS|21|WRAP CASE",
            "4|metallic smoke|MFGR#1|MFGR#14|MFGR#1426|chocolate|SMALL PLATED BRASS|14|MED DRUM",
            "5|blush chiffon|MFGR#4|MFGR#45|MFGR#4510|forest|STANDARD POLISHED TIN|15|SM PKG",
            "6|ivory azure|MFGR#2|MFGR#23|MFGR#2325|white|PROMO PLATED STEEL|4|MED BAG",
            "7|blanched tan|MFGR#5|MFGR#51|MFGR#513|blue|SMALL PLATED COPPER|45|SM BAG",
            "8|khaki cream|MFGR#1|MFGR#13|MFGR#1328|ivory|PROMO BURNISHED TIN|41|LG DRUM",
            "9|rose moccasin|MFGR#4|MFGR#41|MFGR#4117|thistle|SMALL BURNISHED STEEL|12|WRAP CASE",
            "10|moccasin royal|MFGR#2|MFGR#21|MFGR#2128|floral|LARGE BURNISHED STEEL|44|LG CAN",
        ]
    );
}

#[test]
fn the_first_order_is_the_published_one() {
    for dialect in [Dialect::Maintained, Dialect::Classic] {
        assert_eq!(
            rows(&generator(1.0, dialect), Table::Lineorder, 0..1),
            [
                "1|1|7381|155190|828|19960102|5-LOW|0|17|2116823|17366547|4|2032150|74711|2|19960212|TRUCK",
                "1|2|7381|67310|163|19960102|5-LOW|0|36|4598316|17366547|9|4184467|76638|6|19960228|MAIL",
                "1|3|7381|63700|71|19960102|5-LOW|0|8|1330960|17366547|10|1197864|99822|2|19960305|REG AIR",
                "1|4|7381|2132|943|19960102|5-LOW|0|28|2895564|17366547|9|2634963|62047|6|19960330|AIR",
                "1|5|7381|24027|1625|19960102|5-LOW|0|24|2282448|17366547|10|2054203|57061|4|19960314|FOB",
                "1|6|7381|15635|1368|19960102|5-LOW|0|32|4962016|17366547|7|4614674|93037|2|19960207|MAIL",
            ]
        );
    }
}

#[test]
fn dates_are_the_published_ones() {
    let dates = rows(&generator(1.0, Dialect::Maintained), Table::Date, 0..2557);
    assert_eq!(
        dates[0],
        "19920101|January 1, 1992|Thursday|January|1992|199201|Jan1992|5|1|1|1|1|Winter|0|0|1|1"
    );
    assert_eq!(
        dates[2],
        "19920103|January 3, 1992|Saturday|January|1992|199201|Jan1992|7|3|3|1|1|Winter|1|0|0|0"
    );
    assert_eq!(
        dates[6],
        "19920107|January 7, 1992|Wednesday|January|1992|199201|Jan1992|4|7|7|1|2|Winter|0|0|0|1"
    );
    assert_eq!(
        dates[30],
        "19920131|January 31, 1992|Saturday|January|1992|199201|Jan1992|7|31|31|1|5|Winter|1|1|0|0"
    );
    assert!(dates[2556].starts_with(
        "19981231|December 31, 1998|Friday|December|1998|199812|Dec1998|6|31|365|12|53|Christmas|0|1|0|1"
    ));
    let holidays = dates.iter().filter(|date| date.split('|').nth(15) == Some("1")).count();
    assert_eq!(holidays, 10 * 7);
}

/// dbgen's random number streams as it keeps them: one state a column, brought to a fixed number of draws after each row.
struct Seed {
    state: u64,
    used: u32,
    boundary: u32,
}

impl Seed {
    fn new(state: u64, boundary: u32) -> Self {
        Self { state, used: 0, boundary }
    }

    fn random(&mut self, low: u32, high: u32) -> u32 {
        self.state = self.state * 16807 % 2_147_483_647;
        self.used += 1;
        low + (self.state as f64 / 2_147_483_647.0 * f64::from(high - low + 1)) as u32
    }

    fn end_row(&mut self) {
        while self.used < self.boundary {
            self.random(0, 0);
        }
        self.used = 0;
    }
}

/// `lineorder` by the rules, one row after the other.
fn slow_lineorder(orders: u32, customers: u32, suppliers: u32, parts: u32) -> Vec<String> {
    const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
    const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP"];
    let days = rows(&generator(1.0, Dialect::Maintained), Table::Date, 0..2557);
    let key = |day: u32| days[day as usize].split('|').next().unwrap().to_owned();
    let mut order_seeds = [1066728069, 851767375, 591449447, 1434868289].map(|seed| Seed::new(seed, 1));
    let mut line_seeds = [1808217256, 2095021727, 209208115, 554590007, 721958466, 904914315, 675466456]
        .map(|seed| Seed::new(seed, 7));
    let mut printed = Vec::new();
    for index in 1..=orders {
        let order_key = ((index >> 3) << 5) | (index & 7);
        let [date, customer, priority, lines] = &mut order_seeds;
        let day = date.random(0, 2405);
        let mut custkey = customer.random(1, customers);
        let mut delta = 1_i32;
        while custkey % 3 == 0 {
            custkey = custkey.checked_add_signed(delta).unwrap().min(customers);
            delta = -delta;
        }
        let priority = PRIORITIES[priority.random(0, 4) as usize];
        let [part, supplier, quantity, discount, tax, commit, mode] = &mut line_seeds;
        let lines: Vec<_> = (0..lines.random(1, 7))
            .map(|_| {
                let part = part.random(1, parts);
                let price = 90000 + (part / 10) % 20001 + (part % 1000) * 100;
                let (supplier, quantity) = (supplier.random(1, suppliers), quantity.random(1, 50));
                let (discount, tax) = (discount.random(0, 10), tax.random(0, 8));
                let (commit, mode) = (commit.random(30, 90), MODES[mode.random(0, 6) as usize]);
                let extended = u64::from(price * quantity);
                let revenue = extended * u64::from(100 - discount) / 100;
                let charge = revenue * u64::from(100 + tax) / 100;
                (
                    part,
                    supplier,
                    quantity,
                    extended,
                    discount,
                    revenue,
                    6 * price / 10,
                    tax,
                    commit,
                    mode,
                    charge,
                )
            })
            .collect();
        let total: u64 = lines.iter().map(|line| line.10).sum();
        for (number, line) in (1..).zip(&lines) {
            let &(part, supplier, quantity, extended, discount, revenue, cost, tax, commit, mode, _) = line;
            let (order_date, commit_date) = (key(day), key(day + commit));
            printed.push(format!(
                "{order_key}|{number}|{custkey}|{part}|{supplier}|{order_date}|{priority}|0|{quantity}|{extended}|{total}|\
                 {discount}|{revenue}|{cost}|{tax}|{commit_date}|{mode}"
            ));
        }
        order_seeds.iter_mut().chain(&mut line_seeds).for_each(Seed::end_row);
    }
    printed
}

#[test]
fn lineorder_is_that_of_the_slow_generator() {
    let small = generator(0.01, Dialect::Maintained);
    assert!(rows(&small, Table::Lineorder, 0..15_000) == slow_lineorder(15_000, 300, 20, 2_000));
    let tiny = generator(0.00007, Dialect::Maintained);
    assert_eq!(rows(&tiny, Table::Lineorder, 0..105), slow_lineorder(105, 2, 1, 14));
    let large = generator(20.0, Dialect::Maintained);
    assert!(rows(&large, Table::Lineorder, 0..1_000) == slow_lineorder(1_000, 600_000, 40_000, 600_000));
}

#[test]
fn the_dialects_differ_in_cities_categories_and_one_priority() {
    let (maintained, classic) = (generator(0.01, Dialect::Maintained), generator(0.01, Dialect::Classic));
    for (table, columns) in
        [(Table::Customer, vec![3]), (Table::Supplier, vec![3]), (Table::Part, vec![2, 3, 4])]
    {
        let units = 0..u64::from(maintained.unit_count(table));
        let (left, right) = (rows(&maintained, table, units.clone()), rows(&classic, table, units));
        for column in 0..maintained.schema(table).fields().len() {
            let column_of = |row: &String| row.split('|').nth(column).unwrap().to_owned();
            let equal = left.iter().map(column_of).eq(right.iter().map(column_of));
            assert_eq!(equal, !columns.contains(&column), "{table} column {column}");
        }
    }
    let (left, right) =
        (rows(&maintained, Table::Lineorder, 0..9_000), rows(&classic, Table::Lineorder, 0..9_000));
    assert_ne!(left, right);
    assert!(left.iter().map(|row| row.replace("4-NOT SPECIFIED", "4-NOT SPECI")).eq(right));
}

/// Sums over scale 1, and sums weighted by the row number (modulo 2^64), from a program that shares no code with this one.
#[test]
fn lineorder_columns_have_their_known_sums() {
    let expected: [(&str, u64, u64); 14] = [
        ("lo_orderkey", 18005322964949, 16695397713132506775),
        ("lo_linenumber", 18007100, 54034540433972),
        ("lo_custkey", 90077509067, 270300818631551685),
        ("lo_partkey", 600229457837, 1801121973320623559),
        ("lo_suppkey", 6005687984, 18022330749356788),
        ("lo_orderdate", 119717010787523, 8735616722360878607),
        ("lo_quantity", 153078795, 459329859067548),
        ("lo_extendedprice", 22957731090120, 13548734891766533423),
        ("lo_ordtotalprice", 113443610188019, 8413291366816795170),
        ("lo_discount", 30005733, 90019978175170),
        ("lo_revenue", 21810219932448, 10105713725885609766),
        ("lo_supplycost", 539963566642, 1620242760850949218),
        ("lo_tax", 24012967, 72050142409107),
        ("lo_commitdate", 119726092431428, 8762889032650288060),
    ];
    let priorities = [
        ("1-URGENT", 1201581),
        ("2-HIGH", 1202490),
        ("3-MEDIUM", 1194959),
        ("4-NOT SPECIFIED", 1199524),
        ("5-LOW", 1202661),
    ];
    let ship_modes = [
        ("REG AIR", 856868),
        ("AIR", 858104),
        ("RAIL", 856484),
        ("TRUCK", 856998),
        ("MAIL", 857401),
        ("FOB", 857324),
        ("SHIP", 858036),
    ];
    let mut sums = [(0_u64, 0_u64); 14];
    let mut label_counts = std::collections::HashMap::<String, u64>::new();
    let mut row_number = 1_u64;
    for batch in generator(1.0, Dialect::Maintained).stream(Table::Lineorder, 2, 1 << 16).unwrap() {
        let batch = batch.unwrap();
        for ((name, ..), (sum, weighted)) in expected.iter().zip(&mut sums) {
            let column = batch.column_by_name(name).unwrap().as_primitive::<Int32Type>();
            for (number, &value) in (row_number..).zip(column.values()) {
                let value = u64::try_from(value).unwrap();
                *sum += value;
                *weighted = weighted.wrapping_add(value.wrapping_mul(number));
            }
        }
        for name in ["lo_orderpriority", "lo_shipmode"] {
            for label in batch.column_by_name(name).unwrap().as_string::<i32>().iter().flatten() {
                match label_counts.get_mut(label) {
                    Some(count) => *count += 1,
                    None => _ = label_counts.insert(label.to_owned(), 1),
                }
            }
        }
        row_number += batch.num_rows() as u64;
    }
    assert_eq!(row_number - 1, 6_001_215);
    for ((name, sum, weighted), found) in expected.into_iter().zip(sums) {
        assert_eq!(found, (sum, weighted), "{name}");
    }
    for (label, count) in priorities.into_iter().chain(ship_modes) {
        assert_eq!(label_counts[label], count, "{label}");
    }
}

#[test]
fn any_split_into_ranges_gives_the_same_rows() {
    for (factor, dialect) in [(0.01, Dialect::Maintained), (0.003, Dialect::Classic)] {
        let generator = generator(factor, dialect);
        for table in Table::ALL {
            let units = u64::from(generator.unit_count(table));
            let whole = rows(&generator, table, 0..units);
            assert_eq!(whole.len() as u64, generator.row_count(table), "{table}");
            let cuts = [0, 1, 2, units / 7, units / 7, units / 3, units - 1, units].map(|cut| cut.min(units));
            let mut cuts = cuts.to_vec();
            cuts.sort_unstable();
            let split: Vec<String> =
                cuts.windows(2).flat_map(|cut| rows(&generator, table, cut[0]..cut[1])).collect();
            assert!(whole == split, "{table} at scale {factor}");
        }
    }
}

#[test]
fn streams_give_the_same_rows_with_any_threads_and_batches() {
    let generator = generator(0.01, Dialect::Maintained);
    for table in Table::ALL {
        let whole = rows(&generator, table, 0..generator.unit_count(table).into());
        for (threads, batch_rows) in [(1, 1000), (3, 77), (8, 1 << 20)] {
            let stream = generator.stream(table, threads, batch_rows).unwrap();
            let stream: Box<dyn RecordBatchReader + Send> = Box::new(stream);
            assert_eq!(stream.schema(), generator.schema(table));
            let batches: Vec<RecordBatch> = stream.map(Result::unwrap).collect();
            assert!(batches.iter().all(|batch| batch.num_rows() <= (batch_rows * 7).div_ceil(4) + 7));
            assert!(printed(batches) == whole, "{table}, {threads} threads, {batch_rows} rows");
        }
    }
}

#[test]
fn order_keys_above_31_bits_are_64_bits_wide() {
    let generator = generator(1000.0, Dialect::Maintained);
    assert_eq!(generator.schema(Table::Lineorder).field(0).data_type(), &DataType::Int64);
    let last = rows(&generator, Table::Lineorder, 1_499_999_999..1_500_000_000);
    assert!(last[0].starts_with("6000000000|1|"), "{}", last[0]);
}

#[test]
fn ranges_outside_a_table_are_refused() {
    let generator = generator(0.01, Dialect::Maintained);
    for (start, end) in [(0, 301), (301, 301), (5, 4), (0, u64::MAX), (u64::MAX, u64::MAX)] {
        let refused = generator.batches(Table::Customer, start..end).err();
        assert!(matches!(refused, Some(Error::Range { table: "customer", unit: "rows", count: 300, .. })));
    }
    assert_eq!(generator.batches(Table::Customer, 300..300).unwrap().count(), 0);
    let refused = generator.batches(Table::Lineorder, 0..15_001).err().unwrap();
    assert_eq!(refused.to_string(), "0..15001 is not a range of the 15000 orders of table lineorder");
}

#[test]
fn estimates_are_within_five_percent_of_the_buffers() {
    for (factor, tables) in [(0.05, &Table::ALL[..]), (1000.0, &Table::ALL[..1])] {
        let generator = generator(factor, Dialect::Maintained);
        for &table in tables {
            let units = generator.unit_count(table).min(75_000);
            let batches = generator.batches(table, 0..units.into()).unwrap().map(Result::unwrap);
            let bytes: usize = batches.map(|batch| buffer_bytes(&batch)).sum();
            let estimate = generator.bytes_estimate(table) as f64 * f64::from(units)
                / f64::from(generator.unit_count(table));
            let ratio = estimate / bytes as f64;
            assert!((0.95..1.05).contains(&ratio), "{table}: {estimate} for {bytes}, {units}");
        }
    }
}

fn buffer_bytes(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|column| column.to_data());
    columns.map(|column| column.buffers().iter().map(|buffer| buffer.len()).sum::<usize>()).sum()
}

#[test]
fn names_are_parsed() {
    for table in Table::ALL {
        assert_eq!(table.to_string().parse::<Table>().unwrap(), table);
    }
    let refused = "date".parse::<Table>().unwrap_err().to_string();
    assert_eq!(
        refused,
        "there is no table 'date': the tables are lineorder, customer, supplier, part, ddate"
    );
    for dialect in [Dialect::Maintained, Dialect::Classic] {
        assert_eq!(dialect.to_string().parse::<Dialect>().unwrap(), dialect);
    }
    assert!(matches!("modern".parse::<Dialect>(), Err(Error::UnknownDialect { .. })));
}
