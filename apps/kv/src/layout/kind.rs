//! What a key's value is.

/// The type of a value: three bits of its record's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes.
    #[default]
    String,
    /// Elements in the order in which they were put.
    List,
    /// Members, each once.
    Set,
    /// Fields with a value each.
    Hash,
    /// Members in the order of their scores.
    SortedSet,
    /// Entries with rising numbers, and the groups that consume them.
    Stream,
}

impl Kind {
    /// All of them, by their bits.
    pub const ALL: [Kind; 6] = [
        Kind::String,
        Kind::List,
        Kind::Set,
        Kind::Hash,
        Kind::SortedSet,
        Kind::Stream,
    ];

    /// What TYPE calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::Hash => "hash",
            Kind::SortedSet => "zset",
            Kind::Stream => "stream",
        }
    }

    /// The type of this name, in any case.
    pub fn named(name: &[u8]) -> Option<Kind> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The type with these bits.
    pub(crate) fn from_bits(bits: u64) -> Option<Kind> {
        Self::ALL.get(usize::try_from(bits).ok()?).copied()
    }

    /// Trees that a value of this type consists of.
    pub(crate) fn trees(self) -> usize {
        match self {
            Kind::String => 0,
            Kind::List | Kind::Set | Kind::Hash => 1,
            Kind::SortedSet | Kind::Stream => 2,
        }
    }
}
