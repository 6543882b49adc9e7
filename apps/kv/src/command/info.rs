//! INFO: how the server and the rack are doing, as text.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use super::connection::REDIS_VERSION;
use super::{Call, Outcome};
use crate::memory::Memory;
use crate::server::shared::Stats;
use crate::store::Store;

/// A section: its title, and what writes it.
type Section<M> = (&'static str, fn(&Call<'_, '_, M>, &mut String) -> Outcome);

/// The page size of `/proc/self/statm`.
const PROC_PAGE: u64 = 4096;

fn sections<M: Memory>() -> [Section<M>; 8] {
    [
        ("Server", server),
        ("Clients", clients),
        ("Memory", memory),
        ("Persistence", persistence),
        ("Stats", stats),
        ("Replication", replication),
        ("Cluster", cluster),
        ("Keyspace", keyspace),
    ]
}

pub(super) fn info<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let all = call.args.len() == 1 || (1..call.args.len()).any(|i| is_all(call, i));
    let wanted = |title: &str| all || (1..call.args.len()).any(|i| call.args.is(i, title));
    let mut text = String::new();
    for (title, write) in sections() {
        if wanted(title) {
            head(title, &mut text);
            write(call, &mut text)?;
        }
    }
    for (title, write) in &call.shared.config.sections {
        if wanted(title) {
            head(title, &mut text);
            write(&mut text);
        }
    }
    call.reply.text(&text);
    Ok(())
}

fn is_all<M: Memory>(call: &Call<'_, '_, M>, i: usize) -> bool {
    ["all", "default", "everything"]
        .iter()
        .any(|word| call.args.is(i, word))
}

fn head(title: &str, text: &mut String) {
    if !text.is_empty() {
        text.push_str("\r\n");
    }
    line(text, format_args!("# {title}"));
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{content}\r\n");
}

fn field(text: &mut String, name: &str, value: impl std::fmt::Display) {
    line(text, format_args!("{name}:{value}"));
}

fn server<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let uptime = call.shared.started.elapsed().as_secs();
    field(text, "redis_version", REDIS_VERSION);
    field(text, "redis_mode", "standalone");
    field(text, "rackmem_version", env!("CARGO_PKG_VERSION"));
    field(text, "os", std::env::consts::OS);
    field(text, "arch_bits", usize::BITS);
    field(text, "process_id", std::process::id());
    field(text, "tcp_port", call.shared.addr.port());
    field(text, "uptime_in_seconds", uptime);
    field(text, "uptime_in_days", uptime / 86400);
    field(text, "io_threads_active", call.shared.desks.len());
    Ok(())
}

fn clients<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    field(text, "connected_clients", call.shared.registry.len());
    field(
        text,
        "client_buffer_bytes",
        call.shared.total(|stats| &stats.held),
    );
    field(text, "maxclients", call.shared.config.max_clients);
    field(text, "blocked_clients", 0);
    Ok(())
}

/// The process's memory; the rack's is told by its own section.
fn memory<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let store: &Store<M> = &call.shared.store;
    field(text, "used_memory", pages * PROC_PAGE);
    field(text, "used_memory_rss", pages * PROC_PAGE);
    field(text, "maxmemory", 0);
    field(text, "maxmemory_policy", "noeviction");
    field(text, "store_buckets", store.buckets());
    field(text, "store_block_bytes", store.memory().block_size());
    Ok(())
}

fn persistence<M: Memory>(_: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    field(text, "loading", 0);
    field(text, "rdb_bgsave_in_progress", 0);
    field(text, "aof_enabled", 0);
    Ok(())
}

fn stats<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let total = |count: fn(&Stats) -> &AtomicU64| call.shared.total(count);
    field(
        text,
        "total_connections_received",
        total(|s| &s.connections),
    );
    field(text, "total_commands_processed", total(|s| &s.commands));
    field(text, "total_net_input_bytes", total(|s| &s.input));
    field(text, "total_net_output_bytes", total(|s| &s.output));
    field(text, "total_system_calls", total(|s| &s.calls));
    field(text, "rejected_connections", total(|s| &s.rejected));
    field(text, "total_error_replies", total(|s| &s.errors));
    field(text, "keyspace_hits", total(|s| &s.hits));
    field(text, "keyspace_misses", total(|s| &s.misses));
    field(text, "swept_buckets", total(|s| &s.swept));
    field(text, "evicted_keys", 0);
    Ok(())
}

fn replication<M: Memory>(_: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    field(text, "role", "master");
    field(text, "connected_slaves", 0);
    Ok(())
}

fn cluster<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    field(text, "cluster_enabled", 0);
    field(text, "rack_nodes", call.shared.store.memory().nodes());
    field(text, "rack_node", call.shared.store.memory().id());
    Ok(())
}

fn keyspace<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    for number in 0..crate::DATABASES as u8 {
        if let Some(db) = call.db.select(number) {
            let (keys, expires) = (db.len()?, db.expiring()?);
            if keys != 0 {
                line(
                    text,
                    format_args!("db{number}:keys={keys},expires={expires},avg_ttl=0"),
                );
            }
        }
    }
    Ok(())
}
