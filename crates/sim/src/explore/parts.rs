//! The parts that states are put together from, each kept once, and what every step of a part does,
//! worked out once.
//!
//! A step touches one part: a node takes a packet or one of its threads has its turn,
//! the switch takes a packet. So a state is a few small numbers, and a step that has been seen in
//! another state is looked up instead of being carried out: roles are values,
//! and answer the same question the same way.

use super::effects::{Complaint, Effects, Observation};
use super::inside::Views;
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::ExplorerPacket;
use super::view::{self, ExplorerView};
use super::witness::{Witness, Witnesses};
use rackmem_proto::switch::SwitchProgram;
use rackmem_proto::wire::{Kind, NodeId, Reason};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Number of a part in one of its states.
pub type PartId = u32;
/// Number of a packet.
pub type PacketId = u32;

/// Something that happens to a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// A packet arrives.
    Arrival(PacketId),
    /// It is a thread's turn.
    Turn(u8),
    /// A thread's requester has waited long enough, for the nth of its answers.
    Resend(u8, u8),
    /// The home agent has, for the nth of its own.
    ResendHome(u8),
    /// The home agent is told to move a block's entry to the switch.
    Want(u8),
    /// It is told to take it back.
    Demote(u8),
    /// A new epoch begins after the nth failure of the scenario; this happens to all parts at once.
    Epoch(u8),
    /// A member learns of the newest epoch.
    Learn(Views),
    /// It tells again the nth of the things that nobody has acknowledged.
    Retell(u8),
    /// The rack's groups go a step on: nobody has heard of it yet.
    Groups,
    /// A node hears of it, and of all before.
    Hear(u8),
}

impl Input {
    fn code(self) -> u32 {
        match self {
            Input::Arrival(packet) => packet,
            Input::Turn(thread) => 0x8000_0000 | u32::from(thread),
            Input::Resend(thread, nth) => 0x9000_0000 | u32::from(thread) << 8 | u32::from(nth),
            Input::ResendHome(nth) => 0xa000_0000 | u32::from(nth),
            Input::Want(block) => 0xb000_0000 | u32::from(block),
            Input::Demote(block) => 0xc000_0000 | u32::from(block),
            Input::Epoch(failure) => 0xd000_0000 | u32::from(failure),
            Input::Learn(views) => 0xe000_0000 | u32::from(views.0),
            Input::Retell(nth) => 0xf000_0000 | u32::from(nth),
            Input::Groups => 0xf100_0000,
            Input::Hear(step) => 0xf200_0000 | u32::from(step),
        }
    }
}

/// What came of it.
pub struct Outcome {
    /// The part's next state.
    pub next: PartId,
    /// Packets that it has sent.
    pub sent: Box<[PacketId]>,
    /// What threads saw and did.
    pub observed: Box<[Observation]>,
    /// What happened to copies.
    pub notes: Box<[(NodeId, u8, &'static str)]>,
    /// What else was seen.
    pub seen: Witnesses,
    /// A promise that was broken.
    pub complaint: Option<Complaint>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there are thousands of nodes to a switch"
)]
pub enum Part {
    Node(ExplorerNode),
    Switch(SwitchProgram),
    /// What it was has died.
    Gone,
}

/// Everything that has been seen of parts and packets.
pub struct Parts {
    parts: Vec<Part>,
    views: Vec<ExplorerView>,
    numbers: HashMap<Box<[u8]>, PartId>,
    packets: Vec<ExplorerPacket>,
    packet_numbers: HashMap<ExplorerPacket, PacketId>,
    steps: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    outcomes: Vec<Outcome>,
    scratch: Bytes,
}

impl Parts {
    /// The parts of a rack in which nothing has happened, and their numbers.
    pub fn new(layout: &Layout) -> (Self, Vec<PartId>) {
        let mut parts = Parts {
            parts: Vec::new(),
            views: Vec::new(),
            numbers: HashMap::new(),
            packets: Vec::new(),
            packet_numbers: HashMap::new(),
            steps: HashMap::default(),
            outcomes: Vec::new(),
            scratch: Bytes::default(),
        };
        let view = layout.view();
        let nodes = 0..layout.scenario.nodes;
        let mut nodes: Vec<ExplorerNode> = nodes
            .map(|id| ExplorerNode::new(id, layout, &view))
            .collect();
        let mut switch = layout.switch();
        if let Some(switch) = &mut switch {
            for &block in layout.scenario.in_switch {
                hand_over(&mut nodes, switch, block, layout);
            }
        }
        let nodes = nodes.into_iter().map(Part::Node);
        let first = nodes.chain(switch.map(Part::Switch));
        let first = first.map(|part| parts.number(part, layout)).collect();
        (parts, first)
    }

    /// What is in a part.
    pub fn view(&self, part: PartId) -> &ExplorerView {
        &self.views[part as usize]
    }

    /// A part by its number.
    pub fn part(&self, part: PartId) -> &Part {
        &self.parts[part as usize]
    }

    /// A packet by its number.
    pub fn packet(&self, packet: PacketId) -> &ExplorerPacket {
        &self.packets[packet as usize]
    }

    /// How many different states of parts, packets, and steps there are.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.parts.len(), self.packets.len(), self.outcomes.len())
    }

    /// An outcome by its number.
    pub fn outcome(&self, number: u32) -> &Outcome {
        &self.outcomes[number as usize]
    }

    /// What comes of something that happens to a part: the outcome's number.
    pub fn step(&mut self, part: PartId, input: Input, layout: &Layout) -> u32 {
        let key = u64::from(part) << 32 | u64::from(input.code());
        if let Some(known) = self.steps.get(&key) {
            return *known;
        }
        let outcome = self.carry_out(part, input, layout);
        let number = self.outcomes.len() as u32;
        self.outcomes.push(outcome);
        self.steps.insert(key, number);
        number
    }

    fn carry_out(&mut self, part: PartId, input: Input, layout: &Layout) -> Outcome {
        let mut fx = Effects::new(layout);
        let next = match (&self.parts[part as usize], input) {
            (Part::Node(node), input) => {
                let mut node = node.clone();
                self.happen(&mut node, input, &mut fx);
                Part::Node(node)
            }
            (Part::Switch(switch), Input::Arrival(packet)) => {
                let mut switch = switch.clone();
                pass(&mut switch, &self.packets[packet as usize], &mut fx);
                Part::Switch(switch)
            }
            (Part::Switch(switch), _) => Part::Switch(switch.clone()),
            (Part::Gone, _) => Part::Gone,
        };
        let sent: Box<[PacketId]> = fx.sent.iter().map(|p| self.packet_number(p)).collect();
        Outcome {
            next: self.number(next, layout),
            sent,
            observed: fx.observed.into(),
            notes: fx.notes.into(),
            seen: fx.seen,
            complaint: fx.complaint,
        }
    }

    fn happen(&self, node: &mut ExplorerNode, input: Input, fx: &mut Effects<'_>) {
        match input {
            Input::Arrival(packet) => node.handle(&self.packets[packet as usize], fx),
            Input::Turn(thread) => node.step(usize::from(thread), fx),
            Input::Resend(thread, nth) => {
                node.resend(usize::from(thread), usize::from(nth), fx);
            }
            Input::ResendHome(nth) => fx.send_all(node.site.books().resend().nth(usize::from(nth))),
            Input::Want(block) => node.want(block, fx),
            Input::Demote(block) => node.demote(block, fx),
            Input::Learn(views) => {
                let (view, change) = views.since(node.site.books().made(), fx.layout);
                node.learn(view, change, fx);
                node.site.proceed();
                node.follow(None, fx);
            }
            Input::Retell(nth) => node.retell(usize::from(nth), fx),
            Input::Hear(step) => node.hear_of(step, fx),
            Input::Epoch(_) | Input::Groups => {}
        }
    }

    /// The number of a packet.
    pub fn packet_number(&mut self, packet: &ExplorerPacket) -> PacketId {
        *self.packet_numbers.entry(*packet).or_insert_with(|| {
            self.packets.push(*packet);
            self.packets.len() as PacketId - 1
        })
    }

    /// The number of a part's state: two states have the same one exactly if nothing tells them
    /// apart.
    pub fn number(&mut self, mut part: Part, layout: &Layout) -> PartId {
        self.scratch.0.clear();
        match &part {
            Part::Node(node) => {
                self.scratch.write_u16(node.site.id);
                node.fingerprint(&mut self.scratch);
            }
            Part::Switch(switch) => {
                self.scratch.write_u16(NodeId::MAX);
                switch.fingerprint(&mut self.scratch);
            }
            Part::Gone => {}
        }
        if let Some(known) = self.numbers.get(&self.scratch.0[..]) {
            return *known;
        }
        let number = self.parts.len() as PartId;
        self.numbers
            .insert(self.scratch.0.as_slice().into(), number);
        self.views.push(match &mut part {
            Part::Node(node) => view::of_node(node, layout),
            Part::Switch(switch) => view::of_switch(switch, layout),
            Part::Gone => view::of_nothing(layout),
        });
        self.parts.push(part);
        number
    }
}

/// Moves a block's entry to the switch before anything else happens.
fn hand_over(nodes: &mut [ExplorerNode], switch: &mut SwitchProgram, block: u8, layout: &Layout) {
    let home = &mut nodes[usize::from(layout.scenario.homes[usize::from(block)])];
    let mut fx = Effects::new(layout);
    home.want(block, &mut fx);
    for add in std::mem::take(&mut fx.sent) {
        pass(switch, &add, &mut fx);
    }
    for ack in std::mem::take(&mut fx.sent) {
        home.handle(&ack, &mut fx);
    }
}

/// The switch takes a packet.
fn pass(switch: &mut SwitchProgram, packet: &ExplorerPacket, fx: &mut Effects<'_>) {
    let before = switch.counters();
    fx.send_all(switch.handle(&packet.header).iter().copied());
    let now = switch.counters();
    let late = now.to_home > before.to_home && switch.inspect(packet.header.tag).is_some();
    let unlocked_again = packet.header.kind == Kind::Unlock && now.unlocked == before.unlocked;
    let seen = &mut fx.seen;
    seen.see_if(late, Witness::PassedOnAfterMove);
    seen.see_if(now.granted > before.granted, Witness::GrantedBySwitch);
    seen.see_if(now.locked > before.locked, Witness::RefusedLocked);
    seen.see_if(now.invalid > before.invalid, Witness::RefusedInvalid);
    seen.see_if(
        unlocked_again && now.dropped == before.dropped,
        Witness::UnlockedAgain,
    );
    if now.violations > before.violations {
        let detail = format!("{:?} broke a rule of the pipeline", packet.header.kind);
        fx.complaint = Some(("the program fits the pipeline", "§2.2", detail));
    }
    let no = |p: &ExplorerPacket| p.header.kind == Kind::AddAck && p.header.reason == Reason::Full;
    seen.see_if(fx.sent.iter().any(no), Witness::Collided);
}

/// The exact bytes of a fingerprint, in place of a hash of them.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// Spreads the key of a step, which is two small numbers.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
