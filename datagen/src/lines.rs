//! How many lines an order has: a stream that SSB's `lineorder` and TPC-H's `lineitem` share.
use crate::lehmer::{Stream, Uniform, jump, multiply};
use std::ops::Range;
use std::thread;

/// The most lines of an order; per-line streams advance by this many draws an order.
pub(crate) const MAX_LINES: u32 = 7;

const SEED: i64 = 1_434_868_289;

/// The line counts of the orders from `first_order` (counted from 0) on, each 1 to [`MAX_LINES`].
pub(crate) fn line_counts(first_order: u32) -> impl Iterator<Item = u32> {
    let values = Uniform::new(1, MAX_LINES);
    let mut stream = Stream::new(SEED, first_order.into());
    std::iter::repeat_with(move || stream.draw(values))
}

/// The lines of the first `order_count` orders, counted on all cores.
pub(crate) fn total_lines(order_count: u32) -> u64 {
    let threads = thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    let share = order_count.div_ceil(threads).max(1_000_000);
    let starts = (0..order_count).step_by(usize::try_from(share).unwrap_or(usize::MAX));
    thread::scope(|scope| {
        let counters: Vec<_> = starts
            .map(|start| start..order_count.min(start.saturating_add(share)))
            .map(|orders| {
                let share = orders.clone();
                (orders, thread::Builder::new().spawn_scoped(scope, || sum_lines(share)))
            })
            .collect();
        // A share whose thread did not start, or did not end, is counted here.
        counters
            .into_iter()
            .map(|(orders, counter)| {
                counter.ok().and_then(|c| c.join().ok()).unwrap_or_else(|| sum_lines(orders))
            })
            .sum()
    })
}

/// The lines of `orders`. Eight interleaved streams hide the latency of the multiplication.
fn sum_lines(orders: Range<u32>) -> u64 {
    const LANES: u32 = 8;
    let values = Uniform::new(1, MAX_LINES);
    let step = jump(LANES.into());
    let mut states = [0_i64; LANES as usize];
    for (lane, state) in (1..).zip(&mut states) {
        *state = multiply(SEED, jump(u64::from(orders.start) + lane));
    }
    let groups = (orders.end - orders.start) / LANES;
    let mut sum = 0;
    for _ in 0..groups {
        for state in &mut states {
            sum += u64::from(values.at(*state));
            *state = multiply(*state, step);
        }
    }
    let counted = orders.start + groups * LANES;
    sum + line_counts(counted).zip(counted..orders.end).map(|(lines, _)| u64::from(lines)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interleaved_sum_is_the_plain_sum() {
        for orders in [0..0, 0..1, 5..5, 3..1000, 77..4093] {
            let skip = usize::try_from(orders.start).unwrap();
            let plain: u64 =
                line_counts(0).take(usize::try_from(orders.end).unwrap()).skip(skip).map(u64::from).sum();
            assert_eq!(sum_lines(orders), plain);
        }
    }

    #[test]
    fn the_published_row_counts_come_out() {
        assert_eq!(total_lines(1_500_000), 6_001_215);
        assert_eq!(total_lines(15_000_000), 59_986_052);
        assert_eq!(total_lines(30_000_000), 119_994_608);
        assert_eq!(total_lines(150_000_000), 600_037_902);
    }
}
