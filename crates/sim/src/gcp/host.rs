//! What a host does around a lock: it moves bytes and packets, and lets threads in.

use super::mutation::Mutation;
use super::oracle::{Complaint, complain};
use super::packet::{DIRECTORY, LockPacket, copies, cut};
use super::world::{HOME, LockRack, Serves, TAG, Witness, World, regions};
use crate::site::{Fx, LockDeed};
use rackmem_proto::Output;
use rackmem_proto::engine::NodeLock;
use rackmem_proto::gcp::{Known, Queue, first};
use rackmem_proto::wire::{Header, Kind};

/// What is sent of what has come of a turn.
pub fn outputs(done: Vec<LockDeed>) -> Vec<Output> {
    let sent = done.into_iter().filter_map(|deed| match deed {
        LockDeed::Sent(output, ..) => Some(output),
        _ => None,
    });
    sent.collect()
}

impl World {
    /// A turn at a node's lock, and what came of it.
    pub(super) fn section<R>(
        &mut self,
        rack: &LockRack,
        node: u8,
        packet: Option<&LockPacket>,
        act: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> (R, Vec<LockDeed>) {
        let packet = packet.map(|packet| (&packet.header, &packet.words[..]));
        let cell = &mut self.nodes[usize::from(node)].cell;
        cell.turn(node.into(), packet, rack.broken(), act)
    }

    /// The same, and does what came of it.
    pub(super) fn act_on<R>(
        &mut self,
        rack: &LockRack,
        node: u8,
        act: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> Result<R, Complaint> {
        let (result, done) = self.section(rack, node, None, act);
        self.follow(rack, node, done)?;
        Ok(result)
    }

    /// What would come of it.
    pub(super) fn would<R>(
        &self,
        rack: &LockRack,
        node: u8,
        act: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> (R, Vec<LockDeed>) {
        let mut cell = self.nodes[usize::from(node)].cell.clone();
        cell.turn(node.into(), None, rack.broken(), act)
    }

    /// The home keeps no more than a number of the lock. Whatever is next about it has the home
    /// make it again, so it does that at once.
    pub(super) fn rest(&mut self, rack: &LockRack) {
        self.left.rest -= 1;
        let node = &mut self.nodes[usize::from(HOME)];
        let Some(Known::Home(mut rest)) = node.cell.lock.forgettable(true) else {
            return;
        };
        let (epoch, switch) = (node.epoch, node.cell.lock.has_switch());
        let rested = rest.number > first(epoch);
        if rack.has(Mutation::WakeOld) {
            rest.number = first(epoch);
        }
        node.cell.beside = node.cell.data;
        node.granted_before += node.cell.lock.counters().granted;
        let part = rack.part(HOME, epoch, switch);
        node.cell.lock = NodeLock::new(TAG, regions(), part, Some(Known::Home(rest)));
        if rested {
            self.witness(Witness::Rested);
        }
    }

    /// A packet arrives.
    pub(super) fn deliver(
        &mut self,
        rack: &LockRack,
        to: u8,
        mut packet: LockPacket,
    ) -> Result<(), Complaint> {
        self.misread(rack, to, &mut packet.header);
        match to {
            DIRECTORY => self.served(rack, packet.header),
            node => return self.taken(rack, node, &packet),
        }
        Ok(())
    }

    /// The directory takes a packet.
    fn served(&mut self, rack: &LockRack, header: Header) {
        let before = self.entry().map(|(_, entry)| entry);
        let answers = match (self.serves(), &mut self.switch) {
            (Serves::Home, _) => self.at_home(rack, &header),
            (Serves::Switch, Some(switch)) => switch.handle(&header).iter().copied().collect(),
            _ => return,
        };
        for (to, answer) in answers
            .iter()
            .flat_map(|answer| copies(answer.to, answer.header))
        {
            self.answered(rack, before, &header, to, answer);
        }
    }

    /// The home's directory takes a packet; what it sends.
    pub(super) fn at_home(&mut self, rack: &LockRack, header: &Header) -> Vec<Output> {
        let take = |lock: &mut NodeLock<u16>, fx: &mut Fx<'_>| lock.packet(header, (0, &[]), fx);
        outputs(self.section(rack, HOME, None, take).1)
    }

    /// A node takes a packet.
    fn taken(&mut self, rack: &LockRack, node: u8, packet: &LockPacket) -> Result<(), Complaint> {
        let here = usize::from(node);
        if !self.nodes[here].up {
            return Ok(());
        }
        let before = (self.lock(node).right(), self.comes_home());
        let records = packet.records();
        let body = (packet.len(), &records[..]);
        let take =
            |lock: &mut NodeLock<u16>, fx: &mut Fx<'_>| lock.packet(&packet.header, body, fx);
        let ((), done) = self.section(rack, node, Some(packet), take);
        let enters = done.iter().any(|done| matches!(done, LockDeed::Inside(..)));
        self.follow(rack, node, done)?;
        self.gained(node, before, enters);
        Ok(())
    }

    /// Does what has come of a section.
    fn follow(&mut self, rack: &LockRack, node: u8, done: Vec<LockDeed>) -> Result<(), Complaint> {
        for done in done {
            match done {
                LockDeed::Dropped => self.witness(Witness::Dropped),
                LockDeed::Gone(_) | LockDeed::Gained(_) | LockDeed::Settled => {}
                LockDeed::Inside(thread, entered, at_once, data) => {
                    if data != self.nodes[usize::from(node)].cell.data {
                        let detail = format!("thread {thread} finds {data:?}");
                        return complain("data is in place when a thread enters", detail);
                    }
                    self.let_in(rack, thread.into(), entered, !at_once)?;
                }
                LockDeed::Sent(Output { to, header, .. }, body, data) => {
                    let dropped = header.kind == Kind::Queue && rack.has(Mutation::DropQueue);
                    if dropped || header.kind == Kind::Place {
                        continue;
                    }
                    for packet in cut(header, &body, &data, rack.scenario.segments) {
                        for (to, header) in copies(to, packet.header) {
                            let (words, queue) = (packet.words.clone(), packet.queue.clone());
                            self.send(node, to, header, words, queue);
                        }
                    }
                    if header.kind == Kind::Release && rack.has(Mutation::ApproveItself) {
                        self.approve(node, &header);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, from: u8, to: u8, header: Header, words: Vec<u64>, queue: Queue) {
        self.packets += 1;
        let dead = to != DIRECTORY && !self.nodes[usize::from(to)].up;
        if !dead {
            let packet = LockPacket {
                header,
                words,
                queue,
            };
            self.ways.push(from, to, packet);
        }
    }
}
