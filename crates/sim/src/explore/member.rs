//! A node in a rebuild, or after one.

use super::effects::Effects;
use super::host::{Here, Homecomings};
use super::layout::Layout;
use super::node::Node;
use super::packet::{BLOCK_BYTES, FIT, Packet, Value};
use super::scenario::MAX_NODES;
use super::witness::Witness;
use rackmem_proto::engine::{self, Recovery};
use rackmem_proto::flowcc::Next;
use std::hash::{Hash, Hasher};

/// What an epoch begins with, and how often each node has started, 0 for one that is dead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// What it begins with.
    pub epoch: engine::Change,
    /// How often each node has started.
    pub started: [u8; MAX_NODES],
}

/// A member of the rack and its part in the rebuild.
#[derive(Clone)]
pub struct Member {
    /// The node.
    pub node: Node,
    /// Its part.
    pub recovery: Recovery<Value>,
    homecomings: Homecomings,
}

impl Member {
    /// A node stops: what is under way has not happened, what is held has.
    pub fn enter(node: Node, change: Change, layout: &Layout, fx: &mut Effects) -> Self {
        let mut member = Member {
            node,
            recovery: Recovery::new(BLOCK_BYTES, FIT),
            homecomings: Homecomings::default(),
        };
        member.stop(change, layout, fx);
        member
    }

    /// Another change in the middle of a rebuild, or after it.
    pub fn again(mut self, change: Change, layout: &Layout, fx: &mut Effects) -> Self {
        let cut_off = !self.recovery.in_service();
        fx.seen.see_if(cut_off, Witness::RebuildCutOff);
        self.homecomings.before = self.homecomings.came.clone();
        self.stop(change, layout, fx);
        self
    }

    fn stop(&mut self, change: Change, layout: &Layout, fx: &mut Effects) {
        let members = change.epoch.members;
        let node = &mut self.node;
        engine::stop(&mut Here::new(node, layout, fx), members);
        let mut cut_off = Vec::new();
        for at in 0..node.threads.len() {
            let requester = &mut node.threads[at].engine;
            let waiting = requester.open()[0].is_some() && !requester.holds();
            let cut = requester.enter(members.epoch, members.switch);
            cut_off.push(cut);
            let current = cut.open[2].is_some();
            fx.seen.see_if(waiting && current, Witness::Fenced);
            fx.seen.see_if(!waiting && current, Witness::FencedHeld);
            node.advance(at, layout, fx);
        }
        node.homes = change.started;
        let mut here = Here::new(node, layout, fx);
        self.recovery.begin(change.epoch, cut_off, &mut here);
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.node.fingerprint(into);
        self.recovery.hash(into);
        self.homecomings.hash(into);
    }

    /// A packet comes.
    pub fn hear(&mut self, packet: &Packet, layout: &Layout, fx: &mut Effects) {
        let recovery = &mut self.recovery;
        let mut here = Here::new(&mut self.node, layout, fx);
        here.homecomings = std::mem::take(&mut self.homecomings);
        here.recovery = Some(recovery);
        here.take(packet);
        self.homecomings = here.homecomings;
    }

    fn with(
        &mut self,
        layout: &Layout,
        fx: &mut Effects,
        f: impl FnOnce(&mut Recovery<Value>, &mut Here<'_>),
    ) {
        let mut here = Here::new(&mut self.node, layout, fx);
        here.homecomings = std::mem::take(&mut self.homecomings);
        f(&mut self.recovery, &mut here);
        self.homecomings = here.homecomings;
    }

    /// Does what can be done, and sends what there is to send.
    pub fn go_on(&mut self, layout: &Layout, fx: &mut Effects) {
        self.with(layout, fx, |recovery, here| {
            recovery.proceed(here);
        });
    }

    /// Whether it has nothing more to wait for.
    pub fn is_done(&self) -> bool {
        let rebuild = self.recovery.rebuild();
        rebuild.is_none_or(|rebuild| rebuild.next() == Next::Done)
    }

    /// What is sent again because its acknowledgement may be lost, one by one.
    pub fn resends(&self) -> usize {
        self.recovery.unacknowledged().len()
    }

    /// Sends one of them.
    pub fn resend(&mut self, nth: usize, layout: &Layout, fx: &mut Effects) {
        if let Some(output) = self.recovery.unacknowledged().get(nth) {
            fx.seen.see(Witness::ToldAgain);
            self.with(layout, fx, |recovery, here| recovery.send_one(output, here));
        }
    }
}
