//! A record of what clients on all nodes did to few keys at once, and the judgement on it.

use super::meter::Meter;
use super::scene::Scene;
use super::summary::{Judged, Story};
use crate::halt::{Halt, Played, wrong};
use crate::size::count;
use crate::store::NodeStore;
use rackmem_sim::history::{Call, ClientLog, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::collections::HashMap;
use std::sync::Barrier;
use std::time::Instant;

/// Clients of each node.
const CLIENTS: usize = 2;
/// Operations of each client, at most.
const OPERATIONS: usize = 5_000;
/// Operations of all clients together, at most: in a large rack each does fewer.
const TOTAL: usize = 80_000;
/// Clients that share keys, at most. What makes a history hard to judge is how many operations on a
/// key overlap, and that is never more than this, however many nodes there are.
const CROWD: usize = 8;
/// Keys of a crowd: few, so that its clients meet.
const KEYS: usize = 4;
/// Clients outnumber the cores, so this often in 256 operations one lets the others run in the
/// middle of it: operations overlap on any machine, and all but these keep the interval they took.
const GIVE_WAY: u8 = 16;
/// Values that are set: numbers, since clients also add to them.
const VALUES: i64 = 1_000_000;

pub fn run(scene: &Scene<'_>, story: &mut Story) -> Played<()> {
    let clients = scene.nodes() * CLIENTS;
    let operations = OPERATIONS.min(TOTAL / clients);
    let recorder = Recorder::new(operations);
    // Without it the first client would be done before the last one is there.
    let start = Barrier::new(clients);
    let bar = scene
        .show
        .bar("record a history", (clients * operations) as u64);
    let phase = scene.measure("recorded", || {
        scene.on_clients(CLIENTS, |client, store| {
            let mut log = recorder.client(client as u32);
            let mut rng = fastrand::Rng::with_seed(client as u64);
            let keys = keys(crowd(client, clients));
            let (mut meter, mut pace) = (Meter::default(), scene.pace(&bar));
            start.wait();
            for _ in 0..operations {
                meter.time(|| operate(store, &mut log, &mut rng, &keys))?;
                pace.step()?;
            }
            Ok(meter)
        })
    });
    bar.finish_and_clear();
    story.phases.push(phase?);
    let judged = judge(recorder.into_history())?;
    scene.show.done(&format!(
        "{} operations of {clients} clients on {} keys, {} of them at the same time as another: linearizable",
        count(judged.operations as u64),
        judged.keys,
        count(judged.overlapping as u64),
    ));
    story.judged = Some(judged);
    Ok(())
}

/// The crowd of a client. Clients of one node are in different ones as long as there is more than
/// one.
fn crowd(client: usize, clients: usize) -> usize {
    client % clients.div_ceil(CROWD)
}

/// The keys of a crowd.
fn keys(crowd: usize) -> [String; KEYS] {
    std::array::from_fn(|key| format!("history:{crowd}:{key}"))
}

/// One operation on one key, both at random.
fn operate(
    store: &NodeStore,
    log: &mut ClientLog<'_>,
    rng: &mut fastrand::Rng,
    keys: &[String],
) -> Played<()> {
    let key = &keys[rng.usize(..keys.len())];
    let call = draw(rng);
    let ticket = log
        .begin(key, call.clone())
        .map_err(|full| wrong(full.to_string()))?;
    if rng.u8(..) < GIVE_WAY {
        std::thread::yield_now();
    }
    // An error leaves the operation of unknown outcome, which is what the client knows.
    let reply = perform(store, key.as_bytes(), &call)?;
    log.ok(ticket, reply);
    Ok(())
}

fn draw(rng: &mut fastrand::Rng) -> Call {
    match rng.u8(0..100) {
        0..45 => Call::Get,
        45..70 => Call::Set {
            value: rng.i64(0..VALUES).to_string(),
        },
        70..90 => Call::Incr { by: rng.i64(1..10) },
        _ => Call::Del,
    }
}

fn perform(store: &NodeStore, key: &[u8], call: &Call) -> rackmem_kv::Result<Reply> {
    Ok(match call {
        Call::Set { value } => {
            store.set(key, value.as_bytes())?;
            Reply::Nil
        }
        Call::Incr { by } => Reply::Int(store.increment(key, *by)?),
        Call::Del => Reply::Bool(store.remove(key)?),
        _ => {
            let mut value = Vec::new();
            match store.get(key, &mut value)? {
                true => Reply::Text(String::from_utf8_lossy(&value).into_owned()),
                false => Reply::Nil,
            }
        }
    })
}

/// Decides, and says why not.
fn judge(history: Vec<Operation>) -> Played<Judged> {
    let start = Instant::now();
    let overlapping = overlapping(&history);
    match check(&history, Limits::default()) {
        Verdict::Linearizable(summary) => Ok(Judged {
            operations: summary.operations,
            keys: summary.keys,
            overlapping,
            seconds: start.elapsed().as_secs_f64(),
        }),
        Verdict::Violation(counterexample) => {
            eprintln!("{counterexample}");
            Err(wrong("the recorded history is not linearizable"))
        }
        Verdict::GaveUp { key, .. } => Err(Halt::Failed(crate::failure::Failure::new(
            format!("the history of {key} was too hard to judge"),
            "run the demo again, on fewer nodes",
        ))),
    }
}

/// Operations that began before an earlier one on the same key had ended: without any,
/// the check says nothing.
fn overlapping(history: &[Operation]) -> usize {
    let mut ends: HashMap<&str, u64> = HashMap::new();
    let mut overlapping = 0;
    for operation in history {
        let end = ends.entry(&operation.key).or_default();
        overlapping += usize::from(operation.invoke < *end);
        *end = (*end).max(operation.returned().unwrap_or(u64::MAX));
    }
    overlapping
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_sim::history::Outcome;
    use std::collections::{BTreeMap, BTreeSet};

    /// The most nodes of a rack.
    const MOST_NODES: usize = 32;

    #[test]
    fn no_key_has_more_clients_than_can_be_judged_whatever_the_rack() {
        for nodes in 1..=MOST_NODES {
            let clients = nodes * CLIENTS;
            let mut crowds: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for client in 0..clients {
                let nodes = crowds.entry(crowd(client, clients)).or_default();
                let fresh = nodes.insert(client / CLIENTS);
                assert!(fresh || clients <= CROWD, "{nodes:?}");
            }
            let most = crowds.values().map(BTreeSet::len).max();
            assert!(most <= Some(CROWD), "{nodes} nodes: {crowds:?}");
            assert!(TOTAL / clients > 1_000, "{nodes} nodes: too few operations");
        }
    }

    /// A crowd none of whose clients ever pauses: as many operations overlap all the time as ever
    /// can.
    fn busiest(seed: u64) -> Vec<Operation> {
        let (mut rng, keys) = (fastrand::Rng::with_seed(seed), keys(0));
        // When each operation takes effect, and whose it is.
        let mut effects = Vec::new();
        for client in 0..CROWD {
            let mut now = rng.u64(..100);
            for _ in 0..OPERATIONS {
                let (invoke, takes) = (now, rng.u64(2..100));
                now += takes;
                let operation = Operation {
                    client: client as u32,
                    key: keys[rng.usize(..KEYS)].clone(),
                    call: draw(&mut rng),
                    invoke,
                    outcome: Outcome::Fail { at: now },
                };
                effects.push((invoke + rng.u64(1..takes), operation));
            }
        }
        effects.sort_by_key(|(at, _)| *at);
        let mut memory: HashMap<String, i64> = HashMap::new();
        let told = effects.into_iter().map(|(_, mut operation)| {
            let value = memory.get(&operation.key).copied();
            let (next, reply) = match &operation.call {
                Call::Set { value } => (value.parse().ok(), Reply::Nil),
                Call::Incr { by } => {
                    let sum = value.unwrap_or(0) + by;
                    (Some(sum), Reply::Int(sum))
                }
                Call::Del => (None, Reply::Bool(value.is_some())),
                _ => (
                    value,
                    value.map_or(Reply::Nil, |v| Reply::Text(v.to_string())),
                ),
            };
            match next {
                Some(next) => memory.insert(operation.key.clone(), next),
                None => memory.remove(&operation.key),
            };
            let at = operation.returned().unwrap_or_default();
            operation.outcome = Outcome::Ok { at, reply };
            operation
        });
        told.collect()
    }

    #[test]
    fn the_busiest_history_that_a_crowd_can_make_is_judged() {
        for seed in 0..4 {
            let history = busiest(seed);
            assert!(overlapping(&history) * 2 > history.len());
            let verdict = check(&history, Limits::default());
            assert!(verdict.is_linearizable(), "seed {seed}: {verdict}");
        }
    }
}
