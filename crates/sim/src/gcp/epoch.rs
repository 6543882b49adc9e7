//! Epochs that follow each other as closely as they can: something dies, and members learn of it
//! one by one.
//!
//! A failure makes a view. Members enter its epoch whenever they learn of it, or learn
//! of a newer one first. When all of its founders are in it they tell the home what they have: what
//! that is, is fixed then, because nobody serves before the home has settled. From then on the home
//! serves. Each member's control plane sees that the rack goes on at a time of its own, which in a
//! member that is starved is never: the next failure may come first.

use super::canon::FIRST_EPOCH;
use super::moves::Move;
use super::mutation::Mutation;
use super::packet::DIRECTORY;
use super::scenario::Failure;
use super::world::{At, LockNode, LockRack, Thread, Witness, World};
use crate::site::Cell;
use rackmem_proto::gcp::LockPlace;
use std::rc::Rc;

pub(super) fn lives(node: &LockNode) -> bool {
    node.up && !node.gone
}

impl World {
    /// What can happen around epochs.
    pub(super) fn epoch_moves(&self, rack: &LockRack, moves: &mut Vec<Move>) {
        let failures = rack.scenario.failures;
        moves.extend((usize::from(self.failed) < failures.len()).then_some(Move::Fail));
        let numbers = || (0u8..).zip(&self.nodes);
        let behind = numbers().filter(|(_, node)| lives(node) && node.epoch() < self.view);
        // Who is first makes a difference only if a newer view may come in between.
        let last = !rack.loose && usize::from(self.failed) == failures.len();
        let behind = behind.take(if last { 1 } else { usize::MAX });
        moves.extend(behind.map(|(number, _)| Move::Enter(number)));
        let switch = self.switch.as_ref();
        let behind = switch.is_some_and(|switch| switch.epoch() < self.view);
        moves.extend(behind.then_some(Move::EnterSwitch));
        let (home, told) = (self.nodes[0].epoch(), self.told.as_ref());
        let told = told.is_some_and(|told| told.epoch == home && home > self.served_epoch());
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
        let begun = node.epoch() > FIRST_EPOCH && node.epoch() == self.served_epoch();
        let noted = rack.has(Mutation::StaleReport) && node.noted.is_some();
        lives(node) && begun && (noted || asks_on(node.cell()))
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
        let skips = |node: &LockNode| lives(node) && node.epoch() > self.served_epoch();
        if self.nodes.iter().any(|node| skips(node)) {
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
                self.node_mut(node).gone = true;
                (false, None)
            }
        };
        if switch {
            self.switch = None;
            self.ways.retain(|way, _| way.1 != DIRECTORY);
        }
        if let Some(node) = node {
            self.node_mut(node).up = false;
            let gone = self.threads.iter_mut().filter(|t| t.node == node);
            gone.for_each(|thread| thread.at = At::Gone);
            self.oracle.numbered[usize::from(node)] = None;
            self.ways.retain(|way, _| way.1 != node);
        }
    }

    /// Whether everybody is in the epoch of the newest view, and the home has settled it.
    pub fn settled(&self) -> bool {
        self.all_entered() && self.served_epoch() == self.view
    }

    pub(super) fn all_entered(&self) -> bool {
        let switch = self.switch.as_ref();
        self.nodes
            .iter()
            .filter(|node| lives(node))
            .all(|node| node.epoch() == self.view)
            && switch.is_none_or(|switch| switch.epoch() == self.view)
    }

    /// Who is the last to enter hears of everybody, and all of him.
    pub(super) fn has_entered(&mut self, rack: &LockRack) {
        if !self.all_entered() {
            return;
        }
        for node in self.nodes.iter_mut().filter(|node| node.gone) {
            Rc::make_mut(node).fenced = true;
        }
        let inside = |t: &Thread| t.at == At::Inside && self.nodes[usize::from(t.node)].fenced;
        if self.threads.iter().any(inside) {
            self.witness(Witness::FencedInside);
        }
        self.tell(rack);
        let late = rack.loose || rack.has(Mutation::ForgetEpoch);
        if !late && !self.nodes.iter().any(|node| node.fenced) {
            // Everybody would drop them.
            self.ways.retain(|_, _| false);
        }
    }
}

/// Whether a lock asks for anything when its control plane sees that the rack goes on.
fn asks_on(cell: &Cell<()>) -> bool {
    let lock = &cell.lock;
    // Whoever waits for nothing, and is waited for by nobody, does not.
    let queued = lock.lock().is_some_and(|lock| !lock.queue().is_empty());
    if !queued && !lock.busy() && lock.waiting() == 0 {
        return false;
    }
    let Cell { mut lock, mut fx } = cell.clone();
    lock.resume(&mut fx);
    !fx.deeds.is_empty()
}
