//! Which rows of a tile are left.

/// Values of the largest tile.
pub const TILE: usize = 1024;

/// Flags of rows: 1 keeps, 0 drops.
pub type Flags = [u8; TILE];

/// Rows of a tile, ascending.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// All of the tile's rows, so many.
    All(usize),
    /// These.
    Some(&'a [u16]),
}

impl Rows<'_> {
    /// Number of rows.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::All(count) => count,
            Self::Some(indexes) => indexes.len(),
        }
    }
}

/// The place of a row in an array of a tile's size.
#[inline(always)]
#[must_use]
pub fn place(row: u16) -> usize {
    usize::from(row) % TILE
}

/// Rows that a step wrote at once.
const STEP: usize = 8;

/// The rows that are left, of which steps drop some.
#[derive(Debug)]
pub struct Selection {
    /// The rows, unless all are left; behind them is room for one step.
    indexes: Box<[u16; TILE + STEP]>,
    count: usize,
    all: bool,
}

impl Selection {
    /// No rows.
    #[must_use]
    pub fn new() -> Self {
        Self { indexes: Box::new([0; TILE + STEP]), count: 0, all: true }
    }

    /// All rows of a tile of `count` values, at most [`TILE`].
    pub fn reset(&mut self, count: usize) {
        self.count = count.min(TILE);
        self.all = true;
    }

    /// The rows that are left.
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        if self.all {
            Rows::All(self.count)
        } else {
            Rows::Some(self.indexes.get(..self.count).unwrap_or_default())
        }
    }

    /// Number of rows that are left.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Keeps the rows for whose place in the tile `keeps` is true. Without branches: what a row's fate is cannot be predicted.
    #[inline(always)]
    pub fn retain(&mut self, mut keeps: impl FnMut(usize) -> bool) {
        let indexes = &mut *self.indexes;
        let mut kept = 0;
        if self.all {
            for row in 0..self.count.min(TILE) {
                // Rows of a tile fit 16 bits, and there are at most as many kept as seen.
                #[allow(clippy::cast_possible_truncation)]
                let index = row as u16;
                indexes[kept % TILE] = index;
                kept += usize::from(keeps(row));
            }
            self.all = kept == self.count;
        } else {
            for seen in 0..self.count.min(TILE) {
                let index = indexes[seen];
                indexes[kept % TILE] = index;
                kept += usize::from(keeps(place(index)));
            }
        }
        self.count = kept;
    }

    /// Keeps the rows whose flag is 1: `flags[k]` is that of the k-th row left.
    pub fn keep(&mut self, flags: &Flags) {
        if self.all {
            self.keep_of_all(flags);
            return;
        }
        let indexes = &mut *self.indexes;
        let mut kept = 0;
        for (seen, flag) in flags.iter().enumerate().take(self.count) {
            indexes[kept % TILE] = indexes[seen];
            kept += usize::from(*flag);
        }
        self.count = kept;
    }

    /// Eight flags at once give eight indexes from a table, of which the first are of rows that stay.
    fn keep_of_all(&mut self, flags: &Flags) {
        let mut kept = 0;
        let (eights, _) = flags.as_chunks::<STEP>();
        for (first, eight) in (0_u16..).step_by(STEP).zip(eights).take(self.count.div_ceil(STEP)) {
            let rows_left = self.count - usize::from(first);
            let bits = bits(*eight) & in_tile(rows_left);
            let Some(target) = self.indexes.get_mut(kept..kept + STEP) else { return };
            let Places { count, places } = &PLACES[usize::from(bits)];
            for (target, place) in target.iter_mut().zip(places) {
                *target = first + place;
            }
            kept += usize::from(*count);
        }
        self.all = kept == self.count;
        self.count = kept;
    }
}

/// A bit for each of eight rows of which only `rows_left` are in the tile.
fn in_tile(rows_left: usize) -> u8 {
    if rows_left >= STEP { u8::MAX } else { (1 << rows_left) - 1 }
}

/// Bit i is `flags[i]`: the product moves the lowest bit of byte i to bit 56 + i.
#[inline(always)]
fn bits(flags: [u8; STEP]) -> u8 {
    let [.., high] = u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
    high
}

/// The bits that are set. Counting them takes a dozen instructions where the target need not have one for it.
struct Places {
    count: u16,
    /// Ascending, then zeros.
    places: [u16; STEP],
}

static PLACES: [Places; 256] = places();

const fn places() -> [Places; 256] {
    let mut all = [const { Places { count: 0, places: [0; STEP] } }; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut place = 0;
        while place < 8 {
            if bits >> place & 1 == 1 {
                all[bits].places[all[bits].count as usize] = place;
                all[bits].count += 1;
            }
            place += 1;
        }
        bits += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(selection: &Selection) -> Vec<usize> {
        match selection.rows() {
            Rows::All(count) => (0..count).collect(),
            Rows::Some(rows) => rows.iter().map(|&row| place(row)).collect(),
        }
    }

    #[test]
    fn flags_and_closures_keep_the_same_rows() {
        for count in [0, 1, 7, 8, 9, 511, 1023, 1024] {
            for modulus in [1, 2, 3, 7, 1025] {
                let keeps = |row: usize| row % modulus == modulus / 2;
                let flags = std::array::from_fn(|row| u8::from(keeps(row)));
                let (mut by_flag, mut by_closure) = (Selection::new(), Selection::new());
                by_flag.reset(count);
                by_flag.keep(&flags);
                by_closure.reset(count);
                by_closure.retain(keeps);
                let expected: Vec<usize> = (0..count).filter(|&row| keeps(row)).collect();
                assert_eq!(left(&by_flag), expected);
                assert_eq!(left(&by_closure), expected);

                let again = std::array::from_fn(|seen| u8::from(seen % 2 == 1));
                by_flag.keep(&again);
                let expected: Vec<usize> = expected.into_iter().skip(1).step_by(2).collect();
                assert_eq!(left(&by_flag), expected);
                by_closure.retain(|row| expected.contains(&row));
                assert_eq!(left(&by_closure), expected);
            }
        }
    }
}
