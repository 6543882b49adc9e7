//! What can happen around epochs: something dies, and members learn of it one by one.

use super::epoch::lives;
use super::moves::Move;
use super::mutation::Mutation;
use super::packet::DIRECTORY;
use super::scenario::Failure;
use super::world::{At, LockNode, LockRack, Witness, World};
use rackmem_proto::gcp::LockPlace;

impl World {
    /// What can happen around epochs.
    pub(super) fn epoch_moves(&self, rack: &LockRack, moves: &mut Vec<Move>) {
        let failures = rack.scenario.failures;
        moves.extend((usize::from(self.failed) < failures.len()).then_some(Move::Fail));
        let numbers = || (0u8..).zip(&self.nodes);
        let behind = numbers().filter(|(_, node)| lives(node) && node.epoch < self.view);
        // Who is first makes a difference only if a newer view may come in between.
        let last = !rack.loose && usize::from(self.failed) == failures.len();
        let behind = behind.take(if last { 1 } else { usize::MAX });
        moves.extend(behind.map(|(number, _)| Move::Enter(number)));
        let switch = self.switch.as_ref();
        let behind = switch.is_some_and(|switch| switch.epoch() < self.view);
        moves.extend(behind.then_some(Move::EnterSwitch));
        let (home, told) = (self.nodes[0].epoch, self.told.as_ref());
        let told =
            told.is_some_and(|told| told.members.epoch == home && home > self.served_epoch());
        moves.extend(told.then_some(Move::Settle));
        let waits = numbers().filter(|(number, _)| self.waits_to_resume(rack, *number));
        moves.extend(waits.map(|(number, _)| Move::Resume(number)));
        let placing = self.place() == Some(LockPlace::Placing);
        let there = switch.is_some_and(|switch| switch.epoch() == self.served_epoch());
        moves.extend((placing && there && home == self.served_epoch()).then_some(Move::Place));
    }

    /// Whether a node's control plane has something to do when it sees that the rack goes on.
    fn waits_to_resume(&self, rack: &LockRack, number: u8) -> bool {
        let node = &self.nodes[usize::from(number)];
        let begun = node.epoch > super::canon::FIRST_EPOCH && node.epoch == self.served_epoch();
        let ((), asks) = self.would(rack, number, |lock, fx| lock.resume(fx));
        let noted = rack.has(Mutation::StaleReport) && node.noted.is_some();
        lives(node) && begun && (!asks.is_empty() || noted)
    }

    /// Something dies, or comes back.
    pub(super) fn fail(&mut self, rack: &LockRack) {
        let failure = rack.scenario.failures[usize::from(self.failed)];
        self.failed += 1;
        self.view += 1;
        let waits = |number| self.waits_to_resume(rack, number);
        if (0..self.nodes.len() as u8).any(waits) {
            self.witness(Witness::Overtaken);
        }
        let skips = |node: &LockNode| lives(node) && node.epoch > self.served_epoch();
        if self.nodes.iter().any(skips) {
            self.witness(Witness::Skipped);
        }
        if self.place() == Some(LockPlace::Placing) {
            self.witness(Witness::CutPlacing);
        }
        let (switch, node) = match failure {
            Failure::Node(node) => (false, Some(node)),
            Failure::Switch(node) => (true, node),
            Failure::Nothing => (false, None),
            Failure::Fenced(node) => {
                self.nodes[usize::from(node)].gone = true;
                (false, None)
            }
        };
        if switch {
            self.switch = None;
            self.ways.retain(|way, _| way.1 != DIRECTORY);
        }
        if let Some(node) = node {
            self.nodes[usize::from(node)].up = false;
            let gone = self.threads.iter_mut().filter(|t| t.node == node);
            gone.for_each(|thread| thread.at = At::Gone);
            self.oracle.numbered[usize::from(node)] = None;
            self.ways.retain(|way, _| way.1 != node);
        }
    }
}
