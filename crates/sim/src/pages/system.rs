//! The world as a system of the driver.

use super::catalogue::SCENARIOS;
use super::scenario::{BLOCKS, NODES, Scenario, Sight};
use super::world::{CLOSES, Rules, World};
use crate::driver::{self, About, Allowance, Case, Complaint, Explored, Suite, System};
use crate::names::kebab;
use rackmem_proto::pages::{Defect, Right};

/// Mapped memory, for the command line.
pub const SUITE: Suite = Suite {
    name: "pages",
    scenarios: || SCENARIOS.iter().map(|s| s as &dyn Case).collect(),
    defects: || Defect::ALL.iter().map(kebab).collect(),
};

/// See the module.
pub struct Rack {
    rules: Rules,
    seen: Vec<Sight>,
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A thread's next operation.
    Run(usize),
    /// It is interrupted by a fault.
    Fault(usize),
    /// A store leaves a thread's buffer.
    Drain(usize),
    /// A thread goes on in the handler, or in a call.
    GoOn(usize),
    /// The shootdown of a block reaches a thread.
    Shoot(usize, usize),
    /// A node does the next step of what is asked of it about a block.
    Give(usize, usize),
    /// A page has been in a node's mapping for a while.
    Wait(usize, usize),
    /// A page has been pinned for as long as that may be.
    Expire(usize, usize),
    /// A page leaves a node's mapping.
    Drop(usize, usize),
    /// Node 1 cannot show any more that it is alive.
    Close,
    /// It takes a block out of its mapping.
    GoOnClosing(usize),
}

impl Rack {
    fn of_block(&self, world: &World, block: usize, moves: &mut Vec<Move>) {
        for (nth, _) in world.threads() {
            let reached = world.can_be_shot(nth, block);
            moves.extend(reached.then_some(Move::Shoot(nth, block)));
        }
        let event = world.events[block].as_ref();
        for (node, page) in world.pages.iter().enumerate() {
            if let Some(taking) = event.and_then(|event| event.takings[node].as_ref()) {
                let goes_on = world.can_take(taking, &self.rules);
                moves.extend(goes_on.then_some(Move::Give(block, node)));
                let waits = page[block].fresh && world.rests(taking, &self.rules);
                moves.extend(waits.then_some(Move::Wait(node, block)));
                let pinned = !self.rules.breaks(Defect::PinForEver) && world.is_pinned(taking);
                moves.extend(pinned.then_some(Move::Expire(node, block)));
            }
            let drops = world.drops > 0 && page[block].mapped != Right::Hidden;
            moves.extend(drops.then_some(Move::Drop(node, block)));
        }
        let closes = world.can_close(block, &self.rules);
        moves.extend(closes.then_some(Move::GoOnClosing(block)));
    }
}

impl System for Rack {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        World::new(&self.rules)
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        for (nth, thread) in world.threads() {
            let (runs, faults) = world.instruction(nth, &self.rules);
            moves.extend(runs.then_some(Move::Run(nth)));
            moves.extend(faults.then_some(Move::Fault(nth)));
            moves.extend(thread.buffer[0].is_some().then_some(Move::Drain(nth)));
            let goes_on = world.can_go_on(nth, &self.rules);
            moves.extend(goes_on.then_some(Move::GoOn(nth)));
        }
        (0..BLOCKS).for_each(|block| self.of_block(world, block, &mut moves));
        moves.extend((world.closes > 0).then_some(Move::Close));
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        let (rules, seen) = (&self.rules, &mut self.seen);
        match step {
            Move::Run(nth) => world.run(nth, rules, seen)?,
            Move::Fault(nth) => world.fault(nth, rules),
            Move::Drain(nth) => world.drain(nth, seen),
            Move::GoOn(nth) => world.go_on(nth, rules, seen)?,
            Move::Shoot(nth, block) => world.shoot(nth, block),
            Move::Give(block, node) => world.give(block, node, rules, seen),
            Move::Wait(node, block) => {
                world.pages[node][block].fresh = false;
                seen.push(Sight::Rested);
            }
            Move::Expire(node, block) => world.pages[node][block].pinned = Right::Hidden,
            Move::Drop(node, block) => world.drop_page(node, block),
            Move::Close => world.close(),
            Move::GoOnClosing(block) => world.go_on_closing(block, rules, seen),
        }
        if world.is_weak(rules) {
            seen.push(Sight::Weak);
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

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        world.broken(&self.rules)
    }

    fn done(&self, world: &World) -> bool {
        world.is_done(&self.rules)
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = world.threads().map(|(nth, thread)| {
            let over = self.rules.op(nth, thread).is_none();
            !over
        });
        driver::endless("paper §5.1.1", waits)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let thread = |nth: usize| before.threads[nth].expect("a thread of the move");
        let op = |nth: usize| self.rules.op(nth, &thread(nth));
        vec![match *step {
            Move::Run(nth) => match op(nth) {
                Some(op) => format!("thread {nth} at node {}: {op:?}", thread(nth).node),
                None => format!("thread {nth} ends"),
            },
            Move::Fault(nth) => format!("thread {nth} at node {} faults", thread(nth).node),
            Move::Drain(nth) => format!(
                "thread {nth}'s {:?} leaves its buffer",
                thread(nth).buffer[0]
            ),
            Move::GoOn(nth) => format!("thread {nth} goes on: {:?}", thread(nth).phase),
            Move::Shoot(nth, block) => {
                format!("the shootdown of block {block} reaches thread {nth}")
            }
            Move::Give(block, node) => {
                let event = before.events[block];
                let taking = event.and_then(|event| event.takings[node]);
                format!("node {node} goes on to give block {block} up: {taking:?}")
            }
            Move::Wait(node, block) => format!("block {block} has been at node {node} for a while"),
            Move::Expire(node, block) => format!("block {block} is pinned at node {node} no more"),
            Move::Drop(node, block) => format!("block {block} leaves node {node}'s mapping"),
            Move::Close => format!("node {CLOSES} cannot show that it is alive"),
            Move::GoOnClosing(block) => format!("node {CLOSES} looks at block {block}"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        let missing = self.rules.scenario.shows.iter();
        let missing = missing.filter(|sight| !self.seen.contains(sight));
        [
            self.seen.iter().map(kebab).collect(),
            missing.map(kebab).collect(),
        ]
    }
}

impl Explored for Scenario {
    type System = Rack;
    type Defect = Defect;
    /// One that waits for its turn takes a third of a KiB.
    const STATES: usize = 8_000_000;

    fn about(&self, deep: bool) -> About {
        let scenario = self.deeper(deep);
        let rows = [
            ("drops", "pages that leave a mapping", scenario.events.drops),
            ("closes", "ends of a lease", scenario.events.closes),
        ];
        let rows = rows.map(|(key, words, count)| Allowance {
            key,
            words,
            count: count.into(),
        });
        let nodes = scenario.threads.iter().map(|row| usize::from(row.0) + 1);
        About {
            name: self.name,
            shows: self.about,
            rack: "mapped".into(),
            nodes: nodes.max().unwrap_or(NODES),
            blocks: BLOCKS,
            locks: 0,
            threads: scenario.threads.len(),
            budget: rows.to_vec(),
            sometimes: scenario.shows.len(),
        }
    }

    fn defects() -> impl Iterator<Item = (String, Defect)> {
        Defect::ALL.iter().map(|defect| (kebab(defect), *defect))
    }

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<Rack, &'static str> {
        let scenario = self.deeper(deep);
        Ok(Rack {
            rules: Rules { scenario, defect },
            seen: Vec::new(),
        })
    }
}

impl Scenario {
    /// `deep`: one more page leaves a mapping.
    fn deeper(&self, deep: bool) -> Self {
        let mut scenario = *self;
        scenario.events.drops += u8::from(deep);
        scenario
    }
}
