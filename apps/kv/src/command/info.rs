//! INFO: how the server and the rack are doing, as text.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use super::connection::REDIS_VERSION;
use super::process::{Process, human, machine_memory};
use super::{Call, Outcome, info_counts, standalone};
use crate::memory::Memory;
use crate::script::sha1::Sha;
use crate::server::settings::Setting;
use crate::server::shared::Stats;
use crate::store::Store;
use crate::store::bus::SubscriptionKind as Kind;

/// A section: its title, which words ask for it beside its title, and what writes it.
type Section<M> = (
    &'static str,
    Part,
    fn(&Call<'_, '_, M>, &mut String) -> Outcome,
);

/// What a section is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Of what INFO says if it is not told what to say.
    Default,
    /// Of `all` and `everything`.
    All,
    /// Of `everything`.
    Everything,
}

fn sections<M: Memory>() -> [Section<M>; 12] {
    [
        ("Server", Part::Default, server),
        ("Clients", Part::Default, clients),
        ("Memory", Part::Default, memory),
        ("Persistence", Part::Default, persistence),
        ("Stats", Part::Default, stats),
        ("Replication", Part::Default, replication),
        ("CPU", Part::Default, info_counts::cpu),
        ("Modules", Part::Everything, info_counts::modules),
        ("Commandstats", Part::All, info_counts::commands),
        ("Errorstats", Part::Default, info_counts::errors),
        ("Cluster", Part::Default, cluster),
        ("Keyspace", Part::Default, keyspace),
    ]
}

pub(super) fn info<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let said = |word: &str| (1..call.args.len()).any(|i| call.args.is(i, &word.to_lowercase()));
    let (everything, all) = (said("everything"), said("all"));
    let default = call.args.len() == 1 || said("default");
    let wanted = |title: &str, part: Part| {
        let part = match part {
            Part::Default => default || all || everything,
            Part::All => all || everything,
            Part::Everything => everything,
        };
        part || said(title)
    };
    let mut text = String::new();
    for (title, part, write) in sections() {
        if wanted(title, part) {
            head(title, &mut text);
            write(call, &mut text)?;
        }
    }
    for (title, write) in &call.shared.config.sections {
        if wanted(title, Part::Default) {
            head(title, &mut text);
            write(&mut text);
        }
    }
    call.reply.text(&text);
    Ok(())
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

pub(super) fn field(text: &mut String, name: &str, value: impl std::fmt::Display) {
    line(text, format_args!("{name}:{value}"));
}

fn server<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let uptime = call.shared.started.elapsed().as_secs();
    field(text, "redis_version", REDIS_VERSION);
    field(text, "redis_git_sha1", "00000000");
    field(text, "redis_git_dirty", 0);
    field(text, "redis_build_id", "0");
    field(text, "redis_mode", "standalone");
    field(text, "rackmem_version", env!("CARGO_PKG_VERSION"));
    field(text, "os", std::env::consts::OS);
    field(text, "arch_bits", usize::BITS);
    field(text, "process_id", std::process::id());
    field(text, "run_id", &call.shared.control.run_id);
    field(text, "tcp_port", call.shared.addr.port());
    field(text, "server_time_usec", call.db.now() * 1000);
    field(text, "uptime_in_seconds", uptime);
    field(text, "uptime_in_days", uptime / 86400);
    field(text, "hz", 10);
    field(text, "configured_hz", 10);
    field(text, "executable", "");
    field(text, "config_file", "");
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
    field(text, "cluster_connections", 0);
    let most = call.shared.control.settings.max_clients();
    field(text, "maxclients", most);
    field(text, "blocked_clients", standalone::blocked(call));
    let tracked = call.shared.hub.tracking.totals();
    field(text, "tracking_clients", tracked.clients);
    field(text, "clients_in_timeout_table", 0);
    Ok(())
}

/// What this node keeps of the store, and the process's memory; the rack's is told by its own
/// section.
fn memory<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let process = Process::now();
    let store: &Store<M> = &call.shared.store;
    for (name, bytes) in [
        ("used_memory", store.used_bytes() as u64),
        ("used_memory_rss", process.resident),
        ("used_memory_peak", process.peak),
        ("total_system_memory", machine_memory()),
        ("used_memory_lua", 0),
        ("used_memory_scripts", 0),
        ("maxmemory", call.shared.control.limit.bytes()),
    ] {
        field(text, name, bytes);
        field(text, &format!("{name}_human"), human(bytes));
    }
    let share = 100.0 * store.used_bytes() as f64 / process.peak.max(1) as f64;
    field(text, "used_memory_peak_perc", format_args!("{share:.2}%"));
    let settings = call.shared.control.settings.all();
    let policy = settings
        .iter()
        .find(|setting| setting.name == "maxmemory-policy");
    field(
        text,
        "maxmemory_policy",
        policy.map(Setting::text).unwrap_or_default(),
    );
    let scripts = call.db.scripts();
    let is_known = |sha: &Sha| !matches!(scripts.meta(sha), Ok(None));
    let compiled = call.shared.scripts.count(is_known);
    field(text, "number_of_cached_scripts", compiled);
    field(text, "mem_fragmentation_ratio", "1.00");
    field(text, "mem_not_counted_for_evict", 0);
    field(text, "mem_allocator", "system");
    field(
        text,
        "mem_clients_normal",
        call.shared.total(|stats| &stats.held),
    );
    field(text, "active_defrag_running", 0);
    field(text, "lazyfree_pending_objects", 0);
    field(text, "store_buckets", store.buckets());
    field(text, "store_block_bytes", store.memory().block_size());
    Ok(())
}

/// Of this node's snapshots.
fn persistence<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let status = call.shared.snapshots.status();
    let running = status.since.map(|since| since.elapsed().as_secs() as i64);
    let (failed, took) = status.last.unwrap_or((false, 0));
    let took = status.last.map_or(-1, |_| took as i64);
    field(text, "loading", 0);
    field(text, "async_loading", 0);
    field(text, "current_save_keys_processed", status.keys);
    field(text, "rdb_bgsave_in_progress", u8::from(running.is_some()));
    field(text, "rdb_last_save_time", status.saved_at);
    field(
        text,
        "rdb_last_bgsave_status",
        if failed { "err" } else { "ok" },
    );
    field(text, "rdb_last_bgsave_time_sec", took);
    field(text, "rdb_current_bgsave_time_sec", running.unwrap_or(-1));
    field(text, "rdb_saves", status.saves);
    for name in [
        "aof_enabled",
        "aof_rewrite_in_progress",
        "aof_rewrite_scheduled",
    ] {
        field(text, name, 0);
    }
    for name in ["aof_last_bgrewrite_status", "aof_last_write_status"] {
        field(text, name, "ok");
    }
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
    let [commands, input, output] = call.shared.control.rates.a_second();
    field(text, "instantaneous_ops_per_sec", commands.round());
    field(
        text,
        "instantaneous_input_kbps",
        format_args!("{:.2}", input / 1024.0),
    );
    field(
        text,
        "instantaneous_output_kbps",
        format_args!("{:.2}", output / 1024.0),
    );
    field(text, "total_net_input_bytes", total(|s| &s.input));
    field(text, "total_net_output_bytes", total(|s| &s.output));
    field(text, "total_system_calls", total(|s| &s.calls));
    field(text, "rejected_connections", total(|s| &s.rejected));
    field(text, "total_error_replies", total(|s| &s.errors));
    field(text, "keyspace_hits", total(|s| &s.hits));
    field(text, "keyspace_misses", total(|s| &s.misses));
    let hot = call.shared.shipping.as_ref().map_or(0, |all| all.buckets());
    field(text, "shipped_commands", total(|s| &s.shipped));
    field(text, "shipped_unknown", total(|s| &s.shipped_unknown));
    field(text, "shipped_served", total(|s| &s.shipped_served));
    field(text, "shipped_buckets", hot);
    field(text, "swept_buckets", total(|s| &s.swept));
    field(text, "expired_keys", call.shared.store.expired_keys());
    for (name, kind) in [
        ("pubsub_channels", Kind::Channel),
        ("pubsub_patterns", Kind::Pattern),
        ("pubsubshard_channels", Kind::Shard),
    ] {
        // A monitor is to be told the rest also while a node's subscriptions cannot be read.
        let names = call.shared.store.subscribed(kind, None);
        field(text, name, names.map_or(0, |names| names.len()));
    }
    field(text, "sync_full", 0);
    field(text, "evicted_keys", total(|s| &s.evicted));
    field(text, "lazyfreed_objects", total(|s| &s.unlinked));
    field(text, "latest_fork_usec", 0);
    let tracked = call.shared.hub.tracking.totals();
    field(text, "tracking_total_keys", tracked.keys);
    field(text, "tracking_total_items", tracked.items);
    field(text, "tracking_total_prefixes", tracked.prefixes);
    Ok(())
}

fn replication<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    field(text, "role", "master");
    field(text, "connected_slaves", 0);
    field(text, "master_failover_state", "no-failover");
    field(text, "master_replid", &call.shared.control.run_id);
    field(text, "master_replid2", "0".repeat(40));
    for (name, value) in [("master_repl_offset", 0), ("second_repl_offset", -1)] {
        field(text, name, value);
    }
    for name in [
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_histlen",
    ] {
        field(text, name, 0);
    }
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
