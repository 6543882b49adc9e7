//! The first line of a script, which may say what the script may do.

use crate::command::Failure;

/// What a script or a function may say of itself. The first two change something here: there is
/// neither a replica nor a cluster.
const FLAGS: [&str; 5] = [
    "no-writes",
    "allow-oom",
    "allow-stale",
    "no-cluster",
    "allow-cross-slot-keys",
];

/// What a script may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// It has said what it may do.
    pub declared: bool,
    /// Of the flags, those that it has; as bits.
    flags: u8,
}

impl Permissions {
    /// What has been said without any flag.
    pub const PLAIN: Self = Self {
        declared: true,
        flags: 0,
    };

    /// Adds a flag; `None`: there is no such flag.
    pub fn with(self, flag: &[u8]) -> Option<Self> {
        let place = FLAGS.iter().position(|name| name.as_bytes() == flag)?;
        Some(Self {
            flags: self.flags | 1 << place,
            ..self
        })
    }

    /// Whether it only reads.
    pub fn no_writes(self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether it may write where the rack keeps more than `maxmemory`.
    pub fn allows_oom(self) -> bool {
        self.flags & 2 != 0
    }

    /// The flags by name.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let has = move |i: &usize| self.flags & 1 << i != 0;
        (0..FLAGS.len()).filter(has).map(|i| FLAGS[i])
    }
}

/// A script's first line, if it is about the script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes before the program, which begins with a line end so that its lines keep their numbers.
    pub len: usize,
    pub permissions: Permissions,
}

impl Header {
    /// The header of a script's text.
    pub fn of(text: &[u8]) -> Result<Self, Failure> {
        if !text.starts_with(b"#!") {
            return Ok(Self::default());
        }
        let end = text.iter().position(|b| *b == b'\n');
        let len = end.ok_or("ERR Invalid script shebang")?;
        let mut words = text[..len]
            .split(|b| b.is_ascii_whitespace())
            .filter(|w| !w.is_empty());
        let engine = words.next().unwrap_or_default();
        if engine != b"#!lua" {
            return Err(said(b"ERR Unexpected engine in script shebang: ", engine));
        }
        let mut permissions = Permissions::PLAIN;
        for word in words {
            let Some(flags) = word.strip_prefix(b"flags=") else {
                return Err(said(b"ERR Unknown lua shebang option: ", word));
            };
            let none = flags.is_empty();
            let flags = flags.split(|b| *b == b',').filter(|_| !none);
            permissions = Permissions::PLAIN;
            for flag in flags {
                let known = permissions.with(flag);
                permissions =
                    known.ok_or_else(|| said(b"ERR Unexpected flag in script shebang: ", flag))?;
            }
        }
        Ok(Self { len, permissions })
    }
}

fn said(text: &[u8], word: &[u8]) -> Failure {
    [text, word].concat().into()
}
