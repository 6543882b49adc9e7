//! The world of transactions as a system of the driver.

use super::scenario::{Budget, Scenario};
use super::world::World;
use crate::driver::{self, About, Allowance, Complaint, Explored, System};
use crate::names::kebab;
use crate::sabre::system::told;
use rackmem_proto::sabre::Defect;
use rackmem_proto::wire::NodeId;

/// See the module.
pub struct Transactions {
    first: World,
    mortal: &'static [NodeId],
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
    /// A thread does its next step.
    Go(usize),
    /// A thread waits no longer for its transaction.
    Leave(usize),
    /// A node asks again.
    Retry(NodeId),
    /// A node dies.
    Die(NodeId),
    /// A node goes into the next epoch, and reports.
    Enter(NodeId),
    /// A node has heard all reports, and serves.
    Settle(NodeId),
}

impl System for Transactions {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let (mut moves, left) = (Vec::new(), world.left);
        for at in 0..world.packets.len() {
            moves.push(Move::Arrive(at));
            moves.extend((left.double > 0).then_some(Move::Double(at)));
            moves.extend((left.lose > 0).then_some(Move::Lose(at)));
        }
        let threads = 0..world.threads.len();
        moves.extend(threads.clone().filter(|t| world.can_go(*t)).map(Move::Go));
        let leaves = threads.filter(|t| left.leave > 0 && world.may_leave(*t));
        moves.extend(leaves.map(Move::Leave));
        for node in 0..world.nodes() {
            let may_ask = world.packets.is_empty() || left.early > 0;
            let dies = left.die > 0 && self.mortal.contains(&node) && world.lives(node);
            let all = [
                (may_ask && world.is_busy(node), Move::Retry(node)),
                (dies, Move::Die(node)),
                (world.may_enter(node), Move::Enter(node)),
                (world.may_settle(node), Move::Settle(node)),
            ];
            moves.extend(
                all.into_iter()
                    .filter(|(may, _)| *may)
                    .map(|(_, step)| step),
            );
        }
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
            Move::Leave(thread) => world.leave(thread),
            Move::Retry(node) => {
                world.left.early -= u8::from(!world.packets.is_empty());
                world.retry(node)
            }
            Move::Die(node) => {
                world.die(node);
                Ok(())
            }
            Move::Enter(node) => world.enter(node),
            Move::Settle(node) => world.settle(node),
        };
        world.purge();
        came
    }

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        world.verdict()
    }

    fn done(&self, world: &World) -> bool {
        world.is_quiet()
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = world.threads.iter().map(|thread| thread.waits);
        driver::endless("SABRes §7", waits)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let packet = |at: usize| told(&before.packets[at]);
        vec![match *step {
            Move::Arrive(at) => format!("arrives: {}", packet(at)),
            Move::Double(at) => format!("arrives, and another copy will: {}", packet(at)),
            Move::Lose(at) => format!("is lost: {}", packet(at)),
            Move::Go(thread) => match before.op(thread) {
                Some(op) => format!("thread {thread} goes on with {op:?}"),
                None => format!("thread {thread} has nothing to do"),
            },
            Move::Leave(thread) => format!("thread {thread} waits no longer"),
            Move::Retry(node) => format!("node {node} asks again"),
            Move::Die(node) => format!("node {node} dies"),
            Move::Enter(node) => format!("node {node} enters the next epoch and reports"),
            Move::Settle(node) => format!("node {node} has heard all reports"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        [Vec::new(), Vec::new()]
    }
}

impl Explored for Scenario {
    type System = Transactions;
    type Defect = Defect;
    /// One that waits for its turn takes some KiB.
    const STATES: usize = 3_000_000;

    fn about(&self, deep: bool) -> About {
        let budget = self.deeper(deep).budget;
        let rows = [
            ("losses", "lost", budget.lose),
            ("duplicates", "doubled", budget.double),
            ("early_timeouts", "early timeout", budget.early),
            ("given_up", "given up", budget.leave),
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
            nodes: self.nodes.into(),
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

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<Transactions, &'static str> {
        let first = World::new(&self.deeper(deep), defect);
        let mortal = self.mortal;
        Ok(Transactions { first, mortal })
    }
}

impl Scenario {
    /// `deep`: with a packet more that is lost, and one more of what comes twice in it.
    fn deeper(&self, deep: bool) -> Self {
        let Budget { double, .. } = self.budget;
        let mut scenario = *self;
        if deep {
            scenario.budget.lose += 1;
            scenario.budget.double += u8::from(double > 0);
        }
        scenario
    }
}
