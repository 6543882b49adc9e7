//! CONFIG: the settings clients ask for. Those that change while the server runs are in
//! [`crate::server::settings`]; the others are what they are.

use std::path::Path;

use super::{Call, Failure, Outcome, Subcommand, eviction, help};
use crate::glob;
use crate::memory::Memory;
use crate::resp::parse::Limits;
use crate::server::limit;
use crate::server::settings::{Setting, TRACKED, event_text};
use crate::server::shared::Stats;

/// The settings that are the rack's.
const EVENTS: &str = "notify-keyspace-events";
const LIMIT: &str = "maxmemory";
const POLICY: &str = "maxmemory-policy";

/// Settings that are what they are.
const FIXED: &[(&str, &str)] = &[
    ("appendfsync", "everysec"),
    ("appendonly", "no"),
    ("cluster-enabled", "no"),
    ("daemonize", "no"),
    ("databases", "16"),
    ("hash-max-listpack-entries", "128"),
    ("hash-max-listpack-value", "64"),
    ("hz", "10"),
    ("latency-monitor-threshold", "0"),
    ("list-max-listpack-size", "-2"),
    ("maxmemory-clients", "0"),
    ("replicaof", ""),
    ("save", ""),
    ("set-max-intset-entries", "512"),
    ("slaveof", ""),
    ("tcp-keepalive", "0"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
];
/// Where snapshots go: who could say that could write any file of the server's user.
const PROTECTED: [&str; 2] = ["dir", "dbfilename"];
/// The default user's password: it can be set, and is not shown, for only its digest is kept.
const PASSWORD: &str = "requirepass";

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("get", 3..=usize::MAX, get),
            ("set", 4..=usize::MAX, set),
            ("resetstat", 2..=2, resetstat),
            ("rewrite", 2..=2, rewrite),
            ("help", 2..=2, help),
        ]
    }
}

/// All settings as they are.
fn settings<M: Memory>(call: &Call<'_, '_, M>) -> Vec<(&'static str, String)> {
    let (shared, users) = (call.shared, &call.shared.control.users);
    let mut all: Vec<_> = FIXED
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    let changing = shared.control.settings.all().iter();
    all.extend(changing.map(|setting| (setting.name, setting.text())));
    let classes = shared.store.events().unwrap_or(0);
    let limit = shared.control.limit.bytes();
    for (name, value) in &mut all {
        match *name {
            EVENTS => *value = event_text(classes as u32),
            LIMIT => *value = limit.to_string(),
            _ => {}
        }
    }
    let file = users.file().map(|path| path.display().to_string());
    all.push(("aclfile", file.unwrap_or_default()));
    all.push(("bind", shared.addr.ip().to_string()));
    all.push(("port", shared.addr.port().to_string()));
    all.push((PASSWORD, String::new()));
    all.push(("io-threads", shared.config.workers.to_string()));
    all.push(("proto-max-bulk-len", crate::MAX_VALUE.to_string()));
    let file = shared.config.snapshot.as_deref();
    let folder = file.and_then(|file| file.parent());
    let name = file.and_then(|file| file.file_name()).map(Path::new);
    let shown = |part: Option<&Path>| part.map_or(String::new(), |part| part.display().to_string());
    all.push(("dir", shown(folder)));
    all.push(("dbfilename", shown(name)));
    let limit = Limits::FULL.command;
    all.push(("client-query-buffer-limit", limit.to_string()));
    all
}

fn get<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let wanted = |name: &str| {
        let mut patterns = call.args.from(2);
        patterns.any(|pattern| glob::matches(pattern, name.as_bytes(), true))
    };
    let found: Vec<_> = settings(call)
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .collect();
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// What one pair of CONFIG SET does.
enum Change<'a> {
    Number(&'a Setting, i64),
    Password(&'a [u8]),
    /// It is set to that already.
    Nothing,
}

/// All settings are changed, or none.
fn set<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if !call.args.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'config|set' command".into());
    }
    let known = settings(call);
    let (control, mut changes) = (&call.shared.control, Vec::new());
    for i in (2..call.args.len()).step_by(2) {
        let (name, value) = (call.word(i), call.word(i + 1));
        let before = (2..i).step_by(2).map(|earlier| call.word(earlier));
        let twice = before
            .into_iter()
            .any(|word| word.eq_ignore_ascii_case(name));
        let Some((name, now)) = known.iter().find(|(known, _)| call.args.is(i, known)) else {
            let text = "ERR Unknown option or number of arguments for CONFIG SET - '";
            return Err([text.as_bytes(), &name[..name.len().min(64)], b"'"]
                .concat()
                .into());
        };
        if twice {
            return Err(refused(name, "duplicate parameter"));
        }
        let setting = control
            .settings
            .all()
            .iter()
            .find(|setting| setting.name == *name);
        changes.push(match setting {
            Some(setting) => {
                let value = setting.read(value).map_err(|why| refused(name, &why))?;
                Change::Number(setting, value)
            }
            None if *name == PASSWORD => Change::Password(value),
            None if now.as_bytes() == value => Change::Nothing,
            None if PROTECTED.contains(name) => {
                return Err(refused(name, "can't set protected config"));
            }
            None => return Err(refused(name, "can't set immutable config")),
        });
    }
    let mut limited = false;
    for change in changes {
        match change {
            Change::Number(setting, value) if setting.name == EVENTS => {
                call.shared.store.set_events(value as u64)?;
            }
            Change::Number(setting, value) if setting.name == LIMIT => {
                control
                    .limit
                    .set(&call.shared.store, value.unsigned_abs())?;
                limited = true;
            }
            Change::Number(setting, value) => {
                if setting.name == POLICY {
                    limit::tell_policy(&call.shared.store, value.unsigned_abs())?;
                }
                setting.set(value);
                if setting.name == TRACKED {
                    let hub = &call.shared.hub;
                    hub.tracking.set_limit(hub, value.unsigned_abs());
                }
            }
            Change::Password(word) => control.users.set_password(&call.shared.store, word)?,
            Change::Nothing => {}
        }
    }
    // By the policy that is in force now.
    if limited {
        eviction::relieve(call.shared, call.stats, 0)?;
    }
    call.reply.ok();
    Ok(())
}

fn refused(name: &str, why: &str) -> Failure {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}").into()
}

fn resetstat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    for stats in call.shared.desks.iter().flat_map(|desk| &desk.stats) {
        let stats: &Stats = stats;
        stats
            .all()
            .iter()
            .for_each(|count| count.store(0, std::sync::atomic::Ordering::Relaxed));
        stats.counts.reset();
    }
    call.shared.store.forget_expired_keys();
    call.reply.ok();
    Ok(())
}

fn rewrite<M: Memory>(_: &mut Call<'_, '_, M>) -> Outcome {
    Err("ERR The server is running without a config file".into())
}
