//! Random queries over random tables: the pipelines against DataFusion, and their kernels, run on the CPU under sanitizers, against the pipelines. `CB2T_QUERIES` says how many queries, at least a set of
//! tables' worth; `CB2T_KERNELS` how many of these sets have their kernels run, too; `CB2T_SEED` where to begin. With `CB2T_CUDA=0,1` every
//! query runs on these CUDA devices as well.
#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::panic, missing_docs)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, clippy::print_stdout, dead_code)]

mod gpu_shim;
#[path = "support/random.rs"]
mod random;
#[path = "support/rows.rs"]
mod rows;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt8Array,
};
use arrow_io::table::{Table, TableWriter, WriterOptions};
use gpu_shim::{ShimQueries, ShimQuery, codec, sorted};
use query_demo::gpu::{Options, Placement, Recode, ShapeOptions};
use query_demo::{DeviceChoice, Engine, QueryError, QueryOptions, QueryResult, Session, cpu};
use random::Random;
use rows::{rows, rows_in_order};

/// Queries of one set of tables.
const QUERIES_A_TABLE: u64 = 40;
const WORDS: [&str; 9] = [
    "",
    "ant of the northern woods",
    "bee of the northern woods",
    "cat of the southern coast",
    "dog of the southern coast",
    "eel of the southern coast",
    "fox of the northern woods",
    "gnu of the southern plain",
    "MFGR#12 of the eastern plain",
];

struct Tables {
    random: Random,
    nulls: u64,
}

impl Tables {
    /// A column of `rows` values that `value` makes, some null.
    fn column<T, A: FromIterator<Option<T>> + 'static>(
        &mut self,
        rows: u64,
        nullable: bool,
        value: impl Fn(&mut Random) -> T,
    ) -> Arc<A> {
        let nulls = if nullable { self.nulls } else { 0 };
        let random = &mut self.random;
        Arc::new((0..rows).map(|_| if random.percent(nulls) { None } else { Some(value(random)) }).collect())
    }

    fn fact(&mut self, rows: u64) -> RecordBatch {
        let wide = self.random.percent(10);
        let decimals: Arc<Decimal128Array> =
            self.column(rows, true, |random| i128::from(random.within(-99_999, 99_999)));
        let decimals = decimals.as_ref().clone().with_precision_and_scale(12, 2).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("k", self.column::<i32, Int32Array>(rows, true, |random| random.within(-3, 60) as i32)),
            ("j", self.column::<i64, Int64Array>(rows, false, |random| random.within(1, 40) * 1_000_000_007)),
            ("a", self.column::<i32, Int32Array>(rows, true, |random| random.within(-50, 200) as i32)),
            ("h", self.column::<i16, Int16Array>(rows, false, |random| random.within(-9, 9) as i16)),
            (
                "b",
                self.column::<i64, Int64Array>(rows, false, move |random| {
                    if wide { random.bits().cast_signed() } else { random.within(0, 1 << 33) }
                }),
            ),
            ("c", Arc::new(decimals)),
            ("d", self.column::<i32, Date32Array>(rows, true, |random| random.within(8_000, 10_500) as i32)),
            ("s", self.column::<&str, StringArray>(rows, true, |random| *random.pick(&WORDS))),
            ("f", self.column::<bool, BooleanArray>(rows, true, |random| random.percent(50))),
            ("u", self.column::<u8, UInt8Array>(rows, false, |random| random.below(256) as u8)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
            .unwrap()
    }

    /// Keys are unique but in one of ten tables.
    fn dimension(&mut self, first: &str, key: impl Fn(u64) -> i64) -> RecordBatch {
        let rows = *self.random.pick(&[0, 1, 20, 45, 60]);
        let repeats = self.random.percent(10);
        let mut keys: Vec<i64> = (0..rows).map(|row| key(if repeats { row / 2 } else { row })).collect();
        self.random.shuffle(&mut keys);
        let names = ["id", "x", "y", "z"].map(|name| format!("{first}{name}"));
        let id: ArrayRef = if first == "p" {
            Arc::new(keys.iter().map(|&key| Some(key as i32)).collect::<Int32Array>())
        } else {
            Arc::new(keys.iter().map(|&key| Some(key)).collect::<Int64Array>())
        };
        let columns: Vec<ArrayRef> = vec![
            id,
            self.column::<i32, Int32Array>(rows, true, |random| random.within(-2, 6) as i32),
            self.column::<&str, StringArray>(rows, true, |random| *random.pick(&WORDS)),
            self.column::<i64, Int64Array>(rows, false, |random| random.within(-500, 500)),
        ];
        let named = names.iter().zip(columns).map(|(name, array)| (name.as_str(), array, true));
        RecordBatch::try_from_iter_with_nullable(named).unwrap()
    }
}

fn write(path: &Path, batch: &RecordBatch, random: &mut Random) {
    let mut options = WriterOptions::default();
    options.encode.tile_size = *random.pick(&[512, 1024]);
    options.encode.block_bytes = *random.pick(&[4096, 65_536, 2 << 20]);
    options.row_group_rows = *random.pick(&[700, 2048, 1 << 20]);
    let file = File::create(path).unwrap();
    let mut writer = TableWriter::new(file, batch.schema(), &codecs::REGISTRY, options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn session(folder: &Path, seed: u64) -> Session {
    let mut random = Random::new(seed);
    let rows = *random.pick(&[0, 1, 31, 1000, 1024, 1025, 3000, 7000]);
    let nulls = *random.pick(&[0, 0, 10, 60, 100]);
    let mut tables = Tables { random, nulls };
    let batches = [
        ("t", tables.fact(rows)),
        ("p", tables.dimension("p", |row| i64::try_from(row).unwrap() - 2)),
        ("q", tables.dimension("q", |row| (i64::try_from(row).unwrap() + 1) * 1_000_000_007)),
    ];
    let mut session = Session::new().unwrap();
    for (name, batch) in batches {
        let path = folder.join(format!("{name}.cb2t"));
        write(&path, &batch, &mut tables.random);
        session.add(name, Table::open(&path, &codecs::REGISTRY).unwrap()).unwrap();
    }
    session
}

struct Queries {
    random: Random,
    p: bool,
    q: bool,
}

impl Queries {
    fn number(&mut self, depth: u32) -> String {
        // Not u: DataFusion multiplies bytes as bytes, and wraps.
        let mut columns = vec!["a", "h", "c", "a", "b"];
        if self.p {
            columns.extend(["px", "pz"]);
        }
        if self.q {
            columns.extend(["qx", "qz"]);
        }
        if depth == 0 || self.random.percent(40) {
            return if self.random.percent(15) {
                self.random.within(-20, 20).to_string()
            } else {
                (*self.random.pick(&columns)).to_owned()
            };
        }
        match self.random.below(6) {
            0..=2 => {
                let sign = *self.random.pick(&["+", "-", "*"]);
                format!("({} {sign} {})", self.number(depth - 1), self.number(depth - 1))
            }
            3 => format!("(-{})", self.number(depth - 1)),
            4 => {
                let (yes, no) = (self.number(depth - 1), self.number(depth - 1));
                format!("(CASE WHEN {} THEN {yes} ELSE {no} END)", self.condition(1))
            }
            _ => format!("CAST({} AS BIGINT)", *self.random.pick(&["a", "h", "u"])),
        }
    }

    fn string(&mut self) -> &'static str {
        let mut columns = vec!["s"];
        if self.p {
            columns.push("py");
        }
        if self.q {
            columns.push("qy");
        }
        let &column = self.random.pick(&columns);
        column
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.random.percent(50) {
            let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.random.below(3) {
                0 => format!("({left} AND {right})"),
                1 => format!("({left} OR {right})"),
                _ => format!("(NOT {left})"),
            };
        }
        let comparison = *self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
        match self.random.below(11) {
            0 | 1 => format!("{} {comparison} {}", self.number(1), self.random.within(-60, 220)),
            2 => format!("{} {comparison} {}", self.number(1), self.number(1)),
            3 => {
                let low = self.random.within(-60, 150);
                format!("{} BETWEEN {low} AND {}", self.number(0), low + self.random.within(-3, 90))
            }
            4 => {
                let column = *self.random.pick(&["a", "h", "u"]);
                let list: Vec<String> =
                    (0..self.random.within(1, 5)).map(|_| self.random.within(-9, 60).to_string()).collect();
                let not = if self.random.percent(30) { " NOT" } else { "" };
                format!("{column}{not} IN ({})", list.join(", "))
            }
            5 => {
                let column = *self.random.pick(&["a", "c", "d", "s", "f", "k"]);
                format!("{column} IS {}NULL", if self.random.percent(50) { "NOT " } else { "" })
            }
            6 => {
                let (column, word) = (self.string(), *self.random.pick(&WORDS));
                format!("{column} {comparison} '{word}'")
            }
            7 => {
                let (column, word) =
                    (self.string(), *self.random.pick(&["%a%", "b%", "%woods", "_o_ %", "%"]));
                format!("{column} {}LIKE '{word}'", if self.random.percent(30) { "NOT " } else { "" })
            }
            8 => {
                let column = self.string();
                format!(
                    "{column} IN ('{}', '{}', 'fox of the northern woods')",
                    self.random.pick(&WORDS),
                    self.random.pick(&WORDS)
                )
            }
            9 => (*self.random.pick(&["f", "NOT f", "f IS TRUE", "f IS NOT FALSE"])).to_owned(),
            _ => {
                format!("d {comparison} DATE '199{}-0{}-15'", self.random.below(9), self.random.below(9) + 1)
            }
        }
    }

    /// An order in which no two groups are equal, perhaps with a limit.
    fn order(&mut self, groups: &[&str], select: &[String]) -> String {
        let mut keys: Vec<&str> = groups.to_vec();
        self.random.shuffle(&mut keys);
        if self.random.percent(40) && select.len() > groups.len() {
            keys.insert(self.random.below(keys.len() as u64 + 1) as usize, "m0");
        }
        let keys: Vec<String> = keys
            .iter()
            .map(|key| {
                let direction = *self.random.pick(&["", " ASC", " DESC"]);
                format!("{key}{direction}{}", self.random.pick(&["", " NULLS FIRST", " NULLS LAST"]))
            })
            .collect();
        let limit = *self.random.pick(&["", "", " LIMIT 5", " LIMIT 3 OFFSET 2"]);
        format!(" ORDER BY {}{limit}", keys.join(", "))
    }

    fn query(&mut self) -> String {
        self.p = self.random.percent(40);
        self.q = self.random.percent(40);
        let mut from = "t".to_owned();
        let mut conditions = Vec::new();
        if self.p {
            from.push_str(" JOIN p ON k = pid");
        }
        if self.q {
            from.push_str(" JOIN q ON j = qid");
        }
        if self.random.percent(15) {
            let not = if self.random.percent(50) { "NOT " } else { "" };
            conditions.push(match self.random.below(2) {
                0 => format!("{not}EXISTS (SELECT 1 FROM p AS e WHERE e.pid = t.k AND e.px > 1)"),
                _ => "j IN (SELECT qid FROM q AS i WHERE i.qz > 0)".to_owned(),
            });
        }
        if self.random.percent(70) {
            conditions.push(self.condition(2));
        }
        let mut keys = vec!["h", "a", "d", "s", "f", "u", "k"];
        if self.p {
            keys.extend(["px", "py"]);
        }
        if self.q {
            keys.extend(["qx", "qy", "qz"]);
        }
        let mut groups: Vec<&str> = Vec::new();
        for _ in 0..self.random.below(4) {
            let key = *self.random.pick(&keys);
            if !groups.contains(&key) {
                groups.push(key);
            }
        }
        let mut select: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        for number in 0..self.random.below(3) + 1 {
            let aggregate = match self.random.below(9) {
                0 => "count(*)".to_owned(),
                1 => format!("count({})", *self.random.pick(&["a", "c", "s", "d", "f"])),
                2 => format!("min({})", self.number(1)),
                3 => format!("max({})", self.random.pick(&["a", "b", "c", "d", "u"])),
                4 => format!("avg({})", self.random.pick(&["a", "c", "h", "u"])),
                5 => format!("sum({}) FILTER (WHERE {})", self.number(1), self.condition(1)),
                _ => format!("sum({})", self.number(2)),
            };
            select.push(format!("{aggregate} AS m{number}"));
        }
        let mut sql = format!("SELECT {} FROM {from}", select.join(", "));
        if !conditions.is_empty() {
            sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
        }
        if !groups.is_empty() {
            sql.push_str(&format!(" GROUP BY {}", groups.join(", ")));
            if self.random.percent(20) {
                sql.push_str(" HAVING count(*) > 2");
            }
            if self.random.percent(40) {
                sql.push_str(&self.order(&groups, &select));
            }
        }
        sql
    }
}

/// The rows of a result, in order where the query says which.
fn lines(sql: &str, batch: &RecordBatch) -> Vec<String> {
    if sql.contains("ORDER BY") { rows_in_order(batch) } else { rows(batch) }
}

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// How the kernels of the n-th query run: placements, launch shapes and codecs by turns.
fn options_of(number: usize) -> Options {
    let recode = [Recode::Never, Recode::Slow, Recode::With(codec("flbp"))][number / 2 % 3];
    let shape = ShapeOptions {
        threads_per_block: Some([64, 128][number % 2]),
        pack_indexes: number.is_multiple_of(3),
        ..ShapeOptions::default()
    };
    let placement = Placement::ALL[number % Placement::ALL.len()];
    Options { placement, shape, recode, baseline: Some(codec("plain")), ..Options::default() }
}

/// Runs the kernels of queries that the pipelines have answered. False where there is no C++ compiler.
fn kernels_agree(session: &Session, queries: &[String]) -> bool {
    let compiled: Vec<_> = queries.iter().map(|sql| session.compile(sql).unwrap()).collect();
    let shim = compiled
        .iter()
        .enumerate()
        .map(|(number, query)| ShimQuery::new(&query.plan, session.tables(), &options_of(number)).unwrap());
    let Some(program) = ShimQueries::compile(shim.collect()) else { return false };
    for (number, (query, sql)) in compiled.iter().zip(queries).enumerate() {
        let (expected, _) = cpu::run(&query.plan, session.tables()).unwrap();
        let place = format!("{sql}, with {:?}\n{}", options_of(number), query.plan);
        let found = program.run(number, 1 + number as u64 % 2);
        let (found, _) = found.unwrap_or_else(|error| panic!("{place}\n{error}"));
        assert_eq!(sorted(&found), sorted(&expected), "{place}");
    }
    true
}

#[test]
fn pipelines_agree_with_datafusion_and_kernels_with_pipelines() {
    let (count, first) = (number_of("CB2T_QUERIES", 2000), number_of("CB2T_SEED", 1));
    let (sets_with_kernels, mut kernels_compared) = (number_of("CB2T_KERNELS", 2), 0);
    let (mut compiled, mut elsewhere, mut too_wide, mut unanswered) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut on_devices = 0_u64;
    let options = QueryOptions { device: DeviceChoice::Cpu, ..QueryOptions::default() };
    let devices = std::env::var("CB2T_CUDA")
        .ok()
        .map(|ordinals| ordinals.split(',').map(|ordinal| ordinal.parse().unwrap()).collect::<Vec<usize>>());
    for table in 0..count.div_ceil(QUERIES_A_TABLE) {
        let seed = first + table;
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path(), seed);
        let mut answered = Vec::new();
        let mut queries = Queries { random: Random::new(seed ^ 0x5EED), p: false, q: false };
        for _ in 0..QUERIES_A_TABLE {
            let sql = queries.query();
            let place = format!("seed {seed}: {sql}");
            match session.query(&sql, &options) {
                Ok(QueryResult { engine: Engine::DataFusion { reason }, .. }) => {
                    elsewhere += 1;
                    if std::env::var_os("CB2T_REASONS").is_some() {
                        println!("left to DataFusion: {reason}: {sql}");
                    }
                }
                Ok(result) => {
                    // Some queries meet an internal error of DataFusion.
                    let Ok(expected) = session.reference(&sql) else {
                        unanswered += 1;
                        continue;
                    };
                    assert_eq!(result.batch.schema().fields(), expected.schema().fields(), "{place}");
                    let (found, expected) = (lines(&sql, &result.batch), lines(&sql, &expected));
                    assert_eq!(found, expected, "{place}\n{}", result.plan.unwrap());
                    compiled += 1;
                    if let Some(devices) = &devices {
                        let gpu = options_of(compiled as usize);
                        let device = DeviceChoice::Cuda(devices.clone());
                        match session
                            .query(&sql, &QueryOptions { device, gpu: gpu.clone(), ..options.clone() })
                        {
                            Ok(found) => {
                                assert_eq!(lines(&sql, &found.batch), expected, "{place}, with {gpu:?}");
                                on_devices += 1;
                            }
                            // So many columns that a thread block's tiles exceed its shared memory.
                            Err(QueryError::Options { .. }) if gpu.placement == Placement::Shared => {}
                            Err(error) => panic!("{place}, with {gpu:?}: {error}"),
                        }
                    }
                    answered.push(sql);
                }
                Err(QueryError::TooWide { .. } | QueryError::ResultTooWide { .. }) => too_wide += 1,
                // DataFusion refuses it, too: wrong SQL.
                Err(QueryError::Sql(_)) if session.reference(&sql).is_err() => elsewhere += 1,
                Err(error) => panic!("{place}: {error}"),
            }
        }
        if table < sets_with_kernels && kernels_agree(&session, &answered) {
            kernels_compared += answered.len();
        }
    }
    println!(
        "{compiled} queries compared, {elsewhere} left to DataFusion, {too_wide} refused as too wide, {unanswered} that DataFusion fails on; the kernels of {kernels_compared} compared, {on_devices} queries on CUDA devices"
    );
    // Of few tables most may have all values null.
    assert!(compiled * 2 > count || count < 1000, "only {compiled} of {count} queries were compiled");
}
