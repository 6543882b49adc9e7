//! The table of commands. Groups that came with a type of value have a file each.

use std::marker::PhantomData;

use super::key_words::KeyWords;
use super::{Command, Flags, subcommand};
use super::{
    acl, clients, configuration, connection, expiry, info, introspect, keys, latency, lcs, numbers,
    set, slowlog, sort, standalone, strings, transactions,
};
use super::{dumping, monitor, persistence};
use crate::memory::Memory;

const READ: Flags = Flags::READ;
const READ_FAST: Flags = Flags::READ.and(Flags::FAST);
const READ_WHOLE: Flags = Flags::READ.and(Flags::WHOLE);
const WRITE: Flags = Flags::WRITE;
const SCRIPT: Flags = Flags::NOSCRIPT;
const SCRIPT_READ: Flags = Flags::NOSCRIPT.and(Flags::READ);
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const SWAP: Flags = WRITE_FAST.and(Flags::WHOLE);
const WAITS_FAST: Flags = WRITE_FAST.and(Flags::NOSCRIPT);
const LESS: Flags = Flags::WRITE.and(Flags::SHRINKS);
const LESS_FAST: Flags = WRITE_FAST.and(Flags::SHRINKS);
const TAKES_FAST: Flags = WAITS_FAST.and(Flags::SHRINKS);
const LOOK: Flags = Flags::READ.and(Flags::LOOKS);
const LOOK_FAST: Flags = READ_FAST.and(Flags::LOOKS);
const FLUSH: Flags = LESS.and(Flags::FLUSH);
const LINK: Flags = Flags::FAST.and(Flags::CONNECTION);
const PRIVATE: Flags = LINK.and(Flags::NOSCRIPT);
const DOOR: Flags = PRIVATE.and(Flags::OPEN);
const EXIT: Flags = PRIVATE.and(Flags::OPEN).and(Flags::CONTROL);
const CONTROL: Flags = Flags::FAST.and(Flags::CONTROL).and(Flags::NOSCRIPT);
const MARKING: Flags = CONTROL.and(Flags::LOOKS);
const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT);
const ALONE: Flags = ADMIN.and(Flags::NOT_QUEUED);
const RESTING: Flags = Flags::ADMIN.and(Flags::FAST);
const PLAIN: Flags = Flags::NONE;
const SHUTDOWN: Flags = ADMIN.and(Flags::NOT_QUEUED);
const FAST: Flags = Flags::FAST;
const FENCED: Flags = Flags::FAST.and(Flags::NOSCRIPT);

const NO_KEY: KeyWords = KeyWords::NONE;
const KEY: KeyWords = KeyWords::Fixed {
    first: 1,
    last: 1,
    step: 1,
};
const TWO_KEYS: KeyWords = KeyWords::Fixed {
    first: 1,
    last: 2,
    step: 1,
};
const KEYS: KeyWords = KeyWords::Fixed {
    first: 1,
    last: -1,
    step: 1,
};
const PAIRS: KeyWords = KeyWords::Fixed {
    first: 1,
    last: -1,
    step: 2,
};
const SORTED: KeyWords = KeyWords::Sorted;
const KEY_SECOND: KeyWords = KeyWords::Fixed {
    first: 2,
    last: 2,
    step: 1,
};

const COUNTED: KeyWords = KeyWords::Counted { first: 0, count: 1 };
/// As many as the third word says, behind it.
const COUNTED_SECOND: KeyWords = KeyWords::Counted { first: 0, count: 2 };

/// The table for stores in memory `M`.
pub(crate) struct Table<M>(PhantomData<M>);

macro_rules! commands {
    ($group:literal: $($name:literal $arity:literal $flags:ident $keys:ident $since:literal $run:path $([$sub:path])?, $summary:literal;)*) => {
        &[$(Command {
            name: $name,
            arity: $arity,
            flags: $flags,
            keys: $keys,
            group: $group,
            since: $since,
            summary: $summary,
            run: $run,
            subcommands: commands!(@ $($sub)?),
        }),*]
    };
    (@) => { &[] };
    (@ $sub:path) => { $sub() };
}

// Behind the macro that they use.
mod bitmaps;
mod geo;
mod hashes;
mod hyperloglogs;
mod lists;
mod pubsub;
mod scripting;
mod sets;
mod sorted_sets;
mod streams;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub const GROUPS: &'static [&'static [Command<M>]] = &[
        Self::STRING, Self::GENERIC, Self::HASH, Self::LIST, Self::SET, Self::SORTED_SET, Self::STREAM, Self::BITMAP,
        Self::HYPERLOGLOG, Self::GEO, Self::PUBSUB, Self::SCRIPTING, Self::TRANSACTIONS, Self::CONNECTION, Self::SERVER,
    ];

    const STRING: &'static [Command<M>] = commands! { "string":
        "get"          2 READ_FAST  KEY   "1.0.0"  strings::get,           "Returns the value of a key.";
        "set"         -3 WRITE      KEY   "1.0.0"  set::set,               "Sets the value of a key, whatever it was.";
        "setnx"        3 WRITE_FAST KEY   "1.0.0"  set::setnx,             "Sets the value of a key that does not exist.";
        "setex"        4 WRITE      KEY   "2.0.0"  set::setex,             "Sets the value and the expiry of a key in seconds.";
        "psetex"       4 WRITE      KEY   "2.6.0"  set::psetex,            "Sets the value and the expiry of a key in milliseconds.";
        "getset"       3 WRITE_FAST KEY   "1.0.0"  set::getset,            "Sets a key and returns its old value.";
        "getdel"       2 LESS_FAST  KEY   "6.2.0"  strings::getdel,        "Returns the value of a key and deletes the key.";
        "getex"       -2 LESS_FAST  KEY   "6.2.0"  strings::getex,         "Returns the value of a key and changes its expiry.";
        "mget"        -2 READ_FAST  KEYS  "1.0.0"  strings::mget,          "Returns the values of several keys at one moment.";
        "mset"        -3 WRITE      PAIRS "1.0.1"  set::mset,              "Sets several keys at one moment.";
        "msetnx"      -3 WRITE      PAIRS "1.0.1"  set::msetnx,            "Sets several keys if none of them exists.";
        "incr"         2 WRITE_FAST KEY   "1.0.0"  numbers::incr,          "Adds one to an integer.";
        "decr"         2 WRITE_FAST KEY   "1.0.0"  numbers::decr,          "Takes one from an integer.";
        "incrby"       3 WRITE_FAST KEY   "1.0.0"  numbers::incrby,        "Adds to an integer.";
        "decrby"       3 WRITE_FAST KEY   "1.0.0"  numbers::decrby,        "Takes from an integer.";
        "incrbyfloat"  3 WRITE_FAST KEY   "2.6.0"  numbers::incrbyfloat,   "Adds to a decimal number.";
        "append"       3 WRITE_FAST KEY   "2.0.0"  strings::append,        "Puts bytes behind a value.";
        "strlen"       2 READ_FAST  KEY   "2.2.0"  strings::strlen,        "Returns the length of a value.";
        "getrange"     4 READ       KEY   "2.4.0"  strings::getrange,      "Returns a part of a value.";
        "lcs"         -3 READ       TWO_KEYS "7.0.0" lcs::lcs,              "Returns the longest common subsequence of two values.";
        "substr"       4 READ       KEY   "1.0.0"  strings::getrange,      "Returns a part of a value.";
        "setrange"     4 WRITE      KEY   "2.2.0"  strings::setrange,      "Puts bytes over a part of a value.";
    };

    const GENERIC: &'static [Command<M>] = commands! { "generic":
        "del"         -2 LESS       KEYS       "1.0.0"  keys::del,            "Deletes keys.";
        "unlink"      -2 LESS_FAST  KEYS       "4.0.0"  keys::del,            "Deletes keys.";
        "exists"      -2 LOOK_FAST  KEYS       "1.0.0"  keys::exists,         "Counts the keys that exist.";
        "touch"       -2 READ_FAST  KEYS       "3.2.1"  keys::exists,         "Counts the keys that exist.";
        "type"         2 LOOK_FAST  KEY        "1.0.0"  keys::type_of,        "Returns the type of a value.";
        "rename"       3 LESS       TWO_KEYS   "1.0.0"  keys::rename,         "Renames a key, over what had the name.";
        "renamenx"     3 LESS_FAST  TWO_KEYS   "1.0.0"  keys::renamenx,       "Renames a key if nothing has the name.";
        "copy"        -3 WRITE      TWO_KEYS   "6.2.0"  keys::copy,           "Copies a key.";
        "move"         3 LESS_FAST  KEY        "1.0.0"  keys::move_to,        "Moves a key to another database.";
        "keys"         2 READ_WHOLE NO_KEY     "1.0.0"  keys::keys,           "Returns all keys that match a pattern.";
        "scan"        -2 READ_WHOLE NO_KEY     "2.8.0"  keys::scan,           "Returns the keys step by step.";
        "randomkey"    1 READ_WHOLE NO_KEY     "1.0.0"  keys::randomkey,      "Returns a key chosen at random.";
        "expire"      -3 LESS_FAST  KEY        "1.0.0"  expiry::expire,       "Lets a key expire in seconds from now.";
        "pexpire"     -3 LESS_FAST  KEY        "2.6.0"  expiry::pexpire,      "Lets a key expire in milliseconds from now.";
        "expireat"    -3 LESS_FAST  KEY        "1.2.0"  expiry::expireat,     "Lets a key expire at a Unix time in seconds.";
        "pexpireat"   -3 LESS_FAST  KEY        "2.6.0"  expiry::pexpireat,    "Lets a key expire at a Unix time in milliseconds.";
        "persist"      2 LESS_FAST  KEY        "2.2.0"  expiry::persist,      "Takes the expiry of a key away.";
        "ttl"          2 LOOK_FAST  KEY        "1.0.0"  expiry::ttl,          "Returns the seconds until a key expires.";
        "pttl"         2 LOOK_FAST  KEY        "2.6.0"  expiry::pttl,         "Returns the milliseconds until a key expires.";
        "expiretime"   2 LOOK_FAST  KEY        "7.0.0"  expiry::expiretime,   "Returns the Unix time in seconds at which a key expires.";
        "pexpiretime"  2 LOOK_FAST  KEY        "7.0.0"  expiry::pexpiretime,  "Returns the Unix time in milliseconds at which a key expires.";
        "wait"         3 SCRIPT     NO_KEY     "3.0.0"  standalone::wait,     "Waits for replicas: there are none.";
        "dump"         2 LOOK       KEY        "2.6.0"  dumping::dump,        "Returns a value in the format of Redis' files.";
        "restore"     -4 WRITE      KEY        "2.6.0"  dumping::restore,     "Creates a key from what DUMP returned.";
        "sort"        -2 WRITE      SORTED     "1.0.0"  sort::sort,           "Sorts a list, a set or a sorted set.";
        "sort_ro"     -2 READ       SORTED     "7.0.0"  sort::sort_ro,        "Sorts without storing.";
        "object"      -2 LOOK       KEY_SECOND "2.2.3"  subcommand [keys::of_object], "Tells how a value is stored.";
    };

    const TRANSACTIONS: &'static [Command<M>] = commands! { "transactions":
        "multi"    1 CONTROL NO_KEY "1.2.0" transactions::multi,    "Begins a transaction.";
        "exec"     1 CONTROL NO_KEY "1.2.0" transactions::exec,     "Runs the commands of a transaction as one.";
        "discard"  1 CONTROL NO_KEY "2.0.0" transactions::discard,  "Drops a transaction.";
        "watch"   -2 MARKING KEYS   "2.2.0" transactions::watch,    "Lets EXEC do nothing if one of the keys changes before.";
        "unwatch"  1 FENCED  NO_KEY "2.2.0" transactions::unwatch,  "Forgets the watched keys.";
    };

    const CONNECTION: &'static [Command<M>] = commands! { "connection":
        "ping"   -1 LINK NO_KEY "1.0.0" connection::ping,   "Answers.";
        "echo"    2 LINK NO_KEY "1.0.0" connection::echo,   "Returns its argument.";
        "hello"  -1 DOOR NO_KEY "6.0.0" connection::hello,  "Chooses the version of the protocol.";
        "auth"   -2 DOOR NO_KEY "1.0.0" connection::auth,   "Says the password.";
        "select"  2 LINK NO_KEY "1.0.0" connection::select, "Chooses the database.";
        "quit"   -1 EXIT NO_KEY "1.0.0" connection::quit,   "Ends the connection.";
        "reset"   1 EXIT NO_KEY "6.2.0" connection::reset,  "Makes the connection as good as new.";
        "client" -2 PRIVATE NO_KEY "2.4.0" subcommand [clients::subcommands], "About this connection and the others.";
    };

    const SERVER: &'static [Command<M>] = commands! { "server":
        "dbsize"    1 READ_FAST NO_KEY     "1.0.0"  keys::dbsize,            "Counts the keys.";
        "flushdb"  -1 FLUSH     NO_KEY     "1.0.0"  keys::flushdb,           "Deletes the keys of the database.";
        "flushall" -1 FLUSH     NO_KEY     "1.0.0"  keys::flushall,          "Deletes the keys of all databases.";
        "info"     -1 PLAIN     NO_KEY     "1.0.0"  info::info,              "Tells how the server and the rack are doing.";
        "acl"      -2 PLAIN     NO_KEY     "6.0.0"  subcommand [acl::subcommands],       "Keeps the users.";
        "config"   -2 ADMIN     NO_KEY     "2.0.0"  subcommand [configuration::subcommands], "Shows settings.";
        "command"  -1 PLAIN     NO_KEY     "2.8.13" introspect::command [introspect::subcommands], "Describes the commands.";
        "slowlog"  -2 ADMIN     NO_KEY     "2.2.12" subcommand [slowlog::subcommands],   "Keeps the commands that took long.";
        "monitor"   1 ALONE     NO_KEY     "1.0.0"  monitor::monitor,        "Shows the commands that this node runs.";
        "latency"  -2 ADMIN     NO_KEY     "2.8.13" subcommand [latency::subcommands],   "Tells how long commands take.";
        "role"      1 FENCED    NO_KEY     "2.8.12" standalone::role,        "Returns the role: a master.";
        "replicaof" 3 ADMIN     NO_KEY     "5.0.0"  standalone::replicaof,   "Stays what it is: not a replica.";
        "slaveof"   3 ADMIN     NO_KEY     "1.0.0"  standalone::replicaof,   "Stays what it is: not a replica.";
        "failover" -1 ADMIN     NO_KEY     "6.2.0"  standalone::failover,    "Fails: there are no replicas.";
        "swapdb"    3 SWAP      NO_KEY     "4.0.0"  standalone::swapdb,      "Swaps two databases.";
        "module"   -2 ADMIN     NO_KEY     "4.0.0"  subcommand [standalone::of_module],  "Lists the modules: none.";
        "debug"    -2 ADMIN     NO_KEY     "1.0.0"  standalone::debug,       "Is not allowed.";
        "shutdown" -1 SHUTDOWN  NO_KEY     "1.0.0"  standalone::shutdown,    "Tells how to end the server.";
        "lolwut"   -1 READ_FAST NO_KEY     "5.0.0"  standalone::lolwut,      "Draws the rack.";
        "cluster"  -2 PLAIN     NO_KEY     "3.0.0"  subcommand [standalone::of_cluster], "Fails: this is no cluster.";
        "readonly"  1 LINK      NO_KEY     "3.0.0"  standalone::no_cluster,  "Fails: this is no cluster.";
        "readwrite" 1 LINK      NO_KEY     "3.0.0"  standalone::no_cluster,  "Fails: this is no cluster.";
        "asking"    1 LINK      NO_KEY     "3.0.0"  standalone::no_cluster,  "Fails: this is no cluster.";
        "time"      1 FAST      NO_KEY     "2.6.0"  connection::time,        "Returns the server's time.";
        "save"        1 ALONE     NO_KEY     "1.0.0"  persistence::save,         "Writes a snapshot of one moment to a file; the rack waits.";
        "bgsave"     -1 ADMIN     NO_KEY     "1.0.0"  persistence::bgsave,       "Begins to write a snapshot to a file.";
        "lastsave"    1 RESTING   NO_KEY     "1.0.0"  persistence::lastsave,     "Returns when the last snapshot was written.";
        "memory"   -2 READ      KEY_SECOND "4.0.0"  subcommand [standalone::of_memory], "Tells how many bytes a key takes.";
    };
}
