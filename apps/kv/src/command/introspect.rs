//! COMMAND: the table, for clients that want to know it.

use super::key_flags::key_flags;
use super::key_words::KeyWords;
use super::{Call, Command, Flags, Outcome, Subcommand, help, subcommand};
use crate::acl::{CATEGORIES, Catalog, Unit, category};
use crate::glob;
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::resp::reply::Reply;

/// How flags are called in Redis.
const FLAG_NAMES: [(Flags, &str); 8] = [
    (Flags::WRITE, "write"),
    (Flags::READ, "readonly"),
    (Flags::FAST, "fast"),
    (Flags::OPEN, "no_auth"),
    (Flags::NOT_QUEUED, "no_multi"),
    (Flags::ADMIN, "admin"),
    (Flags::NOSCRIPT, "noscript"),
    (Flags::MOVABLE, "movablekeys"),
];

pub(super) fn command<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() == 1 {
        let catalog = call.shared.control.users.catalog();
        call.reply.array(call.shared.commands.all().len());
        for (at, command) in call.shared.commands.all().iter().enumerate() {
            describe(command, catalog, at, &mut call.reply);
        }
        return Ok(());
    }
    subcommand(call)
}

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("count", 2..=2, count),
            ("info", 2..=usize::MAX, info),
            ("docs", 2..=usize::MAX, docs),
            ("list", 2..=usize::MAX, list),
            ("getkeys", 3..=usize::MAX, getkeys),
            ("getkeysandflags", 3..=usize::MAX, getkeys),
            ("help", 2..=2, help),
        ]
    }
}

fn count<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.count(call.shared.commands.all().len());
    Ok(())
}

/// Where the commands are in the table that are named by the words from the third on, or all.
fn named<M: Memory>(call: &Call<'_, '_, M>) -> Vec<Option<usize>> {
    let index = &call.shared.commands;
    if call.args.len() == 2 {
        return (0..index.all().len()).map(Some).collect();
    }
    call.args.from(2).map(|name| index.find(name)).collect()
}

fn info<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let commands = named(call);
    let catalog = call.shared.control.users.catalog();
    call.reply.array(commands.len());
    for command in commands {
        match command {
            Some(at) => {
                let command = call.shared.commands.at(at);
                describe(command, catalog, at, &mut call.reply);
            }
            None => call.reply.nil_array(),
        }
    }
    Ok(())
}

/// The ten elements of a command's description.
fn describe<M: Memory>(command: &Command<M>, catalog: &Catalog, at: usize, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.int(i64::from(command.arity));
    let movable = command.keys.is_movable();
    let flags = command.flags.with(Flags::MOVABLE, movable);
    let unit = &catalog.units[at];
    let within = |name: &[u8]| unit.categories & category(name).unwrap_or(0) != 0;
    let mut all: Vec<_> = FLAG_NAMES
        .iter()
        .filter(|(flag, _)| flags.has(*flag))
        .map(|(_, name)| *name)
        .collect();
    all.extend(within(b"blocking").then_some("blocking"));
    all.extend((within(b"pubsub") && command.subcommands.is_empty()).then_some("pubsub"));
    reply.set(all.len());
    all.iter().for_each(|name| reply.simple(name));
    let (first, last, step) = command.keys.fixed();
    reply.int(first as i64);
    reply.int(i64::from(last));
    reply.int(step as i64);
    categories(unit, reply);
    reply.array(0); // tips
    key_specifications(command, reply);
    let family = catalog.family(at);
    reply.array(family.len());
    for unit in family {
        of_subcommand(command, &catalog.units[unit], reply);
    }
}

/// The ten elements of a subcommand's description.
fn of_subcommand<M: Memory>(command: &Command<M>, unit: &Unit, reply: &mut Reply<'_>) {
    let name = unit.name.rsplit('|').next().unwrap_or_default();
    let mut forms = command
        .subcommands
        .iter()
        .filter(|(form, ..)| *form == name);
    let words = forms
        .next()
        .map_or(1..=usize::MAX, |(_, words, _)| words.clone());
    let least = *words.start() as i64;
    let fixed = words.start() == words.end() && forms.next().is_none();
    reply.array(10);
    reply.bulk(unit.name.as_bytes());
    reply.int(if fixed { least } else { -least });
    let admin = category(b"admin").unwrap_or(0);
    let is_admin = unit.categories & admin != 0;
    reply.set(usize::from(is_admin));
    if is_admin {
        reply.simple("admin");
    }
    (0..3).for_each(|_| reply.int(0));
    categories(unit, reply);
    (0..3).for_each(|_| reply.array(0));
}

fn categories(unit: &Unit, reply: &mut Reply<'_>) {
    let all = CATEGORIES.iter().enumerate();
    let within: Vec<_> = all
        .filter(|(at, _)| unit.categories >> at & 1 == 1)
        .collect();
    reply.set(within.len());
    within
        .iter()
        .for_each(|(_, name)| reply.simple(&format!("@{name}")));
}

/// Where the keys are, as clients look for them: one specification, or several.
fn key_specifications<M: Memory>(command: &Command<M>, reply: &mut Reply<'_>) {
    let flags_of = |nth| key_flags(command, Args::new(&[], &[]), nth);
    let counted = |count: usize| (By::Index(count), Find::Counted);
    let one = |at: usize| {
        (
            By::Index(at),
            Find::Range {
                last: 0,
                step: 1,
                limit: 0,
            },
        )
    };
    let specifications = match command.keys {
        KeyWords::Fixed { first: 0, .. } => vec![],
        KeyWords::Fixed { first, last, step } => {
            // The last is counted from the first, or from the end.
            let range = |first: usize| Find::Range {
                last: if last < 0 { last } else { last - first as i32 },
                step,
                limit: 0,
            };
            let second = first + step;
            let several = last < 0 || last as usize >= second;
            // Two that are used differently have a specification each.
            match several && flags_of(0) != flags_of(1) {
                true => vec![one(first), (By::Index(second), range(second))],
                false => vec![(By::Index(first), range(first))],
            }
        }
        KeyWords::Counted { first: 0, count } => vec![counted(count)],
        KeyWords::Counted { first, count } => vec![one(first), counted(count)],
        KeyWords::Streams { from } => {
            let half = Find::Range {
                last: -1,
                step: 1,
                limit: 2,
            };
            vec![(By::Keyword("STREAMS", from), half)]
        }
        KeyWords::Stored | KeyWords::Sorted => vec![one(1), (By::Unknown, Find::Unknown)],
    };
    reply.array(specifications.len());
    for (nth, (by, find)) in specifications.into_iter().enumerate() {
        specification(&flags_of(nth), &by, &find, reply);
    }
}

/// How the first key of a specification is found.
enum By {
    Index(usize),
    /// Behind this word, which is looked for from there on.
    Keyword(&'static str, usize),
    Unknown,
}

/// And the others.
enum Find {
    Range { last: i32, step: usize, limit: i64 },
    Counted,
    Unknown,
}

/// `{flags, begin_search: {type, spec}, find_keys: {type, spec}}`
fn specification(flags: &[&str], by: &By, find: &Find, reply: &mut Reply<'_>) {
    let text = |reply: &mut Reply<'_>, words: &[&str]| {
        words.iter().for_each(|word| reply.bulk(word.as_bytes()));
    };
    reply.map(3);
    text(reply, &["flags"]);
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    text(reply, &["begin_search"]);
    reply.map(2);
    match by {
        By::Index(at) => {
            text(reply, &["type", "index", "spec"]);
            reply.map(1);
            text(reply, &["index"]);
            reply.count(*at);
        }
        By::Keyword(word, from) => {
            text(reply, &["type", "keyword", "spec"]);
            reply.map(2);
            text(reply, &["keyword", word, "startfrom"]);
            reply.count(*from);
        }
        By::Unknown => {
            text(reply, &["type", "unknown", "spec"]);
            reply.map(0);
        }
    }
    text(reply, &["find_keys"]);
    reply.map(2);
    let (kind, numbers) = match find {
        Find::Range { last, step, limit } => (
            "range",
            vec![
                ("lastkey", i64::from(*last)),
                ("keystep", *step as i64),
                ("limit", *limit),
            ],
        ),
        Find::Counted => (
            "keynum",
            vec![("keynumidx", 0), ("firstkey", 1), ("keystep", 1)],
        ),
        Find::Unknown => ("unknown", vec![]),
    };
    text(reply, &["type", kind, "spec"]);
    reply.map(numbers.len());
    for (name, value) in numbers {
        text(reply, &[name]);
        reply.int(value);
    }
}

fn docs<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let commands: Vec<_> = named(call).into_iter().flatten().collect();
    let reply = &mut call.reply;
    reply.map(commands.len());
    for at in commands {
        let command = call.shared.commands.at(at);
        reply.bulk(command.name.as_bytes());
        reply.map(3);
        for (name, value) in [
            ("summary", command.summary),
            ("since", command.since),
            ("group", command.group),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
    }
    Ok(())
}

/// COMMAND LIST [FILTERBY PATTERN pattern | ACLCAT category | MODULE name]
fn list<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let filter = match call.args.len() {
        2 => None,
        5 if call.args.is(2, "filterby") => Some(3),
        _ => return Err(super::SYNTAX.into()),
    };
    let by = |word: &str| filter.is_some_and(|at| call.args.is(at, word));
    let (by_pattern, by_category, by_module) = (by("pattern"), by("aclcat"), by("module"));
    if filter.is_some() && !(by_pattern || by_category || by_module) {
        return Err(super::SYNTAX.into());
    }
    let bit = by_category.then(|| category(call.word(4)).unwrap_or(0));
    // There are no modules.
    let wanted = |unit: &&Unit| {
        !by_module
            && bit.is_none_or(|bit| unit.categories & bit != 0)
            && (!by_pattern || glob::matches(call.args.at(4), unit.name.as_bytes(), true))
    };
    let catalog = call.shared.control.users.catalog();
    let found: Vec<_> = catalog.units.iter().filter(wanted).collect();
    call.reply.array(found.len());
    found
        .iter()
        .for_each(|unit| call.reply.bulk(unit.name.as_bytes()));
    Ok(())
}

fn getkeys<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let args: Args<'_> = call.args.without(2);
    let index = &call.shared.commands;
    let position = index
        .find(call.word(2))
        .ok_or("ERR Invalid command specified")?;
    let command = index.at(position);
    if !command.takes(args.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    let keys: Vec<_> = command.keys.positions(args).map(|i| args.at(i)).collect();
    if keys.is_empty() && !command.keys.is_movable() {
        return Err("ERR The command has no key arguments".into());
    }
    let flags = call.args.is(1, "getkeysandflags");
    call.reply.array(keys.len());
    for (nth, key) in keys.iter().enumerate() {
        if flags {
            call.reply.array(2);
        }
        call.reply.bulk(key);
        if flags {
            let flags = key_flags(command, args, nth);
            call.reply.set(flags.len());
            flags.iter().for_each(|flag| call.reply.simple(flag));
        }
    }
    Ok(())
}
