//! A node's part in a rebuild: the host of [`Rebuild`], as the library has it.

use super::effects::Effects;
use super::layout::Layout;
use super::node::Node;
use super::packet::{BLOCK_BYTES, FIT, Packet, Value, telling};
use super::scenario::MAX_NODES;
use super::witness::Witness;
use crate::world::Mutation;
use rackmem_proto::Data;
use rackmem_proto::flowcc::{
    Heard, LastExecuted, LocalStatus, Members, Next, Open, Rebuild, Stream, copy_record,
};
use rackmem_proto::wire::{Copyset, GlobalStatus, NodeId, Tag};
use std::hash::{Hash, Hasher};

/// What a change is from and to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    /// Who takes part in the new epoch.
    pub who: Members,
    /// The epoch in which a home's entries were made.
    pub settled: u32,
    /// The nodes that have died since.
    pub gone: Copyset,
    /// How often each node has started, 0 for one that is dead.
    pub started: [u8; MAX_NODES],
    /// Whether the switch has.
    pub switch_lost: bool,
}

/// Memory of the dead is nobody's, and who comes back begins with the same numbers.
fn forget(node: &mut Node, gone: Copyset, layout: &Layout, fx: &mut Effects) {
    for block in 0..layout.blocks() {
        if !gone.contains(layout.scenario.homes[block]) {
            continue;
        }
        let slot = &mut node.slots[block];
        let dropped = slot.status != LocalStatus::Invalid;
        fx.seen.see_if(dropped, Witness::DroppedWithHome);
        if !layout.mutated(Mutation::KeepDeadCopies) {
            slot.status = LocalStatus::Invalid;
        }
        node.downgraded[block] = false;
    }
    node.retained.retain(|(requester, _, block, _)| {
        let home = layout.scenario.homes[usize::from(*block)];
        !gone.contains(requester.node) && !gone.contains(home)
    });
}

/// A member of the rack and its part in the rebuild.
#[derive(Clone)]
pub struct Member {
    /// The node.
    pub node: Node,
    /// Its part.
    pub rebuild: Rebuild,
    /// Whether it has gone on.
    pub done: bool,
    change: Change,
    /// Its events that old epochs' ends have cut off, until a rebuild is done.
    mine: Vec<Open>,
    /// Blocks that it has read and whose homes may not have them.
    read: Vec<Tag>,
    /// Everyone's events that are cut off, as far as they have been told.
    open: Vec<(NodeId, Open)>,
    /// Blocks on their way home.
    rescues: Vec<(Tag, Value)>,
    /// Blocks that have come home since this home has made its entries last, and those of before this rebuild.
    came: Vec<Tag>,
    before: Vec<Tag>,
    /// Those of this rebuild, for the defect that forgets the others.
    noted: Vec<Tag>,
}

impl Member {
    /// A node stops: what is under way has not happened, what is held has.
    pub fn enter(node: Node, change: Change, layout: &Layout, fx: &mut Effects) -> Self {
        Self::stop(node, Vec::new(), Vec::new(), change, layout, fx)
    }

    /// Another change in the middle of a rebuild, or after it.
    pub fn again(self, change: Change, layout: &Layout, fx: &mut Effects) -> Self {
        let Member {
            node,
            mut mine,
            came,
            ..
        } = self;
        fx.seen.see_if(!self.done, Witness::RebuildCutOff);
        // Of bare locks only what is held now counts.
        mine.retain(|open| !open.bare);
        let mut next = Self::stop(node, mine, self.read, change, layout, fx);
        (next.before, next.came) = (came.clone(), came);
        next
    }

    fn stop(
        mut node: Node,
        mut mine: Vec<Open>,
        mut read: Vec<Tag>,
        change: Change,
        layout: &Layout,
        fx: &mut Effects,
    ) -> Self {
        let who = change.who;
        node.home.freeze(who.epoch);
        node.executed = LastExecuted::default();
        for at in 0..node.threads.len() {
            let engine = &mut node.threads[at].engine;
            let waiting = engine.open()[0].is_some() && !engine.holds();
            let cut = engine.enter(who.epoch, who.switch);
            mine.extend(cut.open.into_iter().flatten());
            read.extend(cut.unfinished.into_iter().flatten());
            fx.seen
                .see_if(waiting && cut.open[2].is_some(), Witness::Fenced);
            fx.seen
                .see_if(!waiting && cut.open[2].is_some(), Witness::FencedHeld);
            node.advance(at, layout, fx);
        }
        node.homes = change.started;
        forget(&mut node, change.gone, layout, fx);
        mine.retain(|open| !change.gone.contains(open.tag.home()));
        read.retain(|tag| !change.gone.contains(tag.home()));
        for open in &mine {
            node.home.note_open(node.id, *open, change.settled);
        }
        Member {
            rebuild: Rebuild::node(node.id, who, BLOCK_BYTES, FIT, &mine),
            open: mine.iter().map(|open| (node.id, *open)).collect(),
            done: false,
            change,
            mine,
            read,
            rescues: Vec::new(),
            came: Vec::new(),
            before: Vec::new(),
            noted: Vec::new(),
            node,
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.node.fingerprint(into);
        (self.done, self.change).hash(into);
        self.rebuild.hash(into);
        (&self.mine, &self.read, &self.open).hash(into);
        (&self.rescues, &self.noted, &self.came, &self.before).hash(into);
    }

    /// A packet of the rebuild comes, and is acknowledged.
    pub fn hear(&mut self, packet: &Packet, layout: &Layout, fx: &mut Effects) {
        let header = &packet.header;
        let (heard, ack) = self.rebuild.handle(header, packet.body.bytes());
        let home = &mut self.node.home;
        match heard {
            Heard::Records(stream) => {
                for record in packet.body.records() {
                    match stream {
                        Stream::Open => {
                            let open = Open::from_record(*record);
                            self.open.push((header.sender, open));
                            home.note_open(header.sender, open, self.change.settled);
                        }
                        Stream::Copies => home.note_copy(header.sender, *record),
                        Stream::Entries => home.note_registers(*record),
                        Stream::Ready => {}
                    }
                }
            }
            Heard::Rescue { store, whole } => {
                if let Some(block) = layout.block(header.tag)
                    && store
                {
                    let memory = &mut self.node.memory[usize::from(block)];
                    packet.body.put(header.offset, memory);
                }
                if whole {
                    self.came_home(header.tag, layout);
                }
            }
            Heard::Rescued(tag) => self.let_go(tag, layout),
            Heard::Nothing => {}
        }
        if let Some(ack) = ack {
            fx.sent.push(telling(&ack, &[]));
        }
    }

    /// This home has what nobody else may have.
    fn came_home(&mut self, tag: Tag, layout: &Layout) {
        if !self.came.contains(&tag) {
            self.came.push(tag);
        }
        match layout.mutated(Mutation::ForgetRescued) {
            true => self.noted.push(tag),
            false => self.node.home.note_rescued(tag),
        }
    }

    /// Home has this block.
    fn let_go(&mut self, tag: Tag, layout: &Layout) {
        if let Some(block) = layout.block(tag) {
            self.node.downgraded[usize::from(block)] = false;
            self.node.retained.retain(|row| row.2 != block);
            self.read.retain(|read| *read != tag);
        }
    }

    /// Does what can be done, and sends what there is to send.
    pub fn go_on(&mut self, layout: &Layout, fx: &mut Effects) {
        loop {
            match self.rebuild.next() {
                Next::Collect => {
                    self.collect(layout, fx);
                    if layout.mutated(Mutation::SettleEarly) {
                        self.settle(layout, fx);
                    }
                }
                Next::Settle => self.settle(layout, fx),
                Next::Done if !self.done => {
                    self.done = true;
                    self.mine.clear();
                    self.read.clear();
                    self.open.clear();
                    self.rescues.clear();
                }
                Next::Wait | Next::Done => break,
            }
        }
        while let Some(output) = self.rebuild.poll_output() {
            self.send(&output, layout, fx);
        }
    }

    fn settle(&mut self, layout: &Layout, fx: &mut Effects) {
        for tag in &self.noted {
            self.node.home.note_rescued(*tag);
        }
        let Change {
            gone, switch_lost, ..
        } = self.change;
        let home = &mut self.node.home;
        let died = |tag: &Tag| {
            let (lock, _, copyset, _) =
                home.inspect(*tag)
                    .unwrap_or((0, GlobalStatus::Unshared, Copyset::EMPTY, false));
            lock != 0 && !gone.is_empty() || !copyset.is_empty() && gone.covers(copyset)
        };
        let saved = self.before.iter().any(died);
        fx.seen.see_if(saved, Witness::SavedFromLoss);
        let trusts = layout.mutated(Mutation::TrustMoving);
        home.settle(gone, switch_lost && !trusts);
        let came = std::mem::take(&mut self.came);
        self.before.clear();
        if came.iter().any(|tag| home.lost(*tag)) {
            let detail = "a block that has come home is said to be lost".into();
            fx.complaint = Some(("no data is lost", "§5.4", detail));
        }
        self.rebuild.settled();
    }

    /// What is sent again because its acknowledgement may be lost, one by one.
    pub fn resends(&self) -> usize {
        let mut rebuild = self.rebuild.clone();
        rebuild.resend();
        std::iter::from_fn(|| rebuild.poll_output()).count()
    }

    /// Sends one of them.
    pub fn resend(&mut self, nth: usize, layout: &Layout, fx: &mut Effects) {
        let mut rebuild = self.rebuild.clone();
        rebuild.resend();
        if let Some(output) = std::iter::from_fn(|| rebuild.poll_output()).nth(nth) {
            fx.seen.see(Witness::ToldAgain);
            self.send(&output, layout, fx);
        }
    }

    fn send(&mut self, output: &rackmem_proto::Output, layout: &Layout, fx: &mut Effects) {
        if output.data != Data::Cache {
            let packet = telling(output, self.rebuild.records(output.to));
            return fx.sent.push(packet);
        }
        let tag = output.header.tag;
        let row = self.rescues.iter().find(|row| row.0 == tag);
        let words = row.map(|row| row.1).unwrap_or_default();
        fx.send(output, Some(&words));
        if layout.mutated(Mutation::LetGoEarly) {
            self.let_go(tag, layout);
        }
    }

    /// What homes may not have, and what this cache has.
    fn collect(&mut self, layout: &Layout, fx: &mut Effects) {
        let me = self.node.id;
        let mut abroad = Vec::new();
        for (tag, words) in self.to_rescue(layout) {
            fx.seen.see(Witness::Rescued);
            if tag.home() != me {
                abroad.push(tag);
                self.rescues.push((tag, words));
            } else if let Some(block) = layout.block(tag) {
                self.node.memory[usize::from(block)] = words;
                self.came_home(tag, layout);
                self.let_go(tag, layout);
            }
        }
        let mut others = Vec::new();
        for (block, slot) in self.node.slots.iter().enumerate() {
            let tag = layout.tag(block as u8);
            let record = copy_record(tag, slot.status == LocalStatus::Modified);
            match slot.status {
                LocalStatus::Invalid => {}
                _ if tag.home() == me => self.node.home.note_copy(me, record),
                _ => others.push(record),
            }
        }
        self.rebuild.collect(abroad, others);
    }

    /// Blocks given away to an event whose data did not come, downgraded, or read from a cache.
    fn to_rescue(&self, layout: &Layout) -> Vec<(Tag, Value)> {
        let node = &self.node;
        let mut found = Vec::new();
        let forgets = |mutation| layout.mutated(mutation);
        let given = self.open.iter().filter(|(_, open)| open.awaits_data);
        for (of, open) in given.filter(|_| !forgets(Mutation::ForgetGiven)) {
            let kept = node.retained.iter().find(|row| {
                (row.0.node, row.0.slot, row.1) == (*of, open.slot, open.seq)
                    && layout.tag(row.2) == open.tag
            });
            found.extend(kept.map(|row| (open.tag, row.3)));
        }
        for (block, slot) in node.slots.iter().enumerate() {
            let tag = layout.tag(block as u8);
            let downgraded = node.downgraded[block] && !forgets(Mutation::ForgetDowngraded);
            let read = self.read.contains(&tag) && !forgets(Mutation::ForgetRead);
            let may_be_missing = downgraded || read;
            if may_be_missing && slot.status != LocalStatus::Invalid {
                found.retain(|row: &(Tag, Value)| row.0 != tag);
                found.push((tag, slot.words));
            }
        }
        found
    }
}
