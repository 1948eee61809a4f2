use crate::scale::Scale;
use arrow::datatypes::DataType;

/// How many rows the tables of one scale have, and which parts are ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Orders of `lineorder`.
    pub(super) orders: u32,
    pub(super) customers: u32,
    pub(super) suppliers: u32,
    pub(super) parts: u32,
    /// The largest `lo_partkey` that is drawn.
    pub(super) ordered_parts: u32,
}

const PARTS: u32 = 200_000;

impl Sizes {
    pub(super) fn new(scale: Scale) -> Self {
        // `part` grows with the logarithm of the scale: the program computes its rows to base 2, and the range of the
        // keys that `lineorder` draws to base e.
        let (parts, ordered_parts) = if scale.factor() < 1.0 {
            (scale.rows(PARTS), scale.rows(PARTS))
        } else {
            (PARTS * (1 + scale.rows(1).ilog2()), PARTS * (1 + floor_ln(scale.rows(1))))
        };
        Self {
            orders: scale.rows(1_500_000),
            customers: scale.rows(30_000),
            suppliers: scale.rows(2_000),
            parts,
            ordered_parts,
        }
    }

    /// The type of `lo_orderkey`: Int32 if the largest one fits.
    pub(super) fn order_key_type(&self) -> DataType {
        if i32::try_from(order_key(self.orders)).is_ok() { DataType::Int32 } else { DataType::Int64 }
    }
}

/// The key of the `number`-th order, counted from 1: eight keys are used of every 32.
pub(super) fn order_key(number: u32) -> i64 {
    let number = i64::from(number);
    (number >> 3 << 5) | (number & 7)
}

/// The natural logarithm of `scale` >= 1, rounded down.
fn floor_ln(scale: u32) -> u32 {
    (1..).take_while(|&exponent| f64::from(exponent).exp() <= f64::from(scale)).map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(factor: f64) -> Sizes {
        Sizes::new(Scale::new(factor).unwrap())
    }

    #[test]
    fn parts_and_ordered_parts_follow_different_logarithms() {
        let expected =
            [(1.0, 200, 200), (2.0, 400, 200), (3.0, 400, 400), (10.0, 800, 600), (20.0, 1000, 600)];
        let large = [(100.0, 1400, 1000), (1000.0, 2000, 1400), (0.01, 2, 2)];
        for (factor, parts, ordered_parts) in expected.into_iter().chain(large) {
            let sizes = sizes(factor);
            assert_eq!((sizes.parts, sizes.ordered_parts), (parts * 1000, ordered_parts * 1000), "{factor}");
        }
    }

    #[test]
    fn order_keys_grow_to_64_bits_where_they_must() {
        assert_eq!([1, 7, 8, 9, 16].map(order_key), [1, 7, 32, 33, 64]);
        assert_eq!(sizes(357.0).order_key_type(), DataType::Int32);
        assert_eq!(sizes(358.0).order_key_type(), DataType::Int64);
    }
}
