//! `cb2t bench ssb`: the Star Schema Benchmark, from generated rows to checked and timed results.

use std::fs;
use std::path::Path;
use std::time::Instant;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use arrow_io::table::{Table, TableWriter, WriterOptions};
use cb2t::Source;
use datagen::ssb;
use query_demo::gpu::Placement;
use query_demo::ssb::{ANSWERS_AT_SCALE_1, ANSWERS_AT_SCALE_100, LINEORDER_COLUMNS, QUERIES};
use query_demo::{DeviceChoice, QueryOptions, Session, cpu};
use serde_json::json;

use super::machine;
use crate::args::BenchSsb;
use crate::commands::pack::choices;
use crate::error::{CliError, Outcome};
use crate::output::{Output, print_json, print_text};
use crate::progress::BatchProgress;
use crate::render::{bytes, table};

/// Columns of the dimensions that the queries read.
const DIMENSION_COLUMNS: [&str; 17] = [
    "c_custkey",
    "c_city",
    "c_nation",
    "c_region",
    "s_suppkey",
    "s_city",
    "s_nation",
    "s_region",
    "p_partkey",
    "p_mfgr",
    "p_category",
    "p_brand1",
    "d_datekey",
    "d_year",
    "d_yearmonthnum",
    "d_yearmonth",
    "d_weeknuminyear",
];

/// One query in one placement.
#[derive(Debug, serde::Serialize)]
struct Row {
    query: &'static str,
    sql: &'static str,
    placement: Option<&'static str>,
    rows: usize,
    /// Median milliseconds from the first launch (on the CPU: from the start of the pipelines) to the sorted result on the host.
    ms: f64,
    /// Median milliseconds of all kernels, builds included.
    kernels_ms: Option<f64>,
    /// Milliseconds of processor time of all threads.
    cpu_ms: f64,
    compile_ms: Option<f64>,
    /// Bytes of the referenced columns of lineorder: as stored, and at four bytes a value.
    stored_bytes: u64,
    plain_bytes: u64,
    /// How the result was proven.
    checked: &'static str,
    profile: Option<query_demo::gpu::GpuProfile>,
}

pub fn run(args: &BenchSsb) -> Result<Outcome, CliError> {
    let session = session(args)?;
    let options = args.engine.options()?;
    let ordinals = match &options.device {
        DeviceChoice::Cuda(ordinals) => Some(ordinals.clone()),
        DeviceChoice::Cpu => None,
        DeviceChoice::Auto => {
            gpu_decode::Device::all().ok().filter(|devices| !devices.is_empty()).map(|_| vec![0])
        }
    };
    let placements = placements(args)?;
    let mut rows = Vec::new();
    for (name, sql) in QUERIES {
        if args
            .queries
            .as_ref()
            .is_some_and(|names| !names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name)))
        {
            continue;
        }
        let compiled = session.compile(sql).map_err(CliError::query)?;
        let (stored_bytes, plain_bytes) = footprint(&session, &compiled.plan)?;
        let on_cpu = || -> Result<(RecordBatch, f64), CliError> {
            let start = Instant::now();
            let (groups, _) = cpu::run(&compiled.plan, session.tables()).map_err(CliError::query)?;
            let batch = session.finish(&compiled, &groups).map_err(CliError::query)?;
            Ok((batch, start.elapsed().as_secs_f64() * 1e3))
        };
        let (expected, _) = on_cpu()?;
        let checked = check(args, &session, name, sql, &expected, ordinals.is_some())?;
        let row = |placement, ms, cpu_ms| Row {
            query: name,
            sql,
            placement,
            rows: expected.num_rows(),
            ms,
            kernels_ms: None,
            cpu_ms,
            compile_ms: None,
            stored_bytes,
            plain_bytes,
            checked,
            profile: None,
        };
        let Some(ordinals) = &ordinals else {
            let mut times = Vec::new();
            let before = processor_ms();
            for _ in 0..args.repeat {
                times.push(on_cpu()?.1);
            }
            let cpu_ms = (processor_ms() - before) / f64::from(args.repeat.max(1));
            rows.push(row(None, median(&mut times), cpu_ms));
            continue;
        };
        for &placement in &placements {
            let gpu = query_demo::gpu::Options { placement, ..options.gpu.clone() };
            let options = QueryOptions { gpu, ..options.clone() };
            let mut prepared =
                session.prepare(&compiled.plan, ordinals, &options).map_err(CliError::query)?;
            let (mut times, mut kernels, mut last) = (Vec::new(), Vec::new(), None);
            let mut before = processor_ms();
            for run in 0..=args.repeat {
                // The first run warms up.
                if run == 1 {
                    (times, kernels, before) = (Vec::new(), Vec::new(), processor_ms());
                }
                let start = Instant::now();
                let (groups, profile) = prepared.run().map_err(CliError::query)?;
                let batch = session.finish(&compiled, &groups).map_err(CliError::query)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
                kernels.push(profile.kernels_ms);
                if batch != expected && !same_rows(&batch, &expected) {
                    let place = format!("{name}, placement {}", placement.name());
                    return Err(CliError::Unsupported {
                        file: place,
                        reason: "the device's result differs from the CPU's".into(),
                    });
                }
                last = Some(profile);
            }
            let cpu_ms = (processor_ms() - before) / f64::from(args.repeat.max(1));
            let compile_ms = last.as_ref().map(|profile| profile.compile_ms);
            let kernels_ms = Some(median(&mut kernels));
            rows.push(Row {
                kernels_ms,
                compile_ms,
                profile: last,
                ..row(Some(placement.name()), median(&mut times), cpu_ms)
            });
        }
    }
    report(args, &rows, ordinals.as_deref())
}

/// Ties in the order leave rows in any order.
fn same_rows(left: &RecordBatch, right: &RecordBatch) -> bool {
    let sorted = |batch: &RecordBatch| {
        let columns: Vec<arrow::compute::SortColumn> = batch
            .columns()
            .iter()
            .map(|values| arrow::compute::SortColumn { values: values.clone(), options: None })
            .collect();
        let order = arrow::compute::lexsort_to_indices(&columns, None).ok()?;
        arrow::compute::take_record_batch(batch, &order).ok()
    };
    left.num_rows() == right.num_rows() && sorted(left) == sorted(right)
}

fn placements(args: &BenchSsb) -> Result<Vec<Placement>, CliError> {
    let Some(names) = &args.placements else { return Ok(vec![args.engine.options()?.gpu.placement]) };
    names
        .iter()
        .map(|name| {
            let found = Placement::ALL.into_iter().find(|placement| placement.name() == name);
            let all = Placement::ALL.map(Placement::name).join(", ");
            found.ok_or_else(|| CliError::Usage(format!("--placements {name}: use some of {all}")))
        })
        .collect()
}

/// The tables, in memory or in the folder.
fn session(args: &BenchSsb) -> Result<Session, CliError> {
    let mut session = Session::new().map_err(CliError::query)?;
    for kind in ssb::Table::ALL {
        let table = match &args.folder {
            None => {
                let bytes = generate(args, kind, Vec::new(), "memory")?;
                Table::from_source(Source::memory(bytes), &cb2t::REGISTRY)
            }
            Some(folder) => {
                let path = folder.join(format!("{}.cb2t", kind.name()));
                if !path.exists() {
                    fs::create_dir_all(folder)
                        .map_err(|source| CliError::Io { file: folder.display().to_string(), source })?;
                    let output = Output::create(&path, false)?;
                    drop(generate(args, kind, output.writer(), &path.display().to_string())?);
                    output.commit()?;
                }
                Table::open(&path, &cb2t::REGISTRY)
            }
        };
        let table = table.map_err(CliError::table(kind.name()))?;
        check_rows(args, kind, &table)?;
        session.add(kind.name(), table).map_err(CliError::query)?;
    }
    Ok(session)
}

/// A folder may hold tables of another scale.
fn check_rows(args: &BenchSsb, kind: ssb::Table, table: &Table) -> Result<(), CliError> {
    let expected = ssb::Generator::new(args.scale, args.dialect).row_count(kind);
    if table.row_count() == expected {
        return Ok(());
    }
    let reason = format!("{} rows, but {expected} at this scale: choose another folder", table.row_count());
    Err(CliError::Unsupported { file: kind.name().into(), reason })
}

fn generate<W: std::io::Write + Send>(
    args: &BenchSsb,
    kind: ssb::Table,
    target: W,
    file: &str,
) -> Result<W, CliError> {
    let failed = |error: datagen::Error| CliError::Usage(error.to_string());
    let generator = ssb::Generator::new(args.scale, args.dialect);
    let schema = generator.schema(kind);
    let needed: &[&str] = if kind == ssb::Table::Lineorder { &LINEORDER_COLUMNS } else { &DIMENSION_COLUMNS };
    let columns: Vec<usize> = (0..schema.fields().len())
        .filter(|&index| needed.contains(&schema.field(index).name().as_str()))
        .collect();
    let arrow = |source| CliError::Batch { file: file.to_owned(), source };
    let schema: arrow::datatypes::SchemaRef = schema.project(&columns).map_err(arrow)?.into();
    let mut options = WriterOptions::default();
    let (choice, column_choices) = choices(&args.codecs, args.optimize)?;
    options.encode.choice = choice;
    options.encode.tile_size = args.tile_size;
    options.column_choices =
        column_choices.into_iter().filter(|(name, _)| schema.column_with_name(name).is_some()).collect();
    let progress = BatchProgress::of_rows(kind.name(), generator.row_count(kind));
    let mut writer =
        TableWriter::new(target, schema, &cb2t::REGISTRY, options).map_err(CliError::table(file))?;
    for batch in
        generator.stream(kind, rayon::current_num_threads(), datagen::DEFAULT_BATCH_ROWS).map_err(failed)?
    {
        let batch = batch.map_err(arrow)?.project(&columns).map_err(arrow)?;
        writer.write(&batch).map_err(CliError::table(file))?;
        progress.add(batch.num_rows() as u64);
    }
    let (target, _) = writer.finish().map_err(CliError::table(file))?;
    Ok(target)
}

/// Compares the CPU's result with what is known from elsewhere: the published sums, else DataFusion.
fn check(
    args: &BenchSsb,
    session: &Session,
    name: &str,
    sql: &str,
    batch: &RecordBatch,
    on_device: bool,
) -> Result<&'static str, CliError> {
    let differs = |reason: String| Err(CliError::Unsupported { file: name.to_owned(), reason });
    let found = measure(batch);
    if args.dialect == ssb::Dialect::Maintained {
        let scale = args.scale.factor();
        let at_1 = QUERIES
            .iter()
            .position(|(query, _)| *query == name)
            .and_then(|index| ANSWERS_AT_SCALE_1.get(index));
        let at_100 = ANSWERS_AT_SCALE_100.iter().find(|(query, _)| *query == name);
        let known = match (at_1, at_100) {
            (Some((_, sum)), _) if (scale - 1.0).abs() < 1e-9 => Some(*sum),
            (_, Some((_, sum))) if (scale - 100.0).abs() < 1e-9 => Some(*sum),
            _ => None,
        };
        match known {
            Some(sum) if sum == found => return Ok("known sum"),
            Some(sum) => return differs(format!("the sum is {found}, but {sum} is known")),
            None => {}
        }
    }
    // DataFusion takes long at large scales; there a device is compared with the CPU.
    if on_device && args.scale.factor() > 10.0 {
        return Ok("cpu");
    }
    let reference = session.reference(sql).map_err(CliError::query)?;
    if same_rows(batch, &reference) {
        Ok("datafusion")
    } else {
        differs("the result differs from DataFusion's".to_owned())
    }
}

/// The sum of the query's measure.
fn measure(batch: &RecordBatch) -> i128 {
    let schema = batch.schema();
    let column =
        schema.fields().iter().position(|field| matches!(field.name().as_str(), "revenue" | "profit"));
    let column = column.map(|index| batch.column(index));
    column
        .filter(|column| *column.data_type() == DataType::Int64)
        .map_or(0, |column| column.as_primitive::<Int64Type>().iter().flatten().map(i128::from).sum())
}

/// Bytes of the columns that the last pipeline decodes: their blocks, and four bytes a value.
fn footprint(session: &Session, plan: &query_demo::plan::Plan) -> Result<(u64, u64), CliError> {
    let Some(pipeline) = plan.pipelines.last() else { return Ok((0, 0)) };
    let Some(table) = session.tables().get(&pipeline.table) else { return Ok((0, 0)) };
    let mut stored = 0;
    for input in &pipeline.inputs {
        let section = &table.column(input.column).map_err(CliError::table(&pipeline.table))?.section;
        stored += section.blocks.iter().map(|block| u64::from(block.block_bytes.get())).sum::<u64>();
    }
    Ok((stored, pipeline.inputs.len() as u64 * 4 * pipeline.rows))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Milliseconds that all threads of this process have run; 0 where the system does not say.
fn processor_ms() -> f64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds = tasks.filter_map(|task| {
        let text = fs::read_to_string(Path::new(&task.ok()?.path()).join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e6
}

fn report(args: &BenchSsb, rows: &[Row], ordinals: Option<&[usize]>) -> Result<Outcome, CliError> {
    let mean = |time: &dyn Fn(&Row) -> f64, placement: Option<&str>| {
        let times: Vec<f64> = rows.iter().filter(|row| row.placement == placement).map(time).collect();
        (times.iter().map(|time| time.ln()).sum::<f64>() / times.len().max(1) as f64).exp()
    };
    if args.json {
        let devices: Vec<_> =
            ordinals.unwrap_or_default().iter().map(|&ordinal| gpu_decode::Device::new(ordinal)).collect();
        let devices: Vec<_> = devices.iter().flatten().map(gpu_decode::Device::info).collect();
        print_json(&json!({
            "scale": args.scale.factor(), "repeat": args.repeat, "machine": machine(), "devices": devices, "rows": rows,
        }))?;
        return Ok(Outcome::Done);
    }
    let header = [
        "query",
        "placement",
        "rows",
        "ms",
        "kernels ms",
        "cpu ms",
        "compile ms",
        "columns",
        "of plain",
        "checked by",
    ];
    let milliseconds = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.3}"));
    let lines = rows.iter().map(|row| {
        vec![
            row.query.to_owned(),
            row.placement.unwrap_or("-").to_owned(),
            row.rows.to_string(),
            format!("{:.3}", row.ms),
            milliseconds(row.kernels_ms),
            format!("{:.1}", row.cpu_ms),
            milliseconds(row.compile_ms),
            bytes(row.stored_bytes),
            format!("1/{:.2}", row.plain_bytes as f64 / row.stored_bytes.max(1) as f64),
            row.checked.to_owned(),
        ]
    });
    let mut text = table(&header, lines.collect(), &[2, 3, 4, 5, 6, 7, 8]);
    let mut seen: Vec<Option<&str>> = rows.iter().map(|row| row.placement).collect();
    seen.dedup();
    seen.sort_unstable();
    seen.dedup();
    for placement in seen {
        let name = placement.map_or_else(|| "cpu".to_owned(), |name| format!("cuda, {name}"));
        let (ms, cpu_ms) = (mean(&|row| row.ms, placement), mean(&|row| row.cpu_ms, placement));
        text.push_str(&format!("geometric mean, {name}: {ms:.3} ms, {cpu_ms:.1} ms of processor time\n"));
    }
    print_text(&text)?;
    Ok(Outcome::Done)
}
