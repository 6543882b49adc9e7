//! The rack as the driver explores it and walks through it.

use super::restart::Ending;
use super::scenario::Scenario;
use super::witness::Witness;
use super::world::{GROUP, LineRack, World, write_of};
use crate::driver::{self, About, Allowance, Case, Complaint, Explored, Suite, System};
use crate::names::kebab;
use rackmem_proto::abd::{Change, Defect};
use rackmem_proto::call::Parcel;
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{Dest, NodeId};

/// ABD: replicated memory.
pub const SUITE: Suite = Suite {
    name: "abd",
    scenarios: || super::SCENARIOS.iter().map(|s| s as &dyn Case).collect(),
    defects: || Defect::ALL.iter().map(kebab).collect(),
};

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A packet arrives.
    Arrive(usize),
    /// It arrives, and another copy is still under way.
    Double(usize),
    /// It is lost.
    Lose(usize),
    /// A thread begins its next operation.
    Begin(usize),
    /// A node asks again.
    Retry(NodeId),
    /// What is on its way to a durable store is there.
    Sync(usize),
    /// The group takes its next step.
    Change,
    /// A node hears of the newest config.
    Learn(NodeId),
    /// The switch does.
    LearnSwitch,
    /// A process ends, and starts again.
    Crash(NodeId, Ending),
    /// A sync of a durable store fails.
    FailSync(usize),
    /// A node is gone for good.
    Die(NodeId),
    /// The switch starts again.
    RestartSwitch,
    /// A thread waits no longer.
    Abandon(NodeId),
    /// A member hears of the next epoch.
    Enter(NodeId),
    /// A home hears that the rack has gone on without it.
    Fence(NodeId),
}

impl Move {
    /// Whether it may not happen.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Move::Double(_)
                | Move::Lose(_)
                | Move::Crash(..)
                | Move::FailSync(_)
                | Move::Die(_)
                | Move::RestartSwitch
                | Move::Abandon(_)
        )
    }
}

/// A rack, and what was come across in it.
pub struct Lines {
    pub rack: LineRack,
    first: World,
    seen: u32,
}

impl Lines {
    pub fn new(scenario: Scenario, defect: Option<Defect>, records: bool) -> Self {
        let rack = LineRack {
            scenario,
            defect,
            records,
        };
        Lines {
            first: rack.first(),
            rack,
            seen: 0,
        }
    }

    fn packet_moves(world: &World, moves: &mut Vec<Move>) {
        let left = world.left;
        for (at, packet) in world.packets.iter().enumerate() {
            if at > 0 && world.packets[at - 1] == *packet {
                continue;
            }
            moves.push(Move::Arrive(at));
            moves.extend((left.double > 0).then_some(Move::Double(at)));
            moves.extend((left.lose > 0).then_some(Move::Lose(at)));
        }
        moves.extend((0..world.syncs.len()).map(Move::Sync));
        if left.fail > 0 {
            moves.extend((0..world.syncs.len()).map(Move::FailSync));
        }
    }

    fn waits(world: &World, node: usize) -> bool {
        let abd = &world.nodes[node].part.abd;
        let fills = abd.fill(GROUP).is_some_and(|fill| !fill.is_whole());
        world.nodes[node].up && (abd.awaits(0).is_some() || fills)
    }

    /// The next step of the group, if it can be taken.
    fn change(&self, world: &World) -> Option<rackmem_proto::abd::Config> {
        let scenario = &self.rack.scenario;
        let Some(change) = scenario.changes.get(usize::from(world.changed)).copied() else {
            return self.again(world);
        };
        if let Change::Filled(node) = change {
            let node = usize::from(node);
            let fill = world.nodes[node].part.abd.fill(GROUP)?;
            if !fill.is_whole() || world.known(node) != world.config().number {
                return None;
            }
        }
        let mut next = world.config().step(change).ok()?;
        let stays_alone = matches!(change, Change::Cancel(_)) && next.size == 1;
        if stays_alone && self.rack.has(Defect::KeepTheSecond) {
            (next.members, next.counting) = (world.config().members, 2);
            next.members[0] = None;
        }
        Some(next)
    }

    /// The first config of another region in the place of the removed one.
    fn again(&self, world: &World) -> Option<rackmem_proto::abd::Config> {
        let scenario = &self.rack.scenario;
        let first = usize::from(world.changed) == scenario.changes.len();
        if !first || !scenario.again || !world.config().is_removed() {
            return None;
        }
        let before = world.configs.first()?;
        let members: Vec<_> = before.members.iter().flatten().copied().collect();
        let mut next = world.config().again(&members).ok()?;
        next.through_switch = scenario.switch;
        next.holds_lines = scenario.held;
        next.chooser = if scenario.at_once {
            world.switch_life
        } else {
            0
        };
        Some(next)
    }

    fn group_moves(&self, world: &World, moves: &mut Vec<Move>) {
        moves.extend(self.change(world).map(|_| Move::Change));
        let newest = world.config().number;
        for (nth, node) in world.nodes.iter().enumerate() {
            if node.up && world.known(nth) < newest {
                moves.push(Move::Learn(nth as NodeId));
            }
        }
        let mortal = self.rack.scenario.mortal.iter().copied();
        let crash = |ending| move |node| Move::Crash(node, ending);
        if world.left.crash > 0 {
            moves.extend(mortal.clone().map(crash(Ending::Cut)));
            let syncs = |node: &NodeId| world.syncs.iter().any(|sync| sync.node == *node);
            moves.extend(mortal.clone().filter(syncs).map(crash(Ending::Kept)));
        }
        if world.left.damage > 0 {
            let lines = |node: NodeId| world.nodes[usize::from(node)].disk.lines.len();
            let all = mortal.flat_map(|node| (0..lines(node)).map(move |nth| (node, nth)));
            moves.extend(all.map(|(node, nth)| Move::Crash(node, Ending::Damaged(nth))));
        }
        if world.left.abandon > 0 {
            let waits = (0..world.threads.len()).filter(|at| world.threads[*at].waits);
            moves.extend(waits.map(|at| Move::Abandon(at as NodeId)));
        }
        if world.left.die > 0 {
            let up = |node: &&NodeId| world.nodes[usize::from(**node)].up;
            let mortal = self.rack.scenario.mortal.iter().filter(up);
            moves.extend(mortal.copied().map(Move::Die));
        }
        if let Some(switch) = &world.switch {
            let behind = switch.config(GROUP) != Some(newest);
            moves.extend(behind.then_some(Move::LearnSwitch));
            moves.extend((world.left.switch > 0).then_some(Move::RestartSwitch));
        }
    }

    fn act(&self, world: &mut World, step: Move) -> Result<(), Complaint> {
        let rack = &self.rack;
        match step {
            Move::Arrive(at) => {
                let packet = world.packets.remove(at);
                world.arrive(rack, &packet)
            }
            Move::Double(at) => {
                world.left.double -= 1;
                let packet = world.packets[at].clone();
                world.arrive(rack, &packet)
            }
            Move::Lose(at) => {
                world.left.lose -= 1;
                world.packets.remove(at);
                Ok(())
            }
            Move::Begin(thread) => world.begin(rack, thread),
            Move::Retry(node) => {
                world.left.early -= u8::from(!world.packets.is_empty());
                world.retry(rack, node)
            }
            Move::Sync(nth) => world.synced(rack, nth),
            Move::Change => {
                let next = self.change(world).unwrap_or(*world.config());
                world.changed += 1;
                world.configs.push(next);
                Ok(())
            }
            Move::Learn(node) => world.learn(rack, node),
            Move::LearnSwitch => {
                world.learn_switch();
                Ok(())
            }
            Move::Crash(node, ending) => {
                world.crash(rack, node, ending);
                Ok(())
            }
            Move::FailSync(nth) => world.fail_sync(rack, nth),
            Move::Die(node) => {
                world.die(node);
                Ok(())
            }
            Move::RestartSwitch => {
                world.restart_switch(rack);
                Ok(())
            }
            Move::Abandon(node) => {
                world.abandon(node);
                Ok(())
            }
            Move::Enter(node) => {
                world.enter(node);
                Ok(())
            }
            Move::Fence(node) => {
                world.fence(node);
                Ok(())
            }
        }
    }
}

impl System for Lines {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        Self::packet_moves(world, &mut moves);
        for thread in 0..world.threads.len() {
            let idle = !world.threads[thread].waits && world.nodes[thread].up;
            let begins = idle
                && self.rack.next(world, thread)
                && !world.is_removed(thread)
                && world.is_home(&self.rack, thread);
            moves.extend(begins.then_some(Move::Begin(thread)));
        }
        self.group_moves(world, &mut moves);
        for node in 0..world.nodes.len() {
            let enters = world.may_enter(&self.rack, node);
            moves.extend(enters.then_some(Move::Enter(node as NodeId)));
            let waits = world.threads.get(node).is_some_and(|thread| thread.waits);
            let fenced = waits && world.is_fenced(&self.rack, node);
            moves.extend(fenced.then_some(Move::Fence(node as NodeId)));
        }
        if world.packets.is_empty() || world.left.early > 0 {
            let waiting = (0..world.nodes.len()).filter(|node| Self::waits(world, *node));
            moves.extend(waiting.map(|node| Move::Retry(node as NodeId)));
        }
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        world.seen = 0;
        let came = self.act(world, step);
        let counts = [Defect::LateStampCounts, Defect::CountCopiesTwice];
        world.purge(
            &self.rack,
            counts.iter().any(|defect| self.rack.has(*defect)),
        );
        world.settle();
        self.seen |= world.seen;
        came
    }

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        world.judge.kept(world).err()
    }

    fn done(&self, world: &World) -> bool {
        let newest = world.config().number;
        let ended = |thread: usize| {
            let over = !world.threads[thread].waits && !self.rack.next(world, thread);
            over || !world.nodes[thread].up
                || !world.threads[thread].waits && world.is_fenced(&self.rack, thread)
        };
        let settled = |node: usize| !world.nodes[node].up || world.known(node) == newest;
        let quiet = world.packets.is_empty() && world.syncs.is_empty();
        let changed = usize::from(world.changed) == self.rack.scenario.steps();
        quiet
            && changed
            && (0..world.threads.len()).all(ended)
            && (0..world.nodes.len()).all(settled)
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = world.threads.iter().map(|thread| thread.waits);
        driver::endless("CNVMM §III-C", waits)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let packet = |at: usize| told(&before.packets[at]);
        vec![match *step {
            Move::Arrive(at) => format!("arrives: {}", packet(at)),
            Move::Double(at) => format!("arrives, and another copy will: {}", packet(at)),
            Move::Lose(at) => format!("is lost: {}", packet(at)),
            Move::Sync(nth) => {
                let sync = &before.syncs[nth];
                let (node, who) = (sync.node, sync.header.requester.node);
                format!("is durable at node {node}: {:x} of node {who}", sync.own.a)
            }
            Move::Begin(thread) => match self.rack.op(before, thread) {
                Some(op) => format!("node {thread} begins {op:?}"),
                None => format!("node {thread} has nothing to do"),
            },
            Move::Change => {
                let nth = usize::from(before.changed);
                format!("the group: {:?}", self.rack.scenario.changes.get(nth))
            }
            other => format!("{other:?}"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        let has = |witness: &&Witness| self.seen & 1 << **witness as u32 != 0;
        let wanted = self.rack.scenario.sometimes.iter();
        let names = |found: Vec<&Witness>| found.into_iter().map(kebab).collect();
        [
            names(Witness::ALL.iter().filter(has).collect()),
            names(wanted.filter(|witness| !has(witness)).collect()),
        ]
    }
}

impl LineRack {
    fn op(&self, world: &World, thread: usize) -> Option<super::Op> {
        World::next(world, self, thread)
    }

    fn next(&self, world: &World, thread: usize) -> bool {
        self.op(world, thread).is_some()
    }
}

/// A packet in a story.
fn told(parcel: &Parcel) -> String {
    let (header, (own, bytes)) = (&parcel.header, parcel.split());
    let name = |node: NodeId| match node {
        SWITCH => "the switch".to_owned(),
        node => format!("node {node}"),
    };
    let to = match parcel.to {
        Dest::Agent(node) => node,
        _ => SWITCH,
    };
    let (from, to) = (name(header.sender), name(to));
    let (who, seq, config) = (header.requester.node, header.seq.0, parcel.config());
    let kind = header.kind.name();
    let value = match bytes.len() {
        0 => String::new(),
        len => format!(", {len} bytes of {:02x}", write_of(bytes)),
    };
    let (round, by) = (own.a >> 28, own.a & ((1 << 28) - 1));
    format!(
        "{kind} {from} to {to}, node {who} #{seq}, config {config}, stamp {round}.{by:x}{value}"
    )
}

impl Scenario {
    /// Steps of the group.
    fn steps(&self) -> usize {
        self.changes.len() + usize::from(self.again)
    }

    /// The same with one more of whatever goes wrong in it, or a lost packet where nothing does.
    #[must_use]
    pub fn deepened(mut self) -> Self {
        self.budget.lose += 1;
        self.budget.double += u8::from(self.budget.double > 0);
        self.budget.early += u8::from(self.budget.early > 0);
        self.states = 0;
        self
    }
}

impl Explored for Scenario {
    type System = Lines;
    type Defect = Defect;
    /// One that waits for its turn takes some KiB.
    const STATES: usize = 3_000_000;

    fn about(&self, deep: bool) -> About {
        let scenario = if deep { self.deepened() } else { *self };
        let budget = scenario.budget;
        let rows = [
            ("losses", "lost", budget.lose),
            ("duplicates", "doubled", budget.double),
            ("early_timeouts", "early timeout", budget.early),
            ("restarts", "restart", budget.crash),
            ("deaths", "death", budget.die),
            ("switch_restarts", "restart of the switch", budget.switch),
            ("abandoned", "abandoned operation", budget.abandon),
            ("damaged", "damaged record", budget.damage),
            ("failed_syncs", "failed sync", budget.fail),
            ("configs", "new config", scenario.steps() as u8),
        ];
        let rows = rows.map(|(key, words, count)| Allowance {
            key,
            words,
            count: count.into(),
        });
        About {
            name: self.name,
            shows: self.about,
            rack: match self.switch {
                true => "switch".into(),
                false => "home-only".into(),
            },
            nodes: self.threads.len() + usize::from(self.copies + self.spares),
            blocks: 0,
            locks: 0,
            threads: self.threads.len(),
            budget: rows.to_vec(),
            sometimes: self.sometimes.len(),
        }
    }

    fn defects() -> impl Iterator<Item = (String, Defect)> {
        Defect::ALL.iter().map(|defect| (kebab(defect), *defect))
    }

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<Lines, &'static str> {
        let scenario = if deep { self.deepened() } else { *self };
        Ok(Lines::new(scenario, defect, false))
    }
}
