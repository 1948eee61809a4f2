//! How kernels are made and launched: placement of decoded values, threads, votes.

use codec_core::AnyCodec;
use gpu_decode::tiles::Recode;

use crate::QueryError;

/// Where decoded values lie until tuple code has used them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Columns are encoded again on the host, by the codec that is the uncompressed baseline, then decoded into registers.
    Uncompressed,
    /// Whole columns are decoded into device memory by a kernel before.
    PreDecode,
    /// A tile is decoded into a buffer in device memory that is used again and again.
    GlobalStage,
    /// A tile is decoded into shared memory.
    Shared,
    /// A tile is decoded into registers.
    #[default]
    Register,
}

impl Placement {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Uncompressed, Self::PreDecode, Self::GlobalStage, Self::Shared, Self::Register];

    /// The name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "uncompressed",
            Self::PreDecode => "pre-decode",
            Self::GlobalStage => "global-stage",
            Self::Shared => "shared",
            Self::Register => "register",
        }
    }
}

/// Threads of a kernel. What is `None` is chosen by tile size and placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct ShapeOptions {
    /// Threads a thread block.
    pub threads_per_block: Option<u32>,
    /// Values of a tile a thread: tile size / 32 where a warp decodes a tile, tile size / threads_per_block where a thread block does.
    pub items_per_thread: Option<u32>,
    /// Thread blocks that a multiprocessor must be able to hold: limits the registers.
    pub min_blocks: Option<u32>,
    /// Keep two groups' indexes in a register where they are below 2^16: fewer registers, more instructions.
    #[serde(default)]
    pub pack_indexes: bool,
}

/// How a query runs on devices.
#[derive(Clone, Default)]
pub struct Options {
    /// Where decoded values lie.
    pub placement: Placement,
    /// The codec of the placement [`Placement::Uncompressed`].
    pub baseline: Option<&'static dyn AnyCodec>,
    /// Which blocks are encoded again on their way to a device, in all other placements.
    pub recode: Recode,
    /// Threads.
    pub shape: ShapeOptions,
    /// Read all tiles, whatever their statistics say.
    pub keep_all_tiles: bool,
    /// More options for the compiler: for experiments.
    pub compiler: Vec<String>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Options")
            .field("placement", &self.placement)
            .field("baseline", &self.baseline.map(AnyCodec::name))
            .field("recode", &self.recode)
            .field("shape", &self.shape)
            .field("keep_all_tiles", &self.keep_all_tiles)
            .field("compiler", &self.compiler)
            .finish()
    }
}

impl Options {
    /// Which blocks are encoded again on their way to a device.
    ///
    /// # Errors
    /// The placement that needs a codec, and none given.
    pub fn recode(&self) -> Result<Recode, QueryError> {
        if self.placement != Placement::Uncompressed {
            return Ok(self.recode);
        }
        let reason = "the placement `uncompressed` needs a codec for it".to_owned();
        self.baseline.map(Recode::With).ok_or(QueryError::Options { reason })
    }
}

/// Threads that a multiprocessor has at a time, unless told otherwise, where something of each row is kept from one step to the next: what look-ups found, or its group. A thread then has 128
/// registers, enough to ask memory for a whole tile's look-ups before it waits for the first. Fewer, larger thread blocks have fewer copies of groups in shared memory, which leaves more to the
/// first-level cache.
pub const FEW_THREADS: u32 = 512;
/// The same where only the rows that are left are known, for which 64 registers are enough: more threads wait for memory at the same time.
pub const MANY_THREADS: u32 = 1024;

/// Threads of a kernel, for tiles of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Shape {
    /// Threads a thread block.
    pub threads_per_block: u32,
    /// Whether it may have fewer threads, where its shared memory is too little for so many: a half, a quarter and so on.
    pub fits: bool,
    /// Threads that decode a tile together: 32 (a warp), or all of a thread block.
    pub group: u32,
    /// Values of a tile a thread.
    pub items_per_thread: u32,
    /// Threads that a multiprocessor is to hold.
    pub most_threads: u32,
    /// Thread blocks that it must be able to hold; else as many as make `most_threads`.
    pub min_blocks: Option<u32>,
    /// Two groups' indexes in a register.
    pub pack_indexes: bool,
}

impl Shape {
    /// What `options` say for tiles of `tile_size` and a kernel of which a multiprocessor is to hold `most_threads` threads.
    ///
    /// # Errors
    /// A shape that no kernel can have; the message names what can be.
    pub fn new(options: &Options, tile_size: u32, most_threads: u32) -> Result<Self, QueryError> {
        let ShapeOptions { threads_per_block, items_per_thread, min_blocks, pack_indexes } = options.shape;
        let is_shared = options.placement == Placement::Shared;
        let threads = threads_per_block.unwrap_or(if is_shared { 128 } else { most_threads });
        // A whole tile a warp in shared memory would leave room for few warps.
        let by_block = is_shared && matches!(threads, 64 | 128 | 256 | 512);
        let usual = if by_block { tile_size / threads.max(1) } else { tile_size / 32 };
        let items = items_per_thread.unwrap_or(usual);
        let group = tile_size.checked_div(items).unwrap_or(0);
        let is_whole = group * items == tile_size && items <= 32;
        let a_warp = group == 32 && threads.is_multiple_of(32) && (32..=1024).contains(&threads);
        let a_block = group == threads && matches!(group, 64 | 128 | 256 | 512);
        if !is_whole || !(a_warp || a_block) {
            return Err(QueryError::Options {
                reason: format!(
                    "{threads} threads a thread block with {items} items each, tiles of {tile_size}: a warp decodes a tile ({} items a thread, 32 to 1024 threads, in steps of 32), \
                     or a thread block of 64, 128, 256 or 512 threads does ({tile_size} / threads items)",
                    tile_size / 32
                ),
            });
        }
        let min_blocks = min_blocks.map(|blocks| blocks.clamp(1, 32));
        let fits = threads_per_block.is_none() && a_warp;
        Ok(Self {
            threads_per_block: threads,
            fits,
            group,
            items_per_thread: items,
            most_threads,
            min_blocks,
            pack_indexes,
        })
    }

    /// Groups a thread block.
    #[must_use]
    pub fn groups_per_block(self) -> u32 {
        self.threads_per_block / self.group.max(1)
    }
}
