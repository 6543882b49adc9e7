//! What is looked at in every state.

use super::effects::Complaint;
use super::moves::ExplorerRack;
use super::state::State;
use super::view::{Entry, ExplorerView};
use super::witness::Witness;
use crate::invariants::{BlockState, Copy, INVARIANTS, Owners, nothing_of_the_dead};
use rackmem_proto::wire::{Copyset, HomeId};

/// The lock word of an entry that the switch serves no more.
const RETIRED: u16 = 1 << 15;

impl ExplorerRack {
    /// The first promise that a state breaks.
    pub fn broken(&mut self, state: &State) -> Option<Complaint> {
        if self.layout.scenario.inside
            && let Some(complaint) = self.apart(state)
        {
            return Some(complaint);
        }
        (0..self.layout.blocks()).find_map(|block| {
            if self.layout.is_removed(block, state.groups) {
                return self.of_the_removed(state, block);
            }
            let settled = self.settled(state, block);
            let Some(entry) = self.entry(state, block) else {
                return self.of_the_dead(state, block);
            };
            if entry.lost {
                return self.lost(state, block);
            }
            let seen = self.block(state, block)?;
            self.watch(&seen);
            let broken = INVARIANTS
                .iter()
                .filter(|invariant| settled || invariant.always);
            let broken = broken.into_iter().find_map(|invariant| {
                let detail = (invariant.broken)(&seen)?;
                let detail = format!("block {block}: {detail}");
                Some((invariant.name, invariant.section, detail))
            });
            broken.or_else(|| self.held(state, block))
        })
    }

    /// Nobody has a copy of memory that has gone with its home.
    fn of_the_dead(&self, state: &State, block: usize) -> Option<Complaint> {
        let nodes = 0..self.layout.scenario.nodes;
        let holders = nodes.filter(|&node| {
            let view = self.view(state, usize::from(node));
            view.copies[block].is_some()
        });
        let holders = holders.fold(Copyset::EMPTY, Copyset::with);
        let home = self.layout.scenario.homes[block];
        let detail = nothing_of_the_dead::broken(HomeId::of(home), holders)?;
        Some((
            nothing_of_the_dead::NAME,
            nothing_of_the_dead::SECTION,
            detail,
        ))
    }

    /// A block may be lost only if a node has died, and then nobody has it.
    fn lost(&mut self, state: &State, block: usize) -> Option<Complaint> {
        self.seen.see(Witness::LostWithNode);
        let mut nodes = 0..usize::from(self.layout.scenario.nodes);
        let died = nodes
            .clone()
            .any(|node| self.view(state, node).gone || self.view(state, node).incarnation > 1);
        let had = nodes.any(|node| self.view(state, node).copies[block].is_some());
        let detail = format!("block {block} is lost, died: {died}, a node has it: {had}");
        (!died || had).then_some(("no data is lost", "§5.4", detail))
    }

    /// Everything there is to know about a block.
    pub fn block(&self, state: &State, block: usize) -> Option<BlockState> {
        let entry = self.entry(state, block)?;
        let home = usize::from(self.layout.scenario.homes[block]);
        let memory = self.view(state, home).memory[block]?;
        let tag = self.layout.tag(block as u8);
        let nodes = 0..usize::from(self.layout.scenario.nodes);
        let copies = nodes.clone().filter_map(|node| {
            let (status, words) = self.view(state, node).copies[block]?;
            Some(Copy {
                node: node as u16,
                status,
                current: state.current(block, words),
            })
        });
        let live = nodes.flat_map(|node| self.view(state, node).live.iter());
        Some(BlockState {
            lock: entry.lock,
            status: entry.status,
            copyset: entry.copyset,
            owners: self.owners(state, block)?,
            copies: copies.collect(),
            events: live.filter(|event| event.tag == tag).copied().collect(),
            home_current: state.current(block, memory),
            lost: false,
        })
    }

    /// Who serves a block's entry. The switch serves nothing more of one whose lock it has taken to
    /// give it back.
    fn owners(&self, state: &State, block: usize) -> Option<Owners> {
        let (home, switch) = self.entries(state, block)?;
        let retired = |entry: Entry| home.removing && entry.lock == RETIRED;
        Some(Owners {
            home: !home.away && !home.adding,
            switch: switch.is_some_and(|entry| !retired(entry)),
            moving: home.adding || home.removing,
        })
    }

    /// A lock that a thread holds for its own purposes excludes others (§6).
    fn held(&mut self, state: &State, block: usize) -> Option<Complaint> {
        let nodes = 0..usize::from(self.layout.scenario.nodes);
        let holders = nodes.flat_map(|node| self.view(state, node).holding.iter());
        let holders: Vec<bool> = holders
            .filter(|holder| usize::from(holder.0) == block)
            .map(|holder| holder.1)
            .collect();
        let together = holders.len() > 1;
        self.seen.see_if(together, Witness::HeldTogether);
        (together && holders.contains(&false)).then(|| {
            let detail = format!(
                "block {block} is held {} times, once to write",
                holders.len()
            );
            ("locks exclude", "§6", detail)
        })
    }

    fn watch(&mut self, block: &BlockState) {
        self.seen
            .see_if(block.copies.len() > 1, Witness::TwoSharers);
        let readers = block.lock < 1 << 15 && block.lock > 1;
        self.seen.see_if(readers, Witness::TwoReadersLock);
    }

    /// Whether every operation has ended, every unlock is acknowledged, and nothing is in flight.
    pub fn done(&self, state: &State) -> bool {
        let nodes = 0..usize::from(self.layout.scenario.nodes);
        state.packets.is_empty()
            && nodes.into_iter().all(|node| {
                let view = self.view(state, node);
                let there = view.gone || view.epoch == state.views.epoch() && view.in_service;
                let there = there || !self.layout.scenario.inside;
                there && view.home_resends == 0 && view.threads.iter().all(|thread| thread.idle)
            })
    }

    /// What a state's threads still want, for a violation.
    pub fn unfinished(&self, state: &State) -> String {
        let nodes = 0..usize::from(self.layout.scenario.nodes);
        let threads = nodes.flat_map(|node| self.view(state, node).threads.iter());
        let busy = threads.filter(|thread| !thread.idle).map(|thread| {
            let (node, slot) = (thread.id.node, thread.id.slot);
            format!("{node}.{slot} ({:?})", thread.next)
        });
        busy.collect::<Vec<_>>().join(", ")
    }

    fn view(&self, state: &State, part: usize) -> &ExplorerView {
        self.parts.view(state.parts[part])
    }
}
