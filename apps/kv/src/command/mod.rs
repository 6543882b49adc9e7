//! The commands: a table of what each is called, takes and does.

mod acl;
mod bitmaps;
mod clients;
mod configuration;
mod connection;
pub(crate) mod dispatch;
mod dumping;
pub(crate) mod events;
mod eviction;
mod expiry;
mod functions;
mod geo;
mod hash;
mod help;
mod hyperloglogs;
pub(crate) mod index;
mod info;
mod info_counts;
#[cfg(test)]
mod interleaved;
mod introspect;
mod key_flags;
pub(crate) mod key_words;
mod keys;
mod latency;
mod lcs;
mod lists;
mod monitor;
mod numbers;
mod persistence;
mod process;
mod pubsub;
mod random;
mod scanning;
mod scripting;
mod set;
mod set_algebra;
mod sets;
mod slowlog;
mod sort;
mod sorted_set;
mod standalone;
mod stream;
mod strings;
mod table;
mod tracking;
mod transactions;
mod waiting;

use std::borrow::Cow;
use std::time::Duration;

use self::help::help;
use crate::error::Error;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::args::Args;
use crate::resp::reply::Reply;
use crate::server::session::Session;
use crate::server::shared::{Shared, Stats};
use crate::store::Db;

pub(crate) use self::connection::REDIS_VERSION;

/// Bytes of a reply at most; a command whose reply would be longer gets an error instead.
pub(crate) const MAX_REPLY: usize = 256 << 20;

/// What a command may do; as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub const NONE: Self = Self(0);
    /// Changes keys.
    pub const WRITE: Self = Self(1);
    /// Only reads keys.
    pub const READ: Self = Self(2);
    /// Takes the same time whatever the store holds.
    pub const FAST: Self = Self(4);
    /// May be sent before the password.
    pub const OPEN: Self = Self(8);
    /// Runs at once even between MULTI and EXEC.
    pub const CONTROL: Self = Self(16);
    /// Has no place in a transaction.
    pub const NOT_QUEUED: Self = Self(32);
    /// Looks at keys that it does not name.
    pub const WHOLE: Self = Self(64);
    /// Flushes databases.
    pub const FLUSH: Self = Self(128);
    /// About the server, not the data.
    pub const ADMIN: Self = Self(256);
    /// About the connection.
    pub const CONNECTION: Self = Self(512);

    /// Has no place in a script.
    pub const NOSCRIPT: Self = Self(1024);
    /// Its keys depend on its words: follows from the table, and is only told.
    pub const MOVABLE: Self = Self(2048);

    /// Leaves no more than there was, so it is not refused where the rack keeps too much.
    pub const SHRINKS: Self = Self(4096);
    /// Looks at keys without using them, for policies that go by use.
    pub const LOOKS: Self = Self(8192);

    /// With another one, if `on`.
    pub const fn with(self, other: Self, on: bool) -> Self {
        if on { self.and(other) } else { self }
    }

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// What a command does.
pub(crate) type Handler<M> = fn(&mut Call<'_, '_, M>) -> Outcome;

/// A line of the table.
pub(crate) struct Command<M: Memory> {
    /// In lower case.
    pub name: &'static str,
    /// Words, the name included; at least so many when negative.
    pub arity: i32,
    pub flags: Flags,
    pub keys: key_words::KeyWords,
    pub group: &'static str,
    /// The version of Redis that brought it.
    pub since: &'static str,
    pub summary: &'static str,
    pub run: Handler<M>,
    /// What its second word may be, if that names one of several.
    pub subcommands: &'static [Subcommand<M>],
}

impl<M: Memory> Command<M> {
    /// Whether a command of so many words can be this one.
    pub fn takes(&self, words: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 {
            words >= arity
        } else {
            words == arity
        }
    }

    /// What the second word names, if there is such a subcommand and it takes as many words.
    fn subcommand(&self, args: Args<'_>) -> Result<Handler<M>, Failure> {
        let word = args.at(1);
        let named = || {
            self.subcommands
                .iter()
                .filter(|(name, ..)| args.is(1, name))
        };
        if let Some((.., run)) = named().find(|(_, words, _)| words.contains(&args.len())) {
            return Ok(*run);
        }
        let try_help = |what: &str| -> Failure {
            let mut text = format!("ERR unknown subcommand{what} '").into_bytes();
            text.extend_from_slice(&word[..word.len().min(SHOWN)]);
            text.extend(format!("'. Try {} HELP.", self.name.to_uppercase()).bytes());
            text.into()
        };
        Err(match named().next() {
            // Where some words may be left out, more than all are found by the subcommand itself.
            Some((_, words, _)) if words.start() < words.end() && args.len() > *words.end() => {
                try_help(" or wrong number of arguments for")
            }
            Some((name, ..)) => wrong_count(&format!("{}|{name}", self.name)),
            None => try_help(""),
        })
    }

    /// Whether it is one that can run at all, before it is queued.
    fn check(&self, args: Args<'_>) -> Outcome {
        if !self.takes(args.len()) {
            return Err(wrong_count(self.name));
        }
        if args.len() > 1 && !self.subcommands.is_empty() {
            self.subcommand(args)?;
        }
        Ok(())
    }
}

/// "wrong number of arguments".
fn wrong_count(name: &str) -> Failure {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

/// Bytes of an unknown word that its error repeats.
const SHOWN: usize = 128;

/// A command as it runs.
pub(crate) struct Call<'a, 's, M: Memory> {
    pub shared: &'a Shared<M>,
    pub stats: &'a Stats,
    pub session: &'s mut Session,
    /// The session's database, within a transaction when there is one.
    pub db: Db<'a, M>,
    pub args: Args<'a>,
    pub reply: Reply<'s>,
    pub command: &'a Command<M>,
    /// Streams of which a group got a consumer that it did not have.
    pub joined: Vec<Vec<u8>>,
}

/// Why a command failed: an error reply.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(Error),
    /// With its code. What it repeats of a command may be any bytes.
    Text(Cow<'static, [u8]>),
    /// A script has failed with this line, which was counted as an error if a command of it
    /// answered it.
    Script {
        line: Vec<u8>,
        counted: bool,
    },
    /// Not yet: see [`Wait`].
    Block(Wait),
}

/// That a command finds nothing to do, and is to be run again when one of `keys` has changed.
///
/// A handler that answers `Err(Failure::Block(wait))` has changed nothing. Its connection stands
/// aside, the handler runs again whenever one of the keys of the session's database may have
/// changed, at any node, and gets the words it had the first time, but for those in `words`; what
/// counts is what it answers then. `timeout` counts from the first run; then, and at once within
/// MULTI or a script, the reply is `otherwise`.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub keys: Vec<Vec<u8>>,
    /// `None`: for ever.
    pub timeout: Option<Duration>,
    pub otherwise: Otherwise,
    /// It takes away what it finds: if there is nothing for it, there is nothing for another client
    /// that waits with the same command either.
    pub takes: bool,
    /// Words that the command has from then on, and their places.
    pub words: Vec<(usize, Vec<u8>)>,
}

/// The reply of a command whose time is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Otherwise {
    Nil,
    NilArray,
}

impl Otherwise {
    fn say(self, reply: &mut Reply<'_>) {
        match self {
            Self::Nil => reply.nil(),
            Self::NilArray => reply.nil_array(),
        }
    }
}

/// What came of a command. A failure replaces whatever it had replied.
pub(crate) type Outcome = Result<(), Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<&'static str> for Failure {
    fn from(text: &'static str) -> Self {
        Self::Text(text.as_bytes().into())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<u8>> for Failure {
    fn from(text: Vec<u8>) -> Self {
        Self::Text(text.into())
    }
}

pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NOT_INTEGER: &str = "ERR value is not an integer or out of range";

impl<'a, M: Memory> Call<'a, '_, M> {
    /// The word at `i`.
    #[inline]
    pub fn word(&self, i: usize) -> &'a [u8] {
        self.args.at(i)
    }

    /// The word at `i` as an integer.
    pub fn integer(&self, i: usize) -> Result<i64, Failure> {
        parse_i64(self.args.at(i)).ok_or_else(|| NOT_INTEGER.into())
    }

    /// The words that are keys.
    pub fn keys(&self) -> Vec<&'a [u8]> {
        self.command
            .keys
            .positions(self.args)
            .map(|i| self.args.at(i))
            .collect()
    }

    /// Counts whether a read found its key.
    #[inline]
    pub fn found(&self, hit: bool) {
        Stats::add(
            if hit {
                &self.stats.hits
            } else {
                &self.stats.misses
            },
            1,
        );
    }

    /// "wrong number of arguments".
    pub fn wrong_count(&self) -> Failure {
        wrong_count(self.command.name)
    }
}

/// A subcommand: its name, how many words it takes (the command and its own name included),
/// what it does.
pub(crate) type Subcommand<M> = (&'static str, std::ops::RangeInclusive<usize>, Handler<M>);

/// Runs the subcommand that the second word names.
fn subcommand<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let run = call.command.subcommand(call.args)?;
    run(call)
}
