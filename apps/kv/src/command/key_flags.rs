//! How commands use their keys, in the words of COMMAND.

use super::Command;
use crate::acl::uses;
use crate::memory::Memory;
use crate::resp::args::Args;

/// Commands after which the key may be gone whatever was in it.
const REMOVE: &[&str] = &["del", "unlink"];
/// Commands that put something new where the key they write was.
const OVERWRITE: &[&str] = &[
    "bitop",
    "copy",
    "georadius",
    "georadiusbymember",
    "geosearchstore",
    "mset",
    "msetnx",
    "psetex",
    "rename",
    "renamenx",
    "restore",
    "sdiffstore",
    "set",
    "setex",
    "setnx",
    "sort",
    "sunionstore",
    "zdiffstore",
    "zinterstore",
    "zrangestore",
    "zunionstore",
];
/// Commands that take something out of their first key.
const TAKE_OUT: &[&str] = &[
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "del",
    "getdel",
    "hdel",
    "lmove",
    "lmpop",
    "lpop",
    "lrem",
    "ltrim",
    "rename",
    "renamenx",
    "rpop",
    "rpoplpush",
    "smove",
    "spop",
    "srem",
    "unlink",
    "xautoclaim",
    "xdel",
    "xtrim",
    "zmpop",
    "zpopmax",
    "zpopmin",
    "zrem",
    "zremrangebylex",
    "zremrangebyrank",
    "zremrangebyscore",
];
/// Commands that only add to their first key.
const ADD: &[&str] = &[
    "append", "hsetnx", "linsert", "lpush", "lpushx", "msetnx", "pfadd", "pfmerge", "rpush",
    "rpushx", "sadd", "setnx",
];
/// Commands that only add to their second key.
const ADD_TO_SECOND: &[&str] = &[
    "blmove",
    "brpoplpush",
    "lmove",
    "renamenx",
    "rpoplpush",
    "smove",
];

/// What `command` does with the key that is its `nth`, counted from 0. Without words: with any.
pub(super) fn key_flags<M: Memory>(
    command: &Command<M>,
    args: Args<'_>,
    nth: usize,
) -> Vec<&'static str> {
    let (name, used) = (command.name, uses(command, args, nth));
    // It depends on the words.
    let any = args.len() == 0 && (name == "set" || name == "bitfield");
    let (read, write) = (used.read || any, used.write || any);
    let moved_to = nth == 1 && ADD_TO_SECOND.contains(&name);
    let mut flags = vec![match (read, write) {
        (_, false) => "RO",
        (_, true) if REMOVE.contains(&name) => "RM",
        (false, true) if OVERWRITE.contains(&name) => "OW",
        (..) => "RW",
    }];
    if read {
        flags.push("access");
    }
    if write {
        flags.push(match nth {
            0 if TAKE_OUT.contains(&name) => "delete",
            0 if ADD.contains(&name) => "insert",
            _ if moved_to => "insert",
            _ => "update",
        });
    }
    if any {
        flags.push("variable_flags");
    }
    flags
}
