//! Runs found in values, and values made of runs.

use codec_core::Value;
use codec_core::packing::vectors::{self, Kernel};

/// Values that are written at once at the beginning of each run.
const SPAN: usize = 32;

/// The runs of equal `values`: their values and lengths. A tile has at most 1024 values, so lengths fit.
pub fn find<V: Value>(values: &[V]) -> (Vec<V>, Vec<u16>) {
    let ends = ends(values);
    let run_values = ends.iter().filter_map(|&end| values.get(usize::from(end).checked_sub(1)?).copied());
    let starts = std::iter::once(&0).chain(&ends);
    (run_values.collect(), ends.iter().zip(starts).map(|(end, start)| end - start).collect())
}

/// Where each run ends, as the position behind it.
fn ends<V: Value>(values: &[V]) -> Vec<u16> {
    // Each position is written and only those that end a run are kept: no branch that the processor would have to guess.
    let mut ends = vec![0_u16; values.len()];
    let mut count = 0;
    for (position, pair) in (1_u16..).zip(values.windows(2)) {
        if let Some(end) = ends.get_mut(count) {
            *end = position;
        }
        count += usize::from(pair[0] != pair[1]);
    }
    if let Some(end) = ends.get_mut(count) {
        *end = u16::try_from(values.len()).unwrap_or(u16::MAX);
    }
    ends.truncate(count + 1);
    ends
}

/// Writes each run value as often as its length says, as far as `values` reach, and returns the room behind them. What is written there does not count.
pub fn expand<'v, V: Value>(run_values: &[V], run_lengths: &[u16], values: &'v mut [V]) -> &'v mut [V] {
    vectors::run(Expand { run_values, run_lengths, values })
}

struct Expand<'a, 'v, V> {
    run_values: &'a [V],
    run_lengths: &'a [u16],
    values: &'v mut [V],
}

impl<'v, V: Value> Kernel for Expand<'_, 'v, V> {
    type Output = &'v mut [V];

    /// The first [`SPAN`] values of a run are written whatever its length; what is too much, later runs overwrite. So most runs take one vector or two and no loop, of which the
    /// processor would have to guess the end.
    #[inline(always)]
    fn run(self) -> &'v mut [V] {
        let mut rest = self.values;
        for (&value, &length) in self.run_values.iter().zip(self.run_lengths) {
            let length = usize::from(length).min(rest.len());
            if let Some(span) = rest.first_chunk_mut::<SPAN>() {
                *span = [value; SPAN];
                if length > SPAN {
                    rest.get_mut(SPAN..length).unwrap_or_default().fill(value);
                }
            } else {
                rest.get_mut(..length).unwrap_or_default().fill(value);
            }
            rest = rest.get_mut(length..).unwrap_or_default();
        }
        rest
    }
}
