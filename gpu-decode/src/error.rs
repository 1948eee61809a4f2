//! What can go wrong on the way to a device and on it.

use codec_core::{BlockError, EncodeError};
use format_spec::Layout;

/// Why something could not be done on a GPU.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// The CUDA driver's library is not there.
    #[error("no CUDA driver found (libcuda.so.1): install NVIDIA's driver, version 580 or later")]
    NoDriver,
    /// The driver is older than the calls made here.
    #[error(
        "the NVIDIA driver supports CUDA {found_major}.{found_minor}, needed is 13.0: install driver version 580 or later"
    )]
    OldDriver {
        /// Major version of CUDA that the driver supports.
        found_major: i32,
        /// Minor version.
        found_minor: i32,
    },
    /// There is a driver but no such device.
    #[error("no CUDA device {ordinal}: the driver sees {device_count}")]
    NoDevice {
        /// The device asked for, counted from 0.
        ordinal: usize,
        /// Devices that the driver sees.
        device_count: usize,
    },
    /// NVRTC, which compiles kernels, is not there.
    #[error(
        "NVRTC 13 not found (libnvrtc.so.13): install it with `pip install nvidia-cuda-nvrtc` or with the CUDA toolkit, or set CB2T_NVRTC to the library or its folder"
    )]
    NoNvrtc,
    /// A kernel does not compile.
    #[error("NVRTC refused a program for {architecture}:\n{log}")]
    Compile {
        /// As in `sm_90`.
        architecture: String,
        /// What the compiler says.
        log: String,
    },
    /// The device has too little memory left.
    #[error("out of device memory: {needed_bytes} bytes asked for, {free_bytes} of {total_bytes} free")]
    OutOfMemory {
        /// Bytes asked for.
        needed_bytes: u64,
        /// Bytes free at that time.
        free_bytes: u64,
        /// Bytes that the device has.
        total_bytes: u64,
    },
    /// The driver reports an error.
    #[error("{what}: {message}")]
    Driver {
        /// What was being done.
        what: &'static str,
        /// The driver's name and text for the error.
        message: String,
    },
    /// A codec has no device half.
    #[error("codec {codec} cannot be decoded on a device: it has no device code")]
    NoDeviceCode {
        /// The codec's name.
        codec: &'static str,
    },
    /// Device columns hold fixed-width values only.
    #[error("a device column of kind {:?}: only fixed-width values are decoded on a device", layout.kind)]
    Layout {
        /// The block's layout.
        layout: Layout,
    },
    /// Blocks that cannot be one column.
    #[error("block {block_index}: its {field} is {found}, the column's is {expected}")]
    Mismatch {
        /// Index of the block among those given.
        block_index: usize,
        /// What differs.
        field: &'static str,
        /// As the block has it.
        found: u64,
        /// As the column needs it.
        expected: u64,
    },
    /// More than a device column can address.
    #[error("a device column of {bytes} bytes: at most {max_bytes} are possible, split it")]
    TooLarge {
        /// Bytes of all blocks.
        bytes: u64,
        /// Bytes that tile offsets reach.
        max_bytes: u64,
    },
    /// More tiles than a device column can have.
    #[error("a device column of more than {max_tiles} tiles: split it")]
    TooManyTiles {
        /// Tiles that are possible.
        max_tiles: u64,
    },
    /// Rows beyond the column, or a buffer too small for them.
    #[error("rows {start} to {end} of a column of {value_count}, into room for {room}")]
    OutOfRange {
        /// First row.
        start: u64,
        /// The row after the last.
        end: u64,
        /// Rows of the column.
        value_count: u64,
        /// Values that fit into the buffer given.
        room: u64,
    },
    /// A launch shape that no kernel can have.
    #[error(
        "{threads_per_block} threads a thread block with groups of {group}: a group has 32, 64, 128, 256 or 512 threads, and a thread block is one group or, with groups of 32, up to 32 of them"
    )]
    LaunchShape {
        /// Threads a thread block.
        threads_per_block: u32,
        /// Threads that decode a tile together.
        group: u32,
    },
    /// What cannot be encoded on a device.
    #[error(
        "a column of {value_count} values of {value_width} bits cannot be encoded on a device in tiles of {tile_size}, {tiles_per_block} a block: statistics compare signed or unsigned, tiles have 512 or 1024 values, and there are fewer than 2^31"
    )]
    Encode {
        /// Values of the column.
        value_count: u64,
        /// Bits a value.
        value_width: u8,
        /// Values a tile.
        tile_size: u32,
        /// Tiles a block.
        tiles_per_block: u32,
    },
    /// A block given to be checked and uploaded is wrong.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Values that had to be encoded again for a device cannot be.
    #[error("encoding for the device: {0}")]
    Reencode(#[from] EncodeError),
    /// The device's values are not the host's.
    #[error("{place}: value {index} is {found} on the device, {expected} on the host")]
    Differs {
        /// Codec, layout and data.
        place: String,
        /// The first value that differs.
        index: u64,
        /// The device's.
        found: u64,
        /// The host's.
        expected: u64,
    },
}

impl GpuError {
    /// Wraps what the driver says about `what`.
    pub(crate) fn driver(what: &'static str) -> impl Fn(cudarc::driver::DriverError) -> Self {
        move |error| Self::Driver { what, message: format!("{error:?}") }
    }
}
