//! The eras of a soak: clients run, somebody is killed and started again, the rack heals,
//! and a roll call ends the era.

use super::client::Client;
use super::cluster::Cluster;
use super::insist::Asked;
use super::judge::{Era, Values, judge};
use super::load::{Counts, HOT, Load, understood};
use super::shape::Shape;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use rackmem_sim::history::{Call, Full, Recorder, Reply};
use rackmem_sim::linear::Verdict;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Operations that one client records in an era at most.
const RECORDED: usize = 200_000;
/// How long a rack may take to be whole again after its processes are back.
const HEALED: Duration = Duration::from_secs(60);
/// How often all keys are set before the first kill, at most.
const FILLS: usize = 5;
/// Commands under way at a time to one node, where nothing else is going on.
const WINDOW: usize = 256;
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);

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
        let (switch, victims) = victims(&mut self.random, self.switch, nodes);
        let (before, dead, after) = (
            self.between(300, 900),
            self.between(0, 2500),
            self.between(200, 600),
        );
        let addrs = self.cluster.addrs().to_vec();
        // Clients of nodes that die go to others; those who come back are served again in the next
        // era.
        let (recorder, counts, done) = (
            Recorder::new(RECORDED),
            Counts::default(),
            AtomicBool::new(false),
        );
        let mut kill = None;
        let mut deaths = Vec::new();
        let seed = self.random.u64(..);
        let (keys, era, clients) = (self.keys.clone(), self.number, self.clients * nodes);
        let cluster = &mut self.cluster;
        let healed = std::thread::scope(|scope| -> Result<bool> {
            let _stop = Raise(&done);
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
                scope.spawn(move || load.run());
            }
            if !stop.sleep(before) {
                return Ok(false);
            }
            let epoch = figure(addrs[0], "rack_epoch").unwrap_or(0);
            let at = Instant::now();
            deaths.extend(victims.iter().map(|_| recorder.now()));
            cluster.kill(switch, &victims);
            let outage = noticed(addrs[0], epoch, &counts, &recorder, at, stop);
            if !stop.sleep(dead) || !cluster.restart(switch, &victims, stop)? {
                return Ok(false);
            }
            let rack = (nodes as u64, u64::from(self.switch));
            if !heal(cluster.addrs(), rack, stop)? {
                return Ok(false);
            }
            kill = Some((outage, at.elapsed()));
            Ok(stop.sleep(after))
        })?;
        let Some((outage, whole)) = kill.filter(|_| healed) else {
            return Ok(None);
        };
        let Some((values, disagreed)) = self.roll_call(&recorder, stop)? else {
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
        Ok(Some(kill))
    }

    /// Asks every node for every key while nobody writes. Also says which key nodes do not agree
    /// on. `None`: told to stop.
    fn roll_call(
        &self,
        recorder: &Recorder,
        stop: &Stop,
    ) -> Result<Option<(Values, Option<String>)>> {
        let mut values = Values::new();
        let mut disagreed = None;
        for (number, &addr) in self.cluster.addrs().iter().enumerate() {
            let mut node = Asked::new(number, addr);
            let mut log = recorder.client(u32::MAX / 2 + number as u32);
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

/// Ends clients however the scope that they run in ends.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A figure of a node's section of INFO.
fn figure(addr: SocketAddr, name: &str) -> Option<u64> {
    let figures = Client::connect(addr).ok()?.figures().ok()?;
    figures
        .into_iter()
        .find(|row| row.0 == name)
        .map(|row| row.1)
}

/// Waits until the rack has begun another epoch and somebody was served in it; how long that took.
fn noticed(
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

/// Waits until every node sees all members, and all live in one epoch. `false` when told to stop.
fn heal(addrs: &[SocketAddr], (nodes, switch): (u64, u64), stop: &Stop) -> Result<bool> {
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
