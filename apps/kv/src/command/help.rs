//! HELP of the commands that have subcommands: how each is called and what it does.

use super::{Call, Outcome};
use crate::memory::Memory;

/// A subcommand: its name, what follows it, and what it does, a line each.
type Entry = (&'static str, &'static str, &'static [&'static str]);

/// The texts, by command.
const TEXTS: &[(&str, &[Entry])] = &[
    ("acl", ACL),
    ("client", CLIENT),
    ("command", COMMAND),
    ("config", CONFIG),
    ("function", FUNCTION),
    ("latency", LATENCY),
    ("memory", MEMORY),
    ("object", OBJECT),
    ("pubsub", PUBSUB),
    ("script", SCRIPT),
    ("slowlog", SLOWLOG),
];

const PUBSUB: &[Entry] = &[
    (
        "channels",
        "[<pattern>]",
        &["Return the channels to which clients of the rack have subscribed."],
    ),
    ("numpat", "", &["Return the number of patterns."]),
    (
        "numsub",
        "[<channel> ...]",
        &["Return how many clients of the rack have subscribed to each channel."],
    ),
    (
        "shardchannels",
        "[<pattern>]",
        &["Return the shard channels to which clients of the rack have subscribed."],
    ),
    (
        "shardnumsub",
        "[<channel> ...]",
        &["Return how many clients of the rack have subscribed to each shard channel."],
    ),
];

const ACL: &[Entry] = &[
    (
        "cat",
        "[<category>]",
        &["List the categories, or the commands of one."],
    ),
    (
        "deluser",
        "<username> [<username> ...]",
        &["Remove users, and end their connections."],
    ),
    (
        "dryrun",
        "<username> <command> [<arg> ...]",
        &["Tell whether a user may run a command, without running it."],
    ),
    (
        "genpass",
        "[<bits>]",
        &["Return a random password of so many bits (default: 256)."],
    ),
    ("getuser", "<username>", &["Return a user's rules."]),
    ("list", "", &["Return all users, a line of rules each."]),
    ("load", "", &["Read the users from the ACL file again."]),
    (
        "log",
        "[<count> | RESET]",
        &["Return the last commands and passwords that were refused, or forget them."],
    ),
    ("save", "", &["Write the users to the ACL file."]),
    (
        "setuser",
        "<username> [<rule> ...]",
        &["Make a user, or change one: the rules apply from left to right."],
    ),
    ("users", "", &["Return the names of all users."]),
    (
        "whoami",
        "",
        &["Return the name of this connection's user."],
    ),
];

const CLIENT: &[Entry] = &[
    (
        "caching",
        "(YES|NO)",
        &["Let the keys of the next command be tracked, or not."],
    ),
    ("getname", "", &["Return the name of this connection."]),
    (
        "getredir",
        "",
        &["Return the connection that gets the invalidations of this one."],
    ),
    ("id", "", &["Return the number of this connection."]),
    ("info", "", &["Describe this connection, as LIST does."]),
    (
        "kill",
        "<ip:port>",
        &["End the connection that comes from an address."],
    ),
    (
        "kill",
        "<filter> <value> [<filter> <value> ...]",
        &[
            "End the connections that all filters fit:",
            "ID, ADDR, LADDR, USER, TYPE (NORMAL|MASTER|REPLICA|PUBSUB);",
            "SKIPME (YES|NO) says whether this one is spared (default: yes).",
        ],
    ),
    (
        "list",
        "[TYPE <type> | ID <id> [<id> ...]]",
        &["Describe connections, a line each."],
    ),
    (
        "no-evict",
        "(ON|OFF)",
        &["Accepted: connections are not evicted here."],
    ),
    (
        "no-touch",
        "(ON|OFF)",
        &["Accepted: times of use are not kept here."],
    ),
    (
        "pause",
        "<milliseconds> [WRITE|ALL]",
        &["Let the commands of all connections, or those that write, wait."],
    ),
    (
        "reply",
        "(ON|OFF|SKIP)",
        &["Send replies, none, or none to the next command."],
    ),
    (
        "setinfo",
        "(LIB-NAME|LIB-VER) <value>",
        &["Say which library this connection uses."],
    ),
    ("setname", "<name>", &["Name this connection."]),
    (
        "tracking",
        "(ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix>] [OPTIN] [OPTOUT] [NOLOOP]",
        &["Tell the client when keys that it has read change."],
    ),
    (
        "trackinginfo",
        "",
        &["Describe the tracking of this connection."],
    ),
    (
        "unblock",
        "<id> [TIMEOUT|ERROR]",
        &["End the wait of a connection that is blocked."],
    ),
    ("unpause", "", &["End a pause."]),
];

const COMMAND: &[Entry] = &[
    ("count", "", &["Return how many commands there are."]),
    (
        "docs",
        "[<name> ...]",
        &["Tell what commands do; all if none is named."],
    ),
    (
        "getkeys",
        "<command> [<arg> ...]",
        &["Return the keys in a command."],
    ),
    (
        "getkeysandflags",
        "<command> [<arg> ...]",
        &["Return the keys in a command, and how it uses each."],
    ),
    (
        "info",
        "[<name> ...]",
        &["Describe commands; all if none is named."],
    ),
    (
        "list",
        "[FILTERBY (ACLCAT <category> | PATTERN <pattern> | MODULE <name>)]",
        &["Return the names of commands."],
    ),
];

const CONFIG: &[Entry] = &[
    (
        "get",
        "<pattern> [<pattern> ...]",
        &["Return the settings whose names match."],
    ),
    ("resetstat", "", &["Begin the counts of INFO anew."]),
    (
        "rewrite",
        "",
        &["Always an error: there is no configuration file."],
    ),
    (
        "set",
        "<setting> <value> [<setting> <value> ...]",
        &["Change settings, all or none."],
    ),
];

const LATENCY: &[Entry] = &[
    ("doctor", "", &["Return a report for people."]),
    (
        "histogram",
        "[<command> ...]",
        &["Return how long commands took."],
    ),
    ("graph", "<event>", &["Draw the samples of an event."]),
    ("history", "<event>", &["Return the samples of an event."]),
    ("latest", "", &["Return the last sample of every event."]),
    ("reset", "[<event> ...]", &["Forget samples."]),
];

const MEMORY: &[Entry] = &[
    ("doctor", "", &["Return a report for people."]),
    (
        "malloc-stats",
        "",
        &["Return what the allocator tells of itself: nothing here."],
    ),
    ("purge", "", &["Give memory back that is not in use."]),
    ("stats", "", &["Return where memory goes."]),
    (
        "usage",
        "<key> [SAMPLES <count>]",
        &["Return the bytes that a key and its value take."],
    ),
];

const OBJECT: &[Entry] = &[
    ("encoding", "<key>", &["Return how a value is stored."]),
    ("freq", "<key>", &["Return how often a key is used."]),
    (
        "idletime",
        "<key>",
        &["Return the seconds since a key was used: 0 here."],
    ),
    (
        "refcount",
        "<key>",
        &["Return how often a value is referred to: 1 here."],
    ),
];

const SLOWLOG: &[Entry] = &[
    (
        "get",
        "[<count>]",
        &[
            "Return the last slow commands (default: 10; -1: all), each with its number,",
            "Unix time, microseconds, words, the client's address and name.",
        ],
    ),
    ("len", "", &["Return how many slow commands are kept."]),
    ("reset", "", &["Forget them."]),
];

const FUNCTION: &[Entry] = &[
    (
        "delete",
        "<library-name>",
        &["Let the rack forget a library."],
    ),
    (
        "flush",
        "[ASYNC|SYNC]",
        &["Let the rack forget all libraries, at once in either mode."],
    ),
    (
        "dump",
        "",
        &["Return a payload of all libraries, as Redis 7 takes it."],
    ),
    (
        "kill",
        "",
        &["End the functions that this node has run for long, if they have not written."],
    ),
    (
        "list",
        "[LIBRARYNAME <pattern>] [WITHCODE]",
        &["Return the libraries and their functions."],
    ),
    (
        "load",
        "[REPLACE] <code>",
        &["Let the rack know a library, which registers its functions."],
    ),
    (
        "restore",
        "<payload> [FLUSH|APPEND|REPLACE]",
        &[
            "Let the rack know the libraries of a payload: instead of all others, beside them, or",
            "instead of those of the same names.",
        ],
    ),
    (
        "stats",
        "",
        &["Return the function that this node runs, and how many there are."],
    ),
];

const SCRIPT: &[Entry] = &[
    (
        "exists",
        "<sha1> [<sha1> ...]",
        &["Tell of each script whether the rack knows it."],
    ),
    (
        "flush",
        "[ASYNC|SYNC]",
        &["Let the rack forget all scripts, at once in either mode."],
    ),
    (
        "kill",
        "",
        &["End the scripts that this node has run for long, if they have not written."],
    ),
    (
        "load",
        "<script>",
        &["Let the rack know a script without running it."],
    ),
];

/// HELP of every command that has subcommands.
pub(super) fn help<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let lines = lines(
        call.command.name,
        call.command.subcommands.iter().map(|(name, ..)| *name),
    );
    call.reply.array(lines.len());
    lines.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

/// The lines for a command with these subcommands.
fn lines(command: &str, subcommands: impl Iterator<Item = &'static str>) -> Vec<String> {
    let texts = TEXTS.iter().find(|(name, _)| *name == command);
    let texts = texts.map_or(&[][..], |(_, entries)| entries);
    let command = command.to_uppercase();
    let head = format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let mut lines = vec![head];
    let mut names: Vec<_> = subcommands.filter(|name| *name != "help").collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let entries: Vec<_> = texts.iter().filter(|(entry, ..)| *entry == name).collect();
        if entries.is_empty() {
            lines.push(name.to_uppercase());
        }
        for (_, rest, text) in entries {
            lines.push(
                format!("{} {rest}", name.to_uppercase())
                    .trim_end()
                    .to_owned(),
            );
            lines.extend(text.iter().map(|line| format!("    {line}")));
        }
    }
    lines.push("HELP".to_owned());
    lines.push("    Print this.".to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn every_subcommand_is_told_once_with_what_it_does() {
        let lines = lines("config", ["set", "get", "get", "help"].into_iter());
        let names: Vec<_> = lines.iter().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(lines[1], "GET <pattern> [<pattern> ...]");
        assert!(lines[2].starts_with("    Return"));
        assert_eq!(lines.last().unwrap(), "    Print this.");
    }
}
