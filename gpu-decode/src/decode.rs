//! Whole columns or ranges of rows: decoded into device memory, or decoded and summed.

use std::ops::Range;
use std::sync::OnceLock;

use zerocopy::IntoBytes;

use crate::program::{Argument, Kernel};
use crate::source::{ColumnType, Work, rows_program, whole_tiles_program};
use crate::{Device, DeviceColumn, DeviceMemory, GpuError, Program};

/// `cb2t::PARTIAL_SUMS` of cuda/decode.cuh.
pub const PARTIAL_SUMS: usize = 1024;

/// How many threads decode, and how they share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct LaunchShape {
    /// Threads a thread block: 32 to 1024.
    pub threads_per_block: u32,
    /// Threads that decode a tile together: 32 (a warp), or 64, 128, 256 or 512 (then the thread block is one group).
    pub group: u32,
    /// Thread blocks that a multiprocessor must be able to hold: limits the registers.
    pub blocks_per_multiprocessor: u32,
}

impl LaunchShape {
    /// For `work` on such a column: one warp a tile, and what came out fastest (bench/NOTES.md). Specialized code waits for nothing but its loads: few warps, each a thread block, suffice, unless tiles are so
    /// narrow that thread blocks cannot be started fast enough. General code waits for shared memory and needs more warps.
    #[must_use]
    pub fn default_for(column: &ColumnType, work: Work) -> Self {
        let specialized = column.codecs.iter().all(|codec| !codec.parameters.is_empty());
        let (threads_per_block, blocks_per_multiprocessor) = match (specialized, column.value_width) {
            (true, 32) if work == Work::Sum => (64, 12),
            (true, 64) => (32, 12),
            (true, 32) => (32, 24),
            (true, _) => (128, 6),
            (false, 64) => (64, 6),
            (false, _) if column.codecs.len() > 1 => (64, 12),
            (false, _) => (64, 18),
        };
        Self { threads_per_block, group: 32, blocks_per_multiprocessor }
    }

    /// Whether kernels for tiles of `tile_size` can have this shape.
    ///
    /// # Errors
    /// They cannot.
    pub fn check(self, tile_size: u32) -> Result<(), GpuError> {
        let Self { threads_per_block: threads, group, .. } = self;
        let a_group = matches!(group, 32 | 64 | 128 | 256 | 512) && tile_size.is_multiple_of(group);
        let a_block =
            threads == group || (group == 32 && threads.is_multiple_of(32) && (32..=1024).contains(&threads));
        if a_group && a_block {
            Ok(())
        } else {
            Err(GpuError::LaunchShape { threads_per_block: threads, group })
        }
    }
}

/// Kernels for one column.
#[derive(Debug)]
pub struct Decoder<'c> {
    column: &'c DeviceColumn,
    /// Of kernels that decode, and of those that sum.
    shapes: [LaunchShape; 2],
    options: Vec<String>,
    kernels: [OnceLock<Kernel>; 4],
    /// Neighbouring tiles that a group decodes one after the other.
    pub tiles_per_group: u32,
}

impl<'c> Decoder<'c> {
    /// Kernels for `column`, each in its default shape; compiled when first used.
    #[must_use]
    pub fn with_defaults(column: &'c DeviceColumn) -> Self {
        let shapes =
            [Work::Decode, Work::Sum].map(|work| LaunchShape::default_for(column.column_type(), work));
        Self { column, shapes, options: Vec::new(), kernels: Default::default(), tiles_per_group: 1 }
    }

    /// Kernels for `column` in `shape`; compiled when first used.
    ///
    /// # Errors
    /// A shape that is not possible.
    pub fn new(column: &'c DeviceColumn, shape: LaunchShape) -> Result<Self, GpuError> {
        Self::with_options(column, shape, &[])
    }

    /// As [`Decoder::new`], with options for the compiler: for experiments.
    ///
    /// # Errors
    /// A shape that is not possible.
    pub fn with_options(
        column: &'c DeviceColumn,
        shape: LaunchShape,
        options: &[String],
    ) -> Result<Self, GpuError> {
        shape.check(column.column_type().tile_size)?;
        let (shapes, options) = ([shape; 2], options.to_vec());
        Ok(Self { column, shapes, options, kernels: Default::default(), tiles_per_group: 1 })
    }

    /// The program for whole tiles.
    ///
    /// # Errors
    /// No NVRTC, or a device that refuses the program.
    pub fn whole_tiles(&self, work: Work) -> Result<Program, GpuError> {
        let source = whole_tiles_program(self.column.column_type(), self.shape(work), work);
        self.device().program(&source, &self.options)
    }

    /// The program for any rows.
    ///
    /// # Errors
    /// No NVRTC, or a device that refuses the program.
    pub fn rows(&self, work: Work) -> Result<Program, GpuError> {
        let source = rows_program(self.column.column_type(), self.shape(work), work);
        self.device().program(&source, &self.options)
    }

    /// Enqueues the decoding of `rows` into `out`, from its first byte on.
    ///
    /// # Errors
    /// Rows beyond the column, too little room, or an error of the device.
    pub fn decode(&self, rows: Range<u64>, out: &mut DeviceMemory) -> Result<(), GpuError> {
        let value_bytes = u64::from(self.column.column_type().value_width / 8);
        self.check(&rows, out.len() as u64 / value_bytes)?;
        let parts = self.parts(&rows);
        // Whole tiles are stored 16 bytes at a time: from an address that is not aligned, all rows take the general way.
        if !((parts.whole_start - rows.start) * value_bytes).is_multiple_of(16) {
            return self.launch_rows(Work::Decode, rows, out.address());
        }
        let address = |row: u64| out.address() + (row - rows.start) * value_bytes;
        self.launch_rows(Work::Decode, rows.start..parts.whole_start, address(rows.start))?;
        self.launch_tiles(Work::Decode, &parts, address(parts.whole_start))?;
        self.launch_rows(Work::Decode, parts.whole_end..rows.end, address(parts.whole_end))
    }

    /// The sum of `rows`, zero-extended, modulo 2^64.
    ///
    /// # Errors
    /// Rows beyond the column, or an error of the device.
    pub fn sum(&self, rows: Range<u64>) -> Result<u64, GpuError> {
        let mut sums = DeviceMemory::filled(self.device(), PARTIAL_SUMS * 8, 0)?;
        self.add_sums(rows, &mut sums)?;
        let mut partial = vec![0_u64; PARTIAL_SUMS];
        sums.read(0, partial.as_mut_bytes())?;
        Ok(partial.into_iter().fold(0, u64::wrapping_add))
    }

    /// Enqueues the adding of the sum of `rows`, spread over the [`PARTIAL_SUMS`] u64 at the beginning of `sums`.
    ///
    /// # Errors
    /// Rows beyond the column, too little room, or an error of the device.
    pub fn add_sums(&self, rows: Range<u64>, sums: &mut DeviceMemory) -> Result<(), GpuError> {
        self.check(&rows, if sums.len() >= PARTIAL_SUMS * 8 { u64::MAX } else { 0 })?;
        let parts = self.parts(&rows);
        self.launch_rows(Work::Sum, rows.start..parts.whole_start, sums.address())?;
        self.launch_tiles(Work::Sum, &parts, sums.address())?;
        self.launch_rows(Work::Sum, parts.whole_end..rows.end, sums.address())
    }

    fn shape(&self, work: Work) -> LaunchShape {
        let [decode, sum] = self.shapes;
        match work {
            Work::Decode => decode,
            Work::Sum => sum,
        }
    }

    fn device(&self) -> &Device {
        self.column.device()
    }

    fn tile_size(&self) -> u64 {
        self.column.column_type().tile_size.into()
    }

    fn check(&self, rows: &Range<u64>, room: u64) -> Result<(), GpuError> {
        let value_count = self.column.value_count();
        if rows.start > rows.end || rows.end > value_count || rows.end - rows.start > room {
            return Err(GpuError::OutOfRange { start: rows.start, end: rows.end, value_count, room });
        }
        Ok(())
    }

    /// The rows of `rows` that are whole tiles; of none, both ends are the range's end.
    fn parts(&self, rows: &Range<u64>) -> Parts {
        let (first, end) = (rows.start.div_ceil(self.tile_size()), rows.end / self.tile_size());
        if first >= end {
            return Parts { whole_start: rows.end, whole_end: rows.end, first_tile: 0, tile_end: 0 };
        }
        let tile = |index| u32::try_from(index).unwrap_or(u32::MAX);
        Parts {
            whole_start: first * self.tile_size(),
            whole_end: end * self.tile_size(),
            first_tile: tile(first),
            tile_end: tile(end),
        }
    }

    /// The kernel, looked for once: that takes longer than a launch.
    fn kernel(&self, work: Work, rows: bool) -> Result<&Kernel, GpuError> {
        let [decode_tiles, decode_rows, sum_tiles, sum_rows] = &self.kernels;
        let cell = match (work, rows) {
            (Work::Decode, false) => decode_tiles,
            (Work::Decode, true) => decode_rows,
            (Work::Sum, false) => sum_tiles,
            (Work::Sum, true) => sum_rows,
        };
        if let Some(kernel) = cell.get() {
            return Ok(kernel);
        }
        let program = if rows { self.rows(work)? } else { self.whole_tiles(work)? };
        let kernel = program.kernel(self.device(), work.kernel())?;
        Ok(cell.get_or_init(|| kernel))
    }

    fn launch_tiles(&self, work: Work, parts: &Parts, out: u64) -> Result<(), GpuError> {
        let tiles_per_group = self.tiles_per_group.max(1);
        let arguments = [
            Argument::Column(self.column.view()),
            Argument::U32(parts.first_tile),
            Argument::U32(parts.tile_end),
            Argument::U32(tiles_per_group),
            Argument::Address(out),
        ];
        let groups = (parts.tile_end - parts.first_tile).div_ceil(tiles_per_group);
        if groups == 0 {
            return Ok(());
        }
        self.launch(work, self.kernel(work, false)?, groups, &arguments)
    }

    fn launch_rows(&self, work: Work, rows: Range<u64>, out: u64) -> Result<(), GpuError> {
        if rows.is_empty() {
            return Ok(());
        }
        let arguments = [
            Argument::Column(self.column.view()),
            Argument::U64(rows.start),
            Argument::U64(rows.end),
            Argument::Address(out),
        ];
        let tiles = rows.end.div_ceil(self.tile_size()) - rows.start / self.tile_size();
        let groups = u32::try_from(tiles).unwrap_or(u32::MAX);
        self.launch(work, self.kernel(work, true)?, groups, &arguments)
    }

    fn launch(
        &self,
        work: Work,
        kernel: &Kernel,
        groups: u32,
        arguments: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        let LaunchShape { threads_per_block, group, .. } = self.shape(work);
        let groups_per_block = (threads_per_block / group.max(1)).max(1);
        // SAFETY: the arguments are the kernels' parameters (`whole_tiles_program`, `rows_program`). They read what the column's upload has placed and proven, in rows that `check`
        // has found within it. They write one value a row, at addresses from which `check` has found room for all of them, or add to PARTIAL_SUMS u64, for which it has, too.
        unsafe { kernel.launch(groups.div_ceil(groups_per_block), threads_per_block, arguments) }
    }
}

/// A range of rows cut at its first and last border of tiles.
struct Parts {
    whole_start: u64,
    whole_end: u64,
    first_tile: u32,
    tile_end: u32,
}
