//! The random numbers of TPC-H's and SSB's generators: Lehmer's generator with multiplier 16807 and modulus 2^31 - 1.
//!
//! A *stream* is the sequence of states that follows a seed. One column draws from one stream, a fixed number of times a
//! row, so that the state before any row is one power of the multiplier away from the seed.

const MULTIPLIER: i64 = 16807;
const MODULUS: i64 = (1 << 31) - 1;

/// `a * b` modulo 2^31 - 1, for `a` and `b` in 1..2^31 - 1.
#[inline]
pub(crate) const fn multiply(a: i64, b: i64) -> i64 {
    // 2^31 is 1 modulo 2^31 - 1, so the product's two halves may be added.
    let product = a * b;
    let folded = (product & MODULUS) + (product >> 31);
    if folded >= MODULUS { folded - MODULUS } else { folded }
}

/// What advances a stream by `draws` draws at once, by [`multiply`].
pub(crate) const fn jump(mut draws: u64) -> i64 {
    let mut result = 1;
    let mut square = MULTIPLIER;
    while draws > 0 {
        if draws & 1 == 1 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        draws >>= 1;
    }
    result
}

/// One stream at one place.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    state: i64,
}

impl Stream {
    /// The stream of `seed` after its first `draws` draws.
    pub(crate) fn new(seed: i64, draws: u64) -> Self {
        Self { state: multiply(seed, jump(draws)) }
    }

    /// The next draw, from `values`.
    #[inline]
    pub(crate) fn draw(&mut self, values: Uniform) -> u32 {
        self.state = multiply(self.state, MULTIPLIER);
        values.at(self.state)
    }

    /// Passes over draws: as many as `jump` was made for.
    #[inline]
    pub(crate) fn pass(&mut self, jump: i64) {
        self.state = multiply(self.state, jump);
    }

    /// The present state, in 1..2^31 - 1.
    #[inline]
    pub(crate) fn state(&self) -> i64 {
        self.state
    }
}

/// The uniform distribution over `low..=high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uniform {
    low: u32,
    value_count: f64,
}

impl Uniform {
    /// All 2^31 numbers of 31 bits.
    pub(crate) const BITS_31: Self = Self { low: 0, value_count: (MODULUS + 1) as f64 };

    /// From `low` to `high`, both included.
    pub(crate) fn new(low: u32, high: u32) -> Self {
        Self { low, value_count: f64::from(high - low) + 1.0 }
    }

    /// The value that a stream's `state` stands for.
    #[inline]
    pub(crate) fn at(self, state: i64) -> u32 {
        // The reference generators' doubles in their order: another order rounds other values down.
        let offset = state as f64 / MODULUS as f64 * self.value_count;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= offset < 2^31")]
        let offset = offset as u32;
        self.low + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_as_many_draws() {
        let seed = 1_066_728_069;
        let mut walked = Stream::new(seed, 0);
        for draws in 0..1000 {
            assert_eq!(Stream::new(seed, draws).state(), walked.state());
            walked.draw(Uniform::BITS_31);
        }
    }

    #[test]
    fn states_are_those_of_plain_arithmetic() {
        let mut stream = Stream::new(1, 0);
        let mut state = 1_i64;
        for _ in 0..10_000 {
            stream.draw(Uniform::BITS_31);
            state = state * 16807 % 2_147_483_647;
            assert_eq!(stream.state(), state);
        }
        // Park and Miller's check value of the ten-thousandth state from seed 1.
        assert_eq!(state, 1_043_618_065);
    }

    #[test]
    fn the_generator_returns_to_its_seed_after_its_period() {
        assert_eq!(jump(2_147_483_646), 1);
    }

    #[test]
    fn the_first_and_the_last_state_draw_the_bounds() {
        for (low, high) in [(1, 7), (0, 0), (0, 2_405), (1, 30_000_000)] {
            let values = Uniform::new(low, high);
            assert_eq!((values.at(1), values.at(MODULUS - 1)), (low, high));
        }
        assert!(Uniform::BITS_31.at(MODULUS - 1) < 1 << 31);
    }
}
