//! Keyspace events: what commands do to keys, published for those who want to know.
//!
//! The store notes which keys a command changes (`store::bus::watching`), so the events of a
//! command follow from its name and from what has become of its keys; handlers tell nothing.

use super::{Call, Command, Outcome};
use crate::DATABASES;
use crate::error::Result;
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::server::settings::event_class;
use crate::store::Db;
use crate::store::bus::{Became, Change, watching};

const KEYSPACE: u64 = bit(b'K');
const KEYEVENT: u64 = bit(b'E');
const GENERIC: u64 = bit(b'g');
/// Keys that go because their time is over.
pub(crate) const EXPIRED: u64 = bit(b'x');
/// Keys that go because there is no room for them.
const EVICTED: u64 = bit(b'e');
const NEW: u64 = bit(b'n');
const STREAM: u64 = bit(b't');
/// The event of a consumer that comes to be.
const JOINED: &str = "xgroup-createconsumer";

const fn bit(letter: u8) -> u64 {
    event_class(letter) as u64
}

/// Commands whose event has another name than they have.
const NAMES: &[(&str, &str)] = &[
    ("bitfield", "setbit"),
    ("bitop", "set"),
    ("blpop", "lpop"),
    ("brpop", "rpop"),
    ("bzpopmax", "zpopmax"),
    ("bzpopmin", "zpopmin"),
    ("copy", "copy_to"),
    ("decr", "incrby"),
    ("decrby", "incrby"),
    ("expireat", "expire"),
    ("geoadd", "zadd"),
    ("georadius", "georadiusstore"),
    ("georadiusbymember", "georadiusstore"),
    ("getdel", "del"),
    ("getset", "set"),
    ("hmset", "hset"),
    ("hsetnx", "hset"),
    ("incr", "incrby"),
    ("lpushx", "lpush"),
    ("mset", "set"),
    ("msetnx", "set"),
    ("pexpire", "expire"),
    ("pexpireat", "expire"),
    ("pfmerge", "pfadd"),
    ("psetex", "set"),
    ("rpushx", "rpush"),
    ("setex", "set"),
    ("setnx", "set"),
    ("sort", "sortstore"),
    ("unlink", "del"),
    ("zincrby", "zincr"),
];

/// Commands that change keys and of which nothing is told but that they have made a consumer.
const SILENT: &[&str] = &["xack", "xautoclaim", "xclaim", "xreadgroup"];

/// The class of a group of commands.
fn class(group: &str) -> u64 {
    bit(match group {
        "string" | "bitmap" | "hyperloglog" => b'$',
        "list" => b'l',
        "set" => b's',
        "hash" => b'h',
        "sorted_set" | "sorted-set" | "geo" => b'z',
        "stream" => b't',
        _ => b'g',
    })
}

/// The events of one change by a command, in their order.
fn events<M: Memory>(command: &Command<M>, args: Args<'_>, change: &Change) -> Vec<(u64, String)> {
    let (name, group) = (command.name, class(command.group));
    let has = |word: &str| (1..args.len()).any(|i| args.is(i, word));
    let is_first = args.at(1) == change.key;
    let gone = change.became == Became::Gone;
    let side = |at: usize| if args.is(at, "left") { "l" } else { "r" };
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut tell = |class: u64, name: &str| found.push((class, name.to_owned()));
    match name {
        _ if SILENT.contains(&name) => return found,
        "rename" | "renamenx" if gone => tell(GENERIC, "rename_from"),
        "rename" | "renamenx" => tell(GENERIC, "rename_to"),
        "set" | "setex" | "psetex" => {
            tell(group, "set");
            let expires = name != "set" || ["ex", "px", "exat", "pxat"].into_iter().any(has);
            if expires {
                tell(GENERIC, "expire");
            }
        }
        "getex" if has("persist") => tell(GENERIC, "persist"),
        "getex" if !gone => tell(GENERIC, "expire"),
        "smove" => tell(group, if is_first { "srem" } else { "sadd" }),
        "lmove" | "blmove" | "rpoplpush" | "brpoplpush" => {
            let moves = name.ends_with("lmove");
            let (from, to) = if moves {
                (side(3), side(4))
            } else {
                ("r", "l")
            };
            if is_first {
                tell(group, &format!("{from}pop"));
            }
            if args.at(2) == change.key {
                tell(group, &format!("{to}push"));
            }
        }
        "lmpop" | "blmpop" => tell(group, if has("left") { "lpop" } else { "rpop" }),
        "zmpop" | "bzmpop" => tell(group, if has("min") { "zpopmin" } else { "zpopmax" }),
        "xgroup" => tell(
            group,
            &format!(
                "xgroup-{}",
                String::from_utf8_lossy(args.at(1)).to_lowercase()
            ),
        ),
        _ => {
            let other = NAMES.iter().find(|(known, _)| *known == name);
            let event = other.map_or(name, |(_, event)| event);
            // What leaves nothing behind is told as such, and as nothing else.
            let removes = ["del", "expire"].contains(&event) || event.ends_with("store");
            if !(gone && removes) {
                tell(if event == "del" { GENERIC } else { group }, event);
            }
        }
    }
    if gone && !name.starts_with("rename") {
        found.push((GENERIC, "del".to_owned()));
    }
    if change.became == Became::New {
        found.insert(0, (NEW, "new".to_owned()));
    }
    found
}

/// What is published about an event, and where.
fn messages(wanted: u64, db: u8, name: &str, key: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let channel = |kind: &str, of: &[u8]| {
        let mut channel = format!("__{kind}@{db}__:").into_bytes();
        channel.extend_from_slice(of);
        channel
    };
    let mut messages = Vec::new();
    if wanted & KEYSPACE != 0 {
        messages.push((channel("keyspace", key), name.as_bytes().to_vec()));
    }
    if wanted & KEYEVENT != 0 {
        messages.push((channel("keyevent", name.as_bytes()), key.to_vec()));
    }
    messages
}

/// What is published about a key whose time was over.
pub(crate) fn expiry_channels(wanted: u64, db: u8, key: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    messages(wanted, db, "expired", key)
}

/// Publishes that a key was removed to make room, where that is wanted.
pub(super) fn tell_evicted<M: Memory>(db: &Db<'_, M>, key: &[u8]) -> Result<()> {
    let wanted = db.core.events()?;
    if wanted & EVICTED != 0 {
        for (channel, payload) in messages(wanted, db.number(), "evicted", key) {
            db.publish(false, &channel, &payload)?;
        }
    }
    Ok(())
}

/// Runs a command, and tells what it has changed.
#[cold]
pub(super) fn run<M: Memory>(call: &mut Call<'_, '_, M>, wanted: u64) -> Outcome {
    let (command, args, db) = (call.command, call.args, call.db);
    let (outcome, mut changes) = watching(|| (command.run)(call));
    if wanted & STREAM != 0 {
        for key in std::mem::take(&mut call.joined) {
            for (channel, payload) in messages(wanted, db.number(), JOINED, &key) {
                db.publish(false, &channel, &payload)?;
            }
        }
    }
    if ["rename", "renamenx", "smove"].contains(&command.name) {
        // What comes into being is stored before the other goes, and told after.
        changes.sort_by_key(|change| change.key != args.at(1));
    }
    for change in changes
        .iter()
        .filter(|change| usize::from(change.db) < DATABASES)
    {
        let Some(db) = db.select(change.db) else {
            continue;
        };
        for (class, name) in events(command, args, change) {
            if wanted & class != 0 {
                for (channel, payload) in messages(wanted, change.db, &name, &change.key) {
                    db.publish(false, &channel, &payload)?;
                }
            }
        }
    }
    outcome
}
