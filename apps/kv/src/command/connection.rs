//! The connection itself: greeting, password, database, leaving.

use super::{Call, Outcome, SYNTAX};
use crate::acl::{Context, DEFAULT};
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::resp::reply::Protocol;
use crate::server::session::Identity;

/// The version of Redis whose behaviour this server goes by.
pub(crate) const REDIS_VERSION: &str = "7.0.0";

pub(super) fn ping<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.session.subscribed.count() != 0
        && call.session.protocol == Protocol::Resp2
        && call.args.len() <= 2
    {
        call.reply.array(2);
        call.reply.bulk(b"pong");
        call.reply.bulk(call.args.at(1));
        return Ok(());
    }
    match call.args.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.args.at(1)),
        _ => return Err(call.wrong_count()),
    }
    Ok(())
}

pub(super) fn echo<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.bulk(call.args.at(1));
    Ok(())
}

/// Lets the client in, if there is such a user now and the password is right.
fn log_in<M: Memory>(call: &mut Call<'_, '_, M>, user: &[u8], password: &[u8]) -> Outcome {
    let users = &call.shared.control.users;
    users.refresh(&call.shared.store)?;
    let generation = users.generation();
    match users.get(user).filter(|user| users.admit(user, password)) {
        Some(user) => {
            call.session.act_as(Identity {
                user,
                trusted: true,
                generation,
            });
            Ok(())
        }
        None => {
            let name = &user[..user.len().min(128)];
            users.log(
                &call.session.client,
                name,
                Context::Client,
                ("auth", b"AUTH"),
                call.shared.control.settings.acl_log_len(),
            );
            Err("WRONGPASS invalid username-password pair or user is disabled.".into())
        }
    }
}

/// Whether the default user needs none.
fn has_no_password<M: Memory>(call: &Call<'_, '_, M>) -> bool {
    let user = call.shared.control.users.get(DEFAULT);
    user.is_some_and(|user| user.nopass)
}

pub(super) fn auth<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    match call.args.len() {
        2 if has_no_password(call) => {
            return Err(
                "ERR AUTH <password> called without any password configured for the default user. \
                        Are you sure your configuration is correct?"
                    .into(),
            );
        }
        2 => log_in(call, DEFAULT, call.args.at(1))?,
        3 => log_in(call, call.args.at(1), call.args.at(2))?,
        _ => return Err(SYNTAX.into()),
    }
    call.reply.ok();
    Ok(())
}

pub(super) fn hello<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut protocol = call.session.protocol;
    if call.args.len() > 1 {
        protocol = match parse_i64(call.word(1)) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err("NOPROTO unsupported protocol version".into()),
            None => return Err("ERR Protocol version is not an integer or out of range".into()),
        };
    }
    let (mut name, mut i) = (None, 2);
    while i < call.args.len() {
        if call.args.is(i, "auth") && i + 2 < call.args.len() {
            log_in(call, call.args.at(i + 1), call.args.at(i + 2))?;
            i += 3;
        } else if call.args.is(i, "setname") && i + 1 < call.args.len() {
            name = Some(super::clients::label(call.args.at(i + 1))?);
            i += 2;
        } else {
            return Err(SYNTAX.into());
        }
    }
    if !call.session.trusted {
        return Err("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
                    <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
                    RESP protocol version at the same time"
            .into());
    }
    if let Some(name) = name {
        call.session.client.labels().name = name;
    }
    call.session.speak(protocol);
    call.reply.protocol = protocol;
    greeting(call);
    Ok(())
}

fn greeting<M: Memory>(call: &mut Call<'_, '_, M>) {
    let proto = if call.session.protocol == Protocol::Resp3 {
        3
    } else {
        2
    };
    let id = call.session.client.id as i64;
    let reply = &mut call.reply;
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    for (name, value) in [("proto", proto), ("id", id)] {
        reply.bulk(name.as_bytes());
        reply.int(value);
    }
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}

pub(super) fn select<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let number = call.integer(1)?;
    let number = u8::try_from(number)
        .ok()
        .filter(|n| call.db.select(*n).is_some());
    call.session
        .select(number.ok_or("ERR DB index is out of range")?);
    call.reply.ok();
    Ok(())
}

pub(super) fn quit<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.session.closing = true;
    call.reply.ok();
    Ok(())
}

pub(super) fn reset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.session.reset(call.shared.control.users.newcomer());
    call.reply.simple("RESET");
    Ok(())
}

pub(super) fn time<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let now = call.db.now();
    call.reply.array(2);
    call.reply.bulk((now / 1000).to_string().as_bytes());
    call.reply.bulk((now % 1000 * 1000).to_string().as_bytes());
    Ok(())
}
