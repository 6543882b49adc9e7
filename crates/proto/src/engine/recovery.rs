//! A node's part when an epoch begins (§5.4): the host of [`Rebuild`], with what outlasts an
//! attempt that is cut off.

use super::{Defect, Host, Note, Payload, Protocols, Reporter};
use crate::call::Stream;
use crate::flowcc::{Heard, Interrupted, Members, Next, Open, Rebuild};
use crate::membership::View;
use crate::wire::{Copyset, Header, NodeId, Record, Tag};
use crate::{Data, Output};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::Hash;

/// What an epoch begins with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// Who takes part in it.
    pub members: Members,
    /// The epoch in which this home's entries were made.
    pub settled: u32,
    /// The nodes of which an incarnation has ended since.
    pub gone: Copyset,
    /// Whether the switch that was there then is not there any more.
    pub switch_lost: bool,
}

impl Change {
    /// From the view in which the entries were made to this one.
    pub fn between(settled: &View, view: &View) -> Self {
        Change {
            members: Members {
                epoch: view.epoch,
                founders: view.founders,
                switch: view.switch.is_some(),
            },
            settled: settled.epoch,
            gone: view.gone_since(settled),
            switch_lost: settled.switch.is_some() && view.switch != settled.switch,
        }
    }
}

/// See the module. `B` is a block's bytes.
#[derive(Clone, Hash, Debug)]
pub struct Recovery<B> {
    block: u32,
    fit: usize,
    attempt: Option<Box<(Rebuild, Change)>>,
    /// Whether this node has gone on.
    done: bool,
    /// Events of this node that ends of epochs have cut off, and blocks that it has read and home
    /// may not have: kept until a rebuild is done, because one that is cut off itself has told some
    /// and not others.
    mine: Vec<Open>,
    read: Vec<Tag>,
    /// Open events of all nodes, as far as they are known.
    open: Vec<(NodeId, Open)>,
    /// Blocks on their way to their homes.
    rescues: BTreeMap<Tag, B>,
}

impl<B> Recovery<B> {
    /// Nothing to do. A block has so many bytes, and a packet room for `fit` records.
    pub fn new(block: u32, fit: usize) -> Self {
        Recovery {
            block,
            fit,
            attempt: None,
            done: true,
            mine: Vec::new(),
            read: Vec::new(),
            open: Vec::new(),
            rescues: BTreeMap::new(),
        }
    }

    /// Whether no rebuild is under way here.
    pub fn in_service(&self) -> bool {
        self.done
    }

    /// Whether nobody waits for this node's part any more.
    pub fn all_told(&self) -> bool {
        self.done && self.rebuild().is_none_or(Rebuild::all_told)
    }

    /// Members have left without another epoch: these are here yet, and who is not acknowledges
    /// nothing any more.
    pub fn keep(&mut self, nodes: Copyset) {
        if let Some((rebuild, _)) = self.attempt.as_deref_mut() {
            rebuild.keep(nodes);
        }
    }

    /// The rebuild under way, or the last one.
    pub fn rebuild(&self) -> Option<&Rebuild> {
        self.attempt.as_ref().map(|attempt| &attempt.0)
    }

    /// Events that have been cut off and are not settled.
    pub fn cut_off(&self) -> usize {
        self.mine.len()
    }

    /// Home has this block.
    fn let_go<H: Host<Bytes = B>>(&mut self, tag: Tag, host: &mut H) {
        H::Protocols::rescued(host, tag);
        self.read.retain(|read| *read != tag);
        host.note(Note::Rescued(tag));
    }
}

impl<B: Clone> Recovery<B> {
    /// This node goes into another epoch. It has stopped ([`super::stop`]), and `cut` is what its
    /// requesters had under way.
    pub fn begin<H: Host<Bytes = B>>(
        &mut self,
        change: Change,
        cut: impl IntoIterator<Item = Interrupted>,
        host: &mut H,
    ) {
        let (me, gone, defect) = (host.me(), change.gone, host.defect());
        if defect == Some(Defect::ForgetTold) {
            self.mine.clear();
        }
        // Of bare locks only what is held now counts: those of a rebuild that was cut off may have
        // been released since.
        self.mine.retain(|open| !open.bare);
        for cut in cut {
            self.mine.extend(cut.open.into_iter().flatten());
            self.read.extend(cut.unfinished.into_iter().flatten());
        }
        H::Protocols::forget(host, gone);
        self.mine.retain(|open| !open.tag.home().dies_with(gone));
        self.read.retain(|tag| !tag.home().dies_with(gone));
        self.open = self.mine.iter().map(|open| (me, *open)).collect();
        self.rescues.clear();
        self.done = false;
        let rebuild = Rebuild::node(me, change.members, self.block, self.fit, &self.mine);
        self.attempt = Some(Box::new((rebuild, change)));
        if defect != Some(Defect::ForgetOwnEvents) {
            for open in &self.mine {
                H::Protocols::note_open(host, me, *open, change.settled);
            }
        }
    }

    /// A packet of a rebuild.
    pub fn packet<H: Host<Bytes = B>>(&mut self, header: &Header, host: &mut H) {
        let bytes = host.body_len();
        let Some((rebuild, change)) = self.attempt.as_deref_mut() else {
            return;
        };
        let settled = change.settled;
        let (heard, ack) = rebuild.handle(header, bytes);
        match heard {
            Heard::Nothing => {}
            Heard::Records(stream) => {
                for record in host.records() {
                    self.hear(stream, header.sender, record, settled, host);
                }
            }
            Heard::Rescue { store, whole } => {
                H::Protocols::rescue(host, header, store, whole);
            }
            Heard::Rescued(tag) => self.let_go(tag, host),
        }
        // The acknowledgement says that all of this has been noted.
        if let Some(ack) = ack {
            host.send(&ack, Payload::Nothing);
        }
    }

    fn hear<H: Host<Bytes = B>>(
        &mut self,
        stream: Stream,
        from: NodeId,
        record: Record,
        settled: u32,
        host: &mut H,
    ) {
        match stream {
            Stream::Open => {
                let open = Open::from_record(record);
                self.open.push((from, open));
                H::Protocols::note_open(host, from, open, settled);
            }
            Stream::Copies => H::Protocols::hear(host, Reporter::Node(from), record),
            Stream::Entries => H::Protocols::hear(host, Reporter::Switch, record),
            Stream::Ready => {}
        }
    }

    /// Sends again what has not been acknowledged for long: late members may still wait for what
    /// this one has told. The host calls this every few round trips.
    pub fn retell<H: Host<Bytes = B>>(&mut self, host: &mut H) {
        if let Some((rebuild, _)) = self.attempt.as_deref_mut() {
            rebuild.tick();
        }
        self.send(host);
    }

    /// Does what can be done, and sends what there is to send. True once, when this node goes on.
    pub fn proceed<H: Host<Bytes = B>>(&mut self, host: &mut H) -> bool {
        loop {
            self.send(host);
            match self.rebuild().map_or(Next::Done, Rebuild::next) {
                Next::Collect => {
                    self.collect(host);
                    if host.defect() == Some(Defect::SettleEarly) {
                        self.settle(host);
                    }
                }
                Next::Settle => self.settle(host),
                next if !self.done && self.goes_on(next, host) => {
                    self.done = true;
                    self.mine.clear();
                    self.read.clear();
                    self.open.clear();
                    self.rescues.clear();
                    return true;
                }
                Next::Wait | Next::Done => return false,
            }
        }
    }

    fn goes_on<H: Host<Bytes = B>>(&self, next: Next, host: &mut H) -> bool {
        let alone = host.defect() == Some(Defect::GoOnAlone);
        next == Next::Done || alone && self.rebuild().is_some_and(Rebuild::has_settled)
    }

    /// What is not acknowledged: what [`Recovery::retell`] sends again in time, one by one.
    pub fn unacknowledged(&self) -> Vec<Output> {
        let Some((rebuild, _)) = self.attempt.as_deref() else {
            return Vec::new();
        };
        let mut rebuild = rebuild.clone();
        rebuild.resend();
        core::iter::from_fn(|| rebuild.poll_output()).collect()
    }

    /// Sends one packet of a rebuild.
    pub fn send_one<H: Host<Bytes = B>>(&mut self, output: &Output, host: &mut H) {
        let Some((rebuild, _)) = self.attempt.as_deref() else {
            return;
        };
        if output.data == Data::Records {
            return host.send(output, Payload::Records(rebuild.records(output.to)));
        }
        let tag = output.header.tag;
        if let Some(bytes) = self.rescues.get(&tag) {
            host.send(output, Payload::Kept(bytes));
        }
        if host.defect() == Some(Defect::LetGoEarly) {
            self.let_go(tag, host);
        }
    }

    fn send<H: Host<Bytes = B>>(&mut self, host: &mut H) {
        while let Some(output) = self.attempt.as_mut().and_then(|a| a.0.poll_output()) {
            self.send_one(&output, host);
        }
    }

    /// Step 2: what homes may not have, and what this cache has.
    fn collect<H: Host<Bytes = B>>(&mut self, host: &mut H) {
        let me = host.me();
        let mut abroad = Vec::new();
        let found = H::Protocols::to_rescue(host, &self.open, &self.read);
        for (tag, bytes) in BTreeMap::from_iter(found) {
            host.note(Note::ToRescue(tag));
            // What a group keeps is home when a majority has it, which its host sees to.
            if !host.is_home_of(tag) || !tag.home().is_own() {
                abroad.push(tag);
                self.rescues.insert(tag, bytes);
                continue;
            }
            H::Protocols::rescue_own(host, tag, &bytes);
            host.note(Note::CameHome(tag));
            self.let_go(tag, host);
        }
        let mut others = Vec::new();
        for record in H::Protocols::report(host) {
            match host.is_home_of(record.tag) {
                true => H::Protocols::hear(host, Reporter::Node(me), record),
                false => others.push(record),
            }
        }
        if let Some((rebuild, _)) = self.attempt.as_deref_mut() {
            rebuild.collect(abroad, others);
        }
    }

    /// Step 4: the entries.
    fn settle<H: Host<Bytes = B>>(&mut self, host: &mut H) {
        let Some((rebuild, change)) = self.attempt.as_deref_mut() else {
            return;
        };
        rebuild.settled();
        let change = *change;
        H::Protocols::settle(host, &change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rebuild that was cut off may have been that of the epoch without a switch: what is settled
    /// is older, and the switch that it knew is gone although there is one.
    #[test]
    fn a_switch_that_has_died_and_come_back_is_lost() {
        let settled = View::first(Copyset::of(0).with(1), true);
        let without = settled.exclude_switch().unwrap();
        let back = without.admit_switch().unwrap();
        let lost = |view| Change::between(&settled, view).switch_lost;
        assert!(!lost(&settled) && lost(&without) && lost(&back));
        assert!(!Change::between(&without, &back).switch_lost);
    }
}
