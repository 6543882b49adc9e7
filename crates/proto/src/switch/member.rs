//! A switch as a member of its rack: it lives by views, tells homes what it has when an epoch
//! begins, and starts over when all are ready. Whether its program is in this process, in a kernel
//! or on an ASIC is its host's to say.

use super::{SWITCH, SwitchLocks, SwitchProgram};
use crate::flowcc::{Members, Next, Rebuild};
use crate::gcp::Entry;
use crate::membership::View;
use crate::wire::{Header, HomeId, Kind, NodeId, Record, Tag};
use crate::{Data, Dest, Output};
use alloc::vec::Vec;

/// What the control plane of a switch needs of its program: the functions of [`SwitchProgram`] that
/// have these names.
#[expect(missing_docs, reason = "they are those of `SwitchProgram`")]
pub trait Pipeline {
    fn epoch(&self) -> u32;
    fn frozen(&self) -> bool;
    fn freeze(&mut self);
    fn reset(&mut self, epoch: u32, shadow: Option<NodeId>);
    fn set_shadow(&mut self, shadow: Option<NodeId>);
    fn tags(&self, from: usize, room: usize) -> (Vec<Record>, usize);
    fn entries_of(&self, home: HomeId) -> Vec<Record>;
    /// Serves locks in another epoch, none so far; says what it has served in the last one. Only a
    /// program does that has locks itself ([`SwitchLocks::new`]).
    fn next_locks(&mut self, _epoch: u32) -> Vec<(Tag, Entry)> {
        Vec::new()
    }
}

impl Pipeline for SwitchProgram {
    fn epoch(&self) -> u32 {
        self.epoch()
    }

    fn frozen(&self) -> bool {
        self.frozen()
    }

    fn freeze(&mut self) {
        self.freeze();
    }

    fn reset(&mut self, epoch: u32, shadow: Option<NodeId>) {
        self.reset(epoch, shadow);
    }

    fn set_shadow(&mut self, shadow: Option<NodeId>) {
        self.set_shadow(shadow);
    }

    fn tags(&self, from: usize, room: usize) -> (Vec<Record>, usize) {
        self.tags(from, room)
    }

    fn entries_of(&self, home: HomeId) -> Vec<Record> {
        self.entries_of(home)
    }
}

/// See the module. Program and locks are beside it, because packets for them wait for nothing here.
#[derive(Clone)]
pub struct SwitchMember {
    /// Records that go into a packet.
    fit: usize,
    /// The newest view that it has heard of.
    view: Option<View>,
    /// Its part in the rebuild under way, or in the last one.
    rebuild: Option<Rebuild>,
}

impl SwitchMember {
    /// One that has heard of no view. So many records go into a packet.
    pub fn new(fit: usize) -> Self {
        SwitchMember {
            fit,
            view: None,
            rebuild: None,
        }
    }

    /// The newest epoch that it has heard of.
    pub fn epoch(&self, program: &(impl Pipeline + ?Sized)) -> u32 {
        self.view.map_or_else(|| program.epoch(), |view| view.epoch)
    }

    /// Lives by a view: in a new epoch it tells homes what it has, and serves when all are ready.
    /// True: it has begun to.
    pub fn live_by(
        &mut self,
        view: &View,
        program: &mut (impl Pipeline + ?Sized),
        locks: &mut SwitchLocks,
    ) -> bool {
        if self.view.is_some_and(|ours| view.version <= ours.version) {
            return false;
        }
        let epoch = self.epoch(program);
        self.view = Some(*view);
        if view.epoch == epoch {
            // Members and shadow apart it says nothing new. To begin again would lose what the
            // others have told and will not tell twice.
            if program.epoch() == epoch {
                program.set_shadow(view.shadow);
            }
            return false;
        }
        locks.enter(view.epoch, |epoch| program.next_locks(epoch));
        if view.founders.is_empty() {
            self.serve(program, locks);
            return false;
        }
        program.freeze();
        let members = Members {
            epoch: view.epoch,
            founders: view.founders,
            switch: true,
        };
        let entries = |home| {
            let mut entries = program.entries_of(home);
            entries.extend(locks.entries_of(home));
            entries
        };
        self.rebuild = Some(Rebuild::switch(members, self.fit, entries));
        true
    }

    fn serve(&self, program: &mut (impl Pipeline + ?Sized), locks: &mut SwitchLocks) {
        if let Some(view) = &self.view {
            program.reset(view.epoch, view.shadow);
            locks.done();
        }
    }

    /// A packet of a rebuild, with so many bytes behind its header; what acknowledges it. When all
    /// are ready the switch serves.
    pub fn packet(
        &mut self,
        header: &Header,
        bytes: u32,
        program: &mut (impl Pipeline + ?Sized),
        locks: &mut SwitchLocks,
    ) -> Option<Output> {
        let rebuild = self.rebuild.as_mut()?;
        let (_, ack) = rebuild.handle(header, bytes);
        if rebuild.next() == Next::Done && program.frozen() {
            self.serve(program, locks);
        }
        ack
    }

    /// What has not been acknowledged for long is sent again: the host says so every few round
    /// trips.
    pub fn tick(&mut self) {
        self.rebuild.iter_mut().for_each(Rebuild::tick);
    }

    /// The next packet to send, and its records.
    pub fn poll_output(&mut self) -> Option<(Output, &[Record])> {
        let rebuild = self.rebuild.as_mut()?;
        let output = rebuild.poll_output()?;
        Some((output, rebuild.records(output.to)))
    }

    /// What a shadow is answered that reads TAG ([`Kind::ReadTags`]) in this epoch.
    pub fn tell_tags(
        &self,
        header: &Header,
        program: &(impl Pipeline + ?Sized),
    ) -> Option<(Output, Vec<Record>)> {
        if header.epoch != program.epoch() {
            return None;
        }
        let (records, next) = program.tags(header.offset as usize, self.fit);
        let mut answer = header.answer(Kind::Tags, SWITCH);
        answer.tag = Tag(next as u64);
        let to = Dest::Agent(header.requester.node);
        Some((Output::with(to, answer, Data::Records), records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::{LockConfig, SwitchConfig};
    use crate::wire::{Copyset, RequesterId, Seq};

    struct Switch(SwitchProgram, SwitchLocks, SwitchMember);

    impl Switch {
        fn new(epoch: u32) -> Self {
            let (ways, sets) = (1, 4);
            let program = SwitchConfig {
                epoch,
                sets,
                ..SwitchConfig::default()
            };
            let locks = SwitchLocks::new(LockConfig { epoch, ways, sets }, false);
            Switch(SwitchProgram::new(program), locks, SwitchMember::new(4))
        }

        fn live_by(&mut self, view: &View) -> bool {
            self.2.live_by(view, &mut self.0, &mut self.1)
        }
    }

    #[test]
    fn it_serves_when_all_are_ready_and_a_late_view_takes_it_nowhere() {
        let first = View::first(Copyset(0b11), true);
        let second = first.exclude(1).unwrap();
        let mut switch = Switch::new(first.epoch);
        assert!(!switch.live_by(&first));
        assert!(!switch.0.frozen());
        assert!(switch.live_by(&second) && switch.0.frozen());
        assert!(!switch.live_by(&first) && !switch.live_by(&second));
        assert_eq!(switch.2.epoch(&switch.0), second.epoch);
        let members = Members {
            epoch: second.epoch,
            founders: second.founders,
            switch: true,
        };
        let mut node = Rebuild::node(0, members, 4096, 4, &[]);
        for _ in 0..10 {
            match node.next() {
                Next::Collect => node.collect([], Vec::new()),
                Next::Settle => node.settled(),
                Next::Wait | Next::Done => {}
            }
            let mut to_switch: Vec<Output> = core::iter::from_fn(|| node.poll_output()).collect();
            while let Some((output, records)) = switch.2.poll_output() {
                let bytes = records.len() as u32 * 16;
                to_switch.extend(node.handle(&output.header, bytes).1);
            }
            for output in to_switch {
                let Switch(program, locks, member) = &mut switch;
                if let Some(ack) = member.packet(&output.header, 0, program, locks) {
                    node.handle(&ack.header, 0);
                }
            }
        }
        assert_eq!((switch.0.frozen(), switch.0.epoch()), (false, second.epoch));
    }

    #[test]
    fn without_nodes_it_waits_for_none() {
        let first = View::first(Copyset(0b11), true);
        let second = first.exclude_all(Copyset(0b11), false).unwrap();
        let mut switch = Switch::new(first.epoch);
        assert!(!switch.live_by(&second));
        assert_eq!((switch.0.frozen(), switch.0.epoch()), (false, second.epoch));
    }

    #[test]
    fn a_shadow_of_another_epoch_is_not_answered() {
        let switch = Switch::new(3);
        let ask = |epoch| {
            let shadow = RequesterId { node: 1, slot: 0 };
            let header = Header::request(Kind::ReadTags, epoch, Tag(0), shadow, Seq(1));
            switch.2.tell_tags(&header, &switch.0)
        };
        assert!(ask(2).is_none());
        let (output, records) = ask(3).expect("an answer");
        assert_eq!((output.to, output.header.tag), (Dest::Agent(1), Tag(4)));
        assert!(records.is_empty());
    }
}
