//! `rackmem soak --replicated`: the processes of the rack read and write lines with copies and tell
//! of it, while replicas are killed, paused and replaced and the switch starts again. What they
//! have told is judged as one history.

mod beside;
mod event;
pub mod line;
mod rack;
pub mod record;
mod worker;

pub use event::{Killed, Planted};
pub use worker::{Work, work};

use super::SoakArgs;
use super::cluster::{self, Cluster, Plan};
use super::locks::{Process, now};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use event::Event;
use line::Line;
use rack::ReplicatedRack;
use rackmem::Durability;
use rackmem_sim::history::{self, Operation};
use rackmem_sim::linear::{Limits, Verdict, check};
use record::{Record, figures};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Lines that processes have told and nobody has read: more make them wait.
const UNREAD: usize = 1 << 16;
/// Operations after which a run ends: they are judged in memory.
const OPERATIONS: usize = 2_000_000;
/// How long it may take until all copies count again and every node has been served.
const HEALED: Duration = Duration::from_secs(90);
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);
/// What a contradiction means.
const REPORT: &str = "this is a defect: please report it with the seed and the options";

/// A run.
struct Soak {
    rack: ReplicatedRack,
    told: Receiver<(Process, Line)>,
    record: Record,
    random: fastrand::Rng,
    copies: u8,
    durability: Durability,
    planted: Option<Planted>,
    /// Objects instead of lines, and what is killed.
    objects: Option<Killed>,
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
    let (copies, durability) = asked(args);
    // One spare at least, to which copies are given.
    let nodes = (args.nodes as usize).max(usize::from(copies) + 1);
    let work = Work {
        began: now(),
        seconds: args.seconds(),
        copies: match args.planted {
            // A region of objects does not grow.
            None if args.objects => copies,
            None => copies.saturating_sub(2).max(1),
            Some(_) => copies,
        },
        durability,
        objects: args.objects,
    };
    let (teller, told) = sync_channel(UNREAD);
    let hears = move |process: Process, line: &str| {
        // A line that a death has cut off is none.
        let told = line.parse().map(|line| (process, line));
        let _ = told.map(|told| teller.send(told));
    };
    // Who plants a defect decides what becomes of members by itself.
    let replace = if args.planted.is_some() { "0s" } else { "1s" };
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
        work: Some(cluster::Work {
            options: vec!["--use-copies".into(), work.to_string()],
            sign: "copies",
            hears: Arc::new(hears),
        }),
        copies: None,
        durability,
        root_copies: false,
        more: format!("replace_after = '{replace}'\nstore = 'FOLDER/copies'\nmtu = 1500\n"),
    };
    let switch = plan.switch;
    let Some(cluster) = Cluster::start(plan, stop)? else {
        return Ok(Ended::Interrupted);
    };
    if !json {
        out::line(format!(
            "soak of copies: {nodes} nodes{}, {copies} copies ({durability}), lease {lease_ms} ms, seed {seed}; Ctrl-C stops it",
            if switch { " and a switch" } else { "" },
        ));
    }
    // The last one may have objects without copies.
    let mortal = nodes - usize::from(work.has_plain());
    let mut soak = Soak {
        rack: ReplicatedRack::new(cluster, (nodes, mortal), switch)?,
        told,
        record: Record::default(),
        random: fastrand::Rng::with_seed(seed),
        copies,
        durability,
        planted: args.planted,
        objects: args.objects.then_some(args.kill.unwrap_or(Killed::Any)),
        done: BTreeMap::new(),
    };
    let began = Instant::now();
    let ran = soak.run(args, stop, json);
    let history = soak.end();
    let told = ran.and_then(|()| match &args.history {
        None => Ok(()),
        Some(file) => write(&history.0, file),
    });
    let verdict = check(&history.0, Limits::default());
    tell(&history, &verdict, (began.elapsed(), seed), json);
    match verdict {
        // What contradicts itself says more than why the run has ended.
        Verdict::Violation(found) => Err(Failure::new(
            format!("line {} is not linearizable: {found}", found.key),
            REPORT,
        )),
        Verdict::GaveUp { .. } | Verdict::Linearizable(_) => {
            told?;
            Ok(match stop.requested() {
                true => Ended::Interrupted,
                false => Ended::Done,
            })
        }
    }
}

/// Copies, and what they survive. The parser of arguments takes no others.
fn asked(args: &SoakArgs) -> (u8, Durability) {
    let copies = args
        .copies
        .as_ref()
        .and_then(|copies| copies.parse().ok())
        .unwrap_or(3);
    let durability = Durability::named(&args.durability);
    (copies, durability.unwrap_or_default())
}

impl Soak {
    fn run(&mut self, args: &SoakArgs, stop: &Stop, json: bool) -> Result<()> {
        let began = Instant::now();
        let enough = args.kills.unwrap_or(u64::MAX);
        if !self.heal(stop)? {
            return Ok(());
        }
        for number in 0..enough {
            let pause = Duration::from_millis(self.random.u64(300..900));
            let over = began.elapsed() >= Duration::from_secs(args.seconds());
            if over || self.record.operations() >= OPERATIONS || !self.sleep(pause, stop) {
                return Ok(());
            }
            let Some(event) = self.next(number) else {
                return Ok(());
            };
            let (at, before) = (Instant::now(), self.record.operations());
            if !self.carry_out(&event, stop)? {
                return Ok(());
            }
            let during = self.record.operations() - before;
            if !self.heal(stop)? {
                return Ok(());
            }
            *self.done.entry(event.name()).or_default() += 1;
            tell_event(number + 1, &event, (at.elapsed(), during), json);
        }
        Ok(())
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

    /// Waits until all copies count and every node has been served. `false` when told to stop.
    fn heal(&mut self, stop: &Stop) -> Result<bool> {
        let began = Instant::now();
        let mut before: Option<HashMap<usize, u64>> = None;
        loop {
            self.rack.revive(stop)?;
            let waits = self.rack.unwell(self.durability, self.planted)?;
            let unserved = match (&waits, &before) {
                (Some(_), _) => None,
                // Whoever was served before all was well may not be now.
                (None, None) => {
                    before = Some(self.record.ended.clone());
                    continue;
                }
                (None, Some(before)) => {
                    let served = |node: &usize| self.record.ended.get(node) > before.get(node);
                    let unserved = (0..self.rack.nodes).find(|node| !served(node));
                    match unserved {
                        None => return Ok(true),
                        Some(node) => Some(format!("node {node} is not served")),
                    }
                }
            };
            if began.elapsed() > HEALED {
                let why = waits.or(unserved).unwrap_or_default();
                let seconds = HEALED.as_secs();
                return Err(Failure::new(
                    format!("not whole again after {seconds} s: {why}"),
                    REPORT,
                ));
            }
            if !self.sleep(STEP, stop) {
                return Ok(false);
            }
        }
    }

    /// Ends all processes and says what they have told, and what was done to them.
    fn end(mut self) -> (Vec<Operation>, BTreeMap<&'static str, u64>) {
        self.rack.end();
        // Everything is told: the pipes are at their ends.
        while let Ok((process, line)) = self.told.recv_timeout(Duration::from_secs(1)) {
            self.record.add(process, line);
        }
        (self.record.history(), self.done)
    }
}

fn write(history: &[Operation], file: &Path) -> Result<()> {
    let created = File::create(file);
    let written = created.and_then(|file| history::export(history, BufWriter::new(file)));
    written.map(drop).map_err(|error| {
        let cause = format!("{}: {error}", file.display());
        Failure::new(cause, "give a file that can be written")
    })
}

fn tell_event(number: u64, event: &Event, (time, during): (Duration, usize), json: bool) {
    let ms = time.as_millis() as u64;
    let victims = event.victims();
    if json {
        return out::line(json!({
            "event": number, "what": event.name(), "victims": victims, "whole_ms": ms, "operations_meanwhile": during,
        }));
    }
    out::line(format!(
        "{number}: {} {}; {during} operations meanwhile; all copies back and serving after {ms} ms",
        event.name(),
        victims.join(", "),
    ));
}

fn tell(
    (history, done): &(Vec<Operation>, BTreeMap<&'static str, u64>),
    verdict: &Verdict,
    (time, seed): (Duration, u64),
    json: bool,
) {
    let (unknown, lines) = figures(history);
    let seconds = time.as_secs_f64();
    let events: u64 = done.values().sum();
    let (violations, undecided) = match verdict {
        Verdict::Linearizable(_) => (Vec::new(), 0),
        Verdict::GaveUp { .. } => (Vec::new(), 1),
        Verdict::Violation(found) => (vec![found.to_string()], 0),
    };
    if json {
        return out::line(json!({
            "seed": seed, "seconds": seconds, "events": events, "done": done, "operations": history.len(), "unknown": unknown,
            "lines": lines, "undecided": undecided, "violations": violations,
        }));
    }
    let done: Vec<String> = done
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    out::line(format!(
        "soak of copies: {seconds:.0} s, {events} events ({}), {} operations on {lines} lines, {unknown} of unknown outcome; {verdict}",
        done.join(", "),
        history.len(),
    ));
}
