//! The world as a system of the driver.

use super::scenario::{Fault, Scenario};
use super::world::{Setting, World};
use crate::driver::{About, Allowance, Complaint, Explored, System};
use rackmem_proto::sabre::controller::Controller;

/// See the module.
pub struct Chip {
    at: Setting,
    first: World,
}

impl Chip {
    fn new(scenario: Scenario, fault: Option<Fault>) -> Self {
        let at = Setting { scenario, fault };
        let first = World::new(&at);
        Chip { at, first }
    }
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A source sends its next request, or all of a SABRe's.
    Send(usize),
    /// The first request of the queue of all sources is taken.
    Take,
    /// The next block is loaded, or answered empty.
    Issue,
    /// A load returns.
    Return(usize),
    /// What is due for a SABRe with all its blocks.
    Validate,
    /// A writer's store: first the controller is told, then it is visible.
    Store(usize),
    /// A block is evicted.
    Evict(u16),
}

impl System for Chip {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        moves.extend(world.senders(&self.at).into_iter().map(Move::Send));
        moves.extend(world.takes().then_some(Move::Take));
        moves.extend(world.can(Controller::issue).then_some(Move::Issue));
        moves.extend(world.returning().into_iter().map(Move::Return));
        moves.extend(world.can(Controller::validate).then_some(Move::Validate));
        moves.extend(world.storing(&self.at).into_iter().map(Move::Store));
        moves.extend(world.evictable().into_iter().map(Move::Evict));
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        match step {
            Move::Send(source) => world.send(source, &self.at),
            Move::Take => world.take(),
            Move::Issue => return world.act(Controller::issue),
            Move::Return(nth) => return world.arrive(nth),
            Move::Validate => return world.act(Controller::validate),
            Move::Store(writer) => world.store(writer, &self.at),
            Move::Evict(block) => world.evict(block, &self.at),
        }
        Ok(())
    }

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        world.broken()
    }

    fn done(&self, world: &World) -> bool {
        world.is_over()
    }

    fn stuck(&self, world: &World) -> Complaint {
        let detail = format!("no way leads to the end; {}", world.waiting());
        ("every SABRe and every write ends", "SABRes §5.1", detail)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        vec![match *step {
            Move::Send(source) => format!("source {source} sends its next request"),
            Move::Take => "the next request of the queue is taken".to_owned(),
            Move::Issue => "the next block is loaded, or answered empty".to_owned(),
            Move::Return(nth) => {
                let load = before.loads[nth];
                let (access, entry, block) = (load.access, load.entry, load.nth);
                format!("{access:?} of block {block} returns for entry {entry}")
            }
            Move::Validate => "validates".to_owned(),
            Move::Store(writer) => format!("writer {writer} goes on with its store"),
            Move::Evict(block) => format!("block {block} is evicted"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        [Vec::new(), Vec::new()]
    }
}

impl Explored for Scenario {
    type System = Chip;
    type Defect = Fault;
    const STATES: usize = 3_000_000;

    fn about(&self, deep: bool) -> About {
        let rows = [("evictions", "evicted", self.deeper(deep).evictions)];
        let rows = rows.map(|(key, words, count)| Allowance {
            key,
            words,
            count: count.into(),
        });
        About {
            name: self.name,
            shows: self.about,
            rack: "controller".into(),
            nodes: self.sources.len() + 1,
            blocks: usize::from(self.blocks),
            locks: 0,
            threads: self.writers.len(),
            budget: rows.to_vec(),
            sometimes: 0,
        }
    }

    fn defects() -> impl Iterator<Item = (String, Fault)> {
        Fault::all().map(|fault| (fault.name(), fault))
    }

    fn system(&self, deep: bool, fault: Option<Fault>) -> Result<Chip, &'static str> {
        Ok(Chip::new(self.deeper(deep), fault))
    }
}

impl Scenario {
    /// `deep`: with one more eviction.
    fn deeper(&self, deep: bool) -> Self {
        Scenario {
            evictions: self.evictions + u8::from(deep),
            ..*self
        }
    }
}
