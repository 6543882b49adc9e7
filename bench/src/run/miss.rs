//! `bench miss`: what each kind of coherence event costs, beside the same hops as plain datagrams
//! or bare messages through shared memory.

use super::{BenchError, Progress, Result, miss_many};
use crate::busy::Busy;
use crate::histogram::Histogram;
use crate::plain;
use crate::report::Report;
use crate::stop;
use crate::system::System;
use crate::timing;
use rackmem::{Fabric, Node};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabric.
    pub fabric: Fabric,
    /// With a switch, or with home agents only.
    pub mode: System,
    /// Bytes of a block.
    pub block_size: usize,
    /// Blocks in a round.
    pub blocks: usize,
    /// Rounds.
    pub rounds: usize,
    /// Rounds go on for so long instead.
    pub duration: Option<Duration>,
    /// Threads that compute meanwhile.
    pub busy: usize,
    /// The thread that measures keeps the turns of the processor that it has by itself.
    pub usual_turns: bool,
}

impl Options {
    /// What suits a fabric: inline events are too short to be timed one by one, datagrams are not.
    pub fn of(fabric: Fabric) -> Self {
        let (blocks, rounds) = if fabric == Fabric::Inline {
            (200, 100)
        } else {
            (50, 20)
        };
        Options {
            fabric,
            mode: System::Switch,
            block_size: 4096,
            blocks,
            rounds,
            duration: None,
            busy: 0,
            usual_turns: false,
        }
    }
}

/// What a step of a round does to every block.
#[derive(Clone, Copy)]
enum Op {
    Read,
    Write,
    Evict,
}

/// One step: its case name (none: it only prepares the next), which node, which operation.
type Step = (Option<&'static str>, usize, Op);

/// Events whose requester must hear from the home before its next event: there and back twice,
/// or once around by way of the provider and the home.
const LONG: [&str; 2] = ["read-miss/from-modified", "evict-modified"];

/// A round leaves every block `Modified` at node 2, where the next one begins.
const ROUND: [Step; 13] = [
    (Some("write-miss/from-modified"), 1, Op::Write),
    (Some("read-miss/from-modified"), 2, Op::Read),
    (Some("write-shared/one-other"), 2, Op::Write),
    (None, 1, Op::Read),
    (Some("read-miss/from-shared"), 3, Op::Read),
    (Some("write-shared/two-others"), 3, Op::Write),
    (None, 1, Op::Read),
    (Some("write-miss/from-two-sharers"), 2, Op::Write),
    (Some("evict-modified"), 2, Op::Evict),
    (Some("read-miss/from-home"), 1, Op::Read),
    (Some("evict-shared"), 1, Op::Evict),
    (Some("write-miss/from-home"), 1, Op::Write),
    (None, 2, Op::Write),
];

/// What the thread computes between two events of a network rack,
/// so that each is measured by itself and not together with what the one before has left to do in
/// the background. The plain datagrams get the same.
const PAUSE: Duration = Duration::from_micros(60);

/// How events follow each other, and what they are compared with.
struct Pace {
    /// What its cases are called, behind the fabric.
    name: &'static str,
    pause: Duration,
    /// What events are compared with, and what [`LONG`] ones are.
    baselines: Option<[&'static str; 2]>,
}

/// How long threads use a home side by side.
const SIDE_BY_SIDE: Duration = Duration::from_millis(400);

/// Transactions of different blocks at one home, by several threads at once, with the home in one
/// part and in as many as it has by itself. A read miss and an eviction are four packets at the
/// home, which the requester's thread handles there.
fn side_by_side(report: &mut Report, options: &Options, progress: Progress<'_>) -> Result<()> {
    let mut first: Option<String> = None;
    for shards in [Some(1), None] {
        let rack = System::HomeOnly.builder(3).block_size(options.block_size);
        let rack = match shards {
            Some(count) => rack.home_shards(count),
            None => rack,
        };
        let rack = rack.build()?;
        let home = rack.node(0);
        let parts = home.metrics().home_shards;
        if parts == 1 && shards.is_none() {
            // There is one core.
            break;
        }
        let base = home.alloc_bytes(2 * options.block_size)?;
        for threads in 1..=2 {
            let case = format!("inline/home/shards-{parts}/threads-{threads}");
            progress(&case);
            let time = options.duration.unwrap_or(SIDE_BY_SIDE);
            let done = timing::run(threads, time, |thread| {
                let node = rack.node(1 + thread);
                let addr = base + (thread * options.block_size) as u64;
                move || {
                    let did = node.load(addr).and_then(|_| node.evict(addr));
                    u64::from(did.is_ok())
                }
            });
            let rate = done.per_second() / 1e3;
            match &first {
                Some(first) => report.add_against(&case, rate, "1000/s", first)?,
                None => report.add(&case, rate, "1000/s")?,
            }
            first.get_or_insert(case);
        }
    }
    Ok(())
}

/// Runs it. Node 0 is home of all blocks and takes no other part.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let _busy = Busy::start(options.busy)?;
    if options.usual_turns {
        rackmem::waiting::short_turns(false);
    }
    let usual = |pause, baseline: Option<&'static str>| Pace {
        name: "",
        pause,
        baselines: baseline.map(|baseline| [baseline; 2]),
    };
    let paces = match options.fabric {
        Fabric::Inline => vec![usual(Duration::ZERO, None)],
        Fabric::Udp => {
            progress("plain datagrams through the same hops");
            vec![usual(PAUSE, Some(hops(report, options)?))]
        }
        Fabric::Shm => {
            progress("bare messages through the same hops");
            messages(report, options)?
        }
    };
    let rack = options
        .mode
        .builder(4)
        .fabric(options.fabric)
        .block_size(options.block_size)
        .build()?;
    let base = rack
        .node(0)
        .alloc_bytes(options.blocks * options.block_size)?;
    let addrs: Vec<u64> = (0..options.blocks)
        .map(|i| base + (i * options.block_size) as u64)
        .collect();
    for pace in paces {
        let mut times: Vec<Histogram> = ROUND.iter().map(|_| Histogram::new()).collect();
        let began = Instant::now();
        for round in 0.. {
            let ended = match options.duration {
                Some(duration) => began.elapsed() >= duration,
                None => round > options.rounds,
            };
            // The first round is not counted.
            if round > 1 && (ended || stop::requested()) {
                // Every event has been measured by itself: the rounds so far are whole.
                report.take_late();
                break;
            }
            match options.duration {
                Some(_) => progress(&format!("round {round}")),
                None => progress(&format!("round {round} of {}", options.rounds)),
            }
            for ((_, node, op), times) in ROUND.iter().zip(&mut times) {
                // The first round finds blocks without copies.
                let counted = (round > 0).then_some(times);
                measure(&rack.node(*node), &addrs, options, &pace, counted, *op)?;
            }
        }
        let (fabric, mode) = (options.fabric.name(), options.mode.name());
        for ((name, ..), times) in ROUND.iter().zip(&times) {
            if let Some(name) = name {
                let case = format!("{fabric}/{mode}{}/{name}", pace.name);
                let long = usize::from(LONG.contains(name));
                let baseline = pace.baselines.map(|baselines| baselines[long]);
                add(report, &case, times, baseline)?;
            }
        }
    }
    miss_many::run(&rack, &addrs, options, report, progress)?;
    if options.fabric == Fabric::Inline {
        side_by_side(report, options, progress)?;
    }
    Ok(())
}

fn apply(node: &Node, addr: u64, op: Op) -> Result<()> {
    match op {
        Op::Read => node.load(addr).map(|_| ())?,
        Op::Write => node.store(addr, 1)?,
        Op::Evict => node.evict(addr).map(|_| ())?,
    }
    Ok(())
}

/// Inline, a round's mean; over a network, each event by itself.
fn measure(
    node: &Node,
    addrs: &[u64],
    options: &Options,
    pace: &Pace,
    mut times: Option<&mut Histogram>,
    op: Op,
) -> Result<()> {
    let inline = options.fabric == Fabric::Inline;
    let began = Instant::now();
    for &addr in addrs {
        let start = Instant::now();
        apply(node, addr, op)?;
        if !inline {
            if let Some(times) = &mut times {
                times.record(start.elapsed().as_nanos() as u64);
            }
            plain::compute(pace.pause);
        }
    }
    if let (Some(times), true) = (times, inline) {
        times.record(began.elapsed().as_nanos() as u64 / addrs.len().max(1) as u64);
    }
    Ok(())
}

fn add(report: &mut Report, name: &str, times: &Histogram, baseline: Option<&str>) -> Result<()> {
    let p50 = times.percentile(50.0) as f64;
    match baseline {
        Some(baseline) => report.add_against(name, p50 / 1e3, "us", baseline)?,
        None => report.add(name, p50, "ns")?,
    }
    Ok(())
}

/// Client, forwarder, server, client: a header one way, a header and a block the other.
/// Once with hops that sleep until a datagram comes, which is what ratios are to, and once with
/// hops that never sleep: ours stay awake for a while, so they lie between the two.
fn hops(report: &mut Report, options: &Options) -> Result<&'static str> {
    let name = "plain/client-forwarder-server-client";
    for (name, wait) in [
        (name, plain::Wait::Block),
        (
            "plain/client-forwarder-server-client/awake",
            plain::Wait::Spin,
        ),
    ] {
        let chain = plain::Chain {
            request: HEADER,
            answer: HEADER + options.block_size,
            datagram: plain::MAX_DATAGRAM_BYTES,
            wait,
            rounds: (options.blocks * options.rounds) as u32,
            warm_up: 100,
            pause: PAUSE,
        };
        let times = plain::measure(chain).map_err(|e| BenchError::Missing(e.to_string()))?;
        report.add(name, times.percentile(50.0) as f64 / 1e3, "us")?;
    }
    Ok(name)
}

/// What a pace of events through memory is compared with: bare messages there and back,
/// through a forwarder as a miss goes, and twice there and back.
type Bare = [(usize, &'static str); 3];

const FUTEX: Bare = [
    (2, "plain/futex/ping-pong"),
    (3, "plain/futex/client-forwarder-server-client"),
    (4, "plain/futex/four-hops"),
];
const SPIN: Bare = [
    (2, "plain/spin/ping-pong"),
    (3, "plain/spin/client-forwarder-server-client"),
    (4, "plain/spin/four-hops"),
];

/// Once with hops that sleep on a futex and a client that computes in between,
/// so that all sleep when a request comes; once with hops that never sleep. Ours stay awake for a
/// while, so each is compared at its own pace.
fn messages(report: &mut Report, options: &Options) -> Result<Vec<Pace>> {
    let mut paces = Vec::new();
    for (name, bare, wait, pause) in [
        ("", FUTEX, plain::Wait::Block, PAUSE),
        ("/awake", SPIN, plain::Wait::Spin, Duration::ZERO),
    ] {
        for (hops, case) in bare {
            let chain = plain::memory::Chain {
                hops,
                request: HEADER,
                answer: HEADER + options.block_size,
                wait,
                rounds: (options.blocks * options.rounds) as u32,
                warm_up: 100,
                pause,
            };
            let times = plain::memory::measure(chain);
            let times = times.map_err(|e| BenchError::Missing(e.to_string()))?;
            report.add(case, times.percentile(50.0) as f64 / 1e3, "us")?;
        }
        paces.push(Pace {
            name,
            pause,
            baselines: Some([bare[1].1, bare[2].1]),
        });
    }
    Ok(paces)
}

/// Bytes of a packet's header.
const HEADER: usize = 48;
