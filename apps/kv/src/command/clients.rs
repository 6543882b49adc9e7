//! CLIENT: this connection and the others.

use std::net::SocketAddr;

use super::{Call, Failure, Outcome, SYNTAX, Subcommand, help, standalone, tracking};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::server::registry::Client;
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
            ("pause", 3..=4, standalone::pause),
            ("unpause", 2..=2, standalone::unpause),
            ("getredir", 2..=2, tracking::getredir),
            ("tracking", 3..=usize::MAX, tracking::tracking),
            ("trackinginfo", 2..=2, tracking::trackinginfo),
            ("caching", 3..=3, tracking::caching),
            ("unblock", 3..=4, tracking::unblock),
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
    let catalog = call.shared.control.users.catalog();
    call.session.client.line(catalog, &mut line);
    line.push('\n');
    call.reply.text(&line);
    Ok(())
}

fn list<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut filter = Filter::default();
    match call.args.len() {
        2 => {}
        4 if call.args.is(2, "type") => filter.kind = Some(kind(call.word(3))?),
        n if n > 3 && call.args.is(2, "id") => {
            let ids = call.args.from(3).map(parse_i64).collect::<Option<Vec<_>>>();
            filter.ids = Some(ids.ok_or("ERR Invalid client ID")?);
        }
        _ => return Err(SYNTAX.into()),
    }
    let catalog = call.shared.control.users.catalog();
    let mut lines = String::new();
    for client in call.shared.registry.list() {
        if filter.fits(&client) {
            client.line(catalog, &mut lines);
            lines.push('\n');
        }
    }
    call.reply.text(&lines);
    Ok(())
}

/// Which connections are meant. What is not given fits all.
#[derive(Default)]
struct Filter<'a> {
    ids: Option<Vec<i64>>,
    addr: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    kind: Option<&'static str>,
}

impl Filter<'_> {
    fn fits(&self, client: &Client) -> bool {
        let is = |addr: SocketAddr, word: &[u8]| addr.to_string().as_bytes() == word;
        let ids = self.ids.as_ref();
        ids.is_none_or(|ids| ids.contains(&(client.id as i64)))
            && self.addr.is_none_or(|addr| is(client.peer, addr))
            && self.local.is_none_or(|addr| is(client.local, addr))
            && self.user.is_none_or(|user| client.labels().user == user)
            && self.kind.is_none_or(|kind| client.kind() == kind)
    }
}

/// A type of clients; there are no masters and no replicas.
fn kind(word: &[u8]) -> Result<&'static str, Failure> {
    let kinds = ["normal", "pubsub", "master", "slave", "replica"];
    let known = |kind: &&&str| word.eq_ignore_ascii_case(kind.as_bytes());
    kinds.iter().find(known).copied().ok_or_else(|| {
        let word = &word[..word.len().min(LABEL)];
        [b"ERR Unknown client type '", word, b"'"].concat().into()
    })
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

/// CLIENT KILL addr, or CLIENT KILL with filters.
fn kill<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let old_form = call.args.len() == 3;
    let mut filter = Filter::default();
    // The old form may name the caller; filters spare it unless they say otherwise.
    let mut spared = !old_form;
    if old_form {
        filter.addr = Some(call.word(2));
    } else {
        for i in (2..call.args.len()).step_by(2) {
            let value = call.args.get(i + 1).ok_or(SYNTAX)?;
            kill_filter(call, i, value, &mut filter, &mut spared)?;
        }
    }
    let own = call.session.client.id;
    let mut killed = 0;
    for client in call.shared.registry.list() {
        if !filter.fits(&client) || (spared && client.id == own) {
            continue;
        }
        killed += 1;
        if client.id == own {
            call.session.closing = true;
        } else {
            client.kill();
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

/// The filter that the word at `i` names.
fn kill_filter<'a, M: Memory>(
    call: &Call<'a, '_, M>,
    i: usize,
    value: &'a [u8],
    filter: &mut Filter<'a>,
    spared: &mut bool,
) -> Outcome {
    if call.args.is(i, "id") {
        let id = parse_i64(value).filter(|id| *id > 0);
        filter.ids = Some(vec![id.ok_or("ERR client-id should be greater than 0")?]);
    } else if call.args.is(i, "addr") {
        filter.addr = Some(value);
    } else if call.args.is(i, "laddr") {
        filter.local = Some(value);
    } else if call.args.is(i, "type") {
        filter.kind = Some(kind(value)?);
    } else if call.args.is(i, "user") {
        if call.shared.control.users.get(value).is_none() {
            let name = &value[..value.len().min(LABEL)];
            return Err([b"ERR No such user '", name, b"'"].concat().into());
        }
        filter.user = Some(value);
    } else if call.args.is(i, "skipme") {
        *spared = match value {
            word if word.eq_ignore_ascii_case(b"yes") => true,
            word if word.eq_ignore_ascii_case(b"no") => false,
            _ => return Err(SYNTAX.into()),
        };
    } else {
        return Err(SYNTAX.into());
    }
    Ok(())
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
