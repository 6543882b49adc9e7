//! What clients and tools ask of a server about replicas, clusters and modules: the answers of a
//! server that has none.

use super::{Call, Outcome, SYNTAX, Subcommand, help};
use crate::memory::Memory;
use crate::number::parse_i64;

const NO_CLUSTER: &str = "ERR This instance has cluster support disabled";

/// There are no replicas to wait for: an answered write is as safe as it gets.
pub(super) fn wait<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.integer(1)?;
    let timeout = parse_i64(call.word(2)).ok_or("ERR timeout is not an integer or out of range")?;
    if timeout < 0 {
        return Err("ERR timeout is negative".into());
    }
    call.reply.int(0);
    Ok(())
}

pub(super) fn role<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.int(0);
    call.reply.array(0);
    Ok(())
}

pub(super) fn replicaof<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.is(1, "no") && call.args.is(2, "one") {
        call.reply.ok();
        return Ok(());
    }
    let port = parse_i64(call.word(2)).filter(|port| (0..=65535).contains(port));
    port.ok_or("ERR Invalid master port")?;
    Err(
        "ERR a node of a rack cannot be the replica of a server: use copies, or load a snapshot"
            .into(),
    )
}

pub(super) fn failover<M: Memory>(_: &mut Call<'_, '_, M>) -> Outcome {
    Err("ERR FAILOVER requires connected replicas.".into())
}

/// Swaps two databases at one moment in the whole rack.
pub(super) fn swapdb<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let number = |i: usize, why: &'static str| parse_i64(call.word(i)).ok_or(why);
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    let all = 0..crate::DATABASES as i64;
    if !all.contains(&first) || !all.contains(&second) {
        return Err("ERR DB index is out of range".into());
    }
    let db = call.db.select(first as u8);
    let db = db.ok_or("ERR DB index is out of range")?;
    db.swap_with(second as u8)?;
    call.reply.ok();
    Ok(())
}

pub(super) const fn of_cluster<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("info", 2..=2, no_cluster),
            ("nodes", 2..=2, no_cluster),
            ("slots", 2..=2, no_cluster),
            ("shards", 2..=2, no_cluster),
            ("myid", 2..=2, no_cluster),
            ("keyslot", 3..=3, no_cluster),
            ("countkeysinslot", 3..=3, no_cluster),
            ("getkeysinslot", 4..=4, no_cluster),
            ("replicas", 3..=3, no_cluster),
            ("meet", 4..=usize::MAX, no_cluster),
            ("forget", 3..=3, no_cluster),
            ("reset", 2..=3, no_cluster),
            ("failover", 2..=3, no_cluster),
            ("help", 2..=2, help),
        ]
    }
}

pub(super) fn no_cluster<M: Memory>(_: &mut Call<'_, '_, M>) -> Outcome {
    Err(NO_CLUSTER.into())
}

pub(super) const fn of_module<M: Memory>() -> &'static [Subcommand<M>] {
    const { &[("list", 2..=2, no_modules), ("help", 2..=2, help)] }
}

fn no_modules<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.array(0);
    Ok(())
}

pub(super) fn debug<M: Memory>(_: &mut Call<'_, '_, M>) -> Outcome {
    Err("ERR DEBUG command not allowed.".into())
}

/// A node leaves the rack when its process is told to, so that its memory can move away first.
pub(super) fn shutdown<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    for i in 1..call.args.len() {
        if call.args.is(i, "abort") && call.args.len() == 2 {
            return Err("ERR No shutdown in progress.".into());
        }
        if !["nosave", "save", "now", "force"]
            .iter()
            .any(|word| call.args.is(i, word))
        {
            return Err(SYNTAX.into());
        }
    }
    Err("ERR this server is a node of a rack: end its process (SIGTERM), which gives its memory back first".into())
}

pub(super) fn lolwut<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let nodes = call.shared.store.memory().nodes();
    call.reply.text(&format!(
        "{}\nrackmem ver. {}\n",
        " o ".repeat(nodes),
        env!("CARGO_PKG_VERSION")
    ));
    Ok(())
}

pub(super) const fn of_memory<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("usage", 3..=5, super::keys::usage),
            ("doctor", 2..=2, doctor),
            ("stats", 2..=2, stats),
            ("purge", 2..=2, purge),
            ("malloc-stats", 2..=2, malloc_stats),
            ("help", 2..=2, help),
        ]
    }
}

fn doctor<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply
        .text("No report is made here. INFO memory shows what the store and its process take.");
    Ok(())
}

fn malloc_stats<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.text("The allocator tells nothing of itself.");
    Ok(())
}

fn stats<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut keys = 0;
    for number in 0..crate::DATABASES as u8 {
        if let Some(db) = call.db.select(number) {
            keys += db.len()?;
        }
    }
    let process = super::process::Process::now();
    let clients = call.shared.total(|stats| &stats.held);
    let fields = [
        ("peak.allocated", process.peak),
        ("total.allocated", process.resident),
        ("startup.allocated", 0),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", clients),
        ("cluster.links", 0),
        ("aof.buffer", 0),
        ("keys.count", keys as u64),
        (
            "keys.bytes-per-key",
            process.resident / (keys as u64).max(1),
        ),
    ];
    call.reply.map(fields.len());
    for (name, value) in fields {
        call.reply.bulk(name.as_bytes());
        call.reply.int(value as i64);
    }
    Ok(())
}

/// Gives back what the store keeps for itself and does not use.
fn purge<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.shared.store.shed()?;
    call.reply.ok();
    Ok(())
}

/// CLIENT PAUSE.
pub(super) fn pause<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let time = parse_i64(call.word(2)).ok_or("ERR timeout is not an integer or out of range")?;
    let time = u64::try_from(time).map_err(|_| "ERR timeout is negative")?;
    let all = match call.args.len() {
        3 => true,
        _ if call.args.is(3, "all") => true,
        _ if call.args.is(3, "write") => false,
        _ => return Err("ERR CLIENT PAUSE mode must be WRITE or ALL".into()),
    };
    let time = std::time::Duration::from_millis(time);
    call.shared.control.pause.begin(time, all);
    call.reply.ok();
    Ok(())
}

/// CLIENT UNPAUSE.
pub(super) fn unpause<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.shared.control.pause.end();
    call.reply.ok();
    Ok(())
}

/// Connections that wait for a key.
pub(super) fn blocked<M: Memory>(call: &Call<'_, '_, M>) -> usize {
    let clients = call.shared.registry.list();
    clients
        .iter()
        .filter(|client| client.activity.waits())
        .count()
}
