//! `bench failover`: what the death of the switch, and of a node, costs a rack at work (Fig.
//! 13 of the Concordia paper).
//!
//! The members are `Rack`s that joined one another over UDP in this process, with a folder for
//! their membership: one clock and one memory for the counts. One that is dropped says nothing to
//! the others, as one that was killed does. Every node has a thread that reads and writes words,
//! most of them shared by all.

use super::{BenchError, Progress, Result};
use crate::report::Report;
use crate::stop;
use crate::timeline::{Mark, Timeline};
use rackmem::{Config, Node, Rack};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes, at least 2.
    pub nodes: usize,
    /// Time without a heartbeat after which a member is declared dead: most of an outage.
    pub lease: Duration,
    /// Percent of operations on data that all nodes share.
    pub sharing: u8,
    /// Percent of operations that read.
    pub reads: u8,
    /// How long the rack is whole, then without the victim, then whole again.
    pub phases: [Duration; 3],
}

impl Default for Options {
    fn default() -> Self {
        Options {
            nodes: 4,
            lease: Duration::from_secs(1),
            sharing: 60,
            reads: 50,
            phases: [2, 3, 4].map(Duration::from_secs),
        }
    }
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct FailoverReport {
    /// The figures.
    #[serde(flatten)]
    pub report: Report,
    /// Throughput step by step.
    pub timelines: Vec<Timeline>,
}

const BLOCK: usize = 4096;
/// All private data of a node, as in `bench micro`.
const PRIVATE: usize = 4 << 20;
/// All shared data.
const SHARED: usize = 1 << 20;
const CACHE: usize = 4 << 20;
const MEMORY: usize = 64 << 20;
/// Between two looks at the members.
const LOOK: Duration = Duration::from_millis(1);
/// How long to wait for a change that does not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// After a failed operation: the rack changes, or the block is lost.
const PAUSE: Duration = Duration::from_millis(1);
/// The share of the entries, and of the speed, of before that counts as all of it.
const BACK: f64 = 0.9;
/// What the paper reports, in ms.
const PAPER: [(&str, f64); 2] = [
    ("paper/switch/rebuild", 1900.0),
    ("paper/switch/hot-blocks-back", 1500.0),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Switch,
    Node,
}

/// Runs it; throughput step by step is added to the timelines.
pub fn run(
    options: &Options,
    report: &mut Report,
    timelines: &mut Vec<Timeline>,
    progress: Progress<'_>,
) -> Result<()> {
    for (name, value) in PAPER {
        report.add(name, value, "ms")?;
    }
    for victim in [Victim::Switch, Victim::Node] {
        timelines.push(once(options, victim, report, progress)?);
    }
    Ok(())
}

/// The addresses of a rack of one process, and the folder of its members.
struct Place {
    config: Config,
    folder: PathBuf,
}

impl Place {
    fn new(options: &Options) -> Result<Place> {
        let name = format!("rackmem-failover-{:016x}", fastrand::u64(..));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        let addresses = rackmem_hosts::addresses(options.nodes + 1);
        let quoted = |address| format!("\"{address}\"");
        let ports: Vec<String> = addresses.iter().map(quoted).collect();
        let text = format!(
            "nodes = [{}]\nswitch = {}\nmembership = \"dir:{}\"\nlease_ms = {}\n\
             block_size = {BLOCK}\ncache = {CACHE}\nmemory = {MEMORY}\npatience_ms = {}",
            ports[1..].join(", "),
            ports[0],
            folder.display(),
            options.lease.as_millis(),
            PATIENCE.as_millis(),
        );
        let config = Config::parse(&text)?;
        Ok(Place { config, folder })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the threads of all nodes have in common.
struct Work<'a> {
    options: &'a Options,
    timeline: &'a Timeline,
    /// Each node's part of the shared data; none while the node is dead.
    shared: RwLock<Vec<Option<u64>>>,
    stop: AtomicBool,
}

impl Work<'_> {
    fn share(&self, node: usize, addr: Option<u64>) {
        if let Ok(mut shared) = self.shared.write() {
            shared[node] = addr;
        }
    }

    fn shared(&self, node: usize) -> Option<u64> {
        self.shared.read().ok().and_then(|all| all[node])
    }

    /// One node's thread; ends when told to, or with its node.
    fn run(&self, node: &Node, gone: &AtomicBool, private: u64) {
        let nodes = self.options.nodes;
        let mut random = fastrand::Rng::with_seed(u64::from(node.id()) + 1);
        while !self.stop.load(Relaxed) && !gone.load(Relaxed) {
            let (base, len) = match random.u8(..100) < self.options.sharing {
                true => (self.shared(random.usize(..nodes)), SHARED / nodes),
                false => (Some(private), PRIVATE),
            };
            let Some(base) = base else { continue };
            let addr = base + random.usize(..len / 8) as u64 * 8;
            let done = match random.u8(..100) < self.options.reads {
                true => node.load(addr).map(|_| ()),
                false => node.store(addr, 1),
            };
            match done {
                Ok(()) => self.timeline.count(),
                Err(rackmem::AccessError::Lost { addr }) => {
                    // What the dead node had changed; the bench has no use for the old content.
                    let _ = node.accept_empty(addr);
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Looks until something is so; when that was, since the timeline began.
fn until(timeline: &Timeline, what: &str, mut so: impl FnMut() -> bool) -> Result<Duration> {
    let began = Instant::now();
    while !so() {
        if stop::requested() {
            return Err(BenchError::Stopped);
        }
        if began.elapsed() > PATIENCE {
            return Err(BenchError::Missing(format!("never: {what}")));
        }
        std::thread::sleep(LOOK);
    }
    Ok(timeline.now())
}

fn once(
    options: &Options,
    victim: Victim,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<Timeline> {
    let name = if victim == Victim::Switch {
        "switch"
    } else {
        "node"
    };
    progress(&format!("a {name} dies: the rack comes up"));
    let place = Place::new(options)?;
    let mut switch = Some(Rack::serve_switch(&place.config)?);
    let join = |id| Rack::join(&place.config, id);
    let mut racks = (0..options.nodes)
        .map(|id| join(id).map(Some))
        .collect::<rackmem::Result<Vec<_>, rackmem::OpenError>>()?;
    let nodes: Vec<Node> = racks
        .iter()
        .flatten()
        .flat_map(|rack| rack.nodes().to_vec())
        .collect();
    let timeline = Timeline::new(name, options.phases.iter().sum::<Duration>() + PATIENCE);
    let part = SHARED / options.nodes;
    let shared = nodes.iter().map(|node| node.alloc_bytes(part).map(Some));
    let work = Work {
        options,
        timeline: &timeline,
        shared: RwLock::new(shared.collect::<rackmem::Result<_, rackmem::AllocError>>()?),
        stop: AtomicBool::new(false),
    };
    let private = nodes.iter().map(|node| node.alloc_bytes(PRIVATE));
    let private = private.collect::<rackmem::Result<Vec<u64>, rackmem::AllocError>>()?;
    let gone: Vec<AtomicBool> = nodes.iter().map(|_| AtomicBool::new(false)).collect();
    let never = AtomicBool::new(false);
    let last = options.nodes - 1;
    std::thread::scope(|scope| -> Result<()> {
        let _stop = Raise(&work.stop);
        for (at, node) in nodes.iter().enumerate() {
            let (work, gone, private) = (&work, &gone[at], private[at]);
            scope.spawn(move || work.run(node, gone, private));
        }
        let pause = |time: Duration| {
            stop::sleep(time);
            match stop::requested() {
                true => Err(BenchError::Stopped),
                false => Ok(()),
            }
        };
        let view = |racks: &[Option<Rack>]| racks[0].as_ref().and_then(Rack::view);
        // Requests for these during a rebuild wait for its end.
        let rebuilds = |racks: &[Option<Rack>]| {
            let metrics = racks[0].as_ref().map(Rack::metrics);
            let first = metrics.and_then(|metrics| metrics.nodes.into_iter().next());
            first.map(|node| node.rebuilds).unwrap_or_default()
        };
        let entries = |rack: &Option<Rack>| {
            let metrics = rack.as_ref().and_then(|rack| rack.metrics().switch);
            metrics.map_or(0, |switch| switch.entries)
        };
        progress(&format!("a {name} dies: the rack is whole"));
        pause(options.phases[0])?;
        let owned = entries(&switch);
        let before = rebuilds(&racks).done;
        progress(&format!("a {name} dies: the rack is without it"));
        let killed = timeline.mark(Mark::Killed);
        match victim {
            Victim::Switch => switch = None,
            Victim::Node => {
                gone[last].store(true, Relaxed);
                racks[last] = None;
                work.share(last, None);
            }
        }
        let known = until(&timeline, "the others know", || {
            view(&racks).is_some_and(|view| match victim {
                Victim::Switch => view.switch.is_none(),
                Victim::Node => !view.live.contains(last as u16),
            })
        })?;
        let served = until(&timeline, "the others go on", || {
            rebuilds(&racks).done > before
        })?;
        let rebuild = rebuilds(&racks).last;
        pause(options.phases[1].saturating_sub(timeline.now() - killed))?;
        progress(&format!("a {name} dies: it is back"));
        let restarted = timeline.mark(Mark::Restarted);
        match victim {
            Victim::Switch => switch = Some(Rack::serve_switch(&place.config)?),
            Victim::Node => {
                let rack = join(last)?;
                let node = rack.try_node(last)?;
                racks[last] = Some(rack);
                work.share(last, Some(node.alloc_bytes(part)?));
                let private = node.alloc_bytes(PRIVATE)?;
                let (work, never) = (&work, &never);
                scope.spawn(move || work.run(&node, never, private));
            }
        }
        let admitted = timeline.now();
        let hot = until(&timeline, "hot blocks are in the switch", || {
            entries(&switch) as f64 >= owned as f64 * BACK
        })?;
        pause(options.phases[2].saturating_sub(timeline.now() - restarted))?;
        timeline.end();
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let mut add =
            |what: &str, time: Duration| report.add(&format!("{name}/{what}"), ms(time), "ms");
        add("lease", options.lease)?;
        add("detection", known - killed)?;
        add("service", served - killed)?;
        add("admission", admitted - restarted)?;
        if let Some(full) = timeline.full_speed(restarted, killed, BACK) {
            add("full-speed-after-restart", full - restarted)?;
        }
        match victim {
            Victim::Switch => {
                let paper = |what: &str| format!("paper/switch/{what}");
                let hot = ms(hot - admitted);
                report.add_against("switch/rebuild", ms(rebuild), "ms", &paper("rebuild"))?;
                let back = "hot-blocks-back";
                report.add_against("switch/hot-blocks-back", hot, "ms", &paper(back))?;
            }
            Victim::Node => report.add("node/rebuild", ms(rebuild), "ms")?,
        }
        let speeds = [
            ("before", killed / 2, killed),
            ("unnoticed", killed, known),
            ("without", served, restarted),
            ("after", admitted, timeline.now()),
        ];
        for (what, from, to) in speeds {
            let rate = timeline.rate(from, to);
            report.add(&format!("{name}/throughput/{what}"), rate, "ops/s")?;
        }
        Ok(())
    })?;
    drop(work);
    Ok(timeline)
}

/// Ends the threads however the scope that they run in ends.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
