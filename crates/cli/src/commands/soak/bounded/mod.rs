//! `rackmem soak --bounded`: the processes of the rack read and write bounded memory and tell of
//! it, while some are stopped, for less than the lease and for longer, and killed. What they have
//! told is judged by the ages of what they have read.

mod worker;

pub use worker::{BoundedWork, work};

use super::SoakArgs;
use super::cluster::{Cluster, Plan, Work};
use super::copies::line::Line;
use super::copies::record::{Record, figures};
use super::locks::{Process, UNREAD};
use super::paused::Paused;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use rackmem::{Durability, Time};
use rackmem_sim::history::{self, Operation};
use rackmem_sim::staleness::{AgePromise, Ages, NoVerdict, check};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Operations after which a run ends: they are judged in memory.
const OPERATIONS: usize = 4_000_000;
/// How long it may take until every node is served again.
const HEALED: Duration = Duration::from_secs(90);
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);
/// What a contradiction means.
const REPORT: &str = "this is a defect: please report it with the seed and the options";

/// A bound, as `--bound` has it.
pub fn bound(text: &str) -> std::result::Result<Duration, String> {
    let Time(bound) = text.parse()?;
    let range = Duration::from_millis(5)..=Duration::from_secs(60);
    match range.contains(&bound) {
        true => Ok(bound),
        false => Err("a bound is from 5 ms to a minute".to_owned()),
    }
}

/// What is done to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blow {
    /// SIGSTOP, and SIGCONT before its lease is over.
    Stopped,
    /// The same, when it is over.
    StoppedLong,
    /// SIGKILL.
    Killed,
}

impl Blow {
    fn name(self) -> &'static str {
        match self {
            Blow::Stopped => "stopped",
            Blow::StoppedLong => "stopped for longer than the lease",
            Blow::Killed => "killed",
        }
    }

    /// Those that are asked for. Without a word: all.
    fn wanted(args: &SoakArgs) -> Vec<Blow> {
        let (stop, kill) = match (args.stop, args.kill.is_some()) {
            (false, false) => (true, true),
            chosen => chosen,
        };
        let stops = [Blow::Stopped, Blow::StoppedLong].into_iter();
        let stops = stops.filter(|_| stop);
        stops.chain(kill.then_some(Blow::Killed)).collect()
    }
}

/// A run.
struct Soak {
    cluster: Cluster,
    told: Receiver<(Process, Line)>,
    record: Record,
    random: fastrand::Rng,
    nodes: usize,
    lease: Duration,
    /// How often each thing was done.
    done: BTreeMap<&'static str, u64>,
}

/// Runs it.
pub fn run(
    args: &SoakArgs,
    (seed, lease_ms): (u64, u64),
    stop: &Stop,
    json: bool,
) -> Result<Ended> {
    let nodes = args.nodes as usize;
    let file = ArenaFile::new();
    let work = BoundedWork {
        bound: args.bound,
        minutes: args.seconds().div_ceil(60),
        old: args.old,
        arena: file.0.clone(),
    };
    let (teller, told) = sync_channel(UNREAD);
    let hears = move |process: Process, line: &str| {
        // A line that a death has cut off is none.
        let told = line.parse().map(|line| (process, line));
        let _ = told.map(|told| teller.send(told));
    };
    let plan = Plan {
        nodes,
        switch: !args.no_switch,
        fabric: args.fabric.name(),
        etcd: args.membership == super::Membership::Etcd,
        lease_ms,
        keys: 0,
        tight: false,
        loss: args.loss,
        delay: args.delay,
        work: Some(Work {
            options: vec!["--use-bounded".into(), work.to_string()],
            sign: "bounded",
            hears: Arc::new(hears),
        }),
        copies: None,
        durability: Durability::Memory,
        root_copies: false,
        more: String::new(),
    };
    let Some(cluster) = Cluster::start(plan, stop)? else {
        return Ok(Ended::Interrupted);
    };
    if !json {
        out::line(format!(
            "soak of bounded memory: {nodes} nodes, nothing older than {:?}, lease {lease_ms} ms, seed {seed}; Ctrl-C stops it",
            args.bound,
        ));
    }
    let mut soak = Soak {
        cluster,
        told,
        record: Record::default(),
        random: fastrand::Rng::with_seed(seed),
        nodes,
        lease: Duration::from_millis(lease_ms),
        done: BTreeMap::new(),
    };
    let began = Instant::now();
    let ran = soak.run(args, stop, json);
    let (history, done) = soak.end();
    let ran = ran.and_then(|()| {
        args.history
            .as_deref()
            .map_or(Ok(()), |file| write(&history, file))
    });
    let judged = check(
        &history,
        AgePromise {
            bound: u64::try_from(args.bound.as_nanos()).unwrap_or(u64::MAX),
            // A process may be stopped between its section's end and its report.
            section: None,
            onward: true,
        },
    );
    tell((&history, &done), &judged, (began.elapsed(), seed), json);
    if let Err(why) = judged {
        // What contradicts the bound says more than why the run has ended.
        return Err(Failure::new(why.to_string(), REPORT));
    }
    ran?;
    Ok(match stop.requested() {
        true => Ended::Interrupted,
        false => Ended::Done,
    })
}

/// The arena's file, which goes with this value.
struct ArenaFile(std::path::PathBuf);

impl ArenaFile {
    fn new() -> Self {
        let number = fastrand::u64(..);
        ArenaFile(super::cluster::scratch().join(format!("rackmem-soak-arena-{number:016x}")))
    }
}

impl Drop for ArenaFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Soak {
    fn run(&mut self, args: &SoakArgs, stop: &Stop, json: bool) -> Result<()> {
        let (began, blows) = (Instant::now(), Blow::wanted(args));
        let enough = args.kills.unwrap_or(u64::MAX);
        if self.serves(stop)?.is_none() {
            return Ok(());
        }
        for number in 0..enough {
            let pause = Duration::from_millis(self.random.u64(300..900));
            let over = began.elapsed() >= Duration::from_secs(args.seconds());
            if over || self.record.operations() >= OPERATIONS || !self.sleep(pause, stop) {
                return Ok(());
            }
            // One of each kind first, so that a short run has them all.
            let blow = match number as usize {
                nth if nth < blows.len() => blows[nth],
                _ => blows[self.random.usize(..blows.len())],
            };
            // Node 0 is the home of the items, and keeps its lease.
            let least = usize::from(blow != Blow::Stopped);
            let node = self.random.usize(least..self.nodes);
            let (at, before) = (Instant::now(), self.record.operations());
            if !self.deal(blow, node, stop)? {
                return Ok(());
            }
            let during = self.record.operations() - before;
            let Some(whole) = self.serves(stop)? else {
                return Ok(());
            };
            *self.done.entry(blow.name()).or_default() += 1;
            let ms = |time: Duration| time.as_millis() as u64;
            let (time, whole) = (ms(at.elapsed()), ms(whole));
            if json {
                out::line(json!({
                    "event": number + 1, "what": blow.name(), "node": node, "operations_meanwhile": during, "ms": time, "served_after_ms": whole,
                }));
            } else {
                out::line(format!(
                    "{}: node {node} {}; {during} operations of others meanwhile; all are served {whole} ms after",
                    number + 1,
                    blow.name(),
                ));
            }
        }
        Ok(())
    }

    /// `false` when told to stop.
    fn deal(&mut self, blow: Blow, node: usize, stop: &Stop) -> Result<bool> {
        let most = self.lease.as_millis() as u64;
        let time = match blow {
            Blow::Stopped => self.random.u64(1..most / 2),
            Blow::StoppedLong => self.random.u64(most + most / 2..most * 3),
            Blow::Killed => {
                self.cluster.kill(false, &[node]);
                let after = Duration::from_millis(self.random.u64(..most * 2));
                return Ok(self.sleep(after, stop) && self.cluster.restart(false, &[node], stop)?);
            }
        };
        let time = Duration::from_millis(time);
        let process = self.cluster.process(node);
        let paused = process
            .map(|process| Paused::new(process, time))
            .transpose()?;
        let goes_on = self.sleep(time, stop);
        drop(paused);
        Ok(goes_on)
    }

    /// Reads what has been told.
    fn hear(&mut self) {
        for (process, line) in self.told.try_iter() {
            self.record.add(process, line);
        }
    }

    /// Sleeps and hears; `false` when told to stop.
    fn sleep(&mut self, time: Duration, stop: &Stop) -> bool {
        let began = Instant::now();
        while began.elapsed() < time {
            self.hear();
            if !stop.sleep(STEP) {
                return false;
            }
        }
        self.hear();
        !stop.requested()
    }

    /// Waits until every node has been served, and starts those again that the rack has gone on
    /// without. None when told to stop.
    fn serves(&mut self, stop: &Stop) -> Result<Option<Duration>> {
        let began = Instant::now();
        self.hear();
        let before: HashMap<usize, u64> = self.record.ended.clone();
        loop {
            self.cluster.revive(stop)?;
            let served = |node: &usize| self.record.ended.get(node) > before.get(node);
            let Some(node) = (0..self.nodes).find(|node| !served(node)) else {
                return Ok(Some(began.elapsed()));
            };
            if began.elapsed() > HEALED {
                let seconds = HEALED.as_secs();
                let cause = format!("node {node} is not served within {seconds} s");
                return Err(Failure::new(cause, REPORT));
            }
            if !self.sleep(STEP, stop) {
                return Ok(None);
            }
        }
    }

    /// Ends all processes and says what they have told, and what was done to them.
    fn end(mut self) -> (Vec<Operation>, BTreeMap<&'static str, u64>) {
        let all: Vec<usize> = (0..self.nodes).collect();
        self.cluster.kill(true, &all);
        // Everything is told: the pipes are at their ends.
        while let Ok((process, line)) = self.told.recv_timeout(Duration::from_secs(1)) {
            self.record.add(process, line);
        }
        (self.record.history(), self.done)
    }
}

fn write(operations: &[Operation], file: &Path) -> Result<()> {
    let created = File::create(file);
    let written = created.and_then(|file| history::write(BufWriter::new(file), operations));
    written.map_err(|error| {
        let cause = format!("{}: {error}", file.display());
        Failure::new(cause, "give a file that can be written")
    })
}

fn tell(
    (history, done): (&[Operation], &BTreeMap<&'static str, u64>),
    judged: &std::result::Result<Ages, NoVerdict>,
    (time, seed): (Duration, u64),
    json: bool,
) {
    let (unknown, _) = figures(history);
    let in_arena = history.iter().filter(|operation| {
        let key = operation.key.parse::<u64>();
        key.is_ok_and(|key| key >= worker::ARENA)
    });
    let (seconds, in_arena) = (time.as_secs_f64(), in_arena.count());
    let (ages, violations) = match judged {
        Ok(ages) => (*ages, Vec::new()),
        Err(why) => (Ages::default(), vec![why.to_string()]),
    };
    let events: u64 = done.values().sum();
    if json {
        return out::line(json!({
            "seed": seed, "seconds": seconds, "events": events, "done": done, "operations": history.len(),
            "in_arena": in_arena, "unknown": unknown, "reads": ages.reads, "old": ages.old, "oldest_ns": ages.oldest,
            "violations": violations,
        }));
    }
    let done: Vec<String> = done
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    out::line(format!(
        "soak of bounded memory: {seconds:.0} s, {events} events ({}), {} operations, {in_arena} of them in the arena, {unknown} writes of unknown outcome; \
         {} of {} reads were of what had been superseded, by {:.1} ms at most; {} violations",
        done.join(", "),
        history.len(),
        ages.old,
        ages.reads,
        ages.oldest as f64 / 1e6,
        violations.len(),
    ));
}
