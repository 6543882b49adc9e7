//! The eras of a soak: clients run, somebody is killed and started again, the rack heals,
//! and a roll call ends the era.

use super::cluster::Cluster;
use super::flows::{Around, Flow, Flows, Losses, Over};
use super::heal::{figure, has_copies_again, heal, noticed};
use super::insist::Asked;
use super::judge::{Era, Values, judge};
use super::load::{Counts, HOT, Load, understood};
use super::shape::Shape;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use rackmem_sim::history::{Call, Full, Recorder, Reply};
use rackmem_sim::linear::Verdict;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Operations that one client records in an era at most.
const RECORDED: usize = 200_000;
/// In so many eras of a hundred all nodes are killed at once, where the store is durable.
const ALL: u8 = 40;
/// How often all keys are set before the first kill, at most.
const FILLS: usize = 5;
/// Roll calls that end an era, at most, after a death. What a death has taken may be found out by
/// the first node that asks for it: until then the others have it in their caches, and that is no
/// older a value than the last. Once it is found out all agree, or they never will.
const ROLL_CALLS: u32 = 3;
/// Commands under way at a time to one node, where nothing else is going on.
const WINDOW: usize = 256;

/// One kill, and what came of it.
pub struct Kill {
    pub victims: Vec<String>,
    /// From the kill until somebody was served by a rack that had noticed.
    pub outage: Duration,
    /// From the kill until all were members again.
    pub whole: Duration,
    /// The last rebuild of the directory, at node 0.
    pub rebuild_us: u64,
    pub operations: u64,
    pub unknown: u64,
    pub flushes: u64,
    pub refused: u64,
    /// Buckets that began anew, empty.
    pub lost_buckets: u64,
    /// Through streams, queues and channels.
    pub flow: Flow,
    pub verdict: &'static str,
}

/// All of them.
#[derive(Clone, Default)]
pub struct Totals {
    pub kills: u64,
    pub restarts: u64,
    pub operations: u64,
    pub unknown: u64,
    pub flushes: u64,
    pub refused: u64,
    pub lost_buckets: u64,
    pub flow: Flow,
    pub undecided: u64,
    pub violations: Vec<String>,
}

/// A rack, and what is known of it.
pub struct Eras {
    cluster: Cluster,
    switch: bool,
    keys: Vec<String>,
    clients: usize,
    random: fastrand::Rng,
    values: Values,
    totals: Totals,
    number: usize,
}

impl Eras {
    /// A rack that is up. Many keys all have a value from the start; few are written soon enough.
    pub fn new(
        cluster: Cluster,
        switch: bool,
        keys: usize,
        clients: usize,
        seed: u64,
        stop: &Stop,
    ) -> Result<Self> {
        let mut eras = Eras {
            cluster,
            switch,
            keys: (0..keys).map(|key| format!("key:{key}")).collect(),
            clients,
            random: fastrand::Rng::with_seed(seed),
            values: Values::new(),
            totals: Totals::default(),
            number: 0,
        };
        if keys > HOT {
            eras.fill(stop)?;
        }
        Ok(eras)
    }

    /// Gives every key a value, some by each node. Where members are declared dead meanwhile, which
    /// a machine that is busy enough makes happen, what they had is gone,
    /// and all keys are set once more.
    fn fill(&mut self, stop: &Stop) -> Result<()> {
        let share = self.keys.len().div_ceil(self.cluster.addrs().len());
        let epoch = |eras: &Eras| figure(eras.cluster.addrs()[0], "rack_epoch");
        for _ in 0..FILLS {
            let before = epoch(self);
            let nodes = self.cluster.addrs().iter().enumerate();
            for (keys, (number, &addr)) in self.keys.chunks(share).zip(nodes) {
                let mut node = Asked::new(number, addr);
                for keys in keys.chunks(WINDOW) {
                    let values: Vec<String> = keys.iter().map(|key| format!("0.{key}")).collect();
                    let set = |(key, value): (&String, &String)| {
                        let value = value.clone();
                        Shape::of(key).command(key, &Call::Set { value }, false)
                    };
                    let words: Vec<_> = keys.iter().zip(&values).map(set).collect();
                    let words: Vec<_> = words.iter().map(|words| refer(words)).collect();
                    if !node.insist(&words, stop, |_, _| Ok(()))? {
                        return Ok(());
                    }
                    self.values.extend(keys.iter().cloned().zip(values));
                }
            }
            if before.is_some() && before == epoch(self) {
                return Ok(());
            }
        }
        Err(Failure::new(
            format!(
                "members were declared dead while keys were set, {FILLS} times, though none was killed"
            ),
            "raise --lease-ms: this machine is too busy for it; or take fewer --keys",
        ))
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    fn between(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.random.u64(from..to))
    }

    /// One era. None when told to stop in the middle.
    pub fn run(&mut self, stop: &Stop) -> Result<Option<Kill>> {
        self.number += 1;
        let nodes = self.cluster.addrs().len();
        let copies = self.cluster.has_copies();
        let (switch, victims) = match (copies, self.cluster.has_root_copies()) {
            (true, _) if self.cluster.is_durable() && self.random.u8(..100) < ALL => {
                (false, (0..nodes).collect())
            }
            // Any one, but the death of more might leave no majority.
            (true, _) => (false, vec![self.random.usize(..nodes)]),
            (false, true) => any_one(&mut self.random, self.switch, nodes),
            (false, false) => victims(&mut self.random, self.switch, nodes),
        };
        let (before, dead, after) = (
            self.between(300, 900),
            self.between(0, 2500),
            self.between(200, 600),
        );
        let addrs = self.cluster.addrs().to_vec();
        // Clients of nodes that die go to others; those who come back are served again in the next
        // era.
        let (recorder, mut counts, done) = (
            Recorder::new(RECORDED),
            Counts::default(),
            AtomicBool::new(false),
        );
        let mut kill = None;
        let mut deaths = Vec::new();
        let seed = self.random.u64(..);
        let (keys, era, clients) = (self.keys.clone(), self.number, self.clients * nodes);
        let cluster = &mut self.cluster;
        let flows = Flows::new(era);
        let around = Around {
            addrs: &addrs,
            recorder: &recorder,
            stop: &done,
            seed,
        };
        let healed = std::thread::scope(|scope| -> Result<bool> {
            let (_stop, _over) = (Raise(&done), Over(&flows));
            let mut loads = flows.start(scope, around);
            for number in 0..clients {
                let load = Load {
                    number,
                    addrs: &addrs,
                    keys: &keys,
                    recorder: &recorder,
                    counts: &counts,
                    stop: &done,
                    random: fastrand::Rng::with_seed(seed ^ number as u64),
                    era,
                };
                loads.push(scope.spawn(move || load.run()));
            }
            if !stop.sleep(before) {
                return Ok(false);
            }
            // One that lives on.
            let lives = (0..nodes).find(|node| !victims.contains(node));
            let alive = lives.map(|node| addrs[node]);
            let epoch = alive.and_then(|addr| figure(addr, "rack_epoch"));
            let epoch = epoch.unwrap_or(0);
            let at = Instant::now();
            if !copies {
                deaths.extend(victims.iter().map(|_| recorder.now()));
            }
            cluster.kill(switch, &victims);
            let noticed = alive.map(|addr| noticed(addr, epoch, &counts, &recorder, at, stop));
            if !stop.sleep(dead) || !cluster.restart(switch, &victims, stop)? {
                return Ok(false);
            }
            // Where all have died nobody notices.
            let outage = noticed.unwrap_or_else(|| at.elapsed());
            flows.moved(cluster.addrs());
            let rack = (nodes as u64, u64::from(self.switch));
            if !heal(cluster.addrs(), rack, stop)? || !has_copies_again(cluster, stop)? {
                return Ok(false);
            }
            kill = Some((outage, at.elapsed()));
            if !stop.sleep(after) {
                return Ok(false);
            }
            done.store(true, Relaxed);
            for load in loads {
                // One that has panicked has said so.
                let _ = load.join();
            }
            flows.finish(cluster.addrs(), stop)
        })?;
        let Some((outage, whole)) = kill.filter(|_| healed) else {
            return Ok(None);
        };
        let calls = if deaths.is_empty() { 1 } else { ROLL_CALLS };
        let Some((values, disagreed)) = self.agreed(calls, &recorder, stop)? else {
            return Ok(None);
        };
        let flushes = std::mem::take(&mut counts.flush_spans);
        let flushes = flushes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let losses = Losses {
            flushes: &flushes,
            death: !deaths.is_empty(),
        };
        let Some((flow, wrong)) = flows.judge(self.cluster.addrs(), losses, stop)? else {
            return Ok(None);
        };
        let known = Era {
            keys: &self.keys,
            before: &self.values,
            deaths: &deaths,
        };
        let verdict = match judge(&known, recorder.into_history()) {
            Verdict::Linearizable(_) if disagreed.is_none() => "linearizable",
            Verdict::GaveUp { .. } => {
                self.totals.undecided += 1;
                "too hard to judge"
            }
            Verdict::Linearizable(_) => "nodes disagree",
            Verdict::Violation(found) => {
                self.totals.violations.push(format!("era {era}: {found}"));
                "NOT LINEARIZABLE"
            }
        };
        let verdict = match wrong.is_empty() {
            true => verdict,
            false => "NOT IN ORDER",
        };
        let wrong = wrong.iter().map(|what| format!("era {era}: {what}"));
        self.totals.violations.extend(wrong);
        self.totals
            .violations
            .extend(disagreed.map(|what| format!("era {era}: {what}")));
        self.values = values;
        let mut names: Vec<String> = victims.iter().map(|node| format!("node {node}")).collect();
        names.extend(switch.then(|| "switch".to_owned()));
        let addr = self.cluster.addrs()[0];
        let lost_buckets = figure(addr, "rack_buckets_lost").unwrap_or(0);
        let kill = Kill {
            outage,
            whole,
            rebuild_us: figure(addr, "rack_rebuild_last_us").unwrap_or(0),
            operations: counts.done.into_inner(),
            unknown: counts.unknown.into_inner(),
            flushes: counts.flushes.into_inner(),
            refused: counts.lost.into_inner(),
            lost_buckets: lost_buckets.saturating_sub(self.totals.lost_buckets),
            flow,
            verdict,
            victims: names,
        };
        let totals = &mut self.totals;
        totals.kills += 1;
        totals.restarts += kill.victims.len() as u64;
        totals.operations += kill.operations;
        totals.unknown += kill.unknown;
        totals.flushes += kill.flushes;
        totals.refused += kill.refused;
        totals.lost_buckets = lost_buckets;
        totals.flow.put += kill.flow.put;
        totals.flow.taken += kill.flow.taken;
        totals.flow.messages += kill.flow.messages;
        Ok(Some(kill))
    }

    /// Calls the roll until all nodes agree, so many times at most. All that was answered is
    /// judged.
    fn agreed(&self, calls: u32, recorder: &Recorder, stop: &Stop) -> Result<Option<Called>> {
        let mut called = None;
        for nth in 0..calls {
            called = self.roll_call(nth, recorder, stop)?;
            if !matches!(called, Some((_, Some(_)))) {
                break;
            }
        }
        Ok(called)
    }

    /// Asks every node for every key while nobody writes. `None`: told to stop.
    fn roll_call(&self, nth: u32, recorder: &Recorder, stop: &Stop) -> Result<Option<Called>> {
        let mut values = Values::new();
        let mut disagreed = None;
        let addrs = self.cluster.addrs();
        let first = u32::MAX / 2 + nth * addrs.len() as u32;
        for (number, &addr) in addrs.iter().enumerate() {
            let mut node = Asked::new(number, addr);
            let mut log = recorder.client(first + number as u32);
            for keys in self.keys.chunks(WINDOW) {
                let get = |key: &String| Shape::of(key).command(key, &Call::Get, false);
                let words: Vec<_> = keys.iter().map(get).collect();
                let words: Vec<_> = words.iter().map(|words| refer(words)).collect();
                // As many as there may be keys are recorded, so there is room for each; a question
                // that is asked again is the same one.
                let asked = keys.iter().map(|key| log.begin(key, Call::Get));
                let asked: std::result::Result<Vec<_>, Full> = asked.collect();
                let mut asked: Vec<_> = asked
                    .map_err(std::io::Error::other)?
                    .into_iter()
                    .map(Some)
                    .collect();
                let done = node.insist(&words, stop, |nth, heard| {
                    let (key, Ok(answer)) = (&keys[nth], heard) else {
                        return Ok(());
                    };
                    let Ok(reply) = understood(&Call::Get, answer) else {
                        return Ok(());
                    };
                    let value = match &reply {
                        Reply::Text(value) => Some(value.clone()),
                        _ => None,
                    };
                    if let Some(ticket) = asked[nth].take() {
                        log.ok(ticket, reply);
                    }
                    if number == 0 {
                        values.extend(value.map(|value| (key.clone(), value)));
                    } else if values.get(key) != value.as_ref() {
                        let first = values.get(key);
                        disagreed = Some(format!(
                            "{key} is {first:?} at node 0, {value:?} at node {number}"
                        ));
                    }
                    Ok(())
                })?;
                if !done {
                    return Ok(None);
                }
            }
        }
        Ok(Some((values, disagreed)))
    }
}

/// What node 0 has, and which key nodes do not agree on.
type Called = (Values, Option<String>);

/// Words as a client sends them.
fn refer(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Whether the switch dies, if there is one, and which nodes: never the first.
pub fn victims(random: &mut fastrand::Rng, switch: bool, nodes: usize) -> (bool, Vec<usize>) {
    let node = random.usize(1..nodes);
    let (switch, mut victims) = match random.u8(..100) {
        0..40 if switch => (true, Vec::new()),
        40..55 if switch => (true, vec![node]),
        55..65 if nodes > 2 => (false, vec![node, node % (nodes - 1) + 1]),
        _ => (false, vec![node]),
    };
    victims.dedup();
    (switch, victims)
}

/// The same where any one node may die, and the death of more might leave no majority.
fn any_one(random: &mut fastrand::Rng, switch: bool, nodes: usize) -> (bool, Vec<usize>) {
    let node = vec![random.usize(..nodes)];
    match random.u8(..100) {
        0..20 if switch => (true, Vec::new()),
        20..40 if switch => (true, node),
        _ => (false, node),
    }
}

/// Ends clients however the scope that they run in ends.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
