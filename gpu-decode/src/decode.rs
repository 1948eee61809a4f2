//! Whole columns or ranges of rows: decoded into device memory, or decoded and summed.

use std::ops::Range;

use crate::program::{Argument, Kernel};
use crate::source::decode_program;
use crate::{Device, DeviceColumn, DeviceMemory, GpuError, Program};

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
    /// One warp a tile, four warps a thread block, and as many thread blocks as the registers for 32 values a thread allow.
    #[must_use]
    pub const fn default_for(value_width: u8) -> Self {
        Self {
            threads_per_block: 128,
            group: 32,
            blocks_per_multiprocessor: if value_width == 64 { 4 } else { 6 },
        }
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

    fn groups(self) -> u64 {
        u64::from(self.threads_per_block / self.group.max(1)).max(1)
    }
}

/// Kernels for one column in one shape.
#[derive(Debug)]
pub struct Decoder<'c> {
    column: &'c DeviceColumn,
    shape: LaunchShape,
    options: Vec<String>,
    /// Thread blocks a multiprocessor of the grid; 0 for one group a tile.
    pub grid_blocks_per_multiprocessor: u32,
}

impl<'c> Decoder<'c> {
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
        Ok(Self { column, shape, options: options.to_vec(), grid_blocks_per_multiprocessor: 0 })
    }

    /// The program of both kernels.
    ///
    /// # Errors
    /// No NVRTC, or a device that refuses the program.
    pub fn program(&self, device: &Device) -> Result<Program, GpuError> {
        device.program(&decode_program(self.column.column_type(), self.shape), &self.options)
    }

    /// The kernel `decode` or `sum`.
    ///
    /// # Errors
    /// No NVRTC, or a device that refuses the program.
    pub fn kernel(&self, name: &str) -> Result<Kernel, GpuError> {
        let device = self.column.device();
        self.program(device)?.kernel(device, name)
    }

    /// Enqueues the decoding of `rows` into `out`, from its first byte on.
    ///
    /// # Errors
    /// Rows beyond the column, too little room, or an error of the device.
    pub fn decode(&self, rows: Range<u64>, out: &mut DeviceMemory) -> Result<(), GpuError> {
        self.check(&rows, out.len() as u64 * 8 / u64::from(self.column.column_type().value_width))?;
        self.launch(&self.kernel("decode")?, rows, out)
    }

    /// The sum of `rows`, zero-extended, modulo 2^64.
    ///
    /// # Errors
    /// Rows beyond the column, or an error of the device.
    pub fn sum(&self, rows: Range<u64>) -> Result<u64, GpuError> {
        let mut sum = DeviceMemory::filled(self.column.device(), 8, 0)?;
        self.add_sum(rows, &mut sum)?;
        let mut bytes = [0; 8];
        sum.read(0, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Enqueues the adding of the sum of `rows` to the u64 at the beginning of `sum`.
    ///
    /// # Errors
    /// Rows beyond the column, fewer than 8 bytes of room, or an error of the device.
    pub fn add_sum(&self, rows: Range<u64>, sum: &mut DeviceMemory) -> Result<(), GpuError> {
        self.check(&rows, if sum.len() >= 8 { u64::MAX } else { 0 })?;
        self.launch(&self.kernel("sum")?, rows, sum)
    }

    fn check(&self, rows: &Range<u64>, room: u64) -> Result<(), GpuError> {
        let value_count = self.column.value_count();
        if rows.start > rows.end || rows.end > value_count || rows.end - rows.start > room {
            return Err(GpuError::OutOfRange { start: rows.start, end: rows.end, value_count, room });
        }
        Ok(())
    }

    fn launch(&self, kernel: &Kernel, rows: Range<u64>, out: &mut DeviceMemory) -> Result<(), GpuError> {
        if rows.is_empty() {
            return Ok(());
        }
        let tile_size = u64::from(self.column.column_type().tile_size);
        let tiles = rows.end.div_ceil(tile_size) - rows.start / tile_size;
        let arguments = [
            Argument::Column(self.column.view()),
            Argument::U64(rows.start),
            Argument::U64(rows.end),
            Argument::Address(out.address()),
        ];
        let thread_blocks = self.thread_blocks(self.column.device(), tiles);
        // SAFETY: the kernel's parameters are these (`decode_program`); it reads what the column's upload has placed and proven, in rows that `check` has found within it, and
        // writes one value a row into `out`, which `check` has found large enough (the sum: one u64).
        unsafe { kernel.launch(thread_blocks, self.shape.threads_per_block, &arguments) }
    }

    fn thread_blocks(&self, device: &Device, tiles: u64) -> u32 {
        let needed = tiles.div_ceil(self.shape.groups());
        let resident =
            u64::from(self.grid_blocks_per_multiprocessor) * u64::from(device.info().multiprocessor_count);
        let limit = if resident == 0 { u64::from(i32::MAX.unsigned_abs()) } else { resident };
        u32::try_from(needed.min(limit)).unwrap_or(u32::MAX)
    }
}
