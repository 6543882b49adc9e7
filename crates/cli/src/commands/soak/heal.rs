//! Waits for a rack to notice a death, and to be whole again.

use super::client::Client;
use super::cluster::Cluster;
use super::load::Counts;
use crate::commands::load;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use rackmem::Durability;
use rackmem::membership::Group;
use rackmem_sim::history::Recorder;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a rack may take to be whole again after its processes are back.
const HEALED: Duration = Duration::from_secs(60);
/// How long the membership store may take to answer.
const WITHIN: Duration = Duration::from_secs(2);
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);

/// A figure of a node's section of INFO.
pub fn figure(addr: SocketAddr, name: &str) -> Option<u64> {
    let figures = Client::connect(addr).ok()?.figures().ok()?;
    figures
        .into_iter()
        .find(|row| row.0 == name)
        .map(|row| row.1)
}

/// Waits until the rack has begun another epoch and somebody was served in it; how long that took.
pub fn noticed(
    addr: SocketAddr,
    epoch: u64,
    counts: &Counts,
    recorder: &Recorder,
    since: Instant,
    stop: &Stop,
) -> Duration {
    while since.elapsed() < HEALED && figure(addr, "rack_epoch").unwrap_or(epoch) <= epoch {
        if !stop.sleep(STEP) {
            return since.elapsed();
        }
    }
    let begun = recorder.now();
    while since.elapsed() < HEALED && counts.last_done.load(Relaxed) < begun {
        if !stop.sleep(STEP) {
            break;
        }
    }
    since.elapsed()
}

/// Whether live processes have all copies, so that another one may die.
fn copies_are_whole(cluster: &Cluster) -> Result<bool> {
    let config = load(&cluster.file())?;
    let settings = &config.membership;
    let Some(store) = settings.source.open(&settings.name)? else {
        return Ok(false);
    };
    let groups = store.groups(WITHIN)?.unwrap_or_default();
    let Some(roster) = store.load(WITHIN)?.roster else {
        return Ok(false);
    };
    let whole = |group: &Group| {
        let config = &group.config;
        let in_memory = group.durability == Durability::Memory;
        let live = config.members.iter().flatten().all(|member| {
            let life = roster.view.incarnation(member.node).map(u64::from);
            // A durable copy is the same one in a later life of its node.
            life.is_some_and(|life| life == member.life || !in_memory)
        });
        let count = config.counting.count_ones() >= group.copies.into();
        live && count && config.filling().is_none()
    };
    Ok(groups.rows.iter().all(whole))
}

/// Waits until live processes have all copies of the store or of its root, if there are some.
/// `false` when told to stop.
pub fn has_copies_again(cluster: &Cluster, stop: &Stop) -> Result<bool> {
    let end = Instant::now() + HEALED;
    let copies = cluster.has_copies() || cluster.has_root_copies();
    while copies && !copies_are_whole(cluster)? {
        if Instant::now() > end {
            return Err(Failure::new(
                "a minute after all processes are back some copies of the store are missing",
                "this is a defect: please report it with the seed and the options",
            ));
        }
        if !stop.sleep(STEP) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until every node sees all members, and all live in one epoch. `false` when told to stop.
pub fn heal(addrs: &[SocketAddr], (nodes, switch): (u64, u64), stop: &Stop) -> Result<bool> {
    let end = Instant::now() + HEALED;
    loop {
        let looks = addrs.iter().map(|&addr| {
            let figures = Client::connect(addr)
                .and_then(|mut client| client.figures())
                .ok()?;
            let get = |name: &str| figures.iter().find(|row| row.0 == name).map(|row| row.1);
            let whole = get("rack_members")? == nodes && get("rack_switch")? == switch;
            whole.then(|| get("rack_epoch")).flatten()
        });
        let epochs: Option<Vec<u64>> = looks.collect();
        if epochs.is_some_and(|epochs| epochs.windows(2).all(|pair| pair[0] == pair[1])) {
            return Ok(true);
        }
        if Instant::now() > end {
            return Err(Failure::new(
                "the rack is not whole again a minute after its processes were",
                "this is a defect: please report it with the seed and the options",
            ));
        }
        if !stop.sleep(STEP) {
            return Ok(false);
        }
    }
}
