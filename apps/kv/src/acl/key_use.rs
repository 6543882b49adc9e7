//! How commands use the keys that they name: patterns of keys may be for reading or for writing
//! only.

use crate::command::Command;
use crate::command::Flags;
use crate::memory::Memory;
use crate::resp::args::Args;

/// What a command does with a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    /// Something of it comes back, or goes elsewhere.
    pub read: bool,
    pub write: bool,
}

const READ: KeyUse = KeyUse {
    read: true,
    write: false,
};
const WRITE: KeyUse = KeyUse {
    read: false,
    write: true,
};
const BOTH: KeyUse = KeyUse {
    read: true,
    write: true,
};
/// Any right to the key will do.
const ANY: KeyUse = KeyUse {
    read: false,
    write: false,
};

/// Commands that tell of a key no more than what writing it would: whether it, or something in it,
/// is there, how much, and of which kind.
const TELL_LITTLE: &[&str] = &[
    "exists",
    "hexists",
    "hlen",
    "hstrlen",
    "llen",
    "memory",
    "object",
    "scard",
    "sismember",
    "strlen",
    "touch",
    "type",
    "watch",
    "xlen",
    "zcard",
];
/// Commands that write and answer with what they found.
const READ_TOO: &[&str] = &[
    "getset",
    "getdel",
    "getex",
    "incr",
    "decr",
    "incrby",
    "decrby",
    "incrbyfloat",
    "setbit",
    "bitfield",
    "move",
    "lpop",
    "rpop",
    "lmpop",
    "blmpop",
    "blpop",
    "brpop",
    "spop",
    "zpopmin",
    "zpopmax",
    "bzpopmin",
    "bzpopmax",
    "zmpop",
    "bzmpop",
    "zincrby",
    "hincrby",
    "hincrbyfloat",
    "hgetdel",
    "hgetex",
    "migrate",
    "pfdebug",
];
/// Commands whose scripts may do anything with their keys.
const SCRIPTS: &[&str] = &["eval", "evalsha", "fcall"];
/// Commands that put into their first key what comes of the others.
const INTO_FIRST: &[&str] = &[
    "bitop",
    "geosearchstore",
    "zdiffstore",
    "zinterstore",
    "zunionstore",
    "zrangestore",
    "sdiffstore",
    "sinterstore",
    "sunionstore",
];
/// Commands that read their first key and write the others.
const FROM_FIRST: &[&str] = &["copy", "sort", "georadius", "georadiusbymember"];
/// Commands that take something from their first key and put it into the second.
const MOVING: &[&str] = &[
    "rename",
    "renamenx",
    "rpoplpush",
    "lmove",
    "blmove",
    "brpoplpush",
    "smove",
];

/// What `command`, with these words, does with the key that is its `nth`, counted from 0.
pub(crate) fn uses<M: Memory>(command: &Command<M>, args: Args<'_>, nth: usize) -> KeyUse {
    let (name, first) = (command.name, nth == 0);
    if !command.flags.has(Flags::WRITE) {
        return match name {
            _ if SCRIPTS.contains(&name) => BOTH,
            _ if TELL_LITTLE.contains(&name) => ANY,
            _ => READ,
        };
    }
    if name == "bitfield" && !changes_bits(args) {
        return READ;
    }
    if name == "pfmerge" {
        return if first { BOTH } else { READ };
    }
    if name == "xreadgroup" {
        return READ;
    }
    if INTO_FIRST.contains(&name) {
        return if first { WRITE } else { READ };
    }
    if FROM_FIRST.contains(&name) {
        return if first { READ } else { WRITE };
    }
    if MOVING.contains(&name) {
        return if first { BOTH } else { WRITE };
    }
    let answers = name == "set" && (3..args.len()).any(|i| args.is(i, "get"));
    if answers || READ_TOO.contains(&name) {
        BOTH
    } else {
        WRITE
    }
}

/// Whether a BITFIELD has anything but GET.
fn changes_bits(args: Args<'_>) -> bool {
    (2..args.len()).any(|i| args.is(i, "set") || args.is(i, "incrby"))
}
