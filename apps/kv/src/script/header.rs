//! The first line of a script, which may say what the script may do.

use crate::command::Failure;

/// What a script may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// It has said what it may do.
    pub declared: bool,
    /// It only reads.
    pub no_writes: bool,
}

/// Flags that change nothing here: memory is full or not, and there is neither a replica nor a
/// cluster.
const WITHOUT_EFFECT: [&[u8]; 4] = [
    b"allow-oom",
    b"allow-stale",
    b"no-cluster",
    b"allow-cross-slot-keys",
];

impl Permissions {
    /// What these flags, which have been declared, allow. The flag that there is not, otherwise.
    pub fn declared<'f>(flags: impl Iterator<Item = &'f [u8]>) -> Result<Self, &'f [u8]> {
        let mut permissions = Self {
            declared: true,
            no_writes: false,
        };
        for flag in flags {
            match flag {
                b"no-writes" => permissions.no_writes = true,
                _ if WITHOUT_EFFECT.contains(&flag) => {}
                _ => return Err(flag),
            }
        }
        Ok(permissions)
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
        let mut permissions = Permissions {
            declared: true,
            no_writes: false,
        };
        for word in words {
            let Some(flags) = word.strip_prefix(b"flags=") else {
                return Err(said(b"ERR Unknown lua shebang option: ", word));
            };
            let none = flags.is_empty();
            let flags = flags.split(|b| *b == b',').filter(|_| !none);
            permissions = Permissions::declared(flags)
                .map_err(|flag| said(b"ERR Unexpected flag in script shebang: ", flag))?;
        }
        Ok(Self { len, permissions })
    }
}

fn said(text: &[u8], word: &[u8]) -> Failure {
    [text, word].concat().into()
}
