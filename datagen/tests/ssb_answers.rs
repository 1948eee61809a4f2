//! The benchmark's 13 queries, written out as loops over the generated columns, against known answers.
#![allow(clippy::unwrap_used, clippy::cast_sign_loss)]
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int32Type;
use datagen::ssb::{Dialect, Generator, Table};
use datagen::{DEFAULT_BATCH_ROWS, Scale};
use md5::{Digest, Md5};
use std::collections::{BTreeMap, HashMap};
use std::thread;

/// Columns that place a customer or a supplier.
struct Place {
    city: String,
    nation: String,
    region: String,
}

struct Part {
    mfgr: String,
    category: String,
    brand1: String,
}

struct Day {
    year: i32,
    yearmonthnum: i32,
    yearmonth: String,
    weeknuminyear: i32,
}

/// A row of `lineorder` with the rows it refers to.
struct Row<'a> {
    date: &'a Day,
    customer: &'a Place,
    supplier: &'a Place,
    part: &'a Part,
    quantity: i32,
    extendedprice: i32,
    discount: i32,
    revenue: i32,
    supplycost: i32,
}

/// What a query does with a row: None if its predicates drop it, else the columns it groups by, the measure as '*'.
type Query = fn(&Row) -> Option<(String, i64)>;

const QUERIES: [(&str, Query); 13] = [
    ("Q1.1", |row| {
        let kept = row.date.year == 1993 && (1..=3).contains(&row.discount) && row.quantity < 25;
        kept.then(|| ("*".to_owned(), discounted(row)))
    }),
    ("Q1.2", |row| {
        let kept = (4..=6).contains(&row.discount) && (26..=35).contains(&row.quantity);
        (kept && row.date.yearmonthnum == 199401).then(|| ("*".to_owned(), discounted(row)))
    }),
    ("Q1.3", |row| {
        let kept = (5..=7).contains(&row.discount) && (26..=35).contains(&row.quantity);
        (kept && row.date.weeknuminyear == 6 && row.date.year == 1994)
            .then(|| ("*".to_owned(), discounted(row)))
    }),
    ("Q2.1", |row| {
        let kept = row.part.category == "MFGR#12" && row.supplier.region == "AMERICA";
        kept.then(|| (format!("*|{}|{}", row.date.year, row.part.brand1), row.revenue.into()))
    }),
    ("Q2.2", |row| {
        let brands = "MFGR#2221".to_owned()..="MFGR#2228".to_owned();
        let kept = row.supplier.region == "ASIA" && brands.contains(&row.part.brand1);
        kept.then(|| (format!("*|{}|{}", row.date.year, row.part.brand1), row.revenue.into()))
    }),
    ("Q2.3", |row| {
        let kept = row.part.brand1 == "MFGR#2239" && row.supplier.region == "EUROPE";
        kept.then(|| (format!("*|{}|{}", row.date.year, row.part.brand1), row.revenue.into()))
    }),
    ("Q3.1", |row| {
        let kept = row.customer.region == "ASIA" && row.supplier.region == "ASIA" && early(row.date);
        let group = || format!("{}|{}|{}|*", row.customer.nation, row.supplier.nation, row.date.year);
        kept.then(|| (group(), row.revenue.into()))
    }),
    ("Q3.2", |row| {
        let nation = "UNITED STATES";
        let kept = row.customer.nation == nation && row.supplier.nation == nation && early(row.date);
        kept.then(|| (cities(row), row.revenue.into()))
    }),
    ("Q3.3", |row| {
        let kept = british(row.customer) && british(row.supplier) && early(row.date);
        kept.then(|| (cities(row), row.revenue.into()))
    }),
    ("Q3.4", |row| {
        let kept = british(row.customer) && british(row.supplier) && row.date.yearmonth == "Dec1997";
        kept.then(|| (cities(row), row.revenue.into()))
    }),
    ("Q4.1", |row| {
        let kept = american(row) && (row.part.mfgr == "MFGR#1" || row.part.mfgr == "MFGR#2");
        kept.then(|| (format!("{}|{}|*", row.date.year, row.customer.nation), profit(row)))
    }),
    ("Q4.2", |row| {
        let kept =
            american(row) && late(row.date) && (row.part.mfgr == "MFGR#1" || row.part.mfgr == "MFGR#2");
        kept.then(|| {
            (format!("{}|{}|{}|*", row.date.year, row.supplier.nation, row.part.category), profit(row))
        })
    }),
    ("Q4.3", |row| {
        let places = row.customer.region == "AMERICA" && row.supplier.nation == "UNITED STATES";
        let kept = places && late(row.date) && row.part.category == "MFGR#14";
        kept.then(|| (format!("{}|{}|{}|*", row.date.year, row.supplier.city, row.part.brand1), profit(row)))
    }),
];

fn discounted(row: &Row) -> i64 {
    i64::from(row.extendedprice) * i64::from(row.discount)
}

fn profit(row: &Row) -> i64 {
    i64::from(row.revenue) - i64::from(row.supplycost)
}

fn early(date: &Day) -> bool {
    (1992..=1997).contains(&date.year)
}

fn late(date: &Day) -> bool {
    date.year == 1997 || date.year == 1998
}

fn british(place: &Place) -> bool {
    place.city == "UNITED KI1" || place.city == "UNITED KI5"
}

fn american(row: &Row) -> bool {
    row.customer.region == "AMERICA" && row.supplier.region == "AMERICA"
}

fn cities(row: &Row) -> String {
    format!("{}|{}|{}|*", row.customer.city, row.supplier.city, row.date.year)
}

/// The dimension tables, by key.
struct Dimensions {
    customers: Vec<Place>,
    suppliers: Vec<Place>,
    parts: Vec<Part>,
    days: HashMap<i32, Day>,
}

impl Dimensions {
    fn of(generator: &Generator) -> Self {
        let places = |table, prefix: &str| {
            let columns = ["city", "nation", "region"]
                .map(|column| texts(generator, table, &format!("{prefix}_{column}")));
            let [cities, nations, regions] = columns;
            let names = cities.into_iter().zip(nations).zip(regions);
            names.map(|((city, nation), region)| Place { city, nation, region }).collect()
        };
        let [mfgrs, categories, brands] =
            ["p_mfgr", "p_category", "p_brand1"].map(|column| texts(generator, Table::Part, column));
        let parts = mfgrs.into_iter().zip(categories).zip(brands);
        let [keys, years, months, weeks] = ["d_datekey", "d_year", "d_yearmonthnum", "d_weeknuminyear"]
            .map(|column| numbers(generator, Table::Date, column));
        let labels = texts(generator, Table::Date, "d_yearmonth");
        let days = keys.into_iter().zip(years).zip(months).zip(weeks).zip(labels);
        Self {
            customers: places(Table::Customer, "c"),
            suppliers: places(Table::Supplier, "s"),
            parts: parts.map(|((mfgr, category), brand1)| Part { mfgr, category, brand1 }).collect(),
            days: days
                .map(|((((key, year), yearmonthnum), weeknuminyear), yearmonth)| {
                    (key, Day { year, yearmonthnum, yearmonth, weeknuminyear })
                })
                .collect(),
        }
    }
}

fn batches(generator: &Generator, table: Table) -> impl Iterator<Item = RecordBatch> {
    generator.batches(table, 0..generator.unit_count(table).into()).unwrap().map(Result::unwrap)
}

fn texts(generator: &Generator, table: Table, column: &str) -> Vec<String> {
    batches(generator, table)
        .flat_map(|batch| {
            let column = batch.column_by_name(column).unwrap().as_string::<i32>().clone();
            column.iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

fn numbers(generator: &Generator, table: Table, column: &str) -> Vec<i32> {
    batches(generator, table)
        .flat_map(|batch| batch.column_by_name(column).unwrap().as_primitive::<Int32Type>().values().to_vec())
        .collect()
}

/// A query's groups and their sums.
type Answer = BTreeMap<String, i64>;

/// The answers of some queries over all rows.
fn answers(generator: &Generator, queries: &[(&'static str, Query)]) -> BTreeMap<&'static str, Answer> {
    let dimensions = Dimensions::of(generator);
    let threads = thread::available_parallelism().unwrap().get() as u64;
    let orders = u64::from(generator.unit_count(Table::Lineorder));
    let partial_answers: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|share| orders * share / threads..orders * (share + 1) / threads)
            .map(|share| {
                let dimensions = &dimensions;
                scope.spawn(move || {
                    let mut answers = BTreeMap::<_, Answer>::new();
                    for batch in generator.batches(Table::Lineorder, share).unwrap() {
                        add_batch(&mut answers, &batch.unwrap(), dimensions, queries);
                    }
                    answers
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let mut answers = BTreeMap::<_, Answer>::new();
    for (name, answer) in partial_answers.into_iter().flatten() {
        for (group, sum) in answer {
            *answers.entry(name).or_default().entry(group).or_default() += sum;
        }
    }
    answers
}

fn add_batch(
    answers: &mut BTreeMap<&'static str, Answer>,
    batch: &RecordBatch,
    dimensions: &Dimensions,
    queries: &[(&'static str, Query)],
) {
    let column = |name| batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().values();
    let (customers, suppliers, parts) = (column("lo_custkey"), column("lo_suppkey"), column("lo_partkey"));
    let (dates, quantities, discounts) =
        (column("lo_orderdate"), column("lo_quantity"), column("lo_discount"));
    let (prices, revenues, costs) =
        (column("lo_extendedprice"), column("lo_revenue"), column("lo_supplycost"));
    for line in 0..batch.num_rows() {
        let row = Row {
            date: &dimensions.days[&dates[line]],
            customer: &dimensions.customers[customers[line] as usize - 1],
            supplier: &dimensions.suppliers[suppliers[line] as usize - 1],
            part: &dimensions.parts[parts[line] as usize - 1],
            quantity: quantities[line],
            extendedprice: prices[line],
            discount: discounts[line],
            revenue: revenues[line],
            supplycost: costs[line],
        };
        for (name, query) in queries {
            if let Some((group, measure)) = query(&row) {
                *answers.entry(name).or_default().entry(group).or_default() += measure;
            }
        }
    }
}

/// The first 12 hexadecimal digits of the md5 of the answer's rows: values separated by '|', one row a line, in the order
/// of their first value, then of their second, and so on, all compared as text.
fn digest(answer: &Answer) -> String {
    let mut rows: Vec<String> =
        answer.iter().map(|(group, sum)| group.replace('*', &sum.to_string())).collect();
    rows.sort_by(|left, right| left.split('|').cmp(right.split('|')));
    let bytes = Md5::digest(rows.join("\n"));
    bytes.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn scale_1_gives_the_known_answers() {
    let expected = [
        ("Q1.1", 1, 446031203850, "6dd91d3be481"),
        ("Q1.2", 1, 98714004603, "514efd8f4cbc"),
        ("Q1.3", 1, 26232701005, "4d64a673bcb4"),
        ("Q2.1", 280, 167367870111, "1ac481777351"),
        ("Q2.2", 56, 38805906609, "ccd90e235577"),
        ("Q2.3", 7, 4190307393, "fe5a262f3616"),
        ("Q3.1", 150, 899714860448, "b50c006b66a7"),
        ("Q3.2", 600, 30886343624, "d5ec4ec8e1ab"),
        ("Q3.3", 24, 1370596161, "6e704551f3fb"),
        ("Q3.4", 3, 14950816, "9c9ce8d792cc"),
        ("Q4.1", 35, 315355590068, "bd158699bf8e"),
        ("Q4.2", 100, 76343099524, "39a9d554c8a7"),
        ("Q4.3", 339, 1560267813, "8c3f926261b4"),
    ];
    let generator = Generator::new(Scale::new(1.0).unwrap(), Dialect::Maintained);
    let answers = answers(&generator, &QUERIES);
    for (name, rows, sum, md5) in expected {
        let answer = &answers[name];
        let found = (answer.len(), answer.values().sum::<i64>(), digest(answer));
        assert_eq!(found, (rows, sum, md5.to_owned()), "{name}");
    }
}

#[test]
#[ignore = "generates 600 million rows: a minute or two in a release build"]
fn scale_100_gives_the_known_answers() {
    let generator = Generator::new(Scale::new(100.0).unwrap(), Dialect::Maintained);
    assert_eq!(generator.row_count(Table::Lineorder), 600_037_902);
    let queries: Vec<_> =
        QUERIES.into_iter().filter(|(name, _)| ["Q1.2", "Q1.3", "Q3.4"].contains(name)).collect();
    let answers = answers(&generator, &queries);
    assert_eq!(answers["Q1.2"]["*"], 9_624_332_170_119);
    assert_eq!(answers["Q1.3"]["*"], 2_604_026_374_315);
    let cities = [
        ("UNITED KI1|UNITED KI1|1997|*", 466_804_055),
        ("UNITED KI1|UNITED KI5|1997|*", 504_351_824),
        ("UNITED KI5|UNITED KI1|1997|*", 564_444_037),
        ("UNITED KI5|UNITED KI5|1997|*", 474_923_410),
    ];
    let expected: Answer = cities.into_iter().map(|(group, sum)| (group.to_owned(), sum)).collect();
    assert_eq!(answers["Q3.4"], expected);
}

/// Prints how fast `lineorder` is made; the benchmark is a test so that it needs no further crate.
#[test]
#[ignore = "measures, and asserts only that all rows came"]
fn lineorder_speed() {
    let generator = Generator::new(Scale::new(10.0).unwrap(), Dialect::Maintained);
    for threads in [1, 2, 16] {
        let start = std::time::Instant::now();
        let stream = generator.stream(Table::Lineorder, threads, DEFAULT_BATCH_ROWS).unwrap();
        let rows: usize = stream.map(|batch| batch.unwrap().num_rows()).sum();
        let seconds = start.elapsed().as_secs_f64();
        println!("{threads} threads: {:.1} million rows/s", rows as f64 / seconds / 1e6);
        assert_eq!(rows, 59_986_052);
    }
}
