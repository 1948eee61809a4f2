//! Where customers and suppliers are: regions, nations and cities.
use super::Dialect;
use super::text::{labels, strings};
use crate::lehmer::{Stream, Uniform};
use arrow::array::ArrayRef;

const AFRICA: &str = "AFRICA";
const AMERICA: &str = "AMERICA";
const ASIA: &str = "ASIA";
const EUROPE: &str = "EUROPE";
const MIDDLE_EAST: &str = "MIDDLE EAST";

/// The nations and their regions in the order of TPC-H's nation keys (CHINA after PERU).
const NATIONS: [(&str, &str); 25] = [
    ("ALGERIA", AFRICA),
    ("ARGENTINA", AMERICA),
    ("BRAZIL", AMERICA),
    ("CANADA", AMERICA),
    ("EGYPT", MIDDLE_EAST),
    ("ETHIOPIA", AFRICA),
    ("FRANCE", EUROPE),
    ("GERMANY", EUROPE),
    ("INDIA", ASIA),
    ("INDONESIA", ASIA),
    ("IRAN", MIDDLE_EAST),
    ("IRAQ", MIDDLE_EAST),
    ("JAPAN", ASIA),
    ("JORDAN", MIDDLE_EAST),
    ("KENYA", AFRICA),
    ("MOROCCO", AFRICA),
    ("MOZAMBIQUE", AFRICA),
    ("PERU", AMERICA),
    ("CHINA", ASIA),
    ("ROMANIA", EUROPE),
    ("SAUDI ARABIA", MIDDLE_EAST),
    ("VIETNAM", ASIA),
    ("RUSSIA", EUROPE),
    ("UNITED KINGDOM", EUROPE),
    ("UNITED STATES", AMERICA),
];

/// The nation numbers of `rows` rows from `first` (counted from 0) on, drawn from the stream of `seed`.
pub(super) fn nations(seed: i64, first: u32, rows: usize) -> Vec<u32> {
    let values = Uniform::new(0, 24);
    let mut stream = Stream::new(seed, first.into());
    std::iter::repeat_with(|| stream.draw(values)).take(rows).collect()
}

/// The columns city, nation and region of rows in `nations`, from row `first` on.
pub(super) fn places(dialect: Dialect, first: u32, nations: &[u32]) -> [ArrayRef; 3] {
    let named = || nations.iter().map(|&nation| NATIONS[nation as usize]);
    [
        cities(dialect, first, named()),
        labels(named().map(|(nation, _)| nation)),
        labels(named().map(|(_, region)| region)),
    ]
}

/// Ten cities a nation: the first nine characters of its name, padded with blanks, and a digit.
fn cities<'a>(
    dialect: Dialect,
    first: u32,
    nations: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
) -> ArrayRef {
    let seed = match dialect {
        Dialect::Maintained => 1_495_190_827,
        Dialect::Classic => 1,
    };
    let digits = Uniform::new(0, 9);
    let mut stream = Stream::new(seed, first.into());
    strings(nations, 10, |(nation, _), city| {
        use std::fmt::Write;
        // Writing to a String cannot fail.
        let _ = write!(city, "{nation:<9.9}{}", stream.draw(digits));
    })
}
