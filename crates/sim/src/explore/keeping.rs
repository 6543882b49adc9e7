//! A home that a group keeps, as explorers see it: a region of it is removed by one step of the
//! rack's groups, the next one has its number by another, and each node hears of both by itself,
//! of one after the other or at once.
//!
//! The group is not explored here (`sim/abd` has it): a majority answers at once, and has what the
//! keeper has. So the keeper does not die.

use super::effects::{Complaint, Effects};
use super::layout::Layout;
use super::moves::{Broken, ExplorerRack, Move, Price};
use super::node::ExplorerNode;
use super::packet::{Body, ExplorerPacket, Value};
use super::parts::Input;
use super::state::State;
use super::witness::Witness;
use crate::site::{Form, Site, Speaks};
use rackmem_proto::engine::keeping::{
    AtKeeper, InPlace, KeptBy, KeptStep, KeptTurn, Way, rescues, way,
};
use rackmem_proto::engine::{self, FlowCc, Gcp, Host, KeptCopies};
use rackmem_proto::flowcc::{LocalStatus, Whereabouts};
use rackmem_proto::wire::Header;

/// The group of explorers.
pub const GROUP: u16 = 0;
/// Steps of it: its region is removed, and another one has the number.
pub const STEPS: u8 = 2;

/// What a node has of homes that groups keep: nothing where there are none.
#[derive(Clone, Hash, Default)]
pub struct Kept {
    /// Which blocks are in place, where it is the keeper.
    pub in_place: Option<Box<InPlace>>,
    /// Steps of the group that it has heard of.
    pub heard: u8,
}

impl Speaks<Value> for Kept {
    type Protocols = (FlowCc, Gcp);

    fn in_place(&self) -> Option<&InPlace> {
        self.in_place.as_deref()
    }

    fn in_place_mut(&mut self) -> Option<&mut InPlace> {
        self.in_place.as_deref_mut()
    }
}

impl ExplorerNode {
    /// It hears of the group.
    pub fn hear_of(&mut self, step: u8, fx: &mut Effects<'_>) {
        let before = self.site.part.heard;
        let had = self.site.of_home(GROUP);
        let status = |site: &Site<Value, Kept>, tag| site.cache.status(tag);
        let dirty = had
            .iter()
            .any(|tag| status(&self.site, *tag) == LocalStatus::Modified);
        let under_way = self.threads.iter().any(|thread| {
            let event = thread.client.event;
            event.is_some_and(|event| fx.layout.step_of(event.tag()) == Some(0))
        });
        engine::hear(&mut self.site, GROUP, fx.layout.group(step));
        self.site.part.heard = step;
        let removed = before == 0;
        fx.seen.see_if(removed && dirty, Witness::DirtyRemoved);
        fx.seen
            .see_if(removed && !dirty && !had.is_empty(), Witness::CleanRemoved);
        fx.seen
            .see_if(removed && under_way, Witness::RemovedUnderWay);
        fx.seen.see_if(step > before + 1, Witness::HeardOfBoth);
        // Its pages are the next region's.
        for block in 0..fx.layout.blocks() as u8 {
            let tag = fx.layout.tag(block);
            if self.site.whereabouts(tag) == Whereabouts::Gone {
                *self.site.memory(tag) = Value::zeroes();
            }
        }
        self.follow(None, fx);
    }

    /// Its agents take a packet: one about what a group keeps when a majority has that.
    pub(super) fn take(&mut self, packet: &ExplorerPacket, fx: &mut Effects<'_>) {
        let (header, site) = (&packet.header, &mut self.site);
        let Some(in_place) = &site.part.in_place else {
            return site.take(header, packet.body);
        };
        let (epoch, keeper) = (site.view.epoch, site.view.keeper());
        let heard_of = |tag| in_place.whereabouts(tag) != Whereabouts::Unheard;
        let there = |tag| in_place.has(tag, epoch);
        let way = way(site.id, header, (epoch, keeper), heard_of, there);
        let gone = in_place.whereabouts(header.tag) == Whereabouts::Gone;
        let comes_home = gone && way == Way::ByTurn && engine::keeping::brings_bytes(header);
        fx.seen.see_if(comes_home, Witness::CameNowhere);
        match way {
            Way::AtOnce => site.take(header, packet.body),
            Way::ByTurn => turn(site, header, packet.body),
            Way::Nobody => {
                fx.seen.see_if(!gone, Witness::NotHeardYet);
                (site.passed, site.answered) = (false, false);
            }
        }
    }
}

/// A packet's turn.
fn turn(site: &mut Site<Value, Kept>, header: &Header, body: Body) {
    (site.passed, site.answered) = (false, false);
    let epoch = site.view.epoch;
    let frozen = site.home_of(header.tag).frozen();
    let Some(in_place) = site.part.in_place.as_deref() else {
        return;
    };
    let at = AtKeeper {
        epoch,
        keeps: site.view.keeper() == Some(site.id),
        frozen: !rescues(header) && frozen,
        in_place: in_place.has(header.tag, epoch)
            || in_place.whereabouts(header.tag) != Whereabouts::Here,
    };
    let defect = Host::defect(site);
    let (mut turn, mut step) = KeptTurn::begin(*header, at, defect);
    let begun = site.deeds.len();
    loop {
        step = match step {
            KeptStep::Take(tag) => {
                put(site, tag);
                turn.taken(true)
            }
            KeptStep::Serve => {
                site.take(header, body);
                let sent = site.deeds[begun..].iter().filter_map(|deed| match deed {
                    crate::site::Deed::Sent(output, _) => Some(&output.header),
                    _ => None,
                });
                turn.served(sent, defect)
            }
            KeptStep::Keep(tag) => {
                put(site, tag);
                turn.kept(KeptBy::Majority, true)
            }
            KeptStep::Leave => return,
            KeptStep::Drop => return site.deeds.truncate(begun),
        };
    }
}

fn put(site: &mut Site<Value, Kept>, tag: rackmem_proto::wire::Tag) {
    let epoch = site.view.epoch;
    if let Some(in_place) = site.part.in_place.as_deref_mut() {
        in_place.put(tag, epoch);
    }
}

impl Layout {
    /// Whether a block is of a region that is removed after so many steps of its group.
    pub fn is_removed(&self, block: usize, steps: u8) -> bool {
        steps > 0 && self.scenario.kept.get(block) == Some(&1)
    }
}

impl ExplorerRack {
    /// The rack's groups go a step on, and nodes hear of it.
    pub(super) fn groups(
        &mut self,
        state: &State,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        if self.layout.scenario.kept.is_empty() {
            return Ok(());
        }
        if state.groups < STEPS {
            let input = Input::Groups;
            let action = self.of_the_rack(state, input);
            let groups = state.groups + 1;
            into.push((
                action,
                State {
                    groups,
                    ..state.clone()
                },
            ));
        }
        for part in 0..usize::from(self.layout.scenario.nodes) {
            let view = self.parts.view(state.parts[part]);
            if !view.gone && view.heard < state.groups {
                let left = state.left;
                let price = Price { left, taken: None };
                self.happen(state, part, Input::Hear(state.groups), price, into)?;
            }
        }
        Ok(())
    }

    /// Who has heard of a removal has nothing of the region, and nothing of it comes home.
    pub(super) fn of_the_removed(&self, state: &State, block: usize) -> Option<Complaint> {
        let broken = |detail: String| {
            let detail = format!("block {block} is of a removed region: {detail}");
            Some(("nothing of a removed region", "docs/decisions/0120", detail))
        };
        for node in 0..usize::from(self.layout.scenario.nodes) {
            let view = self.parts.view(state.parts[node]);
            if view.gone || view.heard == 0 {
                continue;
            }
            if let Some((status, words)) = view.copies[block] {
                return broken(format!(
                    "node {node}, which has heard, has {status:?} {words:?}"
                ));
            }
            if let Some(words) = view.memory[block].filter(|words| *words != Value::zeroes()) {
                return broken(format!("{words:?} has come home"));
            }
            if view.entries[block].is_some()
                && usize::from(self.layout.scenario.homes[block]) == node
            {
                return broken("its keeper, which has heard, has an entry of it".into());
            }
        }
        None
    }
}
