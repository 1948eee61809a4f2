//! Random damage that knows the structures of a file.

use codec_core::conformance::Random;

use super::{Anatomy, Part, Place};

/// Values at the edges of what a field can mean.
const EDGES: [u64; 24] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    512,
    1024,
    4096,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0000,
    1 << 40,
    1 << 63,
    u64::MAX,
];

/// Damages one to three structures of `bytes` and, mostly, makes the checksums right again. Returns what was done; nothing where the bytes are no file.
pub fn mutate(bytes: &mut [u8], random: &mut Random) -> Option<String> {
    let anatomy = Anatomy::of(bytes)?;
    let mut done = Vec::new();
    for _ in 0..=random.draw() % 8 / 5 {
        done.push(match random.draw() % 8 {
            0 => copy_entry(bytes, &anatomy, random)?,
            1 => exchange_blocks(bytes, &anatomy, random)?,
            _ => change_field(bytes, &anatomy, random)?,
        });
    }
    if random.draw().is_multiple_of(16) {
        done.push("not sealed".into());
        return Some(done.join(", "));
    }
    if random.draw().is_multiple_of(16) {
        done.push("blocks not sealed".into());
        anatomy.seal_sections(bytes);
        return Some(done.join(", "));
    }
    // The changed fields say where things are now; the old ones said what was covered before.
    anatomy.seal(bytes);
    if random.draw().is_multiple_of(2)
        && let Some(changed) = Anatomy::of(bytes)
    {
        changed.seal(bytes);
    }
    Some(done.join(", "))
}

/// A place of a random part, so that rare parts are not drowned by tiles.
fn any_place<'a>(anatomy: &'a Anatomy, random: &mut Random) -> Option<&'a Place> {
    let mut parts: Vec<Part> = anatomy.places.iter().map(|place| place.part).collect();
    parts.sort_unstable();
    parts.dedup();
    let part = parts[below(random, parts.len())?];
    let places: Vec<&Place> = anatomy.all(part).collect();
    Some(places[below(random, places.len())?])
}

/// A number less than `bound`.
fn below(random: &mut Random, bound: usize) -> Option<usize> {
    (bound > 0).then(|| (random.draw() % bound as u64) as usize)
}

/// A field of 1, 2, 4 or 8 bytes at its natural place gets another value.
fn change_field(bytes: &mut [u8], anatomy: &Anatomy, random: &mut Random) -> Option<String> {
    let place = any_place(anatomy, random)?;
    let mut width = 1 << (random.draw() % 4);
    while width > place.range.len() {
        width /= 2;
    }
    let at = place.range.start + below(random, place.range.len() / width)? * width;
    let field = bytes.get_mut(at..at + width)?;
    let mut old = [0; 8];
    old[..width].copy_from_slice(field);
    let old = u64::from_le_bytes(old);
    let new = match random.draw() % 6 {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old ^ (1 << (random.draw() % (8 * width as u64))),
        3 => random.draw(),
        _ => EDGES[below(random, EDGES.len())?],
    };
    field.copy_from_slice(&new.to_le_bytes()[..width]);
    Some(format!("{:?} at {at}: {old} becomes {new} in {width} bytes", place.part))
}

/// One entry of a table becomes a copy of another.
fn copy_entry(bytes: &mut [u8], anatomy: &Anatomy, random: &mut Random) -> Option<String> {
    let place = any_place(anatomy, random)?;
    let count = place.range.len() / place.entry_bytes;
    let at = |index: usize| place.range.start + index * place.entry_bytes;
    let (from, to) = (at(below(random, count)?), at(below(random, count)?));
    bytes.copy_within(from..from + place.entry_bytes, to);
    Some(format!("{:?}: {from} copied to {to}", place.part))
}

/// Two blocks of one length trade places, or the first part of one overwrites the other.
fn exchange_blocks(bytes: &mut [u8], anatomy: &Anatomy, random: &mut Random) -> Option<String> {
    let blocks: Vec<_> = anatomy.columns.iter().flat_map(|column| &column.blocks).collect();
    let Some(first) = below(random, blocks.len()) else { return change_field(bytes, anatomy, random) };
    let second = below(random, blocks.len())?;
    let (left, right) = (blocks[first].range.clone(), blocks[second].range.clone());
    let length = left.len().min(right.len());
    let saved = bytes[left.start..left.start + length].to_vec();
    bytes.copy_within(right.start..right.start + length, left.start);
    if left.len() == right.len() {
        bytes[right.clone()].copy_from_slice(&saved);
    }
    Some(format!("block at {} gets {length} bytes of that at {}", left.start, right.start))
}
