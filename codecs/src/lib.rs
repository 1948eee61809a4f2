//! The one list of codecs. A codec joins by one line among this crate's dependencies.

#![forbid(unsafe_code)]

use codec_core::{AnyCodec, Registry};

static CODECS: &[&dyn AnyCodec] = include!(concat!(env!("OUT_DIR"), "/list.rs"));

/// Every codec that the program knows.
pub static REGISTRY: Registry = Registry::new(CODECS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_distinct() {
        assert!(REGISTRY.is_consistent(), "{REGISTRY:?}");
    }

    #[test]
    fn the_specified_codecs_have_their_ids() {
        let specified =
            [(1, "plain"), (2, "flbp"), (3, "rfor"), (4, "dfor"), (5, "alp"), (6, "dict"), (7, "deflate")];
        for (id, name) in specified {
            assert_eq!(REGISTRY.by_id(id).map(|codec| codec.name()), Some(name));
        }
    }
}
