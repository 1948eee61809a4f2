//! `.cb2t` tables as DataFusion sees them: for resolving names and types, and for running what the pipelines cannot express.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow_io::table::{ReadOptions, Table};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

/// An open table that DataFusion can read.
#[derive(Debug)]
pub struct Cb2tTable {
    table: Arc<Table>,
}

impl Cb2tTable {
    /// The provider of `table`.
    #[must_use]
    pub fn new(table: Arc<Table>) -> Self {
        Self { table }
    }
}

#[async_trait]
impl TableProvider for Cb2tTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.table.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows = usize::try_from(self.table.row_count()).map_or(Precision::Absent, Precision::Exact);
        Some(Statistics { num_rows: rows, ..Statistics::new_unknown(self.table.schema()) })
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns =
            projection.cloned().unwrap_or_else(|| (0..self.table.schema().fields().len()).collect());
        let schema = Arc::new(self.table.schema().project(&columns)?);
        let shares = state.config().target_partitions().max(1) as u64;
        let (rows, share) = (self.table.row_count(), self.table.row_count().div_ceil(shares).max(1));
        let mut partitions: Vec<Arc<dyn PartitionStream>> = Vec::new();
        for start in (0..rows.max(1)).step_by(usize::try_from(share).unwrap_or(usize::MAX)) {
            let options = ReadOptions {
                columns: Some(columns.clone()),
                rows: Some(start..(start + share).min(rows)),
                batch_rows: state.config().batch_size(),
                ..ReadOptions::default()
            };
            let (table, schema) = (Arc::clone(&self.table), Arc::clone(&schema));
            partitions.push(Arc::new(Partition { table, schema, options }));
        }
        Ok(Arc::new(StreamingTableExec::try_new(schema, partitions, None, None, false, limit)?))
    }
}

/// Some rows of a table.
#[derive(Debug)]
struct Partition {
    table: Arc<Table>,
    schema: SchemaRef,
    options: ReadOptions,
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let external = |error| DataFusionError::External(Box::new(error));
        let stream: Box<dyn Iterator<Item = _> + Send> = match self.table.shared_batches(&self.options) {
            Ok(batches) => Box::new(batches.map(|batch| batch.map_err(DataFusionError::from))),
            Err(error) => Box::new(std::iter::once(Err(external(error)))),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(stream)))
    }
}
