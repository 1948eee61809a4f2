//! Times plans of SSB Q1.1 and Q2.1 on the CPU, over the .cb2t files of a folder: `cargo run --release --example ssb_times -- FOLDER [RUNS [map]]`. With `map` the
//! files are mapped into memory, not read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::cast_possible_wrap)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, AsArray};
use arrow_io::table::Table;
use container::Source;
use query_demo::cpu;
use query_demo::plan::*;
use query_demo::scan::Tables;

const ALWAYS: Predicate = Predicate::Always(true);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let runs: usize = arguments.next().map_or(10, |runs| runs.parse().expect("a number of runs"));
    let is_mapped = arguments.next().is_some_and(|how| how == "map");
    let names = ["lineorder", "ddate", "part", "supplier"];
    let tables: Tables = names
        .iter()
        .map(|name| {
            let path = Path::new(&folder).join(format!("{name}.cb2t"));
            let source = if is_mapped {
                // SAFETY: whoever asks for it leaves the files alone meanwhile, which is what `Source::map` demands.
                unsafe { Source::map(&path) }
            } else {
                Source::open(&path)
            };
            (name.to_string(), Arc::new(Table::from_source(source.unwrap(), &codecs::REGISTRY).unwrap()))
        })
        .collect();
    for (name, plan) in [("Q1.1", q11(&tables)), ("Q2.1", q21(&tables))] {
        let (groups, profile) = cpu::run(&plan, &tables).unwrap();
        println!(
            "{name}: {} groups, {} rows left",
            groups.indexes.len(),
            profile.pipelines.last().unwrap().rows_left
        );
        println!("{}", serde_json::to_string(&profile).unwrap());
        let (mut walls, mut cpus) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let (cpu, wall) = (cpu_milliseconds(), Instant::now());
            cpu::run(&plan, &tables).unwrap();
            walls.push(wall.elapsed().as_secs_f64() * 1e3);
            cpus.push(cpu_milliseconds() - cpu);
        }
        walls.sort_by(f64::total_cmp);
        cpus.sort_by(f64::total_cmp);
        let middle = runs / 2;
        println!(
            "{name}: CPU {:.1} ms best, {:.1} median; wall {:.1} best, {:.1} median",
            cpus[0], cpus[middle], walls[0], walls[middle]
        );
    }
}

/// User and system time of this process so far, of all its threads.
fn cpu_milliseconds() -> f64 {
    let schedules = std::fs::read_dir("/proc/self/task").unwrap().map(|task| {
        let schedule = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        schedule.split(' ').next().unwrap().parse::<f64>().unwrap()
    });
    schedules.sum::<f64>() / 1e6
}

fn input(tables: &Tables, table: &str, column: &str, value_width: u8, min: i64, max: i64) -> Input {
    let index = tables[table].column_index(column).unwrap();
    let signed = value_width == 32;
    let range = Range { min, max };
    Input { column: index, name: column.into(), buffer: Buffer::Values, value_width, signed, range }
}

fn code(tables: &Tables, table: &str, column: &str, entry: &str) -> i64 {
    let index = tables[table].column_index(column).unwrap();
    let dictionary = tables[table].dictionary(index).unwrap().unwrap();
    let entries = dictionary.as_string::<i32>();
    (0..entries.len()).position(|code| entries.value(code) == entry).unwrap() as i64
}

fn filter(value: usize, low: i64, high: i64) -> Step {
    Step::Filter(Predicate::Between { value: Value::Input(value), low, high })
}

fn probe(build: usize, key: usize, kind: ProbeKind) -> Step {
    Step::Probe(Probe { build, key: Value::Input(key), valid: ALWAYS, kind })
}

fn build(
    tables: &Tables,
    table: &str,
    inputs: Vec<Input>,
    steps: Vec<Step>,
    fields: Vec<Field>,
    entry_width: u8,
) -> Pipeline {
    let build = Build {
        key: Value::Input(0),
        key_name: inputs[0].name.clone(),
        domain: inputs[0].range,
        index: Index::Direct,
        unique: true,
        fields,
        entry_width,
    };
    let rows = tables[table].row_count();
    Pipeline { table: table.into(), rows, inputs, steps, sets: Vec::new(), sink: Sink::Build(build) }
}

fn field(value: usize, min: i64, max: i64, bits: u8) -> Field {
    let range = Range { min, max };
    Field { value: Value::Input(value), valid: ALWAYS, nullable: false, range, shift: 0, bits }
}

fn dates(tables: &Tables) -> Vec<Input> {
    vec![
        input(tables, "ddate", "d_datekey", 32, 19_920_101, 19_981_231),
        input(tables, "ddate", "d_year", 32, 1992, 1998),
    ]
}

fn word(value: WordValue) -> Word {
    Word { value, valid: ALWAYS }
}

/// sum(lo_extendedprice * lo_discount) where d_year = 1993 and lo_discount between 1 and 3 and lo_quantity < 25
fn q11(tables: &Tables) -> Plan {
    let date = build(tables, "ddate", dates(tables), vec![filter(1, 1993, 1993)], Vec::new(), 1);
    let of = |column, min, max| input(tables, "lineorder", column, 32, min, max);
    let inputs = vec![
        of("lo_orderdate", 19_920_101, 19_980_802),
        of("lo_discount", 0, 10),
        of("lo_quantity", 1, 50),
        of("lo_extendedprice", 90_100, 10_494_950),
    ];
    let steps = vec![filter(1, 1, 3), filter(2, i64::MIN, 24), probe(0, 0, ProbeKind::Semi)];
    let product = Value::Multiply(Box::new(Value::Input(3)), Box::new(Value::Input(1)));
    let aggregate = Aggregate {
        keys: Vec::new(),
        words: vec![word(WordValue::Sum(product)), word(WordValue::Count)],
        groups: Groups::One,
        presence: None,
    };
    let rows = tables["lineorder"].row_count();
    let sink = Sink::Aggregate(aggregate);
    Plan {
        pipelines: vec![
            date,
            Pipeline { table: "lineorder".into(), rows, inputs, steps, sets: Vec::new(), sink },
        ],
    }
}

/// sum(lo_revenue), d_year, p_brand1 where p_category = 'MFGR#12' and s_region = 'AMERICA' group by d_year, p_brand1
fn q21(tables: &Tables) -> Plan {
    let region = code(tables, "supplier", "s_region", "AMERICA");
    let category = code(tables, "part", "p_category", "MFGR#12");
    let supplier = build(
        tables,
        "supplier",
        vec![
            input(tables, "supplier", "s_suppkey", 32, 1, 2000),
            input(tables, "supplier", "s_region", 8, 0, 4),
        ],
        vec![filter(1, region, region)],
        Vec::new(),
        1,
    );
    let part = build(
        tables,
        "part",
        vec![
            input(tables, "part", "p_partkey", 32, 1, 200_000),
            input(tables, "part", "p_category", 8, 0, 24),
            input(tables, "part", "p_brand1", 16, 0, 999),
        ],
        vec![filter(1, category, category)],
        vec![field(2, 0, 999, 10)],
        16,
    );
    let date = build(tables, "ddate", dates(tables), Vec::new(), vec![field(1, 1992, 1998, 3)], 8);
    let of = |column, min, max| input(tables, "lineorder", column, 32, min, max);
    let inputs = vec![
        of("lo_suppkey", 1, 2000),
        of("lo_partkey", 1, 200_000),
        of("lo_orderdate", 19_920_101, 19_980_802),
        of("lo_revenue", 81_360, 10_464_950),
    ];
    let steps =
        vec![probe(0, 0, ProbeKind::Semi), probe(1, 1, ProbeKind::Inner), probe(2, 2, ProbeKind::Inner)];
    let key = |probe, min, max, codes, stride| GroupKey {
        value: Value::Field { probe, field: 0 },
        valid: ALWAYS,
        nullable: false,
        range: Range { min, max },
        codes,
        stride,
    };
    let aggregate = Aggregate {
        keys: vec![key(2, 1992, 1998, 7, 1000), key(1, 0, 999, 1000, 1)],
        words: vec![word(WordValue::Sum(Value::Input(3))), word(WordValue::Count)],
        groups: Groups::Dense { slots: 7000 },
        presence: Some(1),
    };
    let rows = tables["lineorder"].row_count();
    let sink = Sink::Aggregate(aggregate);
    let facts = Pipeline { table: "lineorder".into(), rows, inputs, steps, sets: Vec::new(), sink };
    Plan { pipelines: vec![supplier, part, date, facts] }
}
