//! The fact table, a column at a time: first the orders of a batch, then their lines.
use super::date::DATE_KEYS;
use super::sizes::{Sizes, order_key};
use super::text::labels;
use super::{Dialect, field};
use crate::lehmer::{Stream, Uniform, jump, multiply};
use crate::lines::{MAX_LINES, line_counts};
use arrow::array::{ArrayRef, Int32Array, Int64Array};
use arrow::datatypes::DataType::{self, Int32, Utf8};
use arrow::datatypes::Field;
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

const DATE_SEED: i64 = 1_066_728_069;
const CUSTOMER_SEED: i64 = 851_767_375;
const PRIORITY_SEED: i64 = 591_449_447;

const PART_SEED: i64 = 1_808_217_256;
const SUPPLIER_SEED: i64 = 2_095_021_727;
const QUANTITY_SEED: i64 = 209_208_115;
const DISCOUNT_SEED: i64 = 554_590_007;
const TAX_SEED: i64 = 721_958_466;
const COMMIT_SEED: i64 = 904_914_315;
const SHIP_MODE_SEED: i64 = 675_466_456;

/// The last day, counted from 1992-01-01, on which an order is placed: 1998-08-02.
const LAST_ORDER_DAY: u32 = 2_405;

const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const CLASSIC_PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW"];
const SHIP_MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP"];

pub(super) fn fields(order_key_type: DataType) -> Vec<Field> {
    vec![
        field("lo_orderkey", order_key_type),
        field("lo_linenumber", Int32),
        field("lo_custkey", Int32),
        field("lo_partkey", Int32),
        field("lo_suppkey", Int32),
        field("lo_orderdate", Int32),
        field("lo_orderpriority", Utf8),
        field("lo_shippriority", Int32),
        field("lo_quantity", Int32),
        field("lo_extendedprice", Int32),
        field("lo_ordtotalprice", Int32),
        field("lo_discount", Int32),
        field("lo_revenue", Int32),
        field("lo_supplycost", Int32),
        field("lo_tax", Int32),
        field("lo_commitdate", Int32),
        field("lo_shipmode", Utf8),
    ]
}

/// The columns of the lines of `orders`, counted from 0.
pub(super) fn columns(
    sizes: &Sizes,
    dialect: Dialect,
    orders: Range<u32>,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let lines = Lines::of(&orders);
    let order_days = order_draws(DATE_SEED, Uniform::new(0, LAST_ORDER_DAY), &orders);
    let customers = order_draws(CUSTOMER_SEED, Uniform::new(1, sizes.customers), &orders)
        .map(|customer| ordering_customer(customer, sizes.customers).cast_signed());
    let priority_names = match dialect {
        Dialect::Maintained => PRIORITIES,
        Dialect::Classic => CLASSIC_PRIORITIES,
    };
    let priorities = order_draws(PRIORITY_SEED, Uniform::new(0, 4), &orders)
        .map(|priority| priority_names[priority as usize]);

    let order_days = lines.repeat(order_days);
    let part = lines.draws(PART_SEED, Uniform::new(1, sizes.ordered_parts), &orders);
    let supplier = lines.draws(SUPPLIER_SEED, Uniform::new(1, sizes.suppliers), &orders);
    let quantity = lines.draws(QUANTITY_SEED, Uniform::new(1, 50), &orders);
    let discount = lines.draws(DISCOUNT_SEED, Uniform::new(0, 10), &orders);
    let tax = lines.draws(TAX_SEED, Uniform::new(0, 8), &orders);
    let commit_delay = lines.draws(COMMIT_SEED, Uniform::new(30, 90), &orders);
    let ship_mode = lines.draws(SHIP_MODE_SEED, Uniform::new(0, 6), &orders);
    let prices = Prices::new(&part, &quantity, &discount, &tax);
    let commit_dates =
        order_days.iter().zip(&commit_delay).map(|(day, delay)| DATE_KEYS[(day + delay) as usize]);

    Ok(vec![
        order_keys(sizes, &lines, orders)?,
        int32(lines.numbers()),
        int32(lines.repeat(customers)),
        int32(signed(part)),
        int32(signed(supplier)),
        int32(order_days.iter().map(|&day| DATE_KEYS[day as usize]).collect()),
        labels(lines.repeat(priorities).into_iter()),
        int32(vec![0; lines.total]),
        int32(signed(quantity)),
        int32(prices.extended),
        int32(lines.repeat(lines.sums(&prices.charge))),
        int32(signed(discount)),
        int32(prices.revenue),
        int32(prices.supply_cost),
        int32(signed(tax)),
        int32(commit_dates.collect()),
        labels(ship_mode.into_iter().map(|mode| SHIP_MODES[mode as usize])),
    ])
}

fn int32(values: Vec<i32>) -> ArrayRef {
    Arc::new(Int32Array::from(values))
}

fn signed(values: Vec<u32>) -> Vec<i32> {
    values.into_iter().map(u32::cast_signed).collect()
}

/// One draw an order.
fn order_draws(seed: i64, values: Uniform, orders: &Range<u32>) -> impl Iterator<Item = u32> + use<> {
    let mut stream = Stream::new(seed, orders.start.into());
    orders.clone().map(move |_| stream.draw(values))
}

/// The customer who orders when `drawn` is drawn: every third customer never does, and a neighbour takes the order.
fn ordering_customer(drawn: u32, last: u32) -> u32 {
    if !drawn.is_multiple_of(3) {
        drawn
    } else if drawn < last {
        drawn + 1
    } else {
        drawn - 1
    }
}

fn order_keys(sizes: &Sizes, lines: &Lines, orders: Range<u32>) -> Result<ArrayRef, ArrowError> {
    let keys = orders.map(|order| order_key(order + 1));
    if sizes.order_key_type() == Int32 {
        let keys = keys.map(i32::try_from).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|error| ArrowError::ComputeError(format!("lo_orderkey: {error}")))?;
        Ok(int32(lines.repeat(keys.into_iter())))
    } else {
        Ok(Arc::new(Int64Array::from(lines.repeat(keys))))
    }
}

/// How the lines of a batch belong to its orders.
struct Lines {
    /// The line count of each order, 1 to 7.
    counts: Vec<u32>,
    /// The sum of `counts`.
    total: usize,
}

impl Lines {
    fn of(orders: &Range<u32>) -> Self {
        let counts: Vec<u32> = line_counts(orders.start).take(orders.len()).collect();
        let total = counts.iter().map(|&count| count as usize).sum();
        Self { counts, total }
    }

    /// The number of each line in its order, from 1 on.
    fn numbers(&self) -> Vec<i32> {
        let mut numbers = Vec::with_capacity(self.total);
        for &count in &self.counts {
            numbers.extend(1..=count.cast_signed());
        }
        numbers
    }

    /// Each order's value for each of its lines.
    fn repeat<T: Copy>(&self, order_values: impl Iterator<Item = T>) -> Vec<T> {
        let mut values = Vec::with_capacity(self.total);
        for (&count, value) in self.counts.iter().zip(order_values) {
            values.extend(std::iter::repeat_n(value, count as usize));
        }
        values
    }

    /// The sum of each order's line values.
    fn sums(&self, line_values: &[i32]) -> impl Iterator<Item = i32> {
        let mut rest = line_values.iter();
        self.counts.iter().map(move |&count| rest.by_ref().take(count as usize).sum())
    }

    /// One draw a line. Seven draws belong to each order, of which its lines use the first ones.
    fn draws(&self, seed: i64, values: Uniform, orders: &Range<u32>) -> Vec<u32> {
        const STEPS: [i64; MAX_LINES as usize] =
            [jump(1), jump(2), jump(3), jump(4), jump(5), jump(6), jump(7)];
        let mut stream = Stream::new(seed, u64::from(orders.start) * u64::from(MAX_LINES));
        let mut drawn = Vec::with_capacity(self.total);
        for &count in &self.counts {
            // Steps from the order's own state do not wait for each other, as draws one after the other do.
            let state = stream.state();
            drawn.extend(STEPS[..count as usize].iter().map(|&step| values.at(multiply(state, step))));
            stream.pass(STEPS[MAX_LINES as usize - 1]);
        }
        drawn
    }
}

/// The money columns of some lines, in cents.
struct Prices {
    extended: Vec<i32>,
    revenue: Vec<i32>,
    supply_cost: Vec<i32>,
    /// What the line adds to its order's total price: the revenue with tax.
    charge: Vec<i32>,
}

impl Prices {
    /// From the lines' parts, quantities, discounts and taxes (in percent).
    ///
    /// No product overflows: the dearest part costs 209,900 cents, so that 50 of them with 8 % tax, in hundredths of a
    /// cent, are 1.1e9.
    fn new(part: &[u32], quantity: &[u32], discount: &[u32], tax: &[u32]) -> Self {
        let price = part.iter().map(|&part| part_price(part));
        let extended: Vec<i32> =
            price.clone().zip(quantity).map(|(price, quantity)| (price * quantity).cast_signed()).collect();
        let revenue: Vec<i32> = extended
            .iter()
            .zip(discount)
            .map(|(extended, discount)| extended * (100 - discount.cast_signed()) / 100)
            .collect();
        let charge =
            revenue.iter().zip(tax).map(|(revenue, tax)| revenue * (100 + tax.cast_signed()) / 100).collect();
        Self {
            supply_cost: price.map(|price| (6 * price / 10).cast_signed()).collect(),
            extended,
            revenue,
            charge,
        }
    }
}

/// The retail price of a part, in cents.
fn part_price(part: u32) -> u32 {
    90_000 + part / 10 % 20_001 + part % 1_000 * 100
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule as the program states it: one up, one down, and so on, but never beyond the last customer.
    fn program_customer(drawn: u32, last: u32) -> u32 {
        let (mut customer, mut up) = (drawn, true);
        while customer.is_multiple_of(3) {
            customer = if up { (customer + 1).min(last) } else { customer - 1 };
            up = !up;
        }
        customer
    }

    #[test]
    fn every_third_customer_never_orders() {
        for last in [1, 2, 3, 4, 299, 300, 301] {
            for drawn in 1..=last {
                let customer = ordering_customer(drawn, last);
                assert_eq!(customer, program_customer(drawn, last), "{drawn} of {last}");
                assert!((1..=last).contains(&customer) && !customer.is_multiple_of(3));
            }
        }
    }

    #[test]
    fn the_dearest_order_fits_32_bits() {
        // No scale has more parts than the largest, 2 million.
        let dearest = (1..=2_000_000).max_by_key(|&part| part_price(part)).unwrap();
        assert!(part_price(dearest) <= 209_900);
        let prices = Prices::new(&[dearest], &[50], &[0], &[8]);
        assert_eq!(i64::from(prices.charge[0]), i64::from(part_price(dearest)) * 50 * 108 / 100);
        assert!(i64::from(prices.charge[0]) * i64::from(MAX_LINES) < i64::from(i32::MAX));
    }
}
