//! The distinct values of a block.

use codec_core::Value;
use codec_core::packing::best_reference;
use hashbrown::HashSet;

/// Ranges up to this many times the values are counted in a bitmap.
const BITMAP_FACTOR: u64 = 16;
/// Values that are looked at before all are.
const SAMPLE: usize = 4096;

/// The distinct values, ascending; `None` where there are more than `limit`, or where a sample says that codes would hardly be narrower than the values' range.
pub fn distinct<V: Value>(values: &[V], limit: usize) -> Option<Vec<V>> {
    let (reference, bit_width) = best_reference(values);
    let step = (values.len() / SAMPLE).max(1);
    let mut sample: Vec<V> = values.iter().step_by(step).copied().collect();
    sample.sort_unstable();
    sample.dedup();
    // Codes are never narrower than the sample's distinct values need.
    let least_width = usize::BITS - sample.len().saturating_sub(1).leading_zeros();
    if least_width + 1 >= bit_width && sample.len() > 1 && values.len() > SAMPLE || sample.len() > limit {
        return None;
    }
    let range = u64::MAX.checked_shr(u64::BITS - bit_width).unwrap_or(0);
    let dense = range <= values.len() as u64 * BITMAP_FACTOR;
    let mut all = if dense { by_bitmap(values, reference, range) } else { by_set(values, limit)? };
    all.sort_unstable();
    (all.len() <= limit).then_some(all)
}

fn by_bitmap<V: Value>(values: &[V], reference: V, range: u64) -> Vec<V> {
    let mut seen = vec![false; usize::try_from(range).unwrap_or(0) + 1];
    for &value in values {
        let place = usize::try_from(value.wrapping_sub(reference).to_u64()).ok();
        if let Some(seen) = place.and_then(|place| seen.get_mut(place)) {
            *seen = true;
        }
    }
    let found = (0_u64..).zip(seen).filter(|(_, seen)| *seen);
    found.map(|(place, _)| reference.wrapping_add(V::from_u64(place))).collect()
}

fn by_set<V: Value>(values: &[V], limit: usize) -> Option<Vec<V>> {
    let mut seen = HashSet::new();
    // Of a run one value is enough.
    for run in values.chunk_by(|left, right| left == right) {
        seen.extend(run.first());
        if seen.len() > limit {
            return None;
        }
    }
    Some(seen.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmap_and_set_find_the_same() {
        let values: Vec<u32> = (0..5000_u32).map(|position| 1000 + position * position % 977 * 100).collect();
        let mut left = by_bitmap(&values, 1000, 97_700);
        let mut right = by_set(&values, 5000).unwrap();
        left.sort_unstable();
        right.sort_unstable();
        assert_eq!(left, right);
        assert_eq!(distinct(&values, 5000), Some(left));
        assert_eq!(distinct(&values, 100), None);
    }
}
