//! The pieces that the text columns are made of.
use crate::lehmer::{Stream, Uniform, jump};
use arrow::array::{ArrayRef, StringBuilder};
use std::sync::Arc;

/// A Utf8 array of the texts that `append` writes, one a call, for `rows` rows of about `row_bytes` bytes.
pub(super) fn strings<T>(
    rows: impl ExactSizeIterator<Item = T>,
    row_bytes: usize,
    mut append: impl FnMut(T, &mut String),
) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(rows.len(), rows.len() * row_bytes);
    let mut text = String::new();
    for row in rows {
        text.clear();
        append(row, &mut text);
        builder.append_value(&text);
    }
    Arc::new(builder.finish())
}

/// A Utf8 array of one label a row.
pub(super) fn labels<'a>(rows: impl ExactSizeIterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(rows.len(), rows.len() * 8);
    for label in rows {
        builder.append_value(label);
    }
    Arc::new(builder.finish())
}

/// Appends `number` in decimal, with zeros in front up to `digits` digits.
pub(super) fn push_padded(text: &mut String, number: u32, digits: usize) {
    use std::fmt::Write;
    // Writing to a String cannot fail.
    let _ = write!(text, "{number:0digits$}");
}

/// The phone numbers of customers and suppliers: both tables draw from this stream.
pub(super) struct Phones {
    stream: Stream,
}

impl Phones {
    const SEED: i64 = 1_521_138_112;
    const DRAWS: u64 = 3;

    /// The phones from row `first` (counted from 0) on.
    pub(super) fn new(first: u32) -> Self {
        Self { stream: Stream::new(Self::SEED, u64::from(first) * Self::DRAWS) }
    }

    /// Appends the next phone, of a subject in nation number `nation`: `25-989-741-2988`.
    pub(super) fn push(&mut self, text: &mut String, nation: u32) {
        push_padded(text, 10 + nation, 2);
        for (low, high, digits) in [(100, 999, 3), (100, 999, 3), (1000, 9999, 4)] {
            text.push('-');
            push_padded(text, self.stream.draw(Uniform::new(low, high)), digits);
        }
    }
}

/// Addresses: 6 to 24 letters, digits, commas and blanks.
pub(super) struct Addresses {
    stream: Stream,
    next_row: i64,
}

impl Addresses {
    const ALPHABET: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
    /// A draw has 31 bits, of which five characters take 30.
    const CHARACTERS_A_DRAW: u32 = 5;
    const DRAWS: u64 = 9;

    /// The addresses of the stream of `seed` from row `first` (counted from 0) on.
    pub(super) fn new(seed: i64, first: u32) -> Self {
        Self { stream: Stream::new(seed, u64::from(first) * Self::DRAWS), next_row: jump(Self::DRAWS) }
    }

    /// Appends the next address.
    pub(super) fn push(&mut self, text: &mut String) {
        let mut row = self.stream.clone();
        self.stream.pass(self.next_row);
        let length = row.draw(Uniform::new(6, 24));
        let mut bits = 0;
        for position in 0..length {
            if position.is_multiple_of(Self::CHARACTERS_A_DRAW) {
                bits = row.draw(Uniform::BITS_31);
            }
            text.push(char::from(Self::ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
    }
}
