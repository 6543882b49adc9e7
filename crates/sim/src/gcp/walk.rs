//! One seeded way through a larger rack.

use super::moves::Move;
use super::mutation::Mutation;
use super::oracle::{Complaint, at_end};
use super::scenario::{Budget, Failure, Op, Place, Scenario};
use super::shrink::{self, Broken};
use super::world::{At, Cost, Rack, World};
use crate::world::Random;
use rackmem_proto::gcp::Access;

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
    /// The most turns (grants) of one other node between the directory's hearing of a node and that node's turn.
    pub turns: u64,
}

/// Moves after which a walk that has not ended is stuck, for each operation.
const PATIENCE: u64 = 20_000;

/// Goes one way, to the end of every operation. A broken promise is shown by a short way to it.
pub fn walk(config: &WalkConfig, mutation: Option<Mutation>) -> Walk {
    let (mut walk, broken) = go(config, mutation);
    walk.broken = broken.map(|found| shrink::shrink(config, mutation, found));
    walk
}

/// The rack of a walk, and what decides about what happens in it.
pub(super) fn rack(config: &WalkConfig, mutation: Option<Mutation>) -> (Rack, Random) {
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
    let rack = Rack {
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
                    // Ways to defects are shrunk, which takes longer with every move that they could do without.
                    give_up: if mutation.is_some() { 0 } else { 3 },
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

/// Goes one way. Where it breaks a promise: which, and every move to there.
pub(super) fn go(
    config: &WalkConfig,
    mutation: Option<Mutation>,
) -> (Walk, Option<(Complaint, Vec<Move>)>) {
    let (rack, random) = rack(config, mutation);
    let threads = rack.scenario.threads.len();
    Walker {
        world: rack.first(),
        rack,
        random,
        faults: config.faults,
        way: Vec::new(),
        shares: vec![0; config.nodes.into()],
        since: vec![None; threads],
        turns: 0,
    }
    .run(u64::from(config.operations) * threads as u64 * PATIENCE)
}

struct Walker {
    rack: Rack,
    world: World,
    random: Random,
    faults: u16,
    way: Vec<Move>,
    shares: Vec<u32>,
    /// Of a thread that waits: what turns everybody had had when the directory heard of it.
    since: Vec<Option<Vec<u64>>>,
    turns: u64,
}

impl Walker {
    fn run(mut self, limit: u64) -> (Walk, Option<(Complaint, Vec<Move>)>) {
        let broken = loop {
            if self.world.done(&self.rack) {
                break at_end(&self.world, &self.rack).err();
            }
            let Some(step) = self.choose() else {
                break Some(Complaint::stuck("nothing can happen".into()));
            };
            self.way.push(step);
            if self.way.len() as u64 > limit {
                break Some(Complaint::stuck(format!("not after {limit} moves")));
            }
            let before = self.world.threads.clone();
            if let Err(complaint) = self.world.act(&self.rack, step) {
                break Some(complaint);
            }
            self.count(&before);
        };
        let walk = Walk {
            moves: self.way.len() as u64,
            broken: None,
            cost: self.world.cost(),
            shares: self.shares,
            turns: self.turns,
        };
        (walk, broken.map(|complaint| (complaint, self.way)))
    }

    /// A move: a fault by its rate, and otherwise any that is no fault.
    fn choose(&mut self) -> Option<Move> {
        let moves = self.world.moves(&self.rack);
        let fault = |step: &&Move| matches!(step, Move::Lose(_) | Move::Double(_) | Move::Delay(_));
        let faulty = self.random.per_mille(self.faults.into());
        let early = self.random.per_mille(20);
        let fails = self.random.per_mille(5);
        let calm = self.rack.scenario.failures.is_empty();
        let learns = !calm && self.random.per_mille(100);
        let quiet = self.world.ways.is_empty();
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

    fn count(&mut self, before: &[super::world::Thread]) {
        let turns = || self.world.nodes.iter().map(|n| n.blade.counters().granted);
        for (nth, was) in before.iter().enumerate() {
            let now = self.world.threads[nth];
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
            let heard = self.world.oracle.numbered[node].is_some();
            if now.at == At::Waiting && heard && self.since[nth].is_none() {
                self.since[nth] = Some(turns().collect());
            }
        }
    }
}
