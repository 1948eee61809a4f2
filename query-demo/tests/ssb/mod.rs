//! The Star Schema Benchmark's queries as plans, made by hand with the ranges of scale factor 1: for what needs plans of that shape and no data.

use query_demo::plan::{
    Aggregate, Buffer, Build, Field, GroupKey, Groups, Index, Input, Pipeline, Plan, Predicate, Probe,
    ProbeKind, Range, Sink, Step, Value, Word, WordValue,
};

const ALWAYS: Predicate = Predicate::Always(true);

pub fn range(min: i64, max: i64) -> Range {
    Range { min, max }
}

fn input(name: &str, value_width: u8, min: i64, max: i64) -> Input {
    Input {
        column: 0,
        name: name.to_owned(),
        buffer: Buffer::Values,
        value_width,
        signed: false,
        range: range(min, max),
    }
}

fn between(input: usize, low: i64, high: i64) -> Step {
    Step::Filter(Predicate::Between { value: Value::Input(input), low, high })
}

fn probe(build: usize, key: usize) -> Step {
    Step::Probe(Probe { build, key: Value::Input(key), valid: ALWAYS, kind: ProbeKind::Inner })
}

/// A dimension: its key, what is kept of it, and a filter on a third column.
fn dimension(table: &str, key: Input, kept: Option<Input>, filter: Option<(Input, i64, i64)>) -> Pipeline {
    let domain = key.range;
    let key_name = key.name.clone();
    let (mut inputs, mut fields, mut steps) = (vec![key], Vec::new(), Vec::new());
    let mut entry_width = 1;
    if let Some(kept) = kept {
        let bits = u8::try_from(u64::BITS - kept.range.span().leading_zeros()).unwrap();
        entry_width = if bits < 8 { 8 } else { 16 };
        let range = kept.range;
        fields.push(Field { value: Value::Input(1), valid: ALWAYS, nullable: false, range, shift: 0, bits });
        inputs.push(kept);
    }
    if let Some((column, low, high)) = filter {
        steps.push(between(inputs.len(), low, high));
        inputs.push(column);
    }
    let key = Value::Input(0);
    let build = Build { key, key_name, domain, index: Index::Direct, unique: true, fields, entry_width };
    let kept = vec![200_000; steps.len()];
    Pipeline {
        table: table.to_owned(),
        rows: 0,
        inputs,
        steps,
        kept,
        sets: Vec::new(),
        sink: Sink::Build(build),
    }
}

fn date(kept: Option<Input>, filter: Option<(Input, i64, i64)>) -> Pipeline {
    dimension("ddate", input("d_datekey", 32, 19_920_101, 19_981_230), kept, filter)
}

fn year() -> Input {
    input("d_year", 32, 1992, 1998)
}

fn sum(value: Value) -> Word {
    Word { value: WordValue::Sum(value), valid: ALWAYS }
}

fn count() -> Word {
    Word { value: WordValue::Count, valid: ALWAYS }
}

fn groups(fields: &[(usize, i64, i64)], words: Vec<Word>) -> Aggregate {
    let mut stride = 1;
    let mut keys: Vec<GroupKey> = Vec::new();
    for &(probe, min, max) in fields.iter().rev() {
        let range = range(min, max);
        let codes = range.span() + 1;
        let value = Value::Field { probe, field: 0 };
        keys.insert(0, GroupKey { value, valid: ALWAYS, nullable: false, range, codes, stride });
        stride *= codes;
    }
    let presence = Some(words.len() - 1);
    Aggregate { keys, words, groups: Groups::Dense { slots: stride }, presence }
}

fn lineorder(inputs: Vec<Input>, steps: Vec<Step>, aggregate: Aggregate) -> Pipeline {
    let sink = Sink::Aggregate(aggregate);
    let kept = vec![200_000; steps.len()];
    Pipeline { table: "lineorder".to_owned(), rows: 0, inputs, steps, kept, sets: Vec::new(), sink }
}

fn order_date() -> Input {
    input("lo_orderdate", 32, 19_920_101, 19_980_802)
}

/// Q1.1 to Q1.3: a date range, discount and quantity; one sum.
pub fn query_1(discount: (i64, i64), quantity: (i64, i64)) -> Plan {
    let inputs = vec![
        order_date(),
        input("lo_discount", 32, 0, 10),
        input("lo_quantity", 32, 1, 50),
        input("lo_extendedprice", 32, 90_000, 10_494_950),
    ];
    let steps = vec![probe(0, 0), between(1, discount.0, discount.1), between(2, quantity.0, quantity.1)];
    let product = Value::Multiply(Box::new(Value::Input(3)), Box::new(Value::Input(1)));
    let words = vec![sum(product), count()];
    let aggregate = Aggregate { keys: Vec::new(), words, groups: Groups::One, presence: None };
    Plan { pipelines: vec![date(None, Some((year(), 1993, 1993))), lineorder(inputs, steps, aggregate)] }
}

/// Q2.1 to Q2.3: suppliers of a region, parts of a category; sums by year and brand.
pub fn query_2() -> Plan {
    let inputs = vec![
        input("lo_suppkey", 32, 1, 2000),
        input("lo_partkey", 32, 1, 200_000),
        order_date(),
        input("lo_revenue", 32, 81_360, 10_474_950),
    ];
    let aggregate = groups(&[(2, 1992, 1998), (1, 0, 999)], vec![sum(Value::Input(3)), count()]);
    let supplier = dimension(
        "supplier",
        input("s_suppkey", 32, 1, 2000),
        None,
        Some((input("s_region", 8, 0, 4), 1, 1)),
    );
    let part = dimension(
        "part",
        input("p_partkey", 32, 1, 200_000),
        Some(input("p_brand1", 16, 0, 999)),
        Some((input("p_category", 8, 0, 24), 2, 2)),
    );
    let steps = vec![probe(0, 0), probe(1, 1), probe(2, 2)];
    Plan { pipelines: vec![supplier, part, date(Some(year()), None), lineorder(inputs, steps, aggregate)] }
}

/// Q3.1 to Q3.4: customers and suppliers of a region; sums by both nations and year.
pub fn query_3() -> Plan {
    let inputs = vec![
        input("lo_custkey", 32, 1, 30_000),
        input("lo_suppkey", 32, 1, 2000),
        order_date(),
        input("lo_revenue", 32, 81_360, 10_474_950),
    ];
    let nation = |name: &str| input(name, 8, 0, 24);
    let aggregate = groups(&[(0, 0, 24), (1, 0, 24), (2, 1992, 1998)], vec![sum(Value::Input(3)), count()]);
    let customer = dimension(
        "customer",
        input("c_custkey", 32, 1, 30_000),
        Some(nation("c_nation")),
        Some((input("c_region", 8, 0, 4), 2, 2)),
    );
    let supplier = dimension(
        "supplier",
        input("s_suppkey", 32, 1, 2000),
        Some(nation("s_nation")),
        Some((input("s_region", 8, 0, 4), 2, 2)),
    );
    let date = date(Some(year()), Some((year(), 1992, 1997)));
    let steps = vec![probe(0, 0), probe(1, 1), probe(2, 2)];
    Plan { pipelines: vec![customer, supplier, date, lineorder(inputs, steps, aggregate)] }
}

/// Q4.1: customers, suppliers and parts filtered; profit by year and nation, in few groups.
pub fn query_4() -> Plan {
    let inputs = vec![
        input("lo_custkey", 32, 1, 30_000),
        input("lo_suppkey", 32, 1, 2000),
        input("lo_partkey", 32, 1, 200_000),
        order_date(),
        input("lo_revenue", 32, 81_360, 10_474_950),
        input("lo_supplycost", 32, 54_000, 125_939),
    ];
    let profit = Value::Subtract(Box::new(Value::Input(4)), Box::new(Value::Input(5)));
    let aggregate = groups(&[(3, 1992, 1998), (0, 0, 24)], vec![sum(profit), count()]);
    let customer = dimension(
        "customer",
        input("c_custkey", 32, 1, 30_000),
        Some(input("c_nation", 8, 0, 24)),
        Some((input("c_region", 8, 0, 4), 1, 1)),
    );
    let supplier = dimension(
        "supplier",
        input("s_suppkey", 32, 1, 2000),
        None,
        Some((input("s_region", 8, 0, 4), 1, 1)),
    );
    let part =
        dimension("part", input("p_partkey", 32, 1, 200_000), None, Some((input("p_mfgr", 8, 0, 4), 0, 1)));
    let steps = vec![probe(1, 1), probe(0, 0), probe(2, 2), probe(3, 3)];
    let mut plan = Plan {
        pipelines: vec![
            customer,
            supplier,
            part,
            date(Some(year()), None),
            lineorder(inputs, steps, aggregate),
        ],
    };
    // Probe 1 of the steps is of the customers.
    if let Some(Sink::Aggregate(aggregate)) = plan.pipelines.last_mut().map(|pipeline| &mut pipeline.sink) {
        aggregate.keys[1].value = Value::Field { probe: 1, field: 0 };
    }
    plan
}

/// One plan of each shape, by name.
pub fn queries() -> Vec<(&'static str, Plan)> {
    vec![("Q1.1", query_1((1, 3), (1, 24))), ("Q2.1", query_2()), ("Q3.1", query_3()), ("Q4.1", query_4())]
}
