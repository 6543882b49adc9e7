//! A record of what clients on all nodes did to few keys at once, and the judgement on it.

use super::halt::{Halt, Played, wrong};
use super::meter::Meter;
use super::scene::Scene;
use super::summary::{Judged, Story};
use crate::size::count;
use crate::store::NodeStore;
use rackmem_sim::history::{Call, ClientLog, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::collections::HashMap;
use std::sync::Barrier;
use std::time::Instant;

/// Clients of each node.
const CLIENTS: usize = 2;
/// Operations of each client.
const OPERATIONS: usize = 5_000;
/// Few keys, so that clients meet.
const KEYS: [&str; 4] = ["history:0", "history:1", "history:2", "history:3"];
/// Clients outnumber the cores, so this often in 256 operations one lets the others run in the middle of it:
/// operations overlap on any machine, and all but these keep the interval they took.
const GIVE_WAY: u8 = 16;
/// Values that are set: numbers, since clients also add to them.
const VALUES: i64 = 1_000_000;

pub fn run(scene: &Scene<'_>, story: &mut Story) -> Played<()> {
    let recorder = Recorder::new(OPERATIONS);
    let clients = scene.nodes() * CLIENTS;
    // Without it the first client would be done before the last one is there.
    let start = Barrier::new(clients);
    let bar = scene
        .show
        .bar("record a history", (clients * OPERATIONS) as u64);
    let phase = scene.measure("recorded", || {
        scene.on_clients(CLIENTS, |client, store| {
            let mut log = recorder.client(client as u32);
            let mut rng = fastrand::Rng::with_seed(client as u64);
            let (mut meter, mut pace) = (Meter::default(), scene.pace(&bar));
            start.wait();
            for _ in 0..OPERATIONS {
                meter.time(|| operate(store, &mut log, &mut rng))?;
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

/// One operation on one key, both at random.
fn operate(store: &NodeStore, log: &mut ClientLog<'_>, rng: &mut fastrand::Rng) -> Played<()> {
    let key = KEYS[rng.usize(..KEYS.len())];
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

/// Operations that began before an earlier one on the same key had ended: without any, the check says nothing.
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
