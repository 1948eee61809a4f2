//! Options of what asks in SQL.

use std::path::PathBuf;

use clap::Args;
use query_demo::DeviceChoice;
use query_demo::gpu::{Placement, Recode, ShapeOptions};

use super::Optimize;
use crate::error::CliError;

#[derive(Debug, Args)]
pub struct Query {
    /// The query.
    #[arg(value_name = "SQL")]
    pub sql: String,
    /// Tables that it names: .cb2t files.
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub tables: Vec<String>,
    #[command(flatten)]
    pub engine: EngineOptions,
    /// Show the pipelines instead of running them.
    #[arg(long)]
    pub explain: bool,
    /// Show the pipelines and the CUDA source of their kernels; takes a CUDA device.
    #[arg(long)]
    pub explain_source: bool,
    /// Say on standard error where the time went: plan, compile, upload, kernels, bytes, tiles skipped.
    #[arg(long)]
    pub profile: bool,
    /// The result as JSON lines.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// The result as CSV.
    #[arg(long)]
    pub csv: bool,
    /// Write the result to a file, in the format of its extension.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the output if it exists.
    #[arg(short, long)]
    pub force: bool,
}

/// Where and how a query runs.
#[derive(Debug, Clone, Args)]
pub struct EngineOptions {
    /// auto (a CUDA device if there is one), cpu, cuda, cuda:N, or several as cuda:0,1.
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    pub device: String,
    /// Where decoded tiles lie: register, shared, global-stage, pre-decode (whole columns first) or uncompressed (the columns encoded as they are).
    #[arg(long, default_value = "register", value_name = "PLACEMENT")]
    pub placement: String,
    /// Threads of a thread block.
    #[arg(long, value_name = "N")]
    pub threads_per_block: Option<u32>,
    /// Values of a tile that a thread decodes: the tile size over 32 (a warp decodes a tile) or over the threads of a thread block.
    #[arg(long, value_name = "N")]
    pub items_per_thread: Option<u32>,
    /// Thread blocks that a multiprocessor must be able to hold at a time: limits the registers.
    #[arg(long, value_name = "N")]
    pub min_blocks: Option<u32>,
    /// Columns on a CUDA device keep the codecs that they have in the file. Else blocks whose decoding costs a scan more than their size saves are encoded again on their way there.
    #[arg(long)]
    pub keep_codecs: bool,
    /// Try some launch shapes first, and remember the best for queries with the same kernels.
    #[arg(long)]
    pub tune: bool,
}

impl EngineOptions {
    /// As the engine takes them.
    pub fn options(&self) -> Result<query_demo::QueryOptions, CliError> {
        let placement = Placement::ALL.into_iter().find(|placement| placement.name() == self.placement);
        let placement = placement.ok_or_else(|| {
            let names = Placement::ALL.map(Placement::name).join(", ");
            CliError::Usage(format!("--placement {}: use one of {names}", self.placement))
        })?;
        let shape = ShapeOptions {
            threads_per_block: self.threads_per_block,
            items_per_thread: self.items_per_thread,
            min_blocks: self.min_blocks,
            ..ShapeOptions::default()
        };
        let baseline = cb2t::REGISTRY.by_name("plain");
        let recode = if self.keep_codecs { Recode::Never } else { Recode::Slow };
        let gpu = query_demo::gpu::Options {
            placement,
            shape,
            baseline,
            recode,
            ..query_demo::gpu::Options::default()
        };
        Ok(query_demo::QueryOptions { device: self.device()?, gpu, tune: self.tune })
    }

    fn device(&self) -> Result<DeviceChoice, CliError> {
        let wrong = || {
            CliError::Usage(format!(
                "--device {}: use auto, cpu, cuda, cuda:N or cuda:N,M; `cb2t devices` lists them",
                self.device
            ))
        };
        match self.device.as_str() {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda(vec![0])),
            other => {
                let list = other.strip_prefix("cuda:").ok_or_else(wrong)?;
                let ordinals: Result<Vec<usize>, _> = list.split(',').map(str::parse).collect();
                ordinals.map(DeviceChoice::Cuda).map_err(|_| wrong())
            }
        }
    }
}

#[derive(Debug, Args)]
pub struct BenchSsb {
    /// The scale factor: a whole number from 1, or a fraction below 1.
    #[arg(long, default_value = "1", value_name = "S")]
    pub scale: datagen::Scale,
    /// Which of the two ssb-dbgen's the dimension strings follow: maintained or classic.
    #[arg(long, default_value = "maintained")]
    pub dialect: datagen::ssb::Dialect,
    /// Keep the tables in this folder, and take those that are there; else they are made in memory.
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// What the automatic choice of codecs looks for.
    #[arg(long, value_enum, default_value_t = Optimize::Balanced, value_name = "GOAL")]
    pub optimize: Optimize,
    /// auto, or a codec for all columns, or COLUMN=CODEC; may be repeated.
    #[arg(long = "codec", value_name = "[COLUMN=]CODEC")]
    pub codecs: Vec<String>,
    /// Values a tile: 512 or 1024.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub tile_size: u32,
    /// Only these queries, as Q1.1,Q2.1.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queries: Option<Vec<String>>,
    /// Several placements one after the other, instead of --placement.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub placements: Option<Vec<String>>,
    /// Runs of which the median is taken, after one that is not counted.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub repeat: u32,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub engine: EngineOptions,
}
