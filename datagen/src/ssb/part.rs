use super::text::{labels, push_padded, strings};
use super::{Dialect, field};
use crate::lehmer::{Stream, Uniform};
use arrow::array::{ArrayRef, Int32Array};
use arrow::datatypes::DataType::{Int32, Utf8};
use arrow::datatypes::Field;
use std::ops::Range;
use std::sync::Arc;
use tpchgen::distribution::{Distribution, Distributions};

const NAME_SEED: i64 = 709_314_158;
const MANUFACTURER_SEED: i64 = 1;
const CATEGORY_SEED: i64 = 637_858_759;
const BRAND_SEED: i64 = 46_831_694;
const TYPE_SEED: i64 = 1_841_581_359;
const SIZE_SEED: i64 = 1_193_163_244;
const CONTAINER_SEED: i64 = 727_633_698;

/// A part's name draws once for each colour.
const COLORS: u8 = 92;

pub(super) fn fields() -> Vec<Field> {
    vec![
        field("p_partkey", Int32),
        field("p_name", Utf8),
        field("p_mfgr", Utf8),
        field("p_category", Utf8),
        field("p_brand1", Utf8),
        field("p_color", Utf8),
        field("p_type", Utf8),
        field("p_size", Int32),
        field("p_container", Utf8),
    ]
}

/// The columns of `rows`, counted from 0.
pub(super) fn columns(dialect: Dialect, rows: Range<u32>) -> Vec<ArrayRef> {
    let words = Distributions::static_default();
    let colors = words.part_colors();
    let names = names(&rows);
    let brands = brands(dialect, &rows);
    let sizes = draws(SIZE_SEED, Uniform::new(1, 50), &rows).map(u32::cast_signed);
    vec![
        Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| (row + 1).cast_signed()))),
        strings(names.iter(), 16, |name, text| {
            text.push_str(colors.get_value(name[1].into()));
            text.push(' ');
            text.push_str(colors.get_value(name[2].into()));
        }),
        strings(brands.iter(), 6, |brand, text| brand.push_manufacturer(text)),
        strings(brands.iter(), 7, |brand, text| brand.push_category(text)),
        strings(brands.iter(), 9, |brand, text| brand.push_brand(text)),
        labels(names.iter().map(|name| colors.get_value(name[0].into()))),
        one_of(words.part_types(), TYPE_SEED, &rows),
        Arc::new(Int32Array::from_iter_values(sizes)),
        one_of(words.part_containers(), CONTAINER_SEED, &rows),
    ]
}

/// One draw a row, from `values`.
fn draws(seed: i64, values: Uniform, rows: &Range<u32>) -> impl ExactSizeIterator<Item = u32> + use<> {
    let mut stream = Stream::new(seed, rows.start.into());
    rows.clone().map(move |_| stream.draw(values))
}

/// A column of words that are equally likely.
fn one_of(words: &Distribution, seed: i64, rows: &Range<u32>) -> ArrayRef {
    let words = words.get_values();
    let values = Uniform::new(1, u32::try_from(words.len()).unwrap_or(u32::MAX));
    labels(draws(seed, values, rows).map(|number| words[number as usize - 1]))
}

/// Three different colours a row: the first is `p_color`, the others make `p_name`. They are the first three of all
/// colours after as many swaps with random places.
fn names(rows: &Range<u32>) -> Vec<[u8; 3]> {
    let places = Uniform::new(0, u32::from(COLORS) - 1);
    let mut stream = Stream::new(NAME_SEED, u64::from(rows.start) * u64::from(COLORS));
    rows.clone()
        .map(|_| {
            let mut colors = [0; COLORS as usize];
            for (color, place) in (0..COLORS).zip(&mut colors) {
                *place = color;
            }
            for place in 0..colors.len() {
                colors.swap(place, stream.draw(places) as usize);
            }
            [colors[0], colors[1], colors[2]]
        })
        .collect()
}

/// `MFGR#m`, `MFGR#mc` and `MFGR#mcb`: manufacturer 1 to 5, its category 1 to 5, its brand 1 to 40, not padded.
struct Brand {
    manufacturer: u32,
    category: u32,
    brand: u32,
}

impl Brand {
    fn push_manufacturer(&self, text: &mut String) {
        text.push_str("MFGR#");
        push_padded(text, self.manufacturer, 1);
    }

    fn push_category(&self, text: &mut String) {
        self.push_manufacturer(text);
        push_padded(text, self.category, 1);
    }

    fn push_brand(&self, text: &mut String) {
        self.push_category(text);
        push_padded(text, self.brand, 1);
    }
}

fn brands(dialect: Dialect, rows: &Range<u32>) -> Vec<Brand> {
    let five = Uniform::new(1, 5);
    let brands = draws(BRAND_SEED, Uniform::new(1, 40), rows);
    match dialect {
        Dialect::Maintained => draws(MANUFACTURER_SEED, five, rows)
            .zip(draws(CATEGORY_SEED, five, rows))
            .zip(brands)
            .map(|((manufacturer, category), brand)| Brand { manufacturer, category, brand })
            .collect(),
        Dialect::Classic => {
            let mut shared = Stream::new(MANUFACTURER_SEED, 2 * u64::from(rows.start));
            brands
                .map(|brand| Brand { manufacturer: shared.draw(five), category: shared.draw(five), brand })
                .collect()
        }
    }
}
