//! ACL: the users.

use std::sync::Arc;

use super::{Call, Failure, Outcome, Subcommand, help, wrong_count};
use crate::acl::{self, CATEGORIES, Denied, Selector, User, apply, unlogged};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::reply::Reply;

/// Bits of a password that GENPASS makes, unless told, and at most.
const PASSWORD_BITS: (i64, i64) = (256, 4096);
/// Refusals that LOG shows unless told.
const LOG_SHOWN: usize = 10;

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("whoami", 2..=2, whoami),
            ("list", 2..=2, list),
            ("users", 2..=2, users),
            ("getuser", 3..=3, getuser),
            ("setuser", 3..=usize::MAX, setuser),
            ("deluser", 3..=usize::MAX, deluser),
            ("cat", 2..=3, cat),
            ("dryrun", 4..=usize::MAX, dryrun),
            ("genpass", 2..=3, genpass),
            ("log", 2..=3, log),
            ("load", 2..=2, load),
            ("save", 2..=2, save),
            ("help", 2..=2, help),
        ]
    }
}

fn whoami<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.bulk(&call.session.user.name);
    Ok(())
}

fn list<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let users = call.shared.control.users.all();
    call.reply.array(users.len());
    for user in users.values() {
        call.reply.bulk(&acl::line(user));
    }
    Ok(())
}

fn users<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let users = call.shared.control.users.all();
    call.reply.array(users.len());
    users.keys().for_each(|name| call.reply.bulk(name));
    Ok(())
}

fn getuser<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let Some(user) = call.shared.control.users.get(call.word(2)) else {
        call.reply.nil_array();
        return Ok(());
    };
    let reply = &mut call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let flags = acl::flags(&user);
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords.len());
    user.passwords.iter().for_each(|hash| reply.bulk(hash));
    selector(&user.base, reply);
    reply.bulk(b"selectors");
    reply.array(user.further.len());
    for further in &user.further {
        reply.map(3);
        selector(further, reply);
    }
    Ok(())
}

fn selector(selector: &Selector, reply: &mut Reply<'_>) {
    for (name, value) in [
        ("commands", acl::commands(selector).into_bytes()),
        ("keys", acl::keys(selector)),
        ("channels", acl::channels(selector)),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(&value);
    }
}

fn setuser<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let name = call.word(2);
    if name
        .iter()
        .any(|byte| *byte == 0 || byte.is_ascii_whitespace())
    {
        return Err("ERR Usernames can't contain spaces or null characters".into());
    }
    let words: Vec<_> = call.args.from(3).collect();
    let shared = call.shared;
    shared
        .control
        .users
        .change(&shared.store, |catalog, users| {
            let had = users.get(name).map(|user| (**user).clone());
            let mut user = had.unwrap_or_else(|| User::new(name));
            apply(&mut user, catalog, &words).map_err(|why| Failure::from(format!("ERR {why}")))?;
            users.insert(name.to_vec(), Arc::new(user));
            Ok(())
        })?;
    shared.end_strangers();
    call.reply.ok();
    Ok(())
}

fn deluser<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let names: Vec<_> = call.args.from(2).collect();
    if names.contains(&acl::DEFAULT) {
        return Err("ERR The 'default' user cannot be removed".into());
    }
    let shared = call.shared;
    let removed = shared.control.users.change(&shared.store, |_, users| {
        Ok(names
            .iter()
            .filter(|name| users.remove(**name).is_some())
            .count())
    })?;
    shared.end_strangers();
    call.reply.count(removed);
    Ok(())
}

fn cat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() == 2 {
        call.reply.array(CATEGORIES.len());
        CATEGORIES
            .iter()
            .for_each(|name| call.reply.bulk(name.as_bytes()));
        return Ok(());
    }
    let word = call.word(2);
    let bit = acl::category(word).ok_or_else(|| {
        Failure::from(
            [
                b"ERR Unknown category '",
                &word[..word.len().min(128)],
                b"'",
            ]
            .concat(),
        )
    })?;
    let catalog = call.shared.control.users.catalog();
    // Of a command with subcommands only these.
    let units = catalog
        .units
        .iter()
        .enumerate()
        .filter(|(at, unit)| unit.categories & bit != 0 && catalog.family(*at).is_empty());
    let names: Vec<_> = units.map(|(_, unit)| unit.name.as_str()).collect();
    call.reply.array(names.len());
    names
        .iter()
        .for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

fn dryrun<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (users, name, args) = (
        &call.shared.control.users,
        call.word(2),
        call.args.without(3),
    );
    let quoted = |before: &str, word: &[u8], after: &str| -> Failure {
        [
            before.as_bytes(),
            &word[..word.len().min(128)],
            after.as_bytes(),
        ]
        .concat()
        .into()
    };
    let user = users
        .get(name)
        .ok_or_else(|| quoted("ERR User '", name, "' not found"))?;
    let position = call.shared.commands.find(args.at(0));
    let position = position.ok_or_else(|| quoted("ERR Command '", args.at(0), "' not found"))?;
    let command = call.shared.commands.at(position);
    if !command.takes(args.len()) {
        return Err(wrong_count(command.name));
    }
    match unlogged(users.catalog(), &user, command, position, args) {
        Ok(()) => call.reply.ok(),
        Err(denied) => {
            let (what, object, kind): (_, &[u8], _) = match &denied {
                Denied::Command(name) => ("run", name.as_bytes(), "command"),
                Denied::Key(key) => ("access", key, "key"),
                Denied::Channel(channel) => ("access", channel, "channel"),
            };
            let mut text = format!("This user has no permissions to {what} the '").into_bytes();
            text.extend_from_slice(object);
            text.extend(format!("' {kind}").bytes());
            call.reply.bulk(&text);
        }
    }
    Ok(())
}

fn genpass<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (usual, most) = PASSWORD_BITS;
    let bits = if call.args.len() == 3 {
        call.integer(2)?
    } else {
        usual
    };
    if bits <= 0 || bits > most {
        return Err(
            "ERR ACL GENPASS argument must be the number of bits for the output password, \
                    a positive number up to 4096"
                .into(),
        );
    }
    let digits = bits.unsigned_abs().div_ceil(4) as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes)
        .map_err(|_| "ERR the system has no random numbers")?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    call.reply.bulk(&text.as_bytes()[..digits]);
    Ok(())
}

fn log<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let users = &call.shared.control.users;
    let mut count = LOG_SHOWN;
    if call.args.len() == 3 {
        if call.args.is(2, "reset") {
            users.forget_refusals();
            call.reply.ok();
            return Ok(());
        }
        let asked = parse_i64(call.word(2)).ok_or(super::NOT_INTEGER)?;
        count = usize::try_from(asked).unwrap_or(0);
    }
    let entries = users.refusals(count);
    let reply = &mut call.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.map(7);
        reply.bulk(b"count");
        reply.int(entry.count as i64);
        let age = format!("{:.3}", entry.at.elapsed().as_secs_f64());
        for (name, value) in [
            ("reason", entry.reason.as_bytes()),
            ("context", entry.context.as_bytes()),
            ("object", &entry.object),
            ("username", &entry.user),
            ("age-seconds", age.as_bytes()),
            ("client-info", entry.client.as_bytes()),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(value);
        }
    }
    Ok(())
}

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
    users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration \
    file set) in order to store users in the Redis configuration.";

fn load<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let shared = call.shared;
    shared.control.users.file().ok_or(NO_FILE)?;
    shared.control.users.load(&shared.store, false)?;
    shared.end_strangers();
    call.reply.ok();
    Ok(())
}

fn save<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let users = &call.shared.control.users;
    users.file().ok_or(NO_FILE)?;
    users
        .save()
        .map_err(|error| format!("ERR There was an error trying to save the ACLs: {error}"))?;
    call.reply.ok();
    Ok(())
}
