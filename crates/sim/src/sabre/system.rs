//! The world as a system of the driver.

use super::catalogue::SCENARIOS;
use super::controller;
use super::kept;
use super::memory::writes_of;
use super::scenario::{Budget, Scenario};
use super::transaction;
use super::world::{World, node_of};
use crate::driver::{self, About, Allowance, Case, Complaint, Explored, Suite, System};
use crate::names::kebab;
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::Defect;
use rackmem_proto::wire::NodeId;

/// Objects, for the command line.
pub const SUITE: Suite = Suite {
    name: "sabre",
    scenarios: || {
        let objects = SCENARIOS.iter().map(|s| s as &dyn Case);
        let chips = controller::SCENARIOS.iter().map(|s| s as &dyn Case);
        let several = transaction::SCENARIOS.iter().map(|s| s as &dyn Case);
        let kept = kept::SCENARIOS.iter().map(|s| s as &dyn Case);
        objects.chain(kept).chain(several).chain(chips).collect()
    },
    defects: || {
        let of_chips = controller::Fault::all().map(controller::Fault::name);
        Defect::ALL.iter().map(kebab).chain(of_chips).collect()
    },
};

/// See the module.
pub struct Objects {
    first: World,
}

impl Objects {
    fn new(scenario: Scenario, defect: Option<Defect>) -> Self {
        let first = World::new(&scenario, defect);
        Objects { first }
    }
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A packet comes.
    Arrive(usize),
    /// It comes, and between two granules that the home copies for it this thread writes.
    Meet(usize, usize),
    /// It comes, and another copy will.
    Double(usize),
    /// It is lost.
    Lose(usize),
    /// A thread does its next step.
    Go(usize),
    /// A node asks again.
    Retry(NodeId),
}

impl System for Objects {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, packet) in world.packets.iter().enumerate() {
            moves.push(Move::Arrive(at));
            if node_of(packet) == 0 && packet.header.kind == rackmem_proto::wire::Kind::ObjRead {
                let writers = (0..world.threads.len()).filter(|t| world.would_write(*t).is_some());
                moves.extend(writers.map(|thread| Move::Meet(at, thread)));
            }
            moves.extend((world.left.double > 0).then_some(Move::Double(at)));
            moves.extend((world.left.lose > 0).then_some(Move::Lose(at)));
        }
        let going = (0..world.threads.len()).filter(|thread| world.can_go(*thread));
        moves.extend(going.map(Move::Go));
        if world.packets.is_empty() || world.left.early > 0 {
            let waiting = world.threads.iter().filter(|thread| thread.waits);
            moves.extend(waiting.map(|thread| Move::Retry(thread.node())));
        }
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        let came = match step {
            Move::Arrive(at) => {
                let packet = world.packets.remove(at);
                world.arrive(&packet, None)
            }
            Move::Meet(at, thread) => {
                let packet = world.packets.remove(at);
                let write = world.would_write(thread);
                let came = world.arrive(&packet, write);
                world.wrote(thread, write.unwrap_or_default());
                came
            }
            Move::Double(at) => {
                world.left.double -= 1;
                let packet = world.packets[at].clone();
                world.arrive(&packet, None)
            }
            Move::Lose(at) => {
                world.left.lose -= 1;
                world.packets.remove(at);
                Ok(())
            }
            Move::Go(thread) => world.go(thread),
            Move::Retry(node) => {
                world.left.early -= u8::from(!world.packets.is_empty());
                world.retry(node)
            }
        };
        world.purge();
        came
    }

    fn broken(&mut self, _: &World) -> Option<Complaint> {
        None
    }

    fn done(&self, world: &World) -> bool {
        let over = |thread: usize| !world.threads[thread].waits && !world.can_go(thread);
        world.packets.is_empty() && (0..world.threads.len()).all(over)
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = world.threads.iter().map(|thread| thread.waits);
        driver::endless("SABRes §5.1", waits)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let packet = |at: usize| told(&before.packets[at]);
        vec![match *step {
            Move::Arrive(at) => format!("arrives: {}", packet(at)),
            Move::Meet(at, thread) => {
                format!(
                    "arrives, and thread {thread} writes in the middle: {}",
                    packet(at)
                )
            }
            Move::Double(at) => format!("arrives, and another copy will: {}", packet(at)),
            Move::Lose(at) => format!("is lost: {}", packet(at)),
            Move::Go(thread) => match before.op(thread) {
                Some(op) => format!("thread {thread} goes on with {op:?}"),
                None => format!("thread {thread} has nothing to do"),
            },
            Move::Retry(node) => format!("node {node} asks again"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        [Vec::new(), Vec::new()]
    }
}

/// A packet in a story.
pub fn told(packet: &Parcel) -> String {
    let (header, (own, bytes)) = (&packet.header, packet.split());
    let (who, seq, to) = (header.requester.node, header.seq.0, node_of(packet));
    let writes: Vec<u16> = writes_of(bytes).collect();
    let (kind, reason) = (header.kind.name(), header.reason);
    format!(
        "{kind} to node {to}, node {who} #{seq}, version {}, life {}, +{} {:?} {reason:?}",
        own.a,
        own.b >> 32,
        header.offset,
        writes
    )
}

impl Explored for Scenario {
    type System = Objects;
    type Defect = Defect;
    /// One that waits for its turn takes some KiB.
    const STATES: usize = 3_000_000;

    fn about(&self, deep: bool) -> About {
        let Budget {
            lose,
            double,
            early,
        } = self.deeper(deep).budget;
        let rows = [
            ("losses", "lost", lose),
            ("duplicates", "doubled", double),
            ("early_timeouts", "early timeout", early),
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
            nodes: self.others.len() + 1,
            blocks: 0,
            locks: 0,
            threads: self.own.len() + self.others.len(),
            budget: rows.to_vec(),
            sometimes: 0,
        }
    }

    fn defects() -> impl Iterator<Item = (String, Defect)> {
        Defect::ALL.iter().map(|defect| (kebab(defect), *defect))
    }

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<Objects, &'static str> {
        Ok(Objects::new(self.deeper(deep), defect))
    }
}

impl Scenario {
    /// `deep`: with one more of whatever goes wrong in it, or a lost packet where nothing does.
    fn deeper(&self, deep: bool) -> Self {
        let mut scenario = *self;
        if deep {
            let budget = &mut scenario.budget;
            budget.lose += 1;
            budget.double += u8::from(budget.double > 0);
            budget.early += u8::from(budget.early > 0);
        }
        scenario
    }
}
