//! The rack as the driver explores it and walks through it.

use super::scenario::Scenario;
use super::witness::Witness;
use super::world::{GROUP, Packet, Rack, SWITCH, World};
use crate::driver::{
    self, About, Allowance, Case, Complaint, Explored, Limits, Report, Suite, System,
};
use crate::names::kebab;
use rackmem_proto::abd::{Change, Defect};
use rackmem_proto::wire::NodeId;

/// ABD: replicated memory.
pub const SUITE: Suite = Suite {
    name: "abd",
    scenarios: || super::SCENARIOS.iter().map(|s| s as &dyn Case).collect(),
    defects: || Defect::ALL.iter().map(kebab).collect(),
};

/// Visits every state of a scenario, as far as the limits allow.
pub fn explore(scenario: &Scenario, defect: Option<Defect>, limits: &mut Limits<'_>) -> Report {
    let mut system = Lines::new(*scenario, defect, false);
    driver::explore(&mut system, limits)
}

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
    Crash(NodeId),
    /// A node is gone for good.
    Die(NodeId),
    /// The switch starts again.
    RestartSwitch,
}

impl Move {
    /// Whether it may not happen.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Move::Double(_) | Move::Lose(_) | Move::Crash(_) | Move::Die(_) | Move::RestartSwitch
        )
    }
}

/// A rack, and what was come across in it.
pub struct Lines {
    pub rack: Rack,
    first: World,
    seen: u32,
}

impl Lines {
    pub fn new(scenario: Scenario, defect: Option<Defect>, records: bool) -> Self {
        let rack = Rack {
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
    }

    fn waits(world: &World, node: usize) -> bool {
        let abd = &world.nodes[node].part.abd;
        let fills = abd.fill(GROUP).is_some_and(|fill| !fill.is_whole());
        world.nodes[node].up && (abd.awaits(0).is_some() || fills)
    }

    /// The next step of the group, if it can be taken.
    fn change(&self, world: &World) -> Option<rackmem_proto::abd::Config> {
        let change = *self.rack.scenario.changes.get(usize::from(world.changed))?;
        if let Change::Filled(node) = change {
            let node = usize::from(node);
            let fill = world.nodes[node].part.abd.fill(GROUP)?;
            if !fill.is_whole() || world.known(node) != world.config().number {
                return None;
            }
        }
        world.config().step(change).ok()
    }

    fn group_moves(&self, world: &World, moves: &mut Vec<Move>) {
        moves.extend(self.change(world).map(|_| Move::Change));
        let newest = world.config().number;
        for (nth, node) in world.nodes.iter().enumerate() {
            if node.up && world.known(nth) < newest {
                moves.push(Move::Learn(nth as NodeId));
            }
        }
        if world.left.crash > 0 {
            moves.extend(self.rack.scenario.mortal.iter().copied().map(Move::Crash));
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
            Move::Crash(node) => {
                world.crash(rack, node);
                Ok(())
            }
            Move::Die(node) => {
                world.die(node);
                Ok(())
            }
            Move::RestartSwitch => {
                world.left.switch -= 1;
                world.switch = rack.first().switch;
                world.learn_switch();
                Ok(())
            }
        }
    }
}

impl System for Lines {
    type State = World;
    type Move = Move;
    type Word = World;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut moves = Vec::new();
        Self::packet_moves(world, &mut moves);
        for thread in 0..world.threads.len() {
            let idle = !world.threads[thread].waits && world.nodes[thread].up;
            let begins = idle && self.rack.next(world, thread);
            moves.extend(begins.then_some(Move::Begin(thread)));
        }
        self.group_moves(world, &mut moves);
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
        world.purge(counts.iter().any(|defect| self.rack.has(*defect)));
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
        };
        let settled = |node: usize| !world.nodes[node].up || world.known(node) == newest;
        let quiet = world.packets.is_empty() && world.syncs.is_empty();
        let changed = usize::from(world.changed) == self.rack.scenario.changes.len();
        quiet
            && changed
            && (0..world.threads.len()).all(ended)
            && (0..world.nodes.len()).all(settled)
    }

    fn stuck(&self, world: &World) -> Complaint {
        let waits = (0..world.threads.len()).filter(|thread| world.threads[*thread].waits);
        let waits: Vec<usize> = waits.collect();
        let detail = format!("no way leads to the end; threads {waits:?} wait");
        ("every operation ends", "CNVMM §III-C", detail)
    }

    fn fingerprint(&self, world: &World) -> u128 {
        world.fingerprint()
    }

    fn pack(&self, world: World, into: &mut Vec<World>) {
        into.push(world);
    }

    fn unpack<'a>(&self, words: &'a [World], _: &'a mut World) -> (&'a World, usize) {
        (&words[0], 1)
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let packet = |at: usize| told(&before.packets[at]);
        vec![match *step {
            Move::Arrive(at) => format!("arrives: {}", packet(at)),
            Move::Double(at) => format!("arrives, and another copy will: {}", packet(at)),
            Move::Lose(at) => format!("is lost: {}", packet(at)),
            Move::Sync(nth) => {
                let (node, header, own) = &before.syncs[nth];
                let who = header.requester.node;
                format!("is durable at node {node}: {:x} of node {who}", own.a)
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

impl Rack {
    fn op(&self, world: &World, thread: usize) -> Option<super::Op> {
        World::next(world, self, thread)
    }

    fn next(&self, world: &World, thread: usize) -> bool {
        self.op(world, thread).is_some()
    }
}

/// A packet in a story.
fn told(packet: &Packet) -> String {
    let (header, own, load) = (&packet.header, &packet.own, &packet.load);
    let name = |node: NodeId| match node {
        SWITCH => "the switch".to_owned(),
        node => format!("node {node}"),
    };
    let (from, to) = (name(header.sender), name(packet.to));
    let (who, seq, config) = (header.requester.node, header.seq.0, own.b >> 32);
    let kind = header.kind.name();
    let value = match load.len {
        0 => String::new(),
        len => format!(
            ", {len} bytes of {:02x}{:02x}",
            load.value[0], load.value[1]
        ),
    };
    let (round, by) = (own.a >> 27, own.a & ((1 << 27) - 1));
    format!(
        "{kind} {from} to {to}, node {who} #{seq}, config {config}, stamp {round}.{by:x}{value}"
    )
}

impl Scenario {
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
            ("configs", "new config", scenario.changes.len() as u8),
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
