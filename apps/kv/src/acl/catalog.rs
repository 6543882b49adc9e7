//! What a rule can be about: every command and every subcommand, and the categories they are in.

use crate::command::index::Index;
use crate::command::{Command, Flags};
use crate::memory::Memory;
use crate::resp::args::Args;

/// The categories, in the order of their bits.
pub(crate) const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Categories as bits.
pub(crate) type Categories = u32;

/// The bit of a category; `None` if there is none of that name.
pub(crate) fn category(name: &[u8]) -> Option<Categories> {
    let at = CATEGORIES
        .iter()
        .position(|known| known.as_bytes().eq_ignore_ascii_case(name))?;
    Some(1 << at)
}

fn bits(names: &[&str]) -> Categories {
    names
        .iter()
        .filter_map(|name| category(name.as_bytes()))
        .fold(0, |all, bit| all | bit)
}

/// The categories of a group of commands.
const GROUPS: [(&str, &str); 14] = [
    ("string", "string"),
    ("generic", "keyspace"),
    ("hash", "hash"),
    ("list", "list"),
    ("set", "set"),
    ("sorted-set", "sortedset"),
    ("stream", "stream"),
    ("bitmap", "bitmap"),
    ("hyperloglog", "hyperloglog"),
    ("geo", "geo"),
    ("pubsub", "pubsub"),
    ("scripting", "scripting"),
    ("transactions", "transaction"),
    ("connection", "connection"),
];

/// Categories that follow from a command's flags.
const OF_FLAGS: [(Flags, &[&str]); 3] = [
    (Flags::WRITE, &["write"]),
    (Flags::READ, &["read"]),
    (Flags::ADMIN, &["admin", "dangerous"]),
];

/// Further categories of commands and subcommands.
const ALSO: [(&[&str], &[&str]); 5] = [
    (
        &["command", "wait", "readonly", "readwrite", "asking"],
        &["connection"],
    ),
    (&["flushdb", "flushall", "swapdb", "dbsize"], &["keyspace"]),
    (
        &[
            "flushdb", "flushall", "swapdb", "info", "keys", "sort", "sort_ro", "restore",
            "migrate", "role", "lastsave",
        ],
        &["dangerous"],
    ),
    (&["sort", "sort_ro"], &["list", "set", "sortedset"]),
    (
        &[
            "blpop",
            "brpop",
            "blmove",
            "brpoplpush",
            "blmpop",
            "bzpopmin",
            "bzpopmax",
            "bzmpop",
            "xread",
            "xreadgroup",
        ],
        &["blocking"],
    ),
];

/// Subcommands, and commands, that are about the server though their group or container is not.
const ADMIN: [&str; 10] = [
    "client|kill",
    "client|list",
    "client|pause",
    "client|unpause",
    "client|unblock",
    "client|no-evict",
    "role",
    "lastsave",
    "config",
    "acl",
];
/// Subcommands of those that are not.
const NOT_ADMIN: [&str; 7] = [
    "acl|cat",
    "acl|genpass",
    "acl|whoami",
    "acl|help",
    "config|help",
    "slowlog|help",
    "latency|help",
];

/// A command or a subcommand.
#[derive(Debug)]
pub(crate) struct Unit {
    /// `get`, or `client|kill`.
    pub name: String,
    pub categories: Categories,
}

/// All of them: first the commands in the order of their table, then the subcommands.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub units: Vec<Unit>,
    /// For each command, where its subcommands begin and end among the units.
    families: Vec<std::ops::Range<usize>>,
}

/// Units as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitSet(Vec<u64>);

impl UnitSet {
    pub fn has(&self, unit: usize) -> bool {
        self.0
            .get(unit / 64)
            .is_some_and(|word| word >> (unit % 64) & 1 == 1)
    }

    pub fn put(&mut self, unit: usize, on: bool) {
        if self.0.len() <= unit / 64 {
            self.0.resize(unit / 64 + 1, 0);
        }
        let bit = 1 << (unit % 64);
        match on {
            true => self.0[unit / 64] |= bit,
            false => self.0[unit / 64] &= !bit,
        }
    }
}

impl Catalog {
    pub fn new<M: Memory>(index: &Index<M>) -> Self {
        let mut units: Vec<_> = index
            .all()
            .iter()
            .map(|command| of_command(command))
            .collect();
        let mut families = Vec::new();
        for (i, command) in index.all().iter().enumerate() {
            let first = units.len();
            for (name, ..) in command.subcommands {
                let name = format!("{}|{name}", command.name);
                if units[first..].iter().all(|unit| unit.name != name) {
                    let categories = of_subcommand(&name, command, units[i].categories);
                    units.push(Unit { name, categories });
                }
            }
            families.push(first..units.len());
        }
        Self { units, families }
    }

    /// The units of a command's subcommands.
    pub fn family(&self, command: usize) -> std::ops::Range<usize> {
        self.families.get(command).cloned().unwrap_or_default()
    }

    /// The unit of the command at `position` of the table with these words.
    #[inline]
    pub fn unit(&self, position: usize, args: Args<'_>) -> usize {
        let mut family = self.family(position);
        if family.is_empty() || args.len() < 2 {
            return position;
        }
        let skip = self.units[position].name.len() + 1;
        let named = |unit: &usize| {
            self.units[*unit].name.as_bytes()[skip..].eq_ignore_ascii_case(args.at(1))
        };
        family.find(named).unwrap_or(position)
    }

    /// The unit called `name`, in any case.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.units
            .iter()
            .position(|unit| unit.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

fn group_of<M: Memory>(command: &Command<M>) -> Categories {
    let group = command.group.replace('_', "-");
    GROUPS
        .iter()
        .find(|(name, _)| *name == group)
        .map_or(0, |(_, category)| bits(&[category]))
}

fn of_command<M: Memory>(command: &Command<M>) -> Unit {
    let mut all = group_of(command);
    for (flag, names) in OF_FLAGS {
        if command.flags.has(flag) {
            all |= bits(names);
        }
    }
    for (commands, names) in ALSO {
        if commands.contains(&command.name) {
            all |= bits(names);
        }
    }
    if command.group == "scripting" {
        all &= !bits(&["read", "write"]);
    }
    if command.name == "sort" || command.name == "sort_ro" || command.name == "wait" {
        all &= !bits(&["keyspace"]);
    }
    if ADMIN.contains(&command.name) {
        all |= bits(&["admin", "dangerous"]);
    }
    all |= bits(&[if command.flags.has(Flags::FAST) {
        "fast"
    } else {
        "slow"
    }]);
    Unit {
        name: command.name.to_owned(),
        categories: all,
    }
}

/// A subcommand is slow, as in Redis, and else what its command is.
fn of_subcommand<M: Memory>(name: &str, command: &Command<M>, container: Categories) -> Categories {
    let admin = bits(&["admin", "dangerous"]);
    let mut all = container & !bits(&["fast"]) | bits(&["slow"]) | group_of(command);
    if ADMIN.contains(&name) {
        all |= admin;
    }
    if NOT_ADMIN.contains(&name) {
        all &= !admin;
    }
    if name.ends_with("|help") || name.starts_with("memory|") && name != "memory|usage" {
        all &= !bits(&["read", "write"]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HeapMemory;

    #[test]
    fn units_have_the_categories_of_redis() {
        let catalog = Catalog::new(&Index::<HeapMemory>::new());
        for (name, want) in [
            ("get", &["read", "string", "fast"][..]),
            ("flushall", &["keyspace", "write", "slow", "dangerous"]),
            ("dbsize", &["keyspace", "read", "fast"]),
            ("keys", &["keyspace", "read", "slow", "dangerous"]),
            ("auth", &["fast", "connection"]),
            ("client|id", &["slow", "connection"]),
            ("client|kill", &["admin", "slow", "dangerous", "connection"]),
            ("config|get", &["admin", "slow", "dangerous"]),
            ("acl|whoami", &["slow"]),
            ("acl|setuser", &["admin", "slow", "dangerous"]),
            ("object|encoding", &["keyspace", "read", "slow"]),
            ("memory|usage", &["read", "slow"]),
            ("multi", &["fast", "transaction"]),
        ] {
            let unit = &catalog.units[catalog.find(name.as_bytes()).unwrap()];
            assert_eq!(unit.categories, bits(want), "{name}");
        }
    }
}
