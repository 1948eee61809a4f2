//! Random numbers of the tests: the same for the same seed.

#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Any 64 bits but zeros: xorshift.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// An integer from `low` to `high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        low + (self.bits() % (high - low + 1).cast_unsigned()).cast_signed()
    }

    /// 0 to count - 1.
    pub fn below(&mut self, count: u64) -> u64 {
        self.bits() % count
    }

    /// True in so many of a hundred times.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for place in (1..values.len()).rev() {
            values.swap(place, usize::try_from(self.below(place as u64 + 1)).unwrap());
        }
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.within(0, i64::try_from(from.len()).unwrap() - 1)).unwrap()]
    }
}
