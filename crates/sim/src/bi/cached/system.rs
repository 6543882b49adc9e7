//! The world as a system of the driver.

use super::catalogue::{Scenario, Sight};
use super::world::World;
use crate::driver::{self, About, Allowance, Complaint, Explored, System};
use crate::names::kebab;
use rackmem_proto::bi::cached::Defect;

/// See the module.
pub struct Cachers {
    scenario: Scenario,
    first: World,
    seen: Vec<Sight>,
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// The clock goes on.
    Tick,
    /// A thread does its next step.
    Go(usize),
    /// The member's quiescence does its next step.
    Quiesce,
    /// A packet arrives.
    Deliver(usize),
    /// A packet arrives, and once more later.
    Double(usize),
    /// A packet is lost.
    Lose(usize),
    /// What was not answered is asked again.
    AskAgain,
}

impl System for Cachers {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        moves.extend((world.ticks > 0).then_some(Move::Tick));
        let threads = (0..world.threads()).filter(|thread| world.can_go(*thread));
        moves.extend(threads.map(Move::Go));
        moves.extend(world.can_quiesce().then_some(Move::Quiesce));
        for packet in 0..world.packets() {
            moves.push(Move::Deliver(packet));
            moves.extend((world.faults[1] > 0).then_some(Move::Double(packet)));
            moves.extend((world.faults[0] > 0).then_some(Move::Lose(packet)));
        }
        moves.extend(world.asks_again().then_some(Move::AskAgain));
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        let seen = &mut self.seen;
        match step {
            Move::Tick => world.tick(seen),
            Move::Go(thread) => world.go(thread, seen)?,
            Move::Quiesce => world.quiesce(seen),
            Move::Deliver(packet) => world.deliver(packet, seen)?,
            Move::Double(packet) => world.double(packet, seen)?,
            Move::Lose(packet) => world.lose(packet),
            Move::AskAgain => world.ask_again(),
        }
        let mut kept: Vec<Sight> = Vec::new();
        for sight in seen.drain(..) {
            if !kept.contains(&sight) {
                kept.push(sight);
            }
        }
        *seen = kept;
        Ok(())
    }

    fn broken(&mut self, _: &World) -> Option<Complaint> {
        None
    }

    fn done(&self, world: &World) -> bool {
        (0..world.threads()).all(|thread| world.op(thread).is_none())
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = (0..world.threads()).map(|thread| world.op(thread).is_some());
        driver::endless("BI §3.4", waits)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        vec![match *step {
            Move::Tick => "the clock goes on".into(),
            Move::Go(thread) => format!("thread {thread} goes on: {:?}", before.op(thread)),
            Move::Quiesce => before.next_act(),
            Move::Deliver(packet) => format!("{} arrives", before.packet(packet)),
            Move::Double(packet) => format!("{} arrives, with a copy", before.packet(packet)),
            Move::Lose(packet) => format!("{} is lost", before.packet(packet)),
            Move::AskAgain => "what was not answered is asked again".into(),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        let missing = self.scenario.shows.iter();
        let missing = missing.filter(|sight| !self.seen.contains(sight));
        [
            self.seen.iter().map(kebab).collect(),
            missing.map(kebab).collect(),
        ]
    }
}

impl Explored for Scenario {
    type System = Cachers;
    type Defect = Defect;
    const STATES: usize = 3_000_000;

    fn about(&self, _deep: bool) -> About {
        let [lost, doubled] = self.faults;
        let rows = [
            ("ticks", "ticks", self.ticks),
            ("losses", "lost packets", lost),
            ("copies", "packets that come twice", doubled),
        ];
        let rows = rows.map(|(key, words, count)| Allowance {
            key,
            words,
            count: count.into(),
        });
        About {
            name: self.name,
            shows: self.about,
            rack: "a home and a member".into(),
            nodes: 3,
            blocks: 0,
            locks: 0,
            threads: self.members.len() + 1,
            budget: rows.to_vec(),
            sometimes: self.shows.len(),
        }
    }

    fn defects() -> impl Iterator<Item = (String, Defect)> {
        Defect::ALL.iter().map(|defect| (kebab(defect), *defect))
    }

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<Cachers, &'static str> {
        let mut scenario = *self;
        scenario.ticks += u8::from(deep);
        Ok(Cachers {
            scenario,
            first: World::new(&scenario, defect),
            seen: Vec::new(),
        })
    }
}
