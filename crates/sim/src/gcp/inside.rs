//! What threads do and find inside, what is worth seeing of answers and reports, and planted
//! defects of those who give them.

use super::mutation::Mutation;
use super::oracle::{self, Complaint};
use super::packet::{DIRECTORY, ENTERED, LEFT};
use super::world::{At, HOME, LockNode, LockRack, Witness, World};
use crate::site::Bare;
use rackmem_proto::gcp::{Access, Entered, Entry, Report, Right, version, with_version};
use rackmem_proto::wire::{GlobalStatus, Header, Kind, Reason};

impl World {
    pub(super) fn note(&mut self, asked: &Header, answer: &Header) {
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

    /// A thread is inside.
    pub(super) fn let_in(
        &mut self,
        rack: &LockRack,
        thread: usize,
        entered: Entered,
        granted: bool,
    ) -> Result<(), Complaint> {
        let here = usize::from(self.threads[thread].node);
        if !self.nodes[here].fenced {
            match entered.reason {
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
            oracle::entered(self, rack, thread, entered, granted)?;
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
            let word = &mut self.node_mut(here as u8).cell_mut().fx.data[ENTERED];
            *word = word.wrapping_add(1);
        }
        Ok(())
    }

    /// A thread ends its critical section: what it does to the data is whole now.
    pub(super) fn end(&mut self, rack: &LockRack, thread: usize) -> Access {
        let access = rack.next(self, thread).expect("it is inside for something");
        let here = usize::from(self.threads[thread].node);
        if access == Access::Write && !self.threads[thread].refused {
            let word = &mut self.node_mut(here as u8).cell_mut().fx.data[LEFT];
            *word = word.wrapping_add(1);
            self.change_life(rack, thread);
            if !self.nodes[here].fenced {
                let data = self.nodes[here].cell().fx.data[ENTERED];
                self.oracle.judge.left(data);
            }
        }
        let state = &mut self.threads[thread];
        (state.at, state.done) = (At::Outside, state.done + 1);
        state.refused = false;
        access
    }

    /// The directory answers a packet.
    pub(super) fn answered(
        &mut self,
        rack: &LockRack,
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
        self.send(DIRECTORY, to, answer, Bare::default());
    }

    /// Defects: what a packet's receiver takes it for.
    pub(super) fn misread(&self, rack: &LockRack, to: u8, header: &mut Header) {
        if rack.has(Mutation::ForgetEpoch) {
            header.epoch = match to {
                DIRECTORY => self.served_epoch(),
                node => self.nodes[usize::from(node)].epoch(),
            };
        }
        if let (DIRECTORY, Kind::Release, Some((_, entry))) = (to, header.kind, self.entry())
            && rack.has(Mutation::IgnoreVersion)
        {
            *header = with_version(*header, entry.state.version);
        }
        if to != DIRECTORY && header.kind == Kind::YieldAck && rack.has(Mutation::DropLate) {
            let newest = self.lock(to).since().max(self.lock(to).floor());
            *header = with_version(*header, newest.max(version(header)));
        }
    }

    /// A defect: whom a release names are told so by the one who releases.
    pub(super) fn approve(&mut self, node: u8, release: &Header) {
        let mut grant = release.answer(Kind::Grant, node.into());
        grant = with_version(grant, version(release) + 1);
        let to = grant.requester.node as u8;
        if to != node {
            self.send(node, to, grant, Bare::default());
        }
    }

    /// What a node tells.
    pub(super) fn report(&self, rack: &LockRack, node: &LockNode) -> Option<Report> {
        let report = node.cell().lock.report()?;
        let mut report = match rack.has(Mutation::StaleReport) {
            true => **node.noted.as_ref()?,
            false => report,
        };
        if rack.has(Mutation::SettleOldest) {
            report.age = (1 << 62) - report.age;
        }
        if rack.has(Mutation::StalePassing) {
            report.passing = report.passing.map(|_| self.served_epoch());
        }
        if rack.has(Mutation::ForgetTold) && self.oracle.judge.spoilt.is_some() {
            report.reason = Reason::None;
        }
        Some(report)
    }

    /// A node has taken a packet, and may write now if it gains the lock by that. `before`: its
    /// right, and whether the home waited for the lock though no thread of it did.
    pub(super) fn gained(&mut self, node: u8, (before, coming): (Right, bool), enters: bool) {
        if before == Right::Modified || self.lock(node).right() != Right::Modified {
            return;
        }
        if !(enters || coming && node == HOME) {
            self.witness(Witness::Unasked);
        }
        let here = &self.nodes[usize::from(node)];
        if !here.fenced {
            // A writer that is inside already has not touched the last word.
            let data = here.cell().fx.data[LEFT];
            self.oracle.judge.gained(node.into(), data);
        }
    }
}
