//! Plans over the random tables: every kind of step and sink.

use query_demo::plan::{
    Aggregate, Build, Field, GroupKey, Groups, Index, Pipeline, Predicate, Probe, ProbeKind, Range, Set,
    Sink, Step, Value, Word, WordValue,
};

use super::random::Random;
use super::tables::{KEYS, fact, fact_inputs, item_inputs};

/// True of every row.
pub const ALWAYS: Predicate = Predicate::Always(true);

pub fn between(input: usize, low: i64, high: i64) -> Predicate {
    Predicate::Between { value: Value::Input(input), low, high }
}

/// That a validity is 1.
pub fn is_valid(input: usize) -> Predicate {
    between(input, 1, 1)
}

/// That the value of facts' input `input` is not null.
pub fn is_there(input: usize) -> Predicate {
    match input {
        fact::KEY => is_valid(fact::KEY_VALID),
        fact::NAME => is_valid(fact::NAME_VALID),
        fact::FLAG => is_valid(fact::FLAG_VALID),
        fact::HOLES => is_valid(fact::HOLES_VALID),
        _ => ALWAYS,
    }
}

pub fn add(left: Value, right: Value) -> Value {
    Value::Add(Box::new(left), Box::new(right))
}

pub fn subtract(left: Value, right: Value) -> Value {
    Value::Subtract(Box::new(left), Box::new(right))
}

pub fn multiply(left: Value, right: Value) -> Value {
    Value::Multiply(Box::new(left), Box::new(right))
}

/// A pipeline over facts that aggregates what `steps` leave.
pub fn aggregate(steps: Vec<Step>, sets: Vec<Set>, aggregate: Aggregate) -> Pipeline {
    Pipeline {
        table: "facts".into(),
        rows: 0,
        inputs: fact_inputs(),
        kept: vec![100_000; steps.len()],
        steps,
        sets,
        sink: Sink::Aggregate(aggregate),
    }
}

/// A pipeline over items that builds.
pub fn build(table: &str, steps: Vec<Step>, build: Build) -> Pipeline {
    Pipeline {
        table: table.into(),
        rows: 0,
        inputs: item_inputs(),
        kept: vec![100_000; steps.len()],
        steps,
        sets: Vec::new(),
        sink: Sink::Build(build),
    }
}

/// A table of items with entries of `entry_width` bits: 1 has no fields, 8 the color, 16 also the weight, which can be null, 32 also the id, 64 also a wide field.
pub fn item_build(entry_width: u8, index: Index, unique: bool) -> Build {
    let [id, color, weight] = [0, 1, 2].map(Value::Input);
    let field = |value: &Value, min, max, shift, bits| Field {
        value: value.clone(),
        valid: ALWAYS,
        nullable: false,
        range: Range { min, max },
        shift,
        bits,
    };
    let wide = multiply(id.clone(), Value::Literal(1_000_000_007));
    let color = field(&color, 0, 6, 0, 3);
    let weight = Field { valid: is_valid(3), nullable: true, ..field(&weight, -500, 500, 4, 10) };
    let fields = match entry_width {
        1 => vec![],
        8 => vec![color],
        16 => vec![color, weight],
        32 => vec![color, weight, field(&id, KEYS.min, KEYS.max, 20, 10)],
        _ => vec![color, weight, field(&wide, KEYS.min * 1_000_000_007, KEYS.max * 1_000_000_007, 23, 40)],
    };
    Build { key: id, key_name: "id".into(), domain: KEYS, index, unique, fields, entry_width }
}

/// The words of every kind, of small values.
pub fn words() -> Vec<Word> {
    let always = |value| Word { value, valid: ALWAYS };
    let [small, price, date] = [fact::SMALL, fact::PRICE, fact::DATE].map(Value::Input);
    vec![
        always(WordValue::Count),
        always(WordValue::Sum(price.clone())),
        always(WordValue::Sum(multiply(price.clone(), subtract(Value::Literal(100), small.clone())))),
        always(WordValue::SumLow(price.clone())),
        always(WordValue::SumHigh(multiply(price, Value::Literal(1000)))),
        always(WordValue::Greatest { value: date.clone(), min: -3000 }),
        always(WordValue::Least { value: date, max: 21_000 }),
        Word { value: WordValue::Count, valid: is_valid(fact::NAME_VALID) },
        Word { value: WordValue::Sum(Value::Input(fact::HOLES)), valid: is_valid(fact::HOLES_VALID) },
        Word {
            value: WordValue::Greatest { value: Value::Input(fact::NAME), min: 0 },
            valid: is_valid(fact::NAME_VALID),
        },
    ]
}

pub fn one_group() -> Aggregate {
    Aggregate { keys: Vec::new(), words: words(), groups: Groups::One, presence: None }
}

/// Groups by parts of (value, valid, nullable, range).
pub fn grouped(parts: Vec<(Value, Predicate, bool, Range)>, hashed: bool) -> Aggregate {
    let mut stride = 1;
    let mut keys = Vec::new();
    for (value, valid, nullable, range) in parts.into_iter().rev() {
        let codes = range.span() + 1 + u64::from(nullable);
        keys.push(GroupKey { value, valid, nullable, range, codes, stride });
        stride *= codes;
    }
    keys.reverse();
    let groups = if hashed { Groups::Hash { slots: 1 << 16 } } else { Groups::Dense { slots: stride } };
    Aggregate { keys, words: words(), groups, presence: Some(0) }
}

/// Groups by tiny and by name, which can be null.
pub fn by_tiny_and_name(hashed: bool) -> Aggregate {
    let tiny = (Value::Input(fact::TINY), ALWAYS, false, Range { min: -5, max: 5 });
    let name = (Value::Input(fact::NAME), is_valid(fact::NAME_VALID), true, Range { min: 0, max: 399 });
    grouped(vec![tiny, name], hashed)
}

pub fn probe(build: usize, key: Value, valid: Predicate, kind: ProbeKind) -> Step {
    Step::Probe(Probe { build, key, valid, kind })
}

/// Sets that [`random_predicate`] refers to.
pub fn sets() -> Vec<Set> {
    let words = |seed| {
        let mut random = Random::new(seed);
        (0..13).map(|_| random.within(0, u32::MAX.into()) as u32).collect()
    };
    vec![
        Set { base: 0, words: words(3) },
        Set { base: -160, words: words(4) },
        Set { base: 5, words: Vec::new() },
    ]
}

/// A random expression of values of at most a million or so.
pub fn random_value(random: &mut Random, depth: u32) -> Value {
    let inputs: Vec<usize> = (0..fact_inputs().len()).filter(|&input| input != fact::PRICE).collect();
    // What is stored under a null can be anything, and nothing may depend on it.
    let input = |random: &mut Random| {
        let input = inputs[random.within(0, inputs.len() as i64 - 1) as usize];
        match is_there(input) {
            ALWAYS => Value::Input(input),
            valid => Value::If(Box::new(valid), Box::new(Value::Input(input)), Box::new(Value::Literal(-1))),
        }
    };
    if depth == 0 {
        return if random.percent(25) { Value::Literal(random.within(-300, 300)) } else { input(random) };
    }
    let mut child = || random_value(random, depth - 1);
    let (left, right) = (child(), child());
    match random.within(0, 5) {
        0 => add(left, right),
        1 => subtract(left, right),
        2 => multiply(left, Value::Literal(random.within(-9, 9))),
        3 => {
            let condition = random_predicate(random, depth - 1);
            Value::If(Box::new(condition), Box::new(left), Box::new(right))
        }
        _ => input(random),
    }
}

/// A random truth.
pub fn random_predicate(random: &mut Random, depth: u32) -> Predicate {
    let value = random_value(random, depth.min(2));
    if depth > 0 && random.percent(50) {
        let parts = (0..random.within(0, 3)).map(|_| random_predicate(random, depth - 1)).collect();
        return match random.within(0, 2) {
            0 => Predicate::And(parts),
            1 => Predicate::Or(parts),
            _ => Predicate::Not(Box::new(random_predicate(random, depth - 1))),
        };
    }
    match random.within(0, 9) {
        0 => Predicate::Less(value, random_value(random, 1)),
        1 => Predicate::Equal(value, random_value(random, 1)),
        2 | 3 => Predicate::InSet { value, set: random.within(0, 2) as usize },
        4 => Predicate::Always(!random.percent(33)),
        _ => {
            let low = random.within(-400, 300);
            Predicate::Between { value, low, high: low + random.within(0, 600) }
        }
    }
}
