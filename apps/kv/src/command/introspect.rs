//! COMMAND: the table, for clients that want to know it.

use super::{Call, Command, Flags, Outcome, Subcommand, help, subcommand};
use crate::acl::{CATEGORIES, Unit, category};
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
            describe(command, &catalog.units[at], &mut call.reply);
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
            ("list", 2..=5, list),
            ("getkeys", 3..=usize::MAX, getkeys),
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
                describe(command, &catalog.units[at], &mut call.reply);
            }
            None => call.reply.nil_array(),
        }
    }
    Ok(())
}

/// The ten elements of a command's description.
fn describe<M: Memory>(command: &Command<M>, unit: &Unit, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.int(i64::from(command.arity));
    let movable = command.keys.is_movable();
    let flags = command.flags.with(Flags::MOVABLE, movable);
    names(&FLAG_NAMES, flags, reply);
    let (first, last, step) = command.keys.fixed();
    reply.int(first as i64);
    reply.int(i64::from(last));
    reply.int(step as i64);
    let categories = CATEGORIES.iter().enumerate();
    let within: Vec<_> = categories
        .filter(|(at, _)| unit.categories >> at & 1 == 1)
        .collect();
    reply.set(within.len());
    within
        .iter()
        .for_each(|(_, name)| reply.simple(&format!("@{name}")));
    reply.array(0); // tips
    reply.array(0); // key specifications: the three numbers say it all
    reply.array(0); // subcommands
}

fn names(table: &[(Flags, &str)], flags: Flags, reply: &mut Reply<'_>) {
    let set = table.iter().filter(|(flag, _)| flags.has(*flag));
    reply.set(set.clone().count());
    set.for_each(|(_, name)| reply.simple(name));
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

/// COMMAND LIST [FILTERBY PATTERN pattern | ACLCAT category]
fn list<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let by_pattern = call.args.len() == 5 && call.args.is(3, "pattern");
    let by_category = call.args.len() == 5 && call.args.is(3, "aclcat");
    if call.args.len() != 2 && !(call.args.is(2, "filterby") && (by_pattern || by_category)) {
        return Err(super::SYNTAX.into());
    }
    let catalog = call.shared.control.users.catalog();
    let bit = by_category.then(|| category(call.word(4)).unwrap_or(0));
    let in_category = |at: usize| bit.is_none_or(|bit| catalog.units[at].categories & bit != 0);
    let wanted = |(at, command): &(usize, &&Command<M>)| {
        (!by_pattern || glob::matches(call.args.at(4), command.name.as_bytes(), true))
            && in_category(*at)
    };
    let names: Vec<_> = call
        .shared
        .commands
        .all()
        .iter()
        .enumerate()
        .filter(wanted)
        .map(|(_, command)| command.name)
        .collect();
    call.reply.array(names.len());
    names
        .iter()
        .for_each(|name| call.reply.bulk(name.as_bytes()));
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
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}
