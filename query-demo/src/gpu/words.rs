//! A kernel's arguments by meaning: words of 64 bits, of which tuple code knows the places and a launch the values.

/// What an argument stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A number that is known when the code is made; not part of it, so that other numbers need no other code.
    Value(u64),
    /// Where the pipeline's state is.
    State,
    /// Where the list of tiles is; 0 for all tiles.
    TileList,
    /// Number of tiles.
    TileCount,
    /// Where the groups of threads have room for decoded tiles.
    Stage,
    /// Word 0, 1 or 2 of a column's view.
    Column {
        /// Index of the pipeline's input.
        input: usize,
        /// Which word.
        word: usize,
    },
    /// Of the table that a pipeline builds.
    Table {
        /// The pipeline that builds it.
        pipeline: usize,
        /// Which of its parts.
        part: TablePart,
    },
    /// Where a set's bits are, from [`BitSet`]s of the code.
    SetBits(usize),
    /// Where the groups' words are.
    Groups,
    /// Where the groups' keys are.
    GroupKeys,
    /// Slots of the groups' hash table.
    GroupSlots,
}

/// A part of a table, or of what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TablePart {
    /// Where its entries are.
    Entries,
    /// Where its state is.
    State,
    /// Where the keys of its slots are.
    Keys,
    /// Number of slots.
    Slots,
    /// Where the bits of the keys seen so far are.
    Seen,
}

/// A set as a kernel tests it: bit v of the words stands for base + v.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitSet {
    /// Bits, the lowest of the first word first.
    pub words: Vec<u32>,
}
