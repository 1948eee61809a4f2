use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A benchmark's scale factor: a fraction below 1, or a whole number from 1 to [`Scale::MAX`].
///
/// A table that has `n` rows at scale 1 and grows in proportion has `n * factor` rows, rounded, and at least one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Scale {
    factor: f64,
}

impl Scale {
    /// The largest scale factor, as in the reference generators. Here every table but `lineorder` and `lineitem` has less
    /// than 2^31 rows.
    pub const MAX: u32 = 1000;

    /// The scale of `factor`.
    ///
    /// # Errors
    /// [`Error::Scale`] for anything but a fraction above 0 and below 1 or a whole number from 1 to [`Scale::MAX`].
    pub fn new(factor: f64) -> Result<Self> {
        let fraction = factor > 0.0 && factor < 1.0;
        let whole = factor.fract() == 0.0 && (1.0..=f64::from(Self::MAX)).contains(&factor);
        if fraction || whole { Ok(Self { factor }) } else { Err(Error::Scale { factor }) }
    }

    /// The scale factor.
    pub fn factor(self) -> f64 {
        self.factor
    }

    /// Rows of a table that has `rows_at_one` rows at scale 1 and grows in proportion.
    pub(crate) fn rows(self, rows_at_one: u32) -> u32 {
        let rows = (f64::from(rows_at_one) * self.factor).round().max(1.0);
        // 1.5 million rows, the most at scale 1, reach 1.5e9 at the largest scale.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 <= rows < 2^31")]
        let rows = rows as u32;
        rows
    }
}

impl FromStr for Scale {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let factor = text.parse().map_err(|_| Error::ScaleText { text: text.to_owned() })?;
        Self::new(factor)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.factor.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_and_whole_numbers_are_scales() {
        for factor in [1e-6, 0.01, 0.999, 1.0, 20.0, 1000.0] {
            assert_eq!(Scale::new(factor).unwrap().factor(), factor);
        }
        for factor in [0.0, -1.0, 1.5, 100.25, 1001.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Scale::new(factor), Err(Error::Scale { .. })), "{factor}");
        }
    }

    #[test]
    fn text_is_parsed_like_a_number() {
        assert_eq!("0.01".parse::<Scale>().unwrap(), Scale::new(0.01).unwrap());
        assert!(matches!("ten".parse::<Scale>(), Err(Error::ScaleText { .. })));
        assert!(matches!("NaN".parse::<Scale>(), Err(Error::Scale { .. })));
    }

    #[test]
    fn rows_are_rounded_and_at_least_one() {
        let rows = |factor, rows_at_one| Scale::new(factor).unwrap().rows(rows_at_one);
        assert_eq!(rows(0.01, 30_000), 300);
        assert_eq!(rows(0.29, 100), 29); // 0.29 * 100 is 28.999999999999996
        assert_eq!(rows(1e-6, 2_000), 1);
        assert_eq!(rows(1000.0, 1_500_000), 1_500_000_000);
    }
}
