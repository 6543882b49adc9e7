//! A new epoch: something dies in the middle of whatever is under way,
//! and the others make the directory anew (§5.4).
//!
//! The change is one step here. Nobody executes anything while it lasts,
//! and what its own packets suffer is tried out by itself (`inside`); what explorers look for is
//! the state that it begins in, which is any, and what becomes of it. Packets of the old epoch are
//! taken out: every role looks at the epoch first. That it does is tried out as well, where a
//! scenario keeps one of them in flight for as long as it likes (`late`).

use super::effects::{Complaint, Effects};
use super::layout::EPOCH;
use super::moves::{Broken, ExplorerRack, Move, observe};
use super::node::ExplorerNode;
use super::packet::ExplorerPacket;
use super::parts::{Input, Part};
use super::rebuild::rebuild;
use super::scenario::{Failure, MAX_NODES};
use super::state::State;
use super::witness::Witness;
use rackmem_proto::engine::Change;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, NodeId};

/// What members of a rack of these nodes know of it.
fn view_of(nodes: &[ExplorerNode], epoch: u32, switch: Option<u32>) -> View {
    let all = (0..MAX_NODES as NodeId).fold(Copyset::EMPTY, Copyset::with);
    let ids = nodes.iter().map(|node| node.site.id);
    let live = ids.fold(Copyset::EMPTY, Copyset::with);
    let mut view = View::first(all, false);
    (view.epoch, view.live, view.founders, view.switch) = (epoch, live, live, switch);
    for node in nodes {
        let at = usize::from(node.site.id);
        view.incarnations[at] = node.site.view.incarnations[at];
    }
    view
}

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

impl ExplorerRack {
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
        let past = layout.scenario.budget.epochs - state.left.epochs;
        let last = EPOCH + u32::from(past);
        let old = view_of(&nodes, last, had_switch.then_some(0));
        match failure {
            Failure::Switch => switch = None,
            Failure::Node(dead) | Failure::Restart(dead) => {
                nodes.retain(|node| node.site.id != dead);
            }
            Failure::SwitchAndNode(dead) => {
                switch = None;
                nodes.retain(|node| node.site.id != dead);
            }
            Failure::NewSwitch => switch = layout.switch(),
            Failure::Nothing | Failure::Return(_) => {}
        }
        let happens = match failure {
            Failure::Node(_) | Failure::Restart(_) => nodes.len() < before,
            Failure::SwitchAndNode(_) => had_switch && nodes.len() < before,
            Failure::Return(node) => nodes.iter().all(|other| other.site.id != node),
            Failure::Switch => had_switch,
            Failure::NewSwitch => layout.has_switch(),
            Failure::Nothing => true,
        };
        if !happens {
            return Ok(None);
        }
        let epoch = last + u32::from(failure.epochs());
        let new_switch = match failure {
            Failure::NewSwitch => Some(epoch),
            _ => had_switch.then_some(0),
        };
        let mut view = view_of(&nodes, epoch, new_switch.filter(|_| switch.is_some()));
        if let Failure::Return(node) | Failure::Restart(node) = failure {
            (view.live, view.founders) = (view.live.with(node), view.founders.with(node));
            view.incarnations[usize::from(node)] = 2;
            nodes.push(ExplorerNode::new(node, layout, &view));
            self.seen.see(Witness::CameBack);
        }
        let change = Change::between(&old, &view);
        let mut fx = Effects::new(layout);
        rebuild(&mut nodes, &mut switch, (view, change), &mut fx)?;
        self.seen.add(fx.seen);
        if let Some(complaint) = fx.complaint {
            return Err(complaint);
        }
        let mut next = State {
            packets: Vec::new(),
            ..state.clone()
        };
        observe(&fx.observed, &mut next, &self.layout)?;
        for part in 0..count {
            next.parts[part] = self.parts.number(Part::Gone, &self.layout);
        }
        for node in nodes {
            let at = usize::from(node.site.id);
            next.parts[at] = self.parts.number(Part::Node(node), &self.layout);
        }
        if self.layout.has_switch() {
            let part = switch.map_or(Part::Gone, Part::Switch);
            next.parts[count] = self.parts.number(part, &self.layout);
        }
        let sent = fx
            .sent
            .iter()
            .filter(|packet: &&ExplorerPacket| packet.header.epoch == epoch);
        next.packets = sent
            .map(|packet| self.parts.packet_number(packet))
            .collect();
        next.packets.sort_unstable();
        Ok(Some(next))
    }
}

impl ExplorerRack {
    /// Something that happens to the rack, and not to one part of it.
    pub(super) fn of_the_rack(&mut self, state: &State, input: Input) -> Move {
        Move {
            part: 0,
            input,
            stays: false,
            lost: 0,
            outcome: self.parts.step(state.parts[0], input, &self.layout),
        }
    }

    /// A failure that begins a new epoch, in the middle of whatever is under way.
    pub(super) fn epochs(
        &mut self,
        state: &State,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let failures = self.layout.scenario.failures;
        for (nth, failure) in failures.iter().enumerate() {
            let input = Input::Epoch(nth as u8);
            let action = self.of_the_rack(state, input);
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

impl ExplorerRack {
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
