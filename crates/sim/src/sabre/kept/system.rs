//! The world as a system of the driver.

use super::super::system::told;
use super::scenario::Scenario;
use super::world::World;
use crate::driver::{self, About, Allowance, Complaint, Explored, System};
use crate::names::kebab;
use rackmem_proto::sabre::Defect;

/// See the module.
pub struct KeptSystem {
    first: World,
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A packet comes.
    Arrive(usize),
    /// It comes, and another copy will.
    Double(usize),
    /// It is lost.
    Lose(usize),
    /// A thread begins its next operation.
    Go(usize),
    /// Its node asks again.
    Retry(usize),
    /// A majority has what the keeper stores.
    Stored,
    /// The keeper dies; a majority has what it was storing, or has not.
    Die(bool),
    /// A node comes into the next epoch.
    Enter(usize),
    /// A node hears what has become of the region.
    Hear(usize),
}

impl System for KeptSystem {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, packet) in world.packets.iter().enumerate() {
            if world.can_come(packet) {
                moves.push(Move::Arrive(at));
                moves.extend((world.left.double > 0).then_some(Move::Double(at)));
            }
            moves.extend((world.left.lose > 0).then_some(Move::Lose(at)));
        }
        let threads = 0..world.threads.len();
        moves.extend(threads.clone().filter(|t| world.can_go(*t)).map(Move::Go));
        moves.extend(threads.filter(|t| world.may_ask(*t)).map(Move::Retry));
        moves.extend(world.stores().then_some(Move::Stored));
        if world.may_die() {
            moves.push(Move::Die(false));
            moves.extend(world.stores().then_some(Move::Die(true)));
        }
        let behind = world.nodes().filter(|node| world.is_behind(*node));
        moves.extend(behind.map(Move::Enter));
        let late = world.nodes().filter(|node| world.has_to_hear(*node));
        moves.extend(late.map(Move::Hear));
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        let came = match step {
            Move::Arrive(at) => {
                let packet = world.packets.remove(at);
                world.arrive(&packet)
            }
            Move::Double(at) => {
                world.left.double -= 1;
                let packet = world.packets[at].clone();
                world.arrive(&packet)
            }
            Move::Lose(at) => {
                world.left.lose -= 1;
                world.packets.remove(at);
                Ok(())
            }
            Move::Go(thread) => world.go(thread),
            Move::Retry(thread) => world.retry(thread),
            Move::Stored => world.stored(),
            Move::Die(stored) => world.die(stored),
            Move::Enter(node) => world.enter(node),
            Move::Hear(node) => {
                world.hear(node);
                Ok(())
            }
        };
        world.purge();
        came
    }

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        world.is_quiet().then(|| world.left_over()).flatten()
    }

    fn done(&self, world: &World) -> bool {
        world.is_quiet()
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = world.threads.iter().map(|thread| thread.waits);
        driver::endless("SABRes §3", waits)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let packet = |at: usize| {
            let packet = &before.packets[at];
            let (node, epoch) = (before.node_of(packet), packet.header.epoch);
            format!("{}, at node {node} in epoch {epoch}", told(packet))
        };
        vec![match *step {
            Move::Arrive(at) => format!("arrives: {}", packet(at)),
            Move::Double(at) => format!("arrives, and another copy will: {}", packet(at)),
            Move::Lose(at) => format!("is lost: {}", packet(at)),
            Move::Go(thread) => match before.op(thread) {
                Some(op) => format!("thread {thread} begins {op:?}"),
                None => format!("thread {thread} has nothing to do"),
            },
            Move::Retry(thread) => format!("thread {thread}'s node asks again"),
            Move::Stored => "a majority has what the keeper stores".into(),
            Move::Die(true) => "the keeper dies, and a majority has what it was storing".into(),
            Move::Die(false) => "the keeper dies".into(),
            Move::Enter(node) => format!("node {node} comes into the next epoch"),
            Move::Hear(node) => format!("node {node} hears what has become of the region"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        [Vec::new(), Vec::new()]
    }
}

impl Explored for Scenario {
    type System = KeptSystem;
    type Defect = Defect;
    /// One that waits for its turn takes some tens of KiB.
    const STATES: usize = 400_000;

    fn about(&self, deep: bool) -> About {
        let budget = self.deeper(deep).budget;
        let rows = [
            ("losses", "lost", budget.lose),
            ("duplicates", "doubled", budget.double),
            ("early_timeouts", "early timeout", budget.early),
            ("deaths", "dead", budget.die),
        ];
        let rows = rows.map(|(key, words, count)| Allowance {
            key,
            words,
            count: count.into(),
        });
        About {
            name: self.name,
            shows: self.about,
            rack: "home-only".into(),
            nodes: self.threads.len() + usize::from(budget.die) + 1,
            blocks: 0,
            locks: 0,
            threads: self.threads.len(),
            budget: rows.to_vec(),
            sometimes: 0,
        }
    }

    fn defects() -> impl Iterator<Item = (String, Defect)> {
        Defect::ALL.iter().map(|defect| (kebab(defect), *defect))
    }

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<KeptSystem, &'static str> {
        let first = World::new(&self.deeper(deep), defect);
        Ok(KeptSystem { first })
    }
}

impl Scenario {
    /// `deep`: with a packet more that is lost, and one more of what comes twice in it.
    fn deeper(&self, deep: bool) -> Self {
        let mut scenario = *self;
        if deep {
            let budget = &mut scenario.budget;
            budget.lose += 1;
            budget.double += u8::from(budget.double > 0);
        }
        scenario
    }
}
