//! CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR and UNBLOCK.

use super::{Call, Failure, Outcome, SYNTAX};
use crate::memory::Memory;
use crate::server::mail;
use crate::server::tracking::{Mode, Settings, Tracked};
use std::sync::atomic::Ordering::Relaxed;

/// Prefixes of a client, at most.
const MOST: usize = 1024;

pub(super) fn tracking<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (on, settings) = parse(call)?;
    if !on {
        call.session.tracked = None;
        call.reply.ok();
        return Ok(());
    }
    let settings = merge(call, settings)?;
    // As Redis: a client of version 2 that redirects to nobody may track, and hears nothing.
    let (hub, client) = (&call.shared.hub, &call.session.client);
    let old = call.session.tracked.as_deref();
    let tracked = Tracked::new(hub, client, settings, old)?;
    call.session.tracked = Some(Box::new(tracked));
    call.reply.ok();
    Ok(())
}

fn parse<M: Memory>(call: &Call<'_, '_, M>) -> Result<(bool, Settings), Failure> {
    let (mut settings, mut i) = (Settings::default(), 3);
    let (mut opt_in, mut opt_out, mut broadcast) = (false, false, false);
    while i < call.args.len() {
        let more = i + 1 < call.args.len();
        if call.args.is(i, "redirect") && more {
            i += 1;
            if settings.redirect != 0 {
                return Err("ERR A client can only redirect to a single other client".into());
            }
            let id = u64::try_from(call.integer(i)?).unwrap_or(0);
            if call.shared.registry.find(id).is_none() {
                return Err("ERR The client ID you want redirect to does not exist".into());
            }
            settings.redirect = id;
        } else if call.args.is(i, "bcast") {
            broadcast = true;
        } else if call.args.is(i, "optin") {
            opt_in = true;
        } else if call.args.is(i, "optout") {
            opt_out = true;
        } else if call.args.is(i, "noloop") {
            settings.no_loop = true;
        } else if call.args.is(i, "prefix") && more {
            i += 1;
            if settings.prefixes.len() == MOST {
                return Err("ERR too many prefixes".into());
            }
            settings.prefixes.push(call.word(i).to_vec());
        } else {
            return Err(SYNTAX.into());
        }
        i += 1;
    }
    let on = match call.word(2) {
        word if word.eq_ignore_ascii_case(b"on") => true,
        word if word.eq_ignore_ascii_case(b"off") => false,
        _ => return Err(SYNTAX.into()),
    };
    if !on {
        return Ok((false, Settings::default()));
    }
    if !broadcast && !settings.prefixes.is_empty() {
        return Err("ERR PREFIX option requires BCAST mode to be enabled".into());
    }
    if broadcast && (opt_in || opt_out) {
        return Err("ERR OPTIN and OPTOUT are not compatible with BCAST".into());
    }
    if opt_in && opt_out {
        return Err("ERR You can't specify both OPTIN mode and OPTOUT mode".into());
    }
    settings.mode = match (broadcast, opt_in, opt_out) {
        (true, ..) => Mode::Broadcast,
        (_, true, _) => Mode::OptIn,
        (.., true) => Mode::OptOut,
        _ => Mode::Always,
    };
    Ok((true, settings))
}

/// The settings with those that the client has already.
fn merge<M: Memory>(call: &Call<'_, '_, M>, mut new: Settings) -> Result<Settings, Failure> {
    let old = call
        .session
        .tracked
        .as_ref()
        .map(|tracked| tracked.settings());
    if let Some(old) = old {
        let broadcast = |mode| mode == Mode::Broadcast;
        if broadcast(old.mode) != broadcast(new.mode) {
            return Err("ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
                        and then re-enabling it with a different mode."
                .into());
        }
        let differs = matches!(
            (old.mode, new.mode),
            (Mode::OptIn, Mode::OptOut) | (Mode::OptOut, Mode::OptIn)
        );
        if differs {
            return Err("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
                        and then re-enabling it with a different mode."
                .into());
        }
    }
    check_prefixes(call, &new)?;
    if let Some(old) = old {
        new.prefixes.splice(0..0, old.prefixes.iter().cloned());
    }
    if new.mode == Mode::Broadcast && new.prefixes.is_empty() {
        new.prefixes.push(Vec::new());
    }
    Ok(new)
}

/// Refuses prefixes of which one begins with another: those that are given, and those that the
/// client has.
fn check_prefixes<M: Memory>(call: &Call<'_, '_, M>, new: &Settings) -> Outcome {
    let tracked = call.session.tracked.as_ref();
    let old = tracked.map_or(&[][..], |tracked| &tracked.settings().prefixes);
    for (i, prefix) in new.prefixes.iter().enumerate() {
        let others = old.iter().map(|other| ("an existing", other)).chain(
            new.prefixes[i + 1..]
                .iter()
                .map(|other| ("another provided", other)),
        );
        for (which, other) in others {
            if prefix.starts_with(other) || other.starts_with(prefix) {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (prefix, other) = (text(prefix), text(other));
                return Err(format!(
                    "ERR Prefix '{prefix}' overlaps with {which} prefix '{other}'. \
                     Prefixes for a single client must not overlap."
                )
                .into());
            }
        }
    }
    Ok(())
}

pub(super) fn caching<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let tracked = call.session.tracked.as_mut();
    let mode = tracked.as_ref().map(|tracked| tracked.settings().mode);
    let Some(tracked) = tracked.filter(|_| matches!(mode, Some(Mode::OptIn | Mode::OptOut))) else {
        return Err(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode \
                    with OPTIN or OPTOUT mode enabled"
                .into(),
        );
    };
    let yes = match call.args.at(2) {
        word if word.eq_ignore_ascii_case(b"yes") => true,
        word if word.eq_ignore_ascii_case(b"no") => false,
        _ => return Err(SYNTAX.into()),
    };
    if yes && mode == Some(Mode::OptOut) {
        return Err(
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.".into(),
        );
    }
    if !yes && mode == Some(Mode::OptIn) {
        return Err(
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.".into(),
        );
    }
    tracked.caching = Some(yes);
    tracked.fresh = true;
    call.reply.ok();
    Ok(())
}

pub(super) fn trackinginfo<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut flags = Vec::new();
    let (mut redirect, mut prefixes) = (-1, Vec::new());
    match &call.session.tracked {
        None => flags.push("off"),
        Some(tracked) => {
            let settings = tracked.settings();
            flags.push("on");
            flags.extend(match settings.mode {
                Mode::Broadcast => Some("bcast"),
                Mode::OptIn => Some("optin"),
                Mode::OptOut => Some("optout"),
                Mode::Always => None,
            });
            flags.extend(match tracked.caching {
                Some(true) => Some("caching-yes"),
                Some(false) => Some("caching-no"),
                None => None,
            });
            flags.extend(settings.no_loop.then_some("noloop"));
            flags.extend(tracked.is_broken().then_some("broken_redirect"));
            redirect = settings.redirect as i64;
            prefixes = settings.prefixes.clone();
        }
    }
    prefixes.retain(|prefix| !prefix.is_empty() || redirect >= 0);
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(flags.len());
    flags
        .iter()
        .for_each(|flag| call.reply.bulk(flag.as_bytes()));
    call.reply.bulk(b"redirect");
    call.reply.int(redirect);
    call.reply.bulk(b"prefixes");
    call.reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| call.reply.bulk(prefix));
    Ok(())
}

pub(super) fn getredir<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let tracked = call.session.tracked.as_ref();
    call.reply
        .int(tracked.map_or(-1, |tracked| tracked.settings().redirect as i64));
    Ok(())
}

/// CLIENT UNBLOCK id [TIMEOUT | ERROR]
pub(super) fn unblock<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let id = call.integer(2)?;
    let error = match call.args.get(3) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"timeout") => false,
        Some(word) if word.eq_ignore_ascii_case(b"error") => true,
        Some(_) => return Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".into()),
    };
    let client = u64::try_from(id)
        .ok()
        .and_then(|id| call.shared.registry.find(id));
    let client = client.filter(|client| client.activity.blocked.load(Relaxed));
    if let Some(client) = &client {
        mail::wake(&call.shared.desks, client, |wakes| {
            wakes.unblock = Some(error)
        });
    }
    call.reply.flag(client.is_some());
    Ok(())
}
