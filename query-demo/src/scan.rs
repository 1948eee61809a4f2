//! Tables as executors see them: row groups, and the blocks of the buffers that a pipeline's inputs name.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_io::TableError;
use arrow_io::table::Table;
use codec_core::{BlockSource, BufferError, Layout};
use container::{BlockBytes, BufferReader, ContainerError};
use format_spec::{BufferEntry, Role};

use crate::QueryError;
use crate::plan::{Buffer, Input};

/// Open tables by the names that queries call them.
pub type Tables = BTreeMap<String, Arc<Table>>;

/// The table of this name.
///
/// # Errors
/// There is none.
pub fn table<'t>(tables: &'t Tables, name: &str) -> Result<&'t Arc<Table>, QueryError> {
    tables.get(name).ok_or_else(|| QueryError::unsupported(format!("the table {name}, which is not open")))
}

/// The blocks of one input in one row group, read but not yet proven.
#[derive(Debug)]
pub struct InputBlocks<'t> {
    /// Kind and width of the values. The width may be less than the input's: codes of a dictionary are as wide as a row group needs.
    pub layout: Layout,
    /// The blocks, one after the other. Every block but the last has whole tiles.
    pub blocks: Vec<BlockBytes<'t>>,
    /// Values in every block but the last.
    pub values_per_block: u32,
}

/// Reads the blocks of `input` in row group `row_group`. `None` where the buffer is not stored because every value of the row group is valid.
///
/// # Errors
/// The blocks cannot be read, or the column is not stored as the plan says.
pub fn read_blocks<'t>(
    name: &str,
    table: &'t Table,
    input: &Input,
    row_group: u32,
) -> Result<Option<InputBlocks<'t>>, QueryError> {
    let failed = |source| QueryError::Table { table: name.to_owned(), source: Box::new(source) };
    let column = table.column(input.column).map_err(failed)?;
    let Some(chunk) = column.section.node_chunk(row_group, 0) else { return Ok(None) };
    let entry = column.section.chunk_buffers(chunk).iter().find(|entry| is_meant(input, entry));
    let Some(entry) = entry else {
        return match input.buffer {
            Buffer::Validity if chunk.null_count.get() == 0 => Ok(None),
            _ => Err(QueryError::unsupported(format!(
                "{name}.{} as it is stored in row group {row_group}",
                input.name
            ))),
        };
    };
    let of_buffer = |block_index, source: ContainerError| {
        failed(TableError::Buffer {
            column: input.name.clone(),
            place: format!("row group {row_group}"),
            role: "values",
            source: Box::new(BufferError::Read { block_index, source }),
        })
    };
    let reader = BufferReader::new(table.container(), &column.section, entry)
        .map_err(|source| of_buffer(0, source))?;
    let blocks = (0..entry.block_count.get())
        .map(|block_index| reader.block(block_index).map_err(|source| of_buffer(block_index, source)))
        .collect::<Result<_, _>>()?;
    Ok(Some(InputBlocks { layout: reader.layout(), blocks, values_per_block: reader.values_per_block() }))
}

/// Whether the buffer is the one that the input names: of wide values the lowest limb.
fn is_meant(input: &Input, entry: &BufferEntry) -> bool {
    let role = Role::parse(entry.role).ok();
    match input.buffer {
        Buffer::Values => matches!(role, Some(Role::Values | Role::Codes)) && entry.limb == 0,
        Buffer::Validity => role == Some(Role::Validity),
    }
}
