//! What a host does around the roles: it moves bytes and packets, and lets threads in.

use super::mutation::Mutation;
use super::oracle::{self, Complaint};
use super::packet::{DIRECTORY, ENTERED, LEFT, LIFE, Packet, TRUTH, Value, WORDS, copies, cut};
use super::world::{At, HOME, Rack, Serves, TAG, Witness, World, regions};
use rackmem_proto::gcp::{
    Access, Entered, Event, Keeping, LockDirectory, Queue, Rest, Right, Steps, first, version,
    with_version,
};
use rackmem_proto::wire::{GlobalStatus, Header, Kind, Reason, RequesterId, Seq};

/// Where what a lock protects was: no writer leaves this.
const FORGOTTEN: Value = {
    let mut value = [0xee; WORDS];
    (value[LIFE], value[TRUTH]) = (0, 0);
    value
};

impl World {
    /// The home tells a node that the lock is home.
    pub(super) fn dismiss(&mut self, to: u8) {
        self.left.dismiss -= 1;
        let requester = RequesterId {
            node: to.into(),
            slot: 0,
        };
        if let Some(version) = self.lock(HOME).whole() {
            let header =
                Header::request(Kind::YieldAck, self.nodes[0].epoch, TAG, requester, Seq(0));
            let mut header = with_version(header, version);
            header.status = GlobalStatus::Modified;
            header.sender = HOME.into();
            self.send(HOME, to, header, Vec::new(), Queue::default());
        }
    }

    fn at_rest(&self) -> Option<Rest> {
        Rest::of(&self.nodes[usize::from(HOME)].blade, &self.home, TAG)
    }

    /// Whether the home may keep no more than a number of the lock.
    pub(super) fn may_rest(&self) -> bool {
        self.left.rest > 0 && !self.comes_home && self.at_rest().is_some()
    }

    /// The home keeps no more than a number of the lock. Whatever is next about it has the home make it again, so it does that at once.
    pub(super) fn rest(&mut self, rack: &Rack) {
        self.left.rest -= 1;
        let Some(mut rest) = self.at_rest() else {
            return;
        };
        let epoch = self.home.epoch();
        if rest.number > first(epoch) {
            self.witness(Witness::Rested);
        }
        if rack.has(Mutation::WakeOld) {
            rest.number = first(epoch);
        }
        let node = &mut self.nodes[usize::from(HOME)];
        node.beside = node.data;
        node.blade.forget(TAG);
        let woken = node.blade.wake(TAG, regions(), rest);
        self.home = LockDirectory::new(HOME.into(), epoch);
        assert!(woken && self.home.wake(TAG, rest));
    }

    /// A node needs room.
    pub(super) fn give_up(&mut self, rack: &Rack, node: u8) -> Result<(), Complaint> {
        self.left.give_up -= 1;
        let mut steps = Steps::new();
        let keeping = self.nodes[usize::from(node)].blade.get_rid(TAG, &mut steps);
        if keeping == Keeping::Copy {
            self.witness(Witness::GaveCopyUp);
        }
        if keeping == Keeping::Sole && rack.has(Mutation::DropSole) {
            self.nodes[usize::from(node)].data = FORGOTTEN;
        }
        self.run(rack, node, steps, None)
    }

    /// The home is asked to take the lock: it says what it has, or waits for it like a thread that does not go inside.
    fn come_home(&mut self, rack: &Rack, asked: &Header) -> Result<(), Complaint> {
        let here = usize::from(HOME);
        if !self.nodes[here].up || asked.epoch != self.nodes[here].epoch {
            return Ok(());
        }
        if let Some((status, version)) = self.lock(HOME).taken_home(asked) {
            let mut answer = with_version(asked.answer(Kind::YieldAck, HOME.into()), version);
            answer.status = status;
            let to = asked.requester.node as u8;
            self.send(HOME, to, answer, Vec::new(), Queue::default());
            return Ok(());
        }
        let access = Access::from_status(asked.status).unwrap_or(Access::Write);
        let in_the_way = |t: &super::world::Thread| {
            t.node == HOME && (t.at == At::Waiting || t.at == At::Inside)
        };
        if self.comes_home || self.threads.iter().any(in_the_way) {
            return Ok(());
        }
        let mut steps = Steps::new();
        let (entered, _) = self.nodes[here].blade.enter(TAG, access, &mut steps);
        match entered {
            Some(entered) => {
                let blade = &mut self.nodes[here].blade;
                blade.decline(TAG, entered.access, &mut steps);
            }
            None => self.comes_home = true,
        }
        self.run(rack, HOME, steps, None)
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
                DIRECTORY => self.home.epoch(),
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
        let outputs = match (self.serves(), &mut self.switch) {
            (Serves::Home, None) => self.home.handle(&header),
            (Serves::Home, Some(_)) => self.home.handle_or_place(&header),
            (Serves::Switch, Some(switch)) => switch.program.handle(&header),
            _ => return,
        };
        let requester = header.requester.node as u8;
        // The question whether the switch serves the lock is in the directory's state, and a move.
        let sent = outputs.iter().filter(|o| o.header.kind != Kind::Place);
        for output in sent {
            self.note(&header, &output.header);
            let waits = usize::from(requester);
            let served = header.kind == Kind::Acquire && output.header.kind != Kind::Acquire;
            if served && self.oracle.numbered[waits].is_none() {
                let number = version(&output.header);
                let waiting = |t: &super::world::Thread| t.node == requester && t.at == At::Waiting;
                if self.threads.iter().any(waiting) {
                    self.oracle.numbered[waits] = Some(number);
                }
            }
            for (to, mut header) in copies(output.to, output.header) {
                let holds =
                    before.is_some_and(|e| u16::from(e.state.holder) == header.requester.node);
                if rack.has(Mutation::ForgetTenure) && header.kind == Kind::ReleaseAck && holds {
                    header.reason = Reason::Moved;
                }
                if rack.has(Mutation::ForgetSharer) && header.kind == Kind::Invalidate {
                    header.copyset.0 &= !0b10;
                }
                self.send(DIRECTORY, to, header, Vec::new(), Queue::default());
            }
        }
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
        if packet.header.kind == Kind::Yield {
            return self.come_home(rack, &packet.header);
        }
        let mut steps = Steps::new();
        let before = self.lock(node).right();
        let (mut header, records) = (packet.header, packet.records());
        if rack.has(Mutation::DropLate) && header.kind == Kind::YieldAck {
            let newest = self.lock(node).since().max(self.lock(node).floor());
            header = with_version(header, newest.max(version(&header)));
        }
        let header = &header;
        let blade = &mut self.nodes[here].blade;
        blade.handle(header, packet.len(), &records, &mut steps);
        let after = self.lock(node).right();
        let unasked = before != Right::Modified
            && after == Right::Modified
            && !steps.iter().any(|step| matches!(step, Event::Enter(_)));
        if unasked {
            self.witness(Witness::Unasked);
        }
        let gains = before != Right::Modified && after == Right::Modified;
        self.run(rack, node, steps, Some(packet))?;
        if gains && !self.nodes[here].fenced {
            // A writer that is inside already has not touched the last word.
            let data = self.nodes[here].data[LEFT];
            self.oracle.judge.gained(node.into(), data.into());
        }
        Ok(())
    }

    /// Does what a role has decided.
    pub(super) fn run(
        &mut self,
        rack: &Rack,
        node: u8,
        steps: Steps,
        packet: Option<&Packet>,
    ) -> Result<(), Complaint> {
        let here = usize::from(node);
        for step in steps {
            match step {
                Event::Store => {
                    let packet = packet.expect("a packet with a body");
                    let at = (packet.header.offset / rackmem_proto::gcp::SEGMENT) as usize;
                    let words = packet.words.len();
                    self.nodes[here].beside[at..at + words].copy_from_slice(&packet.words);
                }
                Event::Drop => {
                    self.nodes[here].data = FORGOTTEN;
                    self.witness(Witness::Dropped);
                }
                Event::Install if rack.has(Mutation::SkipInstall) => {}
                Event::Install => {
                    let node_state = &mut self.nodes[here];
                    node_state.data = node_state.beside;
                }
                Event::Enter(entered)
                    if node == HOME && self.comes_home && self.waiting(node).is_none() =>
                {
                    self.comes_home = false;
                    let mut steps = Steps::new();
                    let blade = &mut self.nodes[here].blade;
                    blade.decline(TAG, entered.access, &mut steps);
                    self.run(rack, node, steps, None)?;
                }
                Event::Enter(entered) => {
                    let waiting = self.waiting(node);
                    let thread = waiting.expect("only what threads want is entered");
                    self.let_in(rack, thread, entered, true)?;
                }
                Event::Send(send) => {
                    let data = self.nodes[here].data;
                    let approves = send.header.kind == Kind::Release;
                    if send.header.kind == Kind::Queue && rack.has(Mutation::DropQueue) {
                        continue;
                    }
                    for packet in cut(&send, &data, rack.scenario.segments) {
                        for (to, header) in copies(send.to, packet.header) {
                            let (words, queue) = (packet.words.clone(), packet.queue.clone());
                            self.send(node, to, header, words, queue);
                        }
                    }
                    if approves && rack.has(Mutation::ApproveItself) {
                        self.approve(node, &send.header);
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

    /// The thread of a node that waits to be let in.
    pub(super) fn waiting(&self, node: u8) -> Option<usize> {
        let waits = |t: &super::world::Thread| t.node == node && t.at == At::Waiting;
        self.threads.iter().position(waits)
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
        if !dead && header.tag == TAG {
            let packet = Packet {
                header,
                words,
                queue,
            };
            self.ways.push(from, to, packet);
        }
    }
}
