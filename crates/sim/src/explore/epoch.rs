//! A new epoch: something dies in the middle of whatever is under way, and the others make the directory anew (§5.4).
//!
//! The change is one step here. Nobody executes anything while it lasts, and what its own packets suffer is tried
//! out by itself (`inside`); what explorers look for is the state that it begins in, which is any, and what becomes of it.
//! Packets of the old epoch are taken out: every role looks at the epoch first. That it does is tried out as well, where a
//! scenario keeps one of them in flight for as long as it likes (`late`).

use super::effects::{Complaint, Effects};
use super::layout::{EPOCH, Layout, Start};
use super::member::{Change, Member};
use super::moves::{Broken, Move, Rack, observe};
use super::node::Node;
use super::packet::{FIT, Packet, telling};
use super::parts::{Input, Part};
use super::scenario::{Failure, MAX_NODES};
use super::state::State;
use super::witness::Witness;
use rackmem_proto::Output;
use rackmem_proto::engine;
use rackmem_proto::flowcc::{Members, Rebuild};
use rackmem_proto::switch::SwitchProgram;
use rackmem_proto::wire::{Copyset, Dest};

/// Rounds after which a rebuild over a perfect network has long ended.
const ROUNDS: usize = 100;

impl Failure {
    /// Epochs that it takes.
    pub(super) fn epochs(self) -> u8 {
        if matches!(self, Failure::Restart(_)) {
            2
        } else {
            1
        }
    }
}

impl Rack {
    /// The state after a failure; `None` if what would fail has died before, or never was.
    pub fn begin_epoch(
        &mut self,
        state: &State,
        failure: Failure,
    ) -> Result<Option<State>, Complaint> {
        let layout = &self.layout;
        let count = usize::from(layout.scenario.nodes);
        let mut nodes = Vec::new();
        for &part in &state.parts[..count] {
            if let Part::Node(node) = self.parts.part(part) {
                nodes.push(node.clone());
            }
        }
        let mut switch = match self.parts.part(state.parts[count]) {
            Part::Switch(switch) if layout.has_switch() => Some(switch.clone()),
            _ => None,
        };
        let (before, had_switch) = (nodes.len(), switch.is_some());
        match failure {
            Failure::Switch => switch = None,
            Failure::Node(dead) | Failure::Restart(dead) => nodes.retain(|node| node.id != dead),
            Failure::SwitchAndNode(dead) => {
                switch = None;
                nodes.retain(|node| node.id != dead);
            }
            Failure::NewSwitch => switch = layout.switch(),
            Failure::Nothing | Failure::Return(_) => {}
        }
        let gone = match failure {
            Failure::Node(node) | Failure::Restart(node) if nodes.len() < before => {
                Copyset::of(node)
            }
            Failure::SwitchAndNode(node) if had_switch && nodes.len() < before => Copyset::of(node),
            Failure::Return(node) if nodes.iter().all(|other| other.id != node) => Copyset::EMPTY,
            Failure::Switch if had_switch => Copyset::EMPTY,
            Failure::NewSwitch if layout.has_switch() => Copyset::EMPTY,
            Failure::Nothing => Copyset::EMPTY,
            _ => return Ok(None),
        };
        let past = layout.scenario.budget.epochs - state.left.epochs;
        let epoch = EPOCH + u32::from(past) + u32::from(failure.epochs());
        if let Failure::Return(node) | Failure::Restart(node) = failure {
            let standing = Start {
                epoch,
                incarnation: 2,
                switch: switch.is_some(),
            };
            nodes.push(Node::new(node, layout, standing));
            self.seen.see(Witness::CameBack);
        }
        let mut started = [0; MAX_NODES];
        for node in &nodes {
            started[usize::from(node.id)] = node.incarnation as u8;
        }
        let founders = nodes
            .iter()
            .fold(Copyset::EMPTY, |set, node| set.with(node.id));
        let change = engine::Change {
            members: Members {
                epoch,
                founders,
                switch: switch.is_some(),
            },
            settled: EPOCH + u32::from(past),
            gone,
            switch_lost: had_switch
                && matches!(
                    failure,
                    Failure::Switch | Failure::SwitchAndNode(_) | Failure::NewSwitch
                ),
        };
        let change = Change {
            epoch: change,
            started,
        };
        let mut fx = Effects {
            segments: layout.scenario.segments,
            ..Effects::default()
        };
        let nodes = rebuild(nodes, &mut switch, change, layout, &mut fx)?;
        self.seen.add(fx.seen);
        if let Some(complaint) = fx.complaint {
            return Err(complaint);
        }
        let mut next = State {
            packets: Vec::new(),
            ..state.clone()
        };
        observe(&fx.observed, &mut next)?;
        for part in 0..count {
            next.parts[part] = self.parts.number(Part::Gone, &self.layout);
        }
        for node in nodes {
            let at = usize::from(node.id);
            next.parts[at] = self.parts.number(Part::Node(node), &self.layout);
        }
        if self.layout.has_switch() {
            let part = switch.map_or(Part::Gone, Part::Switch);
            next.parts[count] = self.parts.number(part, &self.layout);
        }
        let sent = fx
            .sent
            .iter()
            .filter(|packet: &&Packet| packet.header.epoch == change.epoch.members.epoch);
        next.packets = sent
            .map(|packet| self.parts.packet_number(packet))
            .collect();
        next.packets.sort_unstable();
        Ok(Some(next))
    }
}

impl Rack {
    /// A failure that begins a new epoch, in the middle of whatever is under way.
    pub(super) fn epochs(
        &mut self,
        state: &State,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let failures = self.layout.scenario.failures;
        for (nth, failure) in failures.iter().enumerate() {
            let input = Input::Epoch(nth as u8);
            let outcome = self.parts.step(state.parts[0], input, &self.layout);
            let action = Move {
                part: 0,
                input,
                stays: false,
                lost: 0,
                outcome,
            };
            let failure = *failure;
            let Some(epochs) = state.left.epochs.checked_sub(failure.epochs()) else {
                continue;
            };
            let begun = if self.layout.scenario.inside {
                let gone = self.parts.number(Part::Gone, &self.layout);
                Ok(self.begin_view(state, nth, gone))
            } else {
                self.begin_epoch(state, failure)
            };
            match begun {
                Ok(Some(mut next)) => {
                    next.left.epochs = epochs;
                    self.stay_late(state, &next, action, into);
                    into.push((action, next));
                }
                Ok(None) => {}
                Err(complaint) => return Err((action, complaint)),
            }
        }
        Ok(())
    }
}

impl Rack {
    /// A packet of the past stays in flight, any one.
    fn stay_late(
        &self,
        before: &State,
        after: &State,
        action: Move,
        into: &mut Vec<(Move, State)>,
    ) {
        if !self.layout.scenario.late {
            return;
        }
        for (at, &packet) in before.packets.iter().enumerate() {
            if at > 0 && before.packets[at - 1] == packet {
                continue;
            }
            let mut late = after.clone();
            late.packets.push(packet);
            late.packets.sort_unstable();
            let stays = true;
            into.push((Move { stays, ..action }, late));
        }
    }
}

/// Every live node goes into the new epoch, and the directory is made anew.
fn rebuild(
    nodes: Vec<Node>,
    switch: &mut Option<SwitchProgram>,
    change: Change,
    layout: &Layout,
    fx: &mut Effects,
) -> Result<Vec<Node>, Complaint> {
    let nodes = nodes.into_iter();
    let mut members: Vec<Member> = nodes
        .map(|node| Member::enter(node, change, layout, fx))
        .collect();
    let mut control = switch.as_mut().map(|switch| {
        switch.freeze();
        Rebuild::switch(change.epoch.members, FIT, |home| switch.entries_of(home))
    });
    let mut inside = Effects {
        segments: fx.segments,
        ..Effects::default()
    };
    for _ in 0..ROUNDS {
        for member in &mut members {
            member.go_on(layout, &mut inside);
        }
        while let Some(output) = control.as_mut().and_then(Rebuild::poll_output) {
            let records = control.as_ref().map(|c| c.records(output.to));
            inside
                .sent
                .push(telling(&output, records.unwrap_or_default()));
        }
        for packet in std::mem::take(&mut inside.sent) {
            deliver(&packet, &mut members, &mut control, layout, &mut inside);
        }
        if members.iter().all(Member::is_done) {
            if let Some(switch) = switch {
                switch.reset(change.epoch.members.epoch, None);
            }
            for member in &mut members {
                member.go_on(layout, &mut inside);
            }
            fx.seen.add(inside.seen);
            return Ok(members.into_iter().map(|member| member.node).collect());
        }
    }
    let detail = "the members wait for each other for ever".into();
    Err(("a rebuild ends", "§5.4", detail))
}

/// A packet of a rebuild arrives.
fn deliver(
    packet: &Packet,
    members: &mut [Member],
    control: &mut Option<Rebuild>,
    layout: &Layout,
    inside: &mut Effects,
) {
    if let Dest::Agent(node) = packet.to {
        let member = members.iter_mut().find(|member| member.node.id == node);
        return member
            .into_iter()
            .for_each(|m| m.hear(packet, layout, inside));
    }
    let answer = |control: &mut Rebuild| control.handle(&packet.header, packet.body.bytes()).1;
    let ack: Option<Output> = control.as_mut().and_then(answer);
    inside.sent.extend(ack.map(|ack| telling(&ack, &[])));
}
