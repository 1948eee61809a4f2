//! Open tables and SQL over them.

mod tune;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow_io::table::Table;
use codec_core::Registry;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::QueryError;
use crate::cpu::{self, CpuProfile};
use crate::front::provider::Cb2tTable;
use crate::front::{self, Compiled};
use crate::gpu::{self, Gpu, GpuProfile, Prepared};
use crate::plan::{GroupWords, Plan};
use crate::scan::Tables;

/// Open tables, and the devices that have seen them: columns that were uploaded and kernels that were compiled serve the next query.
pub struct Session {
    tables: Tables,
    context: SessionContext,
    runtime: tokio::runtime::Runtime,
    gpus: Mutex<HashMap<Vec<usize>, Arc<Gpu>>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("tables", &self.tables.keys()).finish_non_exhaustive()
    }
}

/// Where a query runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the first CUDA device if there is one, else on the CPU.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On these CUDA devices, by their ordinals; nowhere else.
    Cuda(Vec<usize>),
}

/// How a query runs.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// Where.
    pub device: DeviceChoice,
    /// On CUDA devices.
    pub gpu: gpu::Options,
    /// Try some launch shapes first, and remember the best for queries of the same kernels.
    pub tune: bool,
}

/// What runs a query.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The pipelines on the CPU.
    Cpu {
        /// Why not on a CUDA device, where that was tried.
        instead_of_cuda: Option<String>,
    },
    /// The pipelines on these CUDA devices.
    Cuda(Vec<usize>),
    /// DataFusion on the CPU, because the pipelines cannot express what is named.
    DataFusion {
        /// What they cannot express.
        reason: String,
    },
}

/// A query's result and how it came about.
#[derive(Debug)]
pub struct QueryResult {
    /// The rows.
    pub batch: RecordBatch,
    /// What ran it.
    pub engine: Engine,
    /// The pipelines; `None` where DataFusion ran it.
    pub plan: Option<Plan>,
    /// Where the time went.
    pub profile: QueryProfile,
}

/// Where a query's time went, in milliseconds.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct QueryProfile {
    /// Parsing, optimizing, making pipelines.
    pub plan_ms: f64,
    /// Of the pipelines on the CPU.
    pub cpu: Option<CpuProfile>,
    /// Of the pipelines on CUDA devices.
    pub gpu: Option<GpuProfile>,
    /// From pipelines' groups to the result: projection, sort, limit.
    pub result_ms: f64,
    /// All of it.
    pub total_ms: f64,
}

impl Session {
    /// A session without tables.
    ///
    /// # Errors
    /// No threads for DataFusion.
    pub fn new() -> Result<Self, QueryError> {
        let threads = rayon::current_num_threads();
        let mut config = SessionConfig::new().with_target_partitions(threads).with_information_schema(true);
        // 0.06 is a decimal: comparing it with a decimal column is exact.
        config.options_mut().sql_parser.parse_float_as_decimal = true;
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build();
        let runtime =
            runtime.map_err(|error| QueryError::Options { reason: format!("no threads: {error}") })?;
        let context = SessionContext::new_with_state(state);
        Ok(Self { tables: Tables::new(), context, runtime, gpus: Mutex::default() })
    }

    /// A session over the files `paths`, each a table of its file's name without the extension.
    ///
    /// # Errors
    /// A file that cannot be opened, or two of one name.
    pub fn open(
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
        registry: &'static Registry,
    ) -> Result<Self, QueryError> {
        let mut session = Self::new()?;
        for path in paths {
            let path = path.as_ref();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let opened = Table::open(path, registry);
            let table = opened
                .map_err(|source| QueryError::Table { table: name.clone(), source: Box::new(source) })?;
            session.add(&name, table)?;
        }
        Ok(session)
    }

    /// Adds a table. Its name is as in SQL without quotes: case does not matter.
    ///
    /// # Errors
    /// There is one of this name.
    pub fn add(&mut self, name: &str, table: Table) -> Result<(), QueryError> {
        let name = name.to_lowercase();
        if self.tables.contains_key(&name) {
            return Err(QueryError::Options {
                reason: format!("two tables are called {name}: give one of them another name"),
            });
        }
        let table = Arc::new(table);
        let reference = datafusion::common::TableReference::bare(name.clone());
        self.context.register_table(reference, Arc::new(Cb2tTable::new(Arc::clone(&table))))?;
        self.tables.insert(name, table);
        Ok(())
    }

    /// The tables by name.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Runs a query.
    ///
    /// # Errors
    /// SQL that is wrong, a file that is damaged, a result that cannot be exact, or, where a CUDA device was demanded, whatever keeps the query from it.
    pub fn query(&self, sql: &str, options: &QueryOptions) -> Result<QueryResult, QueryError> {
        let start = Instant::now();
        let (logical, state) = self.logical_plan(sql)?;
        let compiled = front::compile(&logical, &self.tables, &state);
        let plan_ms = milliseconds(start);
        let ran = compiled.and_then(|compiled| self.run(compiled, options));
        let demanded = matches!(options.device, DeviceChoice::Cuda(_));
        let mut result = match ran {
            Err(QueryError::Unsupported { construct }) if !demanded => self.fall_back(logical, construct)?,
            Err(error @ QueryError::DuplicateKey { .. }) if !demanded => {
                self.fall_back(logical, format!("this join: {error}"))?
            }
            other => other?,
        };
        result.profile.plan_ms = plan_ms;
        result.profile.total_ms = milliseconds(start);
        Ok(result)
    }

    fn run(&self, compiled: Compiled, options: &QueryOptions) -> Result<QueryResult, QueryError> {
        let mut profile = QueryProfile::default();
        let (groups, engine) = self.groups(&compiled.plan, options, &mut profile)?;
        let start = Instant::now();
        let batch = compiled.tail.run(compiled.output.batch(&groups)?)?;
        profile.result_ms = milliseconds(start);
        Ok(QueryResult { batch, engine, plan: Some(compiled.plan), profile })
    }

    /// The result of a query whose pipelines gave `groups`.
    ///
    /// # Errors
    /// A value that does not fit its SQL type, or an expression that fails on one.
    pub fn finish(&self, compiled: &Compiled, groups: &GroupWords) -> Result<RecordBatch, QueryError> {
        compiled.tail.run(compiled.output.batch(groups)?)
    }

    /// Runs the pipelines where `options` say.
    fn groups(
        &self,
        plan: &Plan,
        options: &QueryOptions,
        profile: &mut QueryProfile,
    ) -> Result<(GroupWords, Engine), QueryError> {
        let instead_of_cuda = match &options.device {
            DeviceChoice::Cpu => None,
            DeviceChoice::Cuda(ordinals) => {
                return self.on_cuda(plan, ordinals, options, profile);
            }
            DeviceChoice::Auto if !gpu_decode::Device::all().is_ok_and(|devices| !devices.is_empty()) => None,
            DeviceChoice::Auto => match self.on_cuda(plan, &[0], options, profile) {
                // What the device lacks, the CPU may have.
                Err(QueryError::Gpu(error)) => Some(error.to_string()),
                other => return other,
            },
        };
        let (groups, cpu) = cpu::run(plan, &self.tables)?;
        profile.cpu = Some(cpu);
        Ok((groups, Engine::Cpu { instead_of_cuda }))
    }

    fn on_cuda(
        &self,
        plan: &Plan,
        ordinals: &[usize],
        options: &QueryOptions,
        profile: &mut QueryProfile,
    ) -> Result<(GroupWords, Engine), QueryError> {
        let mut prepared = self.prepare(plan, ordinals, options)?;
        let (groups, gpu) = prepared.run()?;
        profile.gpu = Some(gpu);
        Ok((groups, Engine::Cuda(ordinals.to_vec())))
    }

    /// Uploads what a plan needs and compiles its kernels, to run it more than once on the CUDA devices `ordinals`.
    ///
    /// # Errors
    /// Whatever keeps the plan from the devices.
    pub fn prepare(
        &self,
        plan: &Plan,
        ordinals: &[usize],
        options: &QueryOptions,
    ) -> Result<Prepared, QueryError> {
        let gpu = self.gpu(ordinals)?;
        if options.tune {
            return tune::prepare(&gpu, plan, &self.tables, &options.gpu);
        }
        Prepared::new(&gpu, plan, &self.tables, &tune::remembered(&gpu, plan, &options.gpu))
    }

    fn gpu(&self, ordinals: &[usize]) -> Result<Arc<Gpu>, QueryError> {
        let mut known = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = known.get(ordinals) {
            return Ok(Arc::clone(gpu));
        }
        let devices: Result<Vec<_>, _> =
            ordinals.iter().map(|&ordinal| gpu_decode::Device::new(ordinal)).collect();
        let gpu = Arc::new(Gpu::new(devices?)?);
        known.insert(ordinals.to_vec(), Arc::clone(&gpu));
        Ok(gpu)
    }

    /// What a query runs, as text: pipelines, and for CUDA devices the options; with `source`, the kernels, which takes a device.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn explain(&self, sql: &str, options: &QueryOptions, source: bool) -> Result<String, QueryError> {
        let compiled = match self.compile(sql) {
            Err(QueryError::Unsupported { construct }) => {
                let (logical, _) = self.logical_plan(sql)?;
                let logical = logical.display_indent();
                return Ok(format!("DataFusion, as the pipelines cannot express {construct}:\n{logical}\n"));
            }
            other => other?,
        };
        let mut text = compiled.plan.to_string();
        if source {
            let ordinals = match &options.device {
                DeviceChoice::Cuda(ordinals) => ordinals.as_slice(),
                _ => &[0],
            };
            for (index, source) in self.prepare(&compiled.plan, ordinals, options)?.sources().enumerate() {
                text.push_str(&format!("\n// program {index}\n{source}"));
            }
        }
        Ok(text)
    }

    /// The pipelines of a query, without running it.
    ///
    /// # Errors
    /// As [`Session::query`], and [`QueryError::Unsupported`] where DataFusion would run it.
    pub fn compile(&self, sql: &str) -> Result<Compiled, QueryError> {
        let (logical, state) = self.logical_plan(sql)?;
        front::compile(&logical, &self.tables, &state)
    }

    /// Runs a query on DataFusion alone: the reference for the pipelines.
    ///
    /// # Errors
    /// SQL that is wrong, or a file that is damaged.
    pub fn reference(&self, sql: &str) -> Result<RecordBatch, QueryError> {
        let (logical, _) = self.logical_plan(sql)?;
        Ok(self.fall_back(logical, "a reference".to_owned())?.batch)
    }

    fn logical_plan(&self, sql: &str) -> Result<(LogicalPlan, Arc<SessionState>), QueryError> {
        let state = self.context.state();
        let logical = self.runtime.block_on(state.create_logical_plan(sql))?;
        let optimized = match &logical {
            LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_) => {
                let reason = "only queries: tables are files, which SQL does not change".to_owned();
                return Err(QueryError::Options { reason });
            }
            logical => state.optimize(logical)?,
        };
        Ok((optimized, Arc::new(state)))
    }

    fn fall_back(&self, logical: LogicalPlan, reason: String) -> Result<QueryResult, QueryError> {
        let schema = Arc::new(logical.schema().as_arrow().clone());
        let batches = self
            .runtime
            .block_on(async { self.context.execute_logical_plan(logical).await?.collect().await })?;
        let schema = batches.first().map_or(schema, RecordBatch::schema);
        let batch = concat_batches(&schema, &batches)?;
        let engine = Engine::DataFusion { reason };
        Ok(QueryResult { batch, engine, plan: None, profile: QueryProfile::default() })
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
