//! The command line.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use arrow_io::formats::Format;
use clap::{Args, Parser, Subcommand};

#[cfg(feature = "query")]
mod query;
#[cfg(feature = "query")]
pub use self::query::{BenchSsb, Query};

/// Compressed columnar tables: pack Parquet, CSV, JSON lines and Arrow files into .cb2t, read them, prove them, unpack them.
///
/// Exit codes: 0 done; 1 the data differ or fail verification; 2 wrong use; 3 bad or unsupported input.
#[derive(Debug, Parser)]
#[command(name = "cb2t", version, propagate_version = true, arg_required_else_help = true)]
pub struct Arguments {
    /// Threads to use; all cores unless given.
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a .cb2t file of Parquet, CSV, TSV, JSON lines or Arrow files.
    #[command(after_help = "Examples:
  cb2t pack flights.parquet -o flights.cb2t
  cb2t pack part-*.csv.gz -o all.cb2t --null NA --verify
  cb2t pack orders.parquet -o orders.cb2t --codec flbp --codec o_orderdate=rfor --explain
  zcat events.jsonl.gz | cb2t pack - --format jsonl -o events.cb2t")]
    Pack(Pack),
    /// Write a .cb2t file as Parquet, CSV, TSV, JSON lines or Arrow.
    #[command(after_help = "Examples:
  cb2t unpack flights.cb2t -o flights.parquet
  cb2t unpack flights.cb2t -o - --format csv --columns carrier,dep_delay --rows 0..1000
  cb2t unpack flights.cb2t -o flights.arrow --verify")]
    Unpack(Unpack),
    /// Show what a .cb2t file is made of: columns, codecs, sizes.
    #[command(after_help = "Examples:
  cb2t inspect flights.cb2t
  cb2t inspect flights.cb2t --columns dep_time --blocks
  cb2t inspect flights.cb2t --why
  cb2t inspect flights.cb2t --json")]
    Inspect(Inspect),
    /// Show the columns and their types, of any supported file.
    #[command(after_help = "Examples:
  cb2t schema flights.cb2t
  cb2t schema flights.parquet --json")]
    Schema(Schema),
    /// Show the first rows, of any supported file.
    #[command(after_help = "Examples:
  cb2t head flights.cb2t
  cb2t head flights.cb2t -n 3 --columns carrier,tailnum --json")]
    Head(Head),
    /// Show rows, nulls, NaNs, smallest and largest value of each column, from the file's statistics alone.
    #[command(after_help = "Examples:
  cb2t stats flights.cb2t
  cb2t stats flights.cb2t --columns dep_delay --json")]
    Stats(Stats),
    /// Prove a .cb2t file: every checksum, every value, every statistic.
    #[command(after_help = "Example:
  cb2t verify flights.cb2t && echo sound")]
    Verify(Verify),
    /// Compare two tables in any supported formats: types, metadata and values.
    #[command(after_help = "Examples:
  cb2t diff flights.parquet flights.cb2t
  cb2t diff a.csv b.cb2t --ignore-types --ignore-metadata")]
    Diff(Diff),
    /// Generate benchmark tables: the Star Schema Benchmark and TPC-H.
    #[command(after_help = "Examples:
  cb2t gen ssb --scale 1 -o data/ssb1
  cb2t gen tpch --scale 0.1 -o data/tpch --format parquet --tables lineitem,orders")]
    Gen(Gen),
    #[cfg(feature = "query")]
    /// Ask .cb2t files in SQL: compiled pipelines on a CUDA GPU or on the CPU.
    #[command(after_help = "Examples:
  cb2t query \"SELECT carrier, count(*), avg(dep_delay) FROM flights GROUP BY carrier ORDER BY 2 DESC\" flights.cb2t
  cb2t query \"SELECT sum(l_extendedprice * l_discount) FROM li WHERE l_quantity < 24\" li=lineitem.cb2t --device cuda --profile
  cb2t query \"SELECT d_year, sum(lo_revenue) FROM lineorder, ddate WHERE lo_orderdate = d_datekey GROUP BY d_year\" ssb/*.cb2t -o years.csv

A table has its file's name unless NAME= stands before it. What the pipelines cannot express runs on DataFusion on the CPU, and standard error says so; with --device cuda it is an error.")]
    Query(Query),
    /// List the devices that can decode: the CPU and CUDA GPUs.
    #[command(after_help = "Example:
  cb2t devices --json")]
    Devices(Devices),
    /// Measure size and speed beside peers, in one run.
    #[command(after_help = "Examples:
  cb2t bench files lineorder.parquet
  cb2t bench codecs --bits 4,8,16 --json
  cb2t bench decode --device cuda --codec flbp --bits 6
  cb2t bench ssb --scale 1 --device cpu
  cb2t bench ssb --scale 100 --device cuda --placements register,uncompressed --json")]
    Bench(Bench),
    /// Pack, verify, unpack and compare a small bundled table.
    #[command(after_help = "Example:
  cb2t demo")]
    Demo(Demo),
}

/// How inputs that are not .cb2t are read.
#[derive(Debug, Clone, Args)]
pub struct InputOptions {
    /// Fields that stand for null in CSV and TSV besides the empty one; may be repeated.
    #[arg(long = "null", value_name = "TEXT")]
    pub null_values: Vec<String>,
    /// The delimiter of CSV fields: one character, or \t.
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// CSV and TSV have no line of column names.
    #[arg(long)]
    pub no_header: bool,
    /// Rows from which the schema of CSV and JSON lines is inferred; all of a file, and 10000 of a stream, unless given.
    #[arg(long, value_name = "N")]
    pub infer_rows: Option<u64>,
    /// A file with the schema for CSV and JSON lines, instead of inferring it: any supported file whose columns are to be taken, or the output of `cb2t schema --json`.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Pack {
    /// Files to pack one after the other, of equal schemas; - for standard input.
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<PathBuf>,
    /// The .cb2t file to make; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of the inputs: parquet, csv, tsv, arrow, arrow-stream, jsonl or cb2t; by extension unless given.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Only these columns, in this order.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub columns: Option<Vec<String>>,
    /// Only these rows, counted from 0, the end not included: 100..200, ..50, 7..
    #[arg(long, value_parser = parse_rows, value_name = "A..B")]
    pub rows: Option<Range<u64>>,
    /// Codec of the values: auto, or a codec's name, or COLUMN=NAME; may be repeated.
    #[arg(long = "codec", value_delimiter = ',', value_name = "[COLUMN=]NAME")]
    pub codecs: Vec<String>,
    /// What the automatic choice of codecs looks for.
    #[arg(long, value_enum, default_value_t = Optimize::Balanced, value_name = "GOAL")]
    pub optimize: Optimize,
    /// Values a tile: 512 or 1024.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub tile_size: u32,
    /// Uncompressed bytes of a block; K, M and G may follow.
    #[arg(long, default_value = "2M", value_parser = parse_bytes, value_name = "BYTES")]
    pub block_size: u64,
    /// Most rows of a row group.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    pub row_group_rows: u64,
    /// Memory that packing should stay within; K, M and G may follow.
    #[arg(long, default_value = "1G", value_parser = parse_bytes, value_name = "BYTES")]
    pub memory: u64,
    /// Read the inputs once. Otherwise files are read twice where they have strings, so that dictionaries are ordered.
    #[arg(long)]
    pub single_pass: bool,
    /// Prove the new file and compare it with the inputs before it gets its name.
    #[arg(long)]
    pub verify: bool,
    /// Replace the output if it exists.
    #[arg(short, long)]
    pub force: bool,
    /// Show which codecs were tried, what was estimated and what was achieved.
    #[arg(long)]
    pub explain: bool,
    /// Report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub input: InputOptions,
}

#[derive(Debug, Args)]
pub struct Unpack {
    /// The .cb2t file.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// The file to make; - for standard output.
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Format of the output: parquet, csv, tsv, arrow, arrow-stream or jsonl; by extension unless given.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Only these columns, in this order.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub columns: Option<Vec<String>>,
    /// Only these rows, counted from 0, the end not included: 100..200, ..50, 7..
    #[arg(long, value_parser = parse_rows, value_name = "A..B")]
    pub rows: Option<Range<u64>>,
    /// Memory that decoding should stay within; K, M and G may follow.
    #[arg(long, default_value = "512M", value_parser = parse_bytes, value_name = "BYTES")]
    pub memory: u64,
    /// Prove the whole file first.
    #[arg(long)]
    pub verify: bool,
    /// Replace the output if it exists.
    #[arg(short, long)]
    pub force: bool,
    /// Report as JSON on standard output (on standard error where the table goes to standard output).
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Inspect {
    /// The .cb2t file.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Only these columns.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub columns: Option<Vec<String>>,
    /// Show each block.
    #[arg(long)]
    pub blocks: bool,
    /// Show why the blocks have their codecs: tries all codecs on each block anew, as pack does, and shows the estimates beside what is stored.
    #[arg(long, conflicts_with = "blocks")]
    pub why: bool,
    /// With --why: what the choice looks for.
    #[arg(long, value_enum, default_value_t = Optimize::Balanced, value_name = "GOAL", requires = "why")]
    pub optimize: Optimize,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Schema {
    /// The file; - for standard input.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Format of the input; by extension unless given.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub options: InputOptions,
}

#[derive(Debug, Args)]
pub struct Head {
    /// The file; - for standard input.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// How many rows.
    #[arg(short = 'n', long = "rows", default_value_t = 10, value_name = "N")]
    pub rows: u64,
    /// Only these columns, in this order.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub columns: Option<Vec<String>>,
    /// Format of the input; by extension unless given.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// As JSON lines.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub options: InputOptions,
}

#[derive(Debug, Args)]
pub struct Stats {
    /// The .cb2t file.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Only these columns.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub columns: Option<Vec<String>>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The .cb2t files.
    #[arg(required = true, value_name = "FILE")]
    pub inputs: Vec<PathBuf>,
    /// cuda or cuda:N: also decode on that device, and compare with what the CPU decodes.
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    pub device: String,
    /// As JSON, a line a file.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// The left file, of any supported format.
    #[arg(value_name = "A")]
    pub left: PathBuf,
    /// The right file.
    #[arg(value_name = "B")]
    pub right: PathBuf,
    /// Do not compare types and nullability; values are compared after a cast that must be exact.
    #[arg(long)]
    pub ignore_types: bool,
    /// Do not compare metadata of fields and schema.
    #[arg(long)]
    pub ignore_metadata: bool,
    /// How many differing values of a column to show.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub show: usize,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub input: InputOptions,
}

#[derive(Debug, Args)]
pub struct Gen {
    /// Which benchmark.
    #[arg(value_enum, value_name = "BENCHMARK")]
    pub benchmark: Benchmark,
    /// The scale factor: a whole number from 1, or a fraction below 1.
    #[arg(long, default_value = "1", value_name = "S")]
    pub scale: datagen::Scale,
    /// The folder to write to; it is made if it is missing.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// cb2t, parquet or arrow.
    #[arg(long, default_value = "cb2t", value_name = "FORMAT")]
    pub format: Format,
    /// Only these tables.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub tables: Option<Vec<String>>,
    /// Which of the two ssb-dbgen's the dimension strings follow: maintained or classic.
    #[arg(long, default_value = "maintained", value_name = "DIALECT")]
    pub dialect: datagen::ssb::Dialect,
    /// What the automatic choice of codecs looks for.
    #[arg(long, value_enum, default_value_t = Optimize::Balanced, value_name = "GOAL")]
    pub optimize: Optimize,
    /// Codec of the values of .cb2t files: auto, or a codec's name, or COLUMN=NAME; may be repeated.
    #[arg(long = "codec", value_delimiter = ',', value_name = "[COLUMN=]NAME")]
    pub codecs: Vec<String>,
    /// Replace files that exist.
    #[arg(short, long)]
    pub force: bool,
    /// Report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// What the automatic choice of codecs looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Optimize {
    /// A small file that is fast to scan: a codec that is slow to decode must save more than it costs.
    Balanced,
    /// The smallest file.
    Size,
    /// The fastest scan.
    Speed,
}

/// The benchmarks that can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Benchmark {
    /// The Star Schema Benchmark: lineorder, customer, supplier, part, ddate.
    Ssb,
    /// TPC-H: its eight tables.
    Tpch,
}

#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    pub command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Write and read whole tables as cb2t and as Parquet (snappy, zstd), in memory.
    Files(BenchFiles),
    /// Encode and decode made-up values of 32 bits with each codec, on one core.
    Codecs(BenchCodecs),
    /// Decode columns of 32-bit values on a CUDA device: into its memory, and into a sum.
    Decode(BenchDecode),
    #[cfg(feature = "query")]
    /// The Star Schema Benchmark's 13 queries: generate, check every result, time.
    Ssb(BenchSsb),
}

#[derive(Debug, Args)]
pub struct Devices {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchDecode {
    /// cuda, cuda:N or cpu (then as `bench codecs`).
    #[arg(long, default_value = "cuda", value_name = "DEVICE")]
    pub device: String,
    /// Only these codecs.
    #[arg(long = "codec", value_delimiter = ',', value_name = "NAMES")]
    pub codecs: Option<Vec<String>>,
    /// Widths of the random values.
    #[arg(long, value_delimiter = ',', default_value = "4,6,8,16,24", value_parser = clap::value_parser!(u32).range(0..=32), value_name = "BITS")]
    pub bits: Vec<u32>,
    /// Values of a column.
    #[arg(long, default_value_t = 1 << 29, value_name = "N")]
    pub values: usize,
    /// Runs of which the median is taken.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub repeat: u32,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchFiles {
    /// Tables of any supported format, each measured alone.
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<PathBuf>,
    /// Only these columns.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub columns: Option<Vec<String>>,
    /// Runs of which the median is taken, after one that is not counted.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub repeat: usize,
    /// As JSON, a line a table.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub input: InputOptions,
}

#[derive(Debug, Args)]
pub struct BenchCodecs {
    /// Only these codecs.
    #[arg(long = "codec", value_delimiter = ',', value_name = "NAMES")]
    pub codecs: Option<Vec<String>>,
    /// Widths of the random values.
    #[arg(long, value_delimiter = ',', default_value = "1,4,8,12,16,24,32", value_parser = clap::value_parser!(u32).range(0..=32), value_name = "BITS")]
    pub bits: Vec<u32>,
    /// How many values.
    #[arg(long, default_value_t = 1 << 24, value_name = "N")]
    pub values: usize,
    /// Runs of which the median is taken, after one that is not counted.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub repeat: usize,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

fn parse_rows(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is no range of rows: write it as 100..200, ..50 or 7..");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let start = if start.is_empty() { 0 } else { start.parse().map_err(|_| wrong())? };
    let end = if end.is_empty() { u64::MAX } else { end.parse().map_err(|_| wrong())? };
    if start > end {
        return Err(format!("{text:?}: the range ends before it begins"));
    }
    Ok(start..end)
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no number of bytes: write it as 65536, 512K, 2M or 1G");
    let (digits, shift) = match text.trim_end_matches(['b', 'B']).to_ascii_lowercase() {
        text if text.ends_with('k') => (text, 10),
        text if text.ends_with('m') => (text, 20),
        text if text.ends_with('g') => (text, 30),
        text => (text, 0),
    };
    let number: u64 = digits.trim_end_matches(['k', 'm', 'g']).parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or_else(wrong)
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err(format!("{text:?} is not one character; for a tab write \\t")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn row_ranges_and_byte_counts_are_read_as_people_write_them() {
        assert_eq!(parse_rows("3..7"), Ok(3..7));
        assert_eq!(parse_rows("..7"), Ok(0..7));
        assert_eq!(parse_rows("3.."), Ok(3..u64::MAX));
        assert!(parse_rows("7..3").is_err());
        assert_eq!(parse_bytes("2M"), Ok(2 << 20));
        assert_eq!(parse_bytes("1GB"), Ok(1 << 30));
        assert!(parse_bytes("0").is_err());
        assert!(parse_bytes("many").is_err());
    }
}
