//! A rebuild packet by packet: members learn of a failure at different times,
//! and what they tell each other is lost, doubled and reordered;
//! another failure may come at any point.
//!
//! Two reductions keep this small, and each is sound. *Packets of a past epoch are taken out*:
//! every role looks at the epoch first. *A member that has not learned of the newest epoch does
//! nothing*: nobody who has hears what it sends, and what it hears was sent before they had, so
//! whatever it would do it might have done before the failure.

use super::effects::Complaint;
use super::layout::{EPOCH, Layout};
use super::moves::{Broken, ExplorerRack, Move, Price};
use super::parts::Input;
use super::scenario::Failure;
use super::state::State;
use super::witness::Witness;
use rackmem_proto::engine::Change;
use rackmem_proto::membership::View;

/// Failures so far, oldest first: four bits each, the number of the failure in the scenario's list
/// and one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Views(pub u16);

impl Views {
    fn failures(self) -> impl Iterator<Item = usize> {
        let digits = (0..4).rev().map(move |at| self.0 >> (at * 4) & 0xf);
        digits
            .filter(|digit| *digit > 0)
            .map(|digit| usize::from(digit - 1))
    }

    /// The epoch after all of them.
    pub fn epoch(self) -> u32 {
        EPOCH + self.failures().count() as u32
    }

    fn and(self, failure: usize) -> Self {
        Views(self.0 << 4 | (failure as u16 + 1))
    }

    /// The rack after all of them.
    fn view(self, layout: &Layout) -> View {
        let mut view = layout.view();
        view.epoch = self.epoch();
        for failure in self.failures() {
            match layout.scenario.failures.get(failure) {
                Some(Failure::Node(node)) => {
                    (view.live, view.founders) =
                        (view.live.without(*node), view.founders.without(*node));
                }
                Some(Failure::Switch) => view.switch = None,
                _ => {}
            }
        }
        view
    }

    /// The rack, and what has changed for a home whose entries were made in an epoch.
    pub fn since(self, made: u32, layout: &Layout) -> (View, Change) {
        let then = Views(self.0 >> (4 * (self.epoch() - made)));
        let view = self.view(layout);
        (view, Change::between(&then.view(layout), &view))
    }
}

impl ExplorerRack {
    /// Something dies; who lives will learn it.
    pub fn begin_view(&self, state: &State, nth: usize, gone: u32) -> Option<State> {
        let count = usize::from(self.layout.scenario.nodes);
        let mut next = State {
            packets: Vec::new(),
            views: state.views.and(nth),
            ..state.clone()
        };
        // In the order of the list, each once.
        if state.views.failures().count() != nth {
            return None;
        }
        let dies = match self.layout.scenario.failures[nth] {
            Failure::Nothing => None,
            Failure::Node(node) => Some(usize::from(node)),
            Failure::Switch if self.layout.has_switch() => Some(count),
            _ => return None,
        };
        if let Some(part) = dies {
            if state.parts[part] == gone {
                return None;
            }
            next.parts[part] = gone;
        }
        Some(next)
    }

    /// Members learn of the newest epoch, and tell again what is not acknowledged.
    pub(super) fn inside(
        &mut self,
        state: &State,
        part: usize,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let view = self.parts.view(state.parts[part]);
        let (epoch, retells) = (view.epoch, view.retells);
        let left = state.left;
        let free = Price { left, taken: None };
        if !view.gone && epoch < state.views.epoch() {
            return self.happen(state, part, Input::Learn(state.views), free, into);
        }
        let mut left = state.left;
        if !state.packets.is_empty() {
            let Some(early) = left.early.checked_sub(1) else {
                return Ok(());
            };
            left.early = early;
        }
        for nth in 0..retells {
            let price = Price { left, taken: None };
            self.happen(state, part, Input::Retell(nth as u8), price, into)?;
        }
        Ok(())
    }

    /// Nobody goes on before everyone's entries are made.
    pub(super) fn apart(&mut self, state: &State) -> Option<Complaint> {
        let newest = state.views.epoch();
        let nodes = 0..usize::from(self.layout.scenario.nodes);
        let views = nodes.map(|node| self.parts.view(state.parts[node]));
        let live: Vec<_> = views.filter(|view| !view.gone).collect();
        let on = |epoch| {
            let mut there = live.iter().filter(move |view| view.epoch == epoch);
            there.any(|view| view.in_service)
        };
        let ready = |view: &&super::view::ExplorerView| view.epoch == newest && !view.frozen;
        let waits = live
            .iter()
            .any(|view| view.epoch == newest && !view.in_service);
        let cut = |view: &&super::view::ExplorerView| view.epoch + 1 == newest && !view.in_service;
        let cut_apart = on(newest - 1) && live.iter().copied().any(|view| cut(&view));
        let alone = on(newest) && !live.iter().copied().all(|view| ready(&view));
        let first = on(newest) && waits;
        self.seen.see_if(first, Witness::WentOnFirst);
        self.seen
            .see_if(newest > EPOCH + 1 && cut_apart, Witness::CutOffApart);
        let detail = format!("in epoch {newest} somebody has gone on, and a home serves nothing");
        alone.then_some(("nobody goes on alone", "§5.4", detail))
    }

    /// Whether a block's home has made its entries for the newest epoch.
    pub(super) fn settled(&self, state: &State, block: usize) -> bool {
        let home = usize::from(self.layout.scenario.homes[block]);
        let view = self.parts.view(state.parts[home]);
        !self.layout.scenario.inside || view.epoch == state.views.epoch() && !view.frozen
    }
}
