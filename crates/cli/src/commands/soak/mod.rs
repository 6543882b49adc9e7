//! `rackmem soak`: a rack of processes whose members are killed and started again,
//! under clients whose record is judged.

pub mod bounded;
mod client;
mod cluster;
pub mod copies;
mod eras;
mod etcd;
mod flows;
mod heal;
mod insist;
mod judge;
mod load;
pub mod locks;
mod paused;
mod shape;
mod starve;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use crate::wire_args::share;
use clap::{ArgGroup, Args, ValueEnum};
use cluster::{Cluster, Plan, Work};
use eras::{Eras, Kill, Totals};
use rackmem::{Durability, Fabric};
use serde_json::json;
use starve::Starved;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Examples:
  rackmem soak                                       kill and restart members for a minute
  rackmem soak --seconds 600 --seed 7 --loss 0.01    ten minutes with 1% packet loss
  rackmem soak --keys 100000 --kills 10              a directory larger than any queue
  rackmem soak --membership etcd --kills 10          membership in an etcd that soak starts
  rackmem soak --fabric shm --kills 10               over shared memory
  rackmem soak --nodes 4 --copies 3                  a store with copies: no death may take anything
  rackmem soak --root-copies 3                       copies of the store's root: node 0 dies as any other
  rackmem soak --locks --seconds 600                 threads of all nodes hold locks and report them
  rackmem soak --tight --locks                       caches too small for the locks in use
  rackmem soak --locks --starve                      while other processes keep every core busy
  rackmem soak --replicated --history ops.jsonl      replicas are killed, paused and replaced while lines are used
  rackmem soak --replicated --durability sync        the same with journals, and all nodes killed at once
  rackmem soak --copies 3 --durability sync          a store that is on disk, with all nodes killed at once
  rackmem soak --objects --kill homes                objects with copies, while the node that serves them is killed
  rackmem soak --bounded --minutes 10 --stop --kill  bounded memory while its readers and writers are stopped and killed
  rackmem soak --starve --seconds 20 --seeds 0..25   25 racks, one after the other, and a summary
  rackmem --json soak --kills 4                      one object per kill, then the totals

Node 0 is not killed without copies: its memory holds the table of regions. If it is declared dead all the same,
because the lease is too short for this machine, a run with --locks stops there and is judged. With --replicated,
--copies or --root-copies any node is killed, with --objects any but the last one, if they are in memory; with
--bounded node 0, the home of the items, is stopped for less than its lease only.
Exit code 1: an answer contradicts linearizability, beyond the reported loss of a dead node's data; with --bounded, a
value that was read is older than the bound, was written by nobody, or is older than what its reader knew.";

/// Clients of a node, at most: a thread each.
const MOST_CLIENTS: i64 = 64;
/// How long a member may be silent.
const LEASE_MS: u64 = 1000;
/// The same where its control plane hardly runs.
const STARVED_LEASE_MS: u64 = 3000;

/// Where members agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Membership {
    /// A folder
    Dir,
    /// An etcd that soak starts
    Etcd,
}

/// How packets move between its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Between {
    /// Shared memory
    Shm,
    /// UDP over loopback
    Udp,
}

impl Between {
    fn name(self) -> &'static str {
        match self {
            Between::Shm => Fabric::Shm.name(),
            Between::Udp => Fabric::Udp.name(),
        }
    }
}

/// Options of `rackmem soak`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("keeps_copies").multiple(true)))]
pub struct SoakArgs {
    /// Stop after SECONDS, once the current kill is complete
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: u64,
    /// Stop after N minutes instead
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,
    /// Stop after N kills, if that is sooner
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    kills: Option<u64>,
    /// Seed the kills and the clients' operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run a rack for each seed; continue after a failure
    #[arg(long, value_name = "FROM..TO", conflicts_with = "seed", value_parser = super::sim::seeds)]
    seeds: Option<(u64, u64)>,
    /// Start N busy processes per core [1], and run the members' control planes at nice 19
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..=8))]
    starve: Option<u64>,
    /// Run as one of these processes
    #[arg(long, hide = true)]
    keep_busy: bool,
    /// Run N nodes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=32))]
    nodes: u64,
    /// Run without a switch
    #[arg(long)]
    no_switch: bool,
    /// Choose how packets travel between the processes
    #[arg(long, value_enum, default_value = "udp")]
    fabric: Between,
    /// Test locks held by threads of the nodes, instead of clients of the store
    #[arg(long, conflicts_with_all = ["clients", "keys"])]
    locks: bool,
    /// Test regions with copies: replicas are killed, paused and replaced, the switch restarts
    #[arg(long, groups = ["of_copies", "judged_whole", "keeps_copies"], conflicts_with_all = ["clients", "keys", "locks", "tight"])]
    replicated: bool,
    /// Test objects of a region with copies: nodes are killed, paused and replaced
    #[arg(long, groups = ["of_copies", "judged_whole", "keeps_copies"], conflicts_with_all = ["clients", "keys", "locks", "tight", "planted"])]
    objects: bool,
    /// Kill any node, or the one that serves the objects; of bounded memory: and stop none
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, default_missing_value = "any", requires = "judged_whole", conflicts_with = "replicated")]
    kill: Option<copies::Killed>,
    /// Keep N copies: of the region [3], or of the store [one node has what it had last]
    #[arg(long, value_name = "N", group = "keeps_copies", conflicts_with_all = ["locks", "tight", "bounded"], value_parser = ["1", "3", "5", "7"])]
    copies: Option<String>,
    /// Keep N copies of the names of regions and of the store's root, and none of its keys
    #[arg(long, value_name = "N", conflicts_with_all = ["locks", "tight", "judged_whole", "copies"], value_parser = ["3", "5", "7"])]
    root_copies: Option<String>,
    /// What the copies survive; with `file` or `sync` all nodes are killed at once as well
    #[arg(long, value_name = "WHAT", requires = "keeps_copies", default_value = "memory", value_parser = ["memory", "file", "sync"])]
    durability: String,
    /// Test bounded memory: items, and objects of an arena; judged by the ages of what is read
    #[arg(long, group = "judged_whole", conflicts_with_all = ["clients", "keys", "locks", "tight", "of_copies"])]
    bounded: bool,
    /// With --bounded: stop processes, and kill none without --kill
    #[arg(long, requires = "bounded")]
    stop: bool,
    /// Read what is TIME old at most
    #[arg(long, value_name = "TIME", requires = "bounded", default_value = "50ms", value_parser = bounded::bound)]
    bound: Duration,
    /// Break the bound on purpose, to see that it is found
    #[arg(long, requires = "bounded", hide = true)]
    old: bool,
    /// Write the history to FILE: of copies as events, of bounded memory for `history check`
    #[arg(long, value_name = "FILE", requires = "judged_whole")]
    history: Option<PathBuf>,
    /// Break the rack on purpose, to see that it is found
    #[arg(long, value_enum, requires = "replicated", hide = true)]
    planted: Option<copies::Planted>,
    /// Connect N clients to each node
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=MOST_CLIENTS))]
    clients: u16,
    /// Share N keys, emptied now and then; more than 32: filled at the start, never emptied
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=150_000))]
    keys: u64,
    /// Limit the nodes' caches to 8 KiB, so that locks are evicted all the time
    #[arg(long)]
    tight: bool,
    /// Declare a member dead after MS milliseconds without a heartbeat [1000; with --starve 3000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..=600_000))]
    lease_ms: Option<u64>,
    /// Keep the membership in a folder or in etcd
    #[arg(long, value_enum, default_value = "dir")]
    membership: Membership,
    /// Drop this share of packets, such as 0.01
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    loss: f64,
    /// Delay this share of packets
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    delay: f64,
}

impl SoakArgs {
    /// How long it is to last.
    fn seconds(&self) -> u64 {
        self.minutes.map_or(self.seconds, |minutes| minutes * 60)
    }
}

/// Runs it.
pub fn run(args: &SoakArgs, json: bool) -> Result<Ended> {
    if args.keep_busy {
        starve::keep_busy();
        return Ok(Ended::Interrupted);
    }
    let stop = Stop::on_signals()?;
    let _starved = args.starve.map(Starved::begin).transpose()?;
    let Some((from, to)) = args.seeds else {
        return run_one(args, args.seed, &stop, json);
    };
    let (mut runs, mut failed) = (0u64, Vec::new());
    for seed in from..to {
        match run_one(args, seed, &stop, json) {
            Ok(Ended::Interrupted) => break,
            Ok(_) => {}
            Err(failure) => {
                // What is the matter with one says nothing about the others.
                eprintln!("seed {seed}: {failure}");
                failed.push(seed);
            }
        }
        runs += 1;
    }
    tell_runs(runs, to - from, &failed, json);
    if !failed.is_empty() {
        return Err(Failure::new(
            format!("{} of {runs} runs failed: seeds {failed:?}", failed.len()),
            "run one of them alone with --seed; what it says is above",
        ));
    }
    Ok(if stop.requested() {
        Ended::Interrupted
    } else {
        Ended::Done
    })
}

fn tell_runs(runs: u64, wanted: u64, failed: &[u64], json: bool) {
    if json {
        return out::line(json!({"runs": runs, "wanted": wanted, "failed": failed}));
    }
    let count = failed.len();
    out::line(format!("soaks: {runs} of {wanted} runs, {count} failed"));
}

/// Runs one rack.
fn run_one(args: &SoakArgs, seed: u64, stop: &Stop, json: bool) -> Result<Ended> {
    let lease_ms = args.lease_ms.unwrap_or(match args.starve {
        None => LEASE_MS,
        Some(_) => STARVED_LEASE_MS,
    });
    if args.replicated || args.objects {
        return copies::run(args, (seed, lease_ms), stop, json);
    }
    if args.bounded {
        return bounded::run(args, (seed, lease_ms), stop, json);
    }
    let (teller, told) = std::sync::mpsc::sync_channel(locks::UNREAD);
    let plan = Plan {
        nodes: args.nodes as usize,
        switch: !args.no_switch,
        fabric: args.fabric.name(),
        etcd: args.membership == Membership::Etcd,
        lease_ms,
        keys: args.keys as usize,
        tight: args.tight,
        loss: args.loss,
        delay: args.delay,
        work: args.locks.then(|| Work {
            options: vec!["--hold-locks".into()],
            sign: "locks",
            hears: Arc::new(move |process, line| {
                // A line that a death has cut off is none.
                let told = line.parse().map(|line| (process, line));
                let _ = told.map(|told| teller.send(told));
            }),
        }),
        copies: args.copies.clone().filter(|copies| copies != "1"),
        durability: Durability::named(&args.durability).unwrap_or_default(),
        root_copies: args.root_copies.is_some(),
        more: match (&args.copies, &args.root_copies) {
            (_, Some(copies)) => format!("copies = {copies}\nreplace_after = '200ms'\n"),
            (Some(_), None) => "replace_after = '200ms'\nstore = 'FOLDER/copies'\n".into(),
            (None, None) => String::new(),
        },
    };
    let switch = plan.switch;
    let Some(cluster) = Cluster::start(plan, stop)? else {
        return Ok(Ended::Interrupted);
    };
    if !json {
        out::line(format!(
            "soak: {} nodes{}, lease {lease_ms} ms, seed {seed}; Ctrl-C stops it",
            args.nodes,
            if switch { " and a switch" } else { "" },
        ));
    }
    let enough = args.kills.unwrap_or(u64::MAX);
    if args.locks {
        let limits = locks::Limits {
            seconds: args.seconds(),
            kills: enough,
            seed,
        };
        let done = locks::run(cluster, told, switch, &limits, stop, json)?;
        return Ok(if done {
            Ended::Done
        } else {
            Ended::Interrupted
        });
    }
    let mut eras = Eras::new(
        cluster,
        switch,
        args.keys as usize,
        args.clients.into(),
        seed,
        stop,
    )?;
    // Making many keys on a busy machine may take longer than the run is to last.
    let began = Instant::now();
    while !stop.requested()
        && began.elapsed() < Duration::from_secs(args.seconds())
        && eras.totals().kills < enough
    {
        if let Some(kill) = eras.run(stop)? {
            tell_kill(eras.totals().kills, &kill, json);
        }
    }
    let totals = eras.totals().clone();
    drop(eras);
    tell(&totals, began.elapsed(), seed, json);
    if let Some(violation) = totals.violations.first() {
        // All of them have been told, with their tables.
        let first = violation.lines().next().unwrap_or_default();
        return Err(Failure::new(
            format!(
                "{} eras cannot be explained: {first}",
                totals.violations.len()
            ),
            "this is a defect: please report it with the seed and the options",
        ));
    }
    Ok(if stop.requested() {
        Ended::Interrupted
    } else {
        Ended::Done
    })
}

fn tell_kill(number: u64, kill: &Kill, json: bool) {
    let ms = |time: Duration| time.as_millis() as u64;
    if json {
        return out::line(json!({
            "kill": number, "victims": kill.victims, "outage_ms": ms(kill.outage), "whole_ms": ms(kill.whole),
            "rebuild_us": kill.rebuild_us, "operations": kill.operations, "flushes": kill.flushes, "unknown": kill.unknown, "nodelost": kill.refused,
            "lost_buckets": kill.lost_buckets, "put": kill.flow.put, "taken": kill.flow.taken, "heard": kill.flow.messages,
            "verdict": kill.verdict,
        }));
    }
    out::line(format!(
        "kill {number}: {}; no client was served for {} ms; all are back after {} ms, rebuilt in {:.1} ms; {} operations, {} \
         of them FLUSHALL, {} unknown, {} NODELOST; {} put into streams and queues, {} taken, {} messages heard; {} buckets restarted empty; {}",
        kill.victims.join(" and "),
        ms(kill.outage),
        ms(kill.whole),
        kill.rebuild_us as f64 / 1000.0,
        kill.operations,
        kill.flushes,
        kill.unknown,
        kill.refused,
        kill.flow.put,
        kill.flow.taken,
        kill.flow.messages,
        kill.lost_buckets,
        kill.verdict,
    ));
}

fn tell(totals: &Totals, time: Duration, seed: u64, json: bool) {
    let Totals {
        kills,
        restarts,
        operations,
        unknown,
        flushes,
        refused,
        lost_buckets,
        flow,
        undecided,
        violations,
    } = totals;
    let (put, taken, heard) = (flow.put, flow.taken, flow.messages);
    let seconds = time.as_secs_f64();
    if json {
        return out::line(json!({
            "seed": seed, "seconds": seconds, "kills": kills, "restarts": restarts, "operations": operations,
            "flushes": flushes, "unknown": unknown, "nodelost": refused, "lost_buckets": lost_buckets,
            "put": put, "taken": taken, "heard": heard, "undecided": undecided, "violations": violations,
        }));
    }
    out::line(format!(
        "soak: {seconds:.0} s, {kills} kills, {restarts} processes restarted, {operations} operations, {flushes} of them FLUSHALL, {unknown} unknown, \
         {refused} NODELOST, {put} put into streams and queues, {taken} taken, {heard} messages heard, \
         {lost_buckets} buckets restarted empty, {undecided} eras too large to judge, {} \
         violations",
        violations.len()
    ));
    violations.iter().for_each(out::line);
}
