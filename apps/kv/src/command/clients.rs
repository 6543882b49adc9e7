//! CLIENT: this connection and the others.

use super::{Call, Failure, Outcome, SYNTAX, Subcommand, help};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::server::session::Speech;

/// Bytes in a name that a client gives itself.
const LABEL: usize = 256;

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("id", 2..=2, id),
            ("info", 2..=2, info),
            ("list", 2..=usize::MAX, list),
            ("getname", 2..=2, getname),
            ("setname", 3..=3, setname),
            ("setinfo", 4..=4, setinfo),
            ("kill", 3..=usize::MAX, kill),
            ("reply", 3..=3, speech),
            ("no-evict", 3..=3, switch),
            ("no-touch", 3..=3, switch),
            ("getredir", 2..=2, getredir),
            ("help", 2..=2, help),
        ]
    }
}

/// A name that can stand in CLIENT LIST.
pub(super) fn label(word: &[u8]) -> Result<Vec<u8>, Failure> {
    if word.len() > LABEL || !word.iter().all(u8::is_ascii_graphic) {
        return Err(
            "ERR Client names cannot contain spaces, newlines or special characters.".into(),
        );
    }
    Ok(word.to_vec())
}

fn id<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.int(call.session.client.id as i64);
    Ok(())
}

fn info<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut line = String::new();
    call.session.client.line(&mut line);
    line.push('\n');
    call.reply.text(&line);
    Ok(())
}

fn list<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let ids = match call.args.len() {
        2 => None,
        4 if call.args.is(2, "type") => None,
        n if n > 3 && call.args.is(2, "id") => Some(
            (3..n)
                .map(|i| call.integer(i))
                .collect::<Result<Vec<_>, _>>()?,
        ),
        _ => return Err(SYNTAX.into()),
    };
    let none = call.args.is(2, "type") && !is_normal(call.word(3))?;
    let mut lines = String::new();
    for client in call.shared.registry.list() {
        if !none
            && ids
                .as_ref()
                .is_none_or(|ids| ids.contains(&(client.id as i64)))
        {
            client.line(&mut lines);
            lines.push('\n');
        }
    }
    call.reply.text(&lines);
    Ok(())
}

fn getname<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let name = call.session.client.labels().name.clone();
    call.reply.maybe((!name.is_empty()).then_some(&name));
    Ok(())
}

fn setname<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.session.client.labels().name = label(call.word(2))?;
    call.reply.ok();
    Ok(())
}

fn setinfo<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let value = label(call.word(3))?;
    let mut labels = call.session.client.labels();
    if call.args.is(2, "lib-name") {
        labels.lib_name = value;
    } else if call.args.is(2, "lib-ver") {
        labels.lib_ver = value;
    } else {
        return Err("ERR Unrecognized option".into());
    }
    drop(labels);
    call.reply.ok();
    Ok(())
}

/// CLIENT KILL addr, or CLIENT KILL with filters ID, ADDR, TYPE and SKIPME.
fn kill<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let old_form = call.args.len() == 3;
    // The old form may name the caller; filters spare it unless they say otherwise.
    let (mut id, mut addr, mut none, mut spared) = (None, None, false, !old_form);
    if old_form {
        addr = Some(call.word(2));
    }
    let mut i = if old_form { call.args.len() } else { 2 };
    while i < call.args.len() {
        let value = call.args.get(i + 1).ok_or(SYNTAX)?;
        if call.args.is(i, "id") {
            id = Some(parse_i64(value).ok_or("ERR client-id should be greater than 0")?);
        } else if call.args.is(i, "addr") {
            addr = Some(value);
        } else if call.args.is(i, "type") {
            none = !is_normal(value)?;
        } else if call.args.is(i, "skipme") {
            spared = match value {
                word if word.eq_ignore_ascii_case(b"yes") => true,
                word if word.eq_ignore_ascii_case(b"no") => false,
                _ => return Err(SYNTAX.into()),
            };
        } else {
            return Err(SYNTAX.into());
        }
        i += 2;
    }
    let mut killed = 0;
    for client in call.shared.registry.list() {
        let fits = id.is_none_or(|id| client.id as i64 == id)
            && addr.is_none_or(|addr| client.peer.to_string().as_bytes() == addr);
        if none || !fits || (spared && client.id == call.session.client.id) {
            continue;
        }
        killed += 1;
        if client.id == call.session.client.id {
            call.session.closing = true
        } else {
            client.kill()
        }
    }
    call.shared.wake_all();
    match (old_form, killed) {
        (false, n) => call.reply.int(n),
        (true, 0) => return Err("ERR No such client".into()),
        (true, _) => call.reply.ok(),
    }
    Ok(())
}

/// Whether clients of this type are those that there are: every one is "normal".
fn is_normal(word: &[u8]) -> Result<bool, Failure> {
    let types: [&[u8]; 5] = [b"normal", b"master", b"slave", b"replica", b"pubsub"];
    match types.iter().position(|t| word.eq_ignore_ascii_case(t)) {
        Some(nth) => Ok(nth == 0),
        None => {
            let mut text = b"ERR Unknown client type '".to_vec();
            text.extend_from_slice(word);
            text.push(b'\'');
            Err(text.into())
        }
    }
}

fn speech<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.is(2, "on") {
        call.session.speech = Speech::On;
        call.reply.ok();
    } else if call.args.is(2, "off") {
        call.session.speech = Speech::Off;
    } else if call.args.is(2, "skip") {
        if call.session.speech != Speech::Off {
            call.session.speech = Speech::SkipNext;
        }
    } else {
        return Err(SYNTAX.into());
    }
    Ok(())
}

/// Nothing is ever evicted, and times of use are not kept: on and off are the same.
fn switch<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if !call.args.is(2, "on") && !call.args.is(2, "off") {
        return Err(SYNTAX.into());
    }
    call.reply.ok();
    Ok(())
}

fn getredir<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.int(-1);
    Ok(())
}
