//! Codecs by id and by name.

use format_spec::Layout;

use crate::AnyCodec;

/// The codecs that a program knows.
#[derive(Clone, Copy)]
pub struct Registry {
    codecs: &'static [&'static dyn AnyCodec],
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.codecs.iter().map(|codec| codec.name())).finish()
    }
}

impl Registry {
    /// A registry of `codecs`, whose ids and names are distinct ([`Registry::is_consistent`]).
    #[must_use]
    pub const fn new(codecs: &'static [&'static dyn AnyCodec]) -> Self {
        Self { codecs }
    }

    /// All codecs.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn AnyCodec> {
        self.codecs.iter().copied()
    }

    /// The codecs that can encode `layout`.
    pub fn supporting(&self, layout: Layout) -> impl Iterator<Item = &'static dyn AnyCodec> {
        self.iter().filter(move |codec| codec.supports(layout))
    }

    /// The codec with this id.
    #[must_use]
    pub fn by_id(&self, id: u16) -> Option<&'static dyn AnyCodec> {
        self.iter().find(|codec| codec.id() == id)
    }

    /// The codec with this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&'static dyn AnyCodec> {
        self.iter().find(|codec| codec.name() == name)
    }

    /// Whether ids and names are distinct and no id is the constant block's.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.iter().enumerate().all(|(index, codec)| {
            let earlier = self.codecs.get(..index).unwrap_or_default();
            codec.id() != format_spec::CONSTANT_BLOCK
                && earlier.iter().all(|other| other.id() != codec.id() && other.name() != codec.name())
        })
    }
}
