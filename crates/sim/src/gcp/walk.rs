//! One seeded way through a larger rack.

use super::moves::Move;
use super::mutation::Mutation;
use super::scenario::{Budget, Failure, Op, Place, Scenario};
use super::system::Locks;
use super::world::{At, Cost, LockRack, Thread, World};
use crate::driver::{self, Complaint, Guide, System};
use crate::world::Random;
use rackmem_proto::gcp::Access;
use std::fmt;

/// Seeds tried with each smaller rack: what is smaller is another way altogether.
const SEEDS: u64 = 24;
/// Moves shown at most: the last ones. Only a way that could not be made short has more.
const SHOWN: usize = 60;

/// What a walk is like.
#[derive(Clone, Copy, Debug)]
pub struct WalkConfig {
    /// Decides everything.
    pub seed: u64,
    /// Nodes, at most 8, with two threads each.
    pub nodes: u8,
    /// Operations of each thread.
    pub operations: u8,
    /// Of a hundred operations, so many read.
    pub reads: u8,
    /// Packets of a thousand that are lost, doubled or late.
    pub faults: u16,
    /// See [`rackmem_proto::gcp::BladeConfig::cohort`].
    pub cohort: u8,
    /// Who serves the lock.
    pub place: Place,
    /// What dies, in this order.
    pub failures: &'static [Failure],
}

/// What a walk found.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Moves.
    pub moves: u64,
    /// The broken promise, by as short a way as was found.
    pub broken: Option<Broken>,
    /// What it has cost.
    pub cost: Cost,
    /// Acquisitions of each node, in the order of the nodes.
    pub shares: Vec<u32>,
    /// The most turns (grants) of one other node between the directory's hearing of a node and that
    /// node's turn.
    pub turns: u64,
}

/// A broken promise, and a way there.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which promise.
    pub promise: &'static str,
    /// What happened.
    pub detail: String,
    /// The rack of the way, with its seed.
    pub config: WalkConfig,
    /// A line a move.
    pub story: Vec<String>,
    /// Moves of the way on which it was found at first.
    pub found_after: usize,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (moves, found) = (self.story.len(), self.found_after);
        writeln!(f, "{}: {}", self.promise, self.detail)?;
        writeln!(f, "in {:?}", self.config)?;
        writeln!(f, "by these {moves} of {found} moves:")?;
        self.story
            .iter()
            .try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Moves after which a walk that has not ended is stuck, for each operation.
const PATIENCE: u64 = 20_000;

/// Goes one way, to the end of every operation. A broken promise is shown by a short way to it:
/// through a rack as small as some seed breaks it in, and then without every move that it does not
/// take.
pub fn walk(config: &WalkConfig, mutation: Option<Mutation>) -> Walk {
    let (mut walk, found) = go(config, mutation);
    let Some((complaint, way)) = found else {
        return walk;
    };
    let found_after = way.len();
    let promise = complaint.0;
    let smaller = smaller(config);
    let smaller = driver::smallest(smaller, promise, |smaller| go(smaller, mutation).1);
    let (config, complaint, way) = smaller.unwrap_or((*config, complaint, way));
    let (rack, _) = rack(&config, mutation);
    let mut system = Locks::new(rack);
    let short = driver::shorten(&mut system, promise, &way);
    let (complaint, way) = short.unwrap_or((complaint, way));
    walk.broken = Some(Broken {
        story: driver::story(&mut system, &way, SHOWN),
        promise: complaint.0,
        detail: complaint.2,
        config,
        found_after,
    });
    walk
}

/// Smaller racks, by nodes and operations, with some seeds each.
fn smaller(config: &WalkConfig) -> impl Iterator<Item = WalkConfig> {
    let config = *config;
    let dies = |failure: &Failure| match failure {
        Failure::Node(node) | Failure::Fenced(node) | Failure::Switch(Some(node)) => *node,
        Failure::Nothing | Failure::Switch(None) => 0,
    };
    let dies = config.failures.iter().map(dies).max().unwrap_or(0);
    let operations = |nodes| (1..=config.operations).map(move |operations| (nodes, operations));
    let mut sizes: Vec<(u8, u8)> = (2.max(dies + 1)..=config.nodes)
        .flat_map(operations)
        .collect();
    sizes.sort_by_key(|(nodes, operations)| (u16::from(*nodes) * u16::from(*operations), *nodes));
    let all = (config.nodes, config.operations);
    let sizes = sizes.into_iter().take_while(move |size| *size != all);
    let racks = sizes.flat_map(move |size| [(size, 0), (size, config.faults)]);
    let seeds = move |rack| (0..SEEDS).map(move |n| (rack, config.seed.wrapping_add(n)));
    racks
        .flat_map(seeds)
        .map(move |(((nodes, operations), faults), seed)| WalkConfig {
            seed,
            nodes,
            operations,
            faults,
            ..config
        })
}

/// The rack of a walk, and what decides about what happens in it.
fn rack(config: &WalkConfig, mutation: Option<Mutation>) -> (LockRack, Random) {
    let mut random = Random::new(config.seed);
    let mut threads = Vec::new();
    for thread in 0..config.nodes * 2 {
        let operation = |_| match random.below(100) < u64::from(config.reads) {
            true => Op::Use(Access::Read),
            false => Op::Use(Access::Write),
        };
        let program: Vec<Op> = (0..config.operations).map(operation).collect();
        // A walk is a test's: what it leaks is a few hundred bytes.
        threads.push((thread / 2, &*program.leak()));
    }
    let rack = LockRack {
        scenario: Scenario {
            name: "walk",
            about: "a seeded way",
            nodes: config.nodes,
            threads: threads.leak(),
            place: config.place,
            segments: 2,
            cohort: config.cohort,
            budget: match config.faults {
                0 => Budget::default(),
                _ => Budget {
                    lose: u8::MAX,
                    double: u8::MAX,
                    late: u8::MAX,
                    early: u8::MAX,
                    dismiss: 0,
                    // Ways to defects are shrunk, which takes longer with every move that they
                    // could do without.
                    give_up: if mutation.is_some() { 0 } else { 3 },
                    rest: if mutation.is_some() { 0 } else { 3 },
                },
            },
            failures: config.failures,
            sometimes: &[],
            states: 0,
        },
        mutation,
        loose: true,
    };
    (rack, random)
}

type Found = (Complaint, Vec<Move>);

/// Goes one way. Where it breaks a promise: which, and every move to there.
fn go(config: &WalkConfig, mutation: Option<Mutation>) -> (Walk, Option<Found>) {
    let (rack, random) = rack(config, mutation);
    let threads = rack.scenario.threads.len();
    let mut system = Locks::new(rack);
    let mut walker = Walker {
        rack,
        random,
        faults: config.faults,
        before: system.first().threads,
        shares: vec![0; config.nodes.into()],
        since: vec![None; threads],
        turns: 0,
    };
    let limit = u64::from(config.operations) * threads as u64 * PATIENCE;
    let (way, world, broken) = driver::walk(&mut system, &mut walker, limit);
    walker.count(&world);
    let walk = Walk {
        moves: way.len() as u64,
        broken: None,
        cost: world.cost(),
        shares: walker.shares,
        turns: walker.turns,
    };
    (walk, broken.map(|complaint| (complaint, way)))
}

struct Walker {
    rack: LockRack,
    random: Random,
    faults: u16,
    /// Threads before the last move.
    before: Vec<Thread>,
    shares: Vec<u32>,
    /// Of a thread that waits: what turns everybody had had when the directory heard of it.
    since: Vec<Option<Vec<u64>>>,
    turns: u64,
}

impl Guide<Locks> for Walker {
    /// A move: a fault by its rate, and otherwise any that is no fault.
    fn choose(&mut self, world: &World, moves: &[Move]) -> Option<Move> {
        self.count(world);
        let fault = |step: &&Move| matches!(step, Move::Lose(_) | Move::Double(_) | Move::Delay(_));
        let faulty = self.random.per_mille(self.faults.into());
        let early = self.random.per_mille(20);
        let fails = self.random.per_mille(5);
        let calm = self.rack.scenario.failures.is_empty();
        let learns = !calm && self.random.per_mille(100);
        let quiet = world.ways.is_empty();
        let kind = |step: &&Move| match step {
            Move::Retry(_) => early || quiet,
            Move::Fail => fails,
            Move::Enter(_) | Move::EnterSwitch | Move::Settle | Move::Resume(_) => learns,
            other => fault(other) == faulty,
        };
        let mut candidates: Vec<Move> = moves.iter().filter(kind).copied().collect();
        if candidates.is_empty() {
            candidates = moves.iter().filter(|step| !fault(step)).copied().collect();
        }
        let nth = self.random.below(candidates.len() as u64);
        candidates.get(nth as usize).copied()
    }
}

impl Walker {
    fn count(&mut self, world: &World) {
        let turns = || {
            world
                .nodes
                .iter()
                .map(|n| n.granted_before + n.cell().lock.counters().granted)
        };
        for (nth, was) in self.before.iter().enumerate() {
            let now = world.threads[nth];
            let node = usize::from(now.node);
            if was.at != At::Inside && now.at == At::Inside {
                self.shares[node] += 1;
                if let Some(then) = self.since[nth].take() {
                    let others = turns().zip(then).enumerate();
                    let others = others.filter(|(other, _)| *other != node);
                    let most = others.map(|(_, (now, then))| now - then).max();
                    self.turns = self.turns.max(most.unwrap_or(0));
                }
            }
            let heard = world.oracle.numbered[node].is_some();
            if now.at == At::Waiting && heard && self.since[nth].is_none() {
                self.since[nth] = Some(turns().collect());
            }
        }
        self.before.clone_from(&world.threads);
    }
}
