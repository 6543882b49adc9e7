//! What a host does around a lock: it moves bytes and packets, and lets threads in.

use super::fx::{Done, Fx};
use super::mutation::Mutation;
use super::oracle::{self, Complaint, complain};
use super::packet::{DIRECTORY, ENTERED, LEFT, Packet, copies, cut};
use super::world::{At, HOME, Rack, Serves, TAG, Witness, World, regions};
use rackmem_proto::engine::NodeLock;
use rackmem_proto::gcp::{
    Access, Entered, Entry, Keeping, Known, Queue, Right, Send, first, version, with_version,
};
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, Kind, Reason};

impl World {
    /// A section of a node's lock, and what came of it.
    pub(super) fn section<R>(
        &mut self,
        rack: &Rack,
        node: u8,
        packet: Option<&Packet>,
        act: impl FnOnce(&mut NodeLock<u8>, &mut Fx<'_>) -> R,
    ) -> (R, Vec<Done>) {
        let node = &mut self.nodes[usize::from(node)];
        let mut fx = Fx {
            data: &mut node.data,
            beside: &mut node.beside,
            packet,
            mutation: rack.mutation,
            done: Vec::new(),
        };
        (act(&mut node.lock, &mut fx), fx.done)
    }

    /// The same, and does what came of it.
    pub(super) fn act_on<R>(
        &mut self,
        rack: &Rack,
        node: u8,
        act: impl FnOnce(&mut NodeLock<u8>, &mut Fx<'_>) -> R,
    ) -> Result<R, Complaint> {
        let (result, done) = self.section(rack, node, None, act);
        self.follow(rack, node, done)?;
        Ok(result)
    }

    /// What would come of it.
    pub(super) fn would<R>(
        &self,
        rack: &Rack,
        node: u8,
        act: impl FnOnce(&mut NodeLock<u8>, &mut Fx<'_>) -> R,
    ) -> (R, Vec<Done>) {
        let node = &self.nodes[usize::from(node)];
        let (mut data, mut beside, mut lock) = (node.data, node.beside, node.lock.clone());
        let mut fx = Fx {
            data: &mut data,
            beside: &mut beside,
            packet: None,
            mutation: rack.mutation,
            done: Vec::new(),
        };
        (act(&mut lock, &mut fx), fx.done)
    }

    /// The home tells a node that the lock is home.
    pub(super) fn dismiss(&mut self, rack: &Rack, to: u8) -> Result<(), Complaint> {
        self.left.dismiss -= 1;
        let to = Copyset::of(to.into());
        self.act_on(rack, HOME, |lock, fx| lock.dismiss(to, fx))
    }

    /// Whether the home may keep no more than a number of the lock.
    pub(super) fn may_rest(&self) -> bool {
        self.left.rest > 0
            && self.nodes[usize::from(HOME)]
                .lock
                .forgettable(true)
                .is_some()
    }

    /// The home keeps no more than a number of the lock. Whatever is next about it has the home make it again, so it does that at once.
    pub(super) fn rest(&mut self, rack: &Rack) {
        self.left.rest -= 1;
        let node = &mut self.nodes[usize::from(HOME)];
        let Some(Known::Home(mut rest)) = node.lock.forgettable(true) else {
            return;
        };
        let (epoch, switch) = (node.epoch, node.lock.has_switch());
        let rested = rest.number > first(epoch);
        if rack.has(Mutation::WakeOld) {
            rest.number = first(epoch);
        }
        node.beside = node.data;
        node.granted_before += node.lock.counters().granted;
        let part = rack.part(HOME, epoch, switch);
        node.lock = NodeLock::new(TAG, regions(), part, Some(Known::Home(rest)));
        if rested {
            self.witness(Witness::Rested);
        }
    }

    /// A node needs room.
    pub(super) fn give_up(&mut self, rack: &Rack, node: u8) -> Result<(), Complaint> {
        self.left.give_up -= 1;
        let keeping = self.act_on(rack, node, |lock, fx| lock.get_rid(fx))?;
        if keeping == Keeping::Copy {
            self.witness(Witness::GaveCopyUp);
        }
        Ok(())
    }

    /// A packet arrives.
    pub(super) fn deliver(
        &mut self,
        rack: &Rack,
        to: u8,
        mut packet: Packet,
    ) -> Result<(), Complaint> {
        if rack.has(Mutation::ForgetEpoch) {
            packet.header.epoch = match to {
                DIRECTORY => self.served_epoch(),
                node => self.nodes[usize::from(node)].epoch,
            };
        }
        match to {
            DIRECTORY => {
                self.served(rack, packet.header);
                Ok(())
            }
            node => self.taken(rack, node, &packet),
        }
    }

    /// The directory takes a packet.
    fn served(&mut self, rack: &Rack, mut header: Header) {
        let before = self.entry().map(|(_, entry)| entry);
        if let Some(entry) = before
            && header.kind == Kind::Release
            && rack.has(Mutation::IgnoreVersion)
        {
            header = with_version(header, entry.state.version);
        }
        match (self.serves(), &mut self.switch) {
            (Serves::Home, _) => {
                let take = |lock: &mut NodeLock<u8>, fx: &mut Fx<'_>| {
                    lock.packet(&header, (0, &[]), fx);
                };
                for done in self.section(rack, HOME, None, take).1 {
                    if let Done::Sent(to, answer, ..) = done {
                        for (to, answer) in copies(to, answer) {
                            self.answered(rack, before, &header, to, answer);
                        }
                    }
                }
            }
            (Serves::Switch, Some(switch)) => {
                for output in switch.program.handle(&header).iter() {
                    for (to, answer) in copies(output.to, output.header) {
                        self.answered(rack, before, &header, to, answer);
                    }
                }
            }
            _ => {}
        }
    }

    /// The directory answers a packet.
    fn answered(
        &mut self,
        rack: &Rack,
        before: Option<Entry>,
        asked: &Header,
        to: u8,
        mut answer: Header,
    ) {
        // The question whether the switch serves the lock is in the directory's state, and a move.
        if answer.kind == Kind::Place {
            return;
        }
        self.note(asked, &answer);
        let requester = asked.requester.node as u8;
        let waits = usize::from(requester);
        let served = asked.kind == Kind::Acquire && answer.kind != Kind::Acquire;
        if served && self.oracle.numbered[waits].is_none() {
            let number = version(&answer);
            let waiting = |t: &super::world::Thread| t.node == requester && t.at == At::Waiting;
            if self.threads.iter().any(waiting) {
                self.oracle.numbered[waits] = Some(number);
            }
        }
        let holds = before.is_some_and(|e| u16::from(e.state.holder) == answer.requester.node);
        if rack.has(Mutation::ForgetTenure) && answer.kind == Kind::ReleaseAck && holds {
            answer.reason = Reason::Moved;
        }
        if rack.has(Mutation::ForgetSharer) && answer.kind == Kind::Invalidate {
            answer.copyset.0 &= !0b10;
        }
        self.send(DIRECTORY, to, answer, Vec::new(), Queue::default());
    }

    fn note(&mut self, asked: &Header, answer: &Header) {
        let alone = answer.copyset.without(asked.requester.node).is_empty();
        let modified = answer.status == GlobalStatus::Modified;
        let witness = match (asked.kind, answer.kind, modified) {
            (Kind::Release, Kind::Grant, true) if alone => Witness::HandedOver,
            (Kind::Release, Kind::Grant, true) => Witness::ToReadersAndWriter,
            (Kind::Release, Kind::Grant, false) => Witness::ToReaders,
            (Kind::Acquire, Kind::Invalidate, _) if !alone => Witness::OverReaders,
            (_, Kind::ReleaseAck, _) if answer.reason == Reason::Moved => Witness::Denied,
            (_, Kind::ReleaseAck, _) => Witness::Over,
            _ => return,
        };
        self.witness(witness);
    }

    /// A node takes a packet.
    fn taken(&mut self, rack: &Rack, node: u8, packet: &Packet) -> Result<(), Complaint> {
        let here = usize::from(node);
        if !self.nodes[here].up {
            return Ok(());
        }
        if rack.has(Mutation::AckInside)
            && packet.header.kind == Kind::Invalidate
            && packet.header.requester.node != u16::from(node)
        {
            let to = packet.header.requester.node as u8;
            let mut ack = packet.header.answer(Kind::InvAck, node.into());
            ack.flags = Default::default();
            self.send(node, to, ack, Vec::new(), Queue::default());
        }
        let (before, coming) = (self.lock(node).right(), self.comes_home());
        let (mut header, records) = (packet.header, packet.records());
        if rack.has(Mutation::DropLate) && header.kind == Kind::YieldAck {
            let newest = self.lock(node).since().max(self.lock(node).floor());
            header = with_version(header, newest.max(version(&header)));
        }
        let body = (packet.len(), &records[..]);
        let take = |lock: &mut NodeLock<u8>, fx: &mut Fx<'_>| lock.packet(&header, body, fx);
        let ((), done) = self.section(rack, node, Some(packet), take);
        let after = self.lock(node).right();
        let gains = before != Right::Modified && after == Right::Modified;
        let enters = done.iter().any(|done| matches!(done, Done::Inside(..)));
        if gains && !enters && !(coming && node == HOME) {
            self.witness(Witness::Unasked);
        }
        self.follow(rack, node, done)?;
        if gains && !self.nodes[here].fenced {
            // A writer that is inside already has not touched the last word.
            let data = self.nodes[here].data[LEFT];
            self.oracle.judge.gained(node.into(), data.into());
        }
        Ok(())
    }

    /// Does what has come of a section.
    fn follow(&mut self, rack: &Rack, node: u8, done: Vec<Done>) -> Result<(), Complaint> {
        for done in done {
            match done {
                Done::Dropped => self.witness(Witness::Dropped),
                Done::Inside(thread, entered, granted, data) => {
                    if data != self.nodes[usize::from(node)].data {
                        let detail = format!("thread {thread} finds {data:?}");
                        return complain("data is in place when a thread enters", detail);
                    }
                    self.let_in(rack, thread.into(), entered, granted)?;
                }
                Done::Sent(to, header, body, data) => {
                    let dropped = header.kind == Kind::Queue && rack.has(Mutation::DropQueue);
                    if dropped || header.kind == Kind::Place {
                        continue;
                    }
                    let send = Send { to, header, body };
                    for packet in cut(&send, &data, rack.scenario.segments) {
                        for (to, header) in copies(send.to, packet.header) {
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

    /// A defect: whom a release names are told so by the one who releases.
    fn approve(&mut self, node: u8, release: &Header) {
        let mut grant = release.answer(Kind::Grant, node.into());
        grant = with_version(grant, version(release) + 1);
        let to = grant.requester.node as u8;
        if to != node {
            self.send(node, to, grant, Vec::new(), Queue::default());
        }
    }

    /// A thread is inside.
    pub(super) fn let_in(
        &mut self,
        rack: &Rack,
        thread: usize,
        entered: Entered,
        granted: bool,
    ) -> Result<(), Complaint> {
        let here = usize::from(self.threads[thread].node);
        if !self.nodes[here].fenced {
            let mut told = entered;
            if rack.has(Mutation::ForgetDeath) {
                told.reason = Reason::None;
            }
            if rack.has(Mutation::TokenRestarts) {
                told.token &= (1 << 41) - 1;
            }
            match told.reason {
                Reason::OwnerDied => self.witness(Witness::OwnerDied),
                Reason::Lost => self.witness(Witness::Lost),
                _ => {}
            }
            if !granted {
                self.witness(Witness::Cached);
                if self.lock(here as u8).contended() {
                    self.witness(Witness::Cohort);
                }
            }
            oracle::entered(self, rack, thread, told, granted)?;
        }
        self.threads[thread].at = At::Inside;
        self.threads[thread].refused = !self.finds(rack, thread)?;
        let others = self.threads.iter().enumerate();
        let together = others.filter(|(other, with)| {
            with.at == At::Inside && with.node as usize != here && *other != thread
        });
        if together.count() > 0 && entered.access == Access::Read {
            self.witness(Witness::ReadTogether);
        }
        if entered.access == Access::Write && !self.threads[thread].refused {
            let word = &mut self.nodes[here].data[ENTERED];
            *word = word.wrapping_add(1);
        }
        Ok(())
    }

    /// A thread ends its critical section: what it does to the data is whole now.
    pub(super) fn end(&mut self, rack: &Rack, thread: usize) -> Access {
        let access = rack.next(self, thread).expect("it is inside for something");
        let here = usize::from(self.threads[thread].node);
        if access == Access::Write && !self.threads[thread].refused {
            let word = &mut self.nodes[here].data[LEFT];
            *word = word.wrapping_add(1);
            self.change_life(rack, thread);
            if !self.nodes[here].fenced {
                let data = self.nodes[here].data[ENTERED];
                self.oracle.judge.left(data.into());
            }
        }
        let state = &mut self.threads[thread];
        (state.at, state.done) = (At::Outside, state.done + 1);
        state.refused = false;
        access
    }

    fn send(&mut self, from: u8, to: u8, header: Header, words: Vec<u8>, queue: Queue) {
        self.packets += 1;
        let dead = to != DIRECTORY && !self.nodes[usize::from(to)].up;
        if !dead {
            let packet = Packet {
                header,
                words,
                queue,
            };
            self.ways.push(from, to, packet);
        }
    }
}
