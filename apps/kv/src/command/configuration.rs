//! CONFIG: the settings clients ask for. They are those of the process; none changes while it runs.

use super::{Call, Outcome, Subcommand, help};
use crate::glob;
use crate::memory::Memory;
use crate::resp::parse::Limits;
use crate::server::shared::Stats;

/// Settings that are what they are.
const FIXED: [(&str, &str); 12] = [
    ("appendonly", "no"),
    ("appendfsync", "everysec"),
    ("databases", "16"),
    ("hz", "10"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("maxmemory-samples", "5"),
    ("notify-keyspace-events", ""),
    ("save", ""),
    ("slowlog-log-slower-than", "-1"),
    ("tcp-keepalive", "0"),
    ("timeout", "0"),
];

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

fn settings<M: Memory>(call: &Call<'_, '_, M>) -> Vec<(&'static str, String)> {
    let shared = call.shared;
    let mut all: Vec<_> = FIXED
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    all.push(("bind", shared.addr.ip().to_string()));
    all.push(("port", shared.addr.port().to_string()));
    all.push(("maxclients", shared.config.max_clients.to_string()));
    all.push(("io-threads", shared.config.workers.to_string()));
    all.push(("proto-max-bulk-len", crate::MAX_VALUE.to_string()));
    all.push((
        "client-query-buffer-limit",
        Limits::FULL.command.to_string(),
    ));
    all
}

fn get<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let wanted = |name: &str| {
        call.args
            .from(2)
            .any(|pattern| glob::matches(pattern, name.as_bytes(), true))
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

/// Setting what is set already is fine; anything else is refused rather than ignored.
fn set<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if !call.args.len().is_multiple_of(2) {
        return Err(call.wrong_count());
    }
    let settings = settings(call);
    for i in (2..call.args.len()).step_by(2) {
        let shown =
            String::from_utf8_lossy(&call.word(i)[..call.word(i).len().min(64)]).into_owned();
        match settings.iter().find(|(name, _)| call.args.is(i, name)) {
            None => {
                let text = "Unknown option or number of arguments for CONFIG SET";
                return Err(format!("ERR {text} - '{shown}'").into());
            }
            Some((_, value)) if value.as_bytes() == call.word(i + 1) => {}
            Some(_) => {
                return Err(format!(
                    "ERR CONFIG SET failed - '{shown}' cannot be changed while running"
                )
                .into());
            }
        }
    }
    call.reply.ok();
    Ok(())
}

fn resetstat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    for desk in &call.shared.desks {
        let stats: &Stats = &desk.stats;
        stats
            .all()
            .iter()
            .for_each(|count| count.store(0, std::sync::atomic::Ordering::Relaxed));
    }
    call.reply.ok();
    Ok(())
}

fn rewrite<M: Memory>(_: &mut Call<'_, '_, M>) -> Outcome {
    Err("ERR The server is running without a config file".into())
}
