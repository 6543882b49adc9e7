//! Defects that sit between the network and the roles: packets that are changed, copied or sent
//! elsewhere, and entries that are kept.

use super::checks::Settling;
use super::fabric::{Occurrence, WorldPacket};
use super::mutation::Mutation;
use super::node::WorldNode;
use super::run::World;
use rackmem_proto::call::Call;
use rackmem_proto::engine::KeptCopies;
use rackmem_proto::engine::LockHost;
use rackmem_proto::flowcc::Rebuild;
use rackmem_proto::flowcc::Whereabouts;
use rackmem_proto::membership::host;
use rackmem_proto::switch::{SWITCH, SwitchProgram};
use rackmem_proto::wire::{
    Copyset, Dest, Flags, Header, Kind, MAX_REQUESTERS, Reason, RequesterId, Seq, Tag,
};
use rackmem_proto::{Output, Outputs};

/// How much later a copy arrives, in nanoseconds.
const LATER: u64 = 150_000;
/// A slot that no requester of a world has.
const STRANGE_SLOT: u16 = MAX_REQUESTERS as u16 - 1;

impl World {
    /// What a packet is to its receiver, with the world's defect if it has one.
    pub(super) fn mutate(&mut self, packet: WorldPacket) -> WorldPacket {
        match self.config.mutation {
            Some(Mutation::ForgetEpoch) => self.forget_epoch(packet),
            Some(Mutation::OverwriteCopyset) => self.overwrite(packet),
            Some(Mutation::AddAgain) => self.add_again(packet),
            Some(Mutation::RefuseOne) => self.refuse_one(packet),
            _ => packet,
        }
    }

    fn forget_epoch(&self, mut packet: WorldPacket) -> WorldPacket {
        let header = &mut packet.header;
        let node = |node: u16| self.nodes.get(usize::from(node)).map(|n| n.view.epoch);
        let epoch = match packet.to {
            Dest::Switch => self.switch.as_ref().map(|s| s.program.epoch()),
            Dest::Agent(id) => node(id),
            Dest::Requester(id) => node(id.node),
            Dest::Agents { .. } | Dest::Home(_) => None,
        };
        if let Some(epoch) = epoch.filter(|_| !Rebuild::concerns(header.kind)) {
            header.epoch = epoch;
        }
        packet
    }

    /// As if the unlock of a reader that is still at it came last and put back what was there when
    /// it began.
    fn overwrite(&self, mut packet: WorldPacket) -> WorldPacket {
        let header = &mut packet.header;
        if header.kind == Kind::Unlock && header.flags.has(Flags::READER) {
            let others = self
                .threads
                .iter()
                .filter(|thread| thread.id != header.requester);
            let mut live = others.flat_map(super::thread::Thread::live);
            if live.any(|event| event.shared && event.tag == header.tag) {
                header.copyset = header.copyset.without(header.requester.node);
            }
        }
        packet
    }

    /// What the last node asks of an owner never gets there once the network is calm.
    fn refuse_one(&self, mut packet: WorldPacket) -> WorldPacket {
        let header = packet.header;
        let asks = matches!(
            header.kind,
            Kind::ReadMiss | Kind::WriteMiss | Kind::WriteShared | Kind::LockRead | Kind::LockWrite
        );
        let last = header.requester.node + 1 == self.config.nodes;
        let to_owner = match packet.to {
            Dest::Switch => true,
            Dest::Agent(node) => {
                header.tag.home().is_of(node) && header.sender == header.requester.node
            }
            Dest::Requester(_) | Dest::Agents { .. } | Dest::Home(_) => false,
        };
        if self.calm.is_some() && asks && last && to_owner {
            packet.to = Dest::Requester(header.requester);
            let home = host(header.tag.home()).unwrap_or(SWITCH);
            packet.header = header.refuse(Kind::Ack, home, Reason::Locked);
        }
        packet
    }

    fn add_again(&mut self, packet: WorldPacket) -> WorldPacket {
        let header = packet.header;
        if header.kind == Kind::AddToSwitch && header.requester.slot != STRANGE_SLOT {
            let mut again = packet.clone();
            again.header.requester.slot = STRANGE_SLOT;
            again.header.seq = Seq(self.fabric.now / 8);
            self.fabric.schedule(LATER, Occurrence::Arrival(again));
        }
        packet
    }
}

/// The switch gives an entry free that it has agreed to give back, before its home has it.
pub fn free_in_first_step(
    asked: &Header,
    answers: &Outputs,
    program: &mut SwitchProgram,
    now: u64,
) {
    let gives = asked.kind == Kind::RemoveFromSwitch && !asked.flags.has(Flags::GRANTED);
    let agrees = |answer: &Output| answer.header.reason == Reason::None;
    if gives && answers.iter().any(agrees) {
        let mut free = *asked;
        free.flags = Flags::GRANTED;
        free.requester.slot = STRANGE_SLOT;
        free.seq = Seq(now / 8);
        program.handle(&free);
    }
}

impl WorldNode {
    pub(super) fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Whether a block is of a region that is removed, as far as this node has heard.
    pub fn is_gone(&self, tag: Tag) -> bool {
        !tag.home().is_own() && self.whereabouts(tag) == Whereabouts::Gone
    }

    /// Whether a block's home is in the rack, in the incarnation that has the block, or in any.
    pub fn reaches(&self, tag: Tag) -> bool {
        match self.mutation {
            Some(Mutation::ForgetIncarnation) => tag.home().lives_with(self.view.live),
            _ => self.is_current(tag) && !self.is_gone(tag),
        }
    }

    /// What the shadow takes out of the switch without asking its home.
    pub(super) fn demoted_alone(&self, output: Output, now: u64) -> Output {
        let mut header = output.header;
        if header.kind != Kind::Demote || !self.mutated(Mutation::DemoteAlone) {
            return output;
        }
        header.kind = Kind::RemoveFromSwitch;
        header.flags = Flags::GRANTED;
        header.requester.slot = STRANGE_SLOT;
        header.seq = Seq(now / 8);
        Output::new(Dest::Switch, header)
    }

    /// A call for memory that is taken for another one.
    pub(super) fn call_forgotten(&self, mut header: Header, now: u64) -> Header {
        if matches!(header.kind, Kind::Alloc | Kind::Free) && self.mutated(Mutation::ForgetCalls) {
            let stream = Call::from_offset(header.offset).stream;
            let number = now as u32;
            header.offset = Call { stream, number }.to_offset();
        }
        header
    }

    /// Locks of the dead stay.
    pub(super) fn keep_dead_locks(&mut self, gone: Copyset, rows: &[Settling]) {
        let Some(node) = gone
            .iter()
            .next()
            .filter(|_| self.mutated(Mutation::KeepDeadLocks))
        else {
            return;
        };
        let locked = |row: &&Settling| row.before.is_some_and(|entry| entry.0 != 0);
        for (at, row) in rows.iter().filter(locked).enumerate() {
            let slot = STRANGE_SLOT - at as u16;
            let id = RequesterId { node, slot };
            let epoch = self.view.epoch;
            let request = Header::request(Kind::LockWrite, epoch, row.tag, id, Seq(1));
            self.home_of(row.tag).handle(&request, 0);
        }
    }
}
