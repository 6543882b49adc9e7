//! A new epoch: something dies in the middle of whatever is under way, and the others make the directory anew (§5.4).
//!
//! The change is one step here. Nobody executes anything while it lasts, and what its own packets suffer is tested
//! where they are ([`Rebuild`] sends again until it is acknowledged); what explorers look for is the state that it begins
//! in, which is any, and what becomes of it. Packets of the old epoch are taken out: every role looks at the epoch first.

use super::effects::{Complaint, Effects};
use super::layout::{EPOCH, Layout};
use super::moves::{Rack, observe};
use super::node::Node;
use super::packet::{BLOCK_BYTES, Packet, Value};
use super::parts::Part;
use super::scenario::Failure;
use super::state::State;
use super::witness::Witness;
use crate::world::Mutation;
use rackmem_proto::flowcc::{
    Heard, LastExecuted, LocalStatus, Members, Next, Open, Rebuild, Stream, copy_record,
};
use rackmem_proto::switch::{SWITCH, SwitchProgram};
use rackmem_proto::wire::{Copyset, Dest, Header, NodeId, Record, Tag};
use rackmem_proto::{Data, Output};

/// Records that fit into a packet of a rebuild: few, so that lists come in parts.
const FIT: usize = 2;
/// Rounds after which a rebuild over a perfect network has long ended.
const ROUNDS: usize = 100;

/// A member of the rack and its part in the rebuild.
struct Member {
    node: Node,
    rebuild: Rebuild,
    /// Its events that the old epoch's end has cut off, with those of others once they are told.
    open: Vec<(NodeId, Open)>,
    /// Blocks that it has read and whose homes may not have them.
    read: Vec<Tag>,
    /// Blocks on their way home.
    rescues: Vec<(Tag, Value)>,
}

/// What a change is from and to.
struct Change {
    epoch: u32,
    settled: u32,
    gone: Copyset,
    switch_lost: bool,
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
            Failure::Node(dead) => nodes.retain(|node| node.id != dead),
            Failure::NewSwitch => switch = layout.switch(),
            Failure::Nothing => {}
        }
        let gone = match failure {
            Failure::Node(node) if nodes.len() < before => Copyset::of(node),
            Failure::Switch if had_switch => Copyset::EMPTY,
            Failure::NewSwitch if layout.has_switch() => Copyset::EMPTY,
            Failure::Nothing => Copyset::EMPTY,
            _ => return Ok(None),
        };
        let past = layout.scenario.budget.epochs - state.left.epochs;
        let change = Change {
            epoch: EPOCH + u32::from(past) + 1,
            settled: EPOCH + u32::from(past),
            gone,
            switch_lost: had_switch && matches!(failure, Failure::Switch | Failure::NewSwitch),
        };
        let mut fx = Effects {
            segments: layout.scenario.segments,
            ..Effects::default()
        };
        let nodes = rebuild(nodes, &mut switch, &change, layout, &mut fx)?;
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
            .filter(|packet: &&Packet| packet.header.epoch == change.epoch);
        next.packets = sent
            .map(|packet| self.parts.packet_number(packet))
            .collect();
        next.packets.sort_unstable();
        Ok(Some(next))
    }
}

/// Every live node goes into the new epoch, and the directory is made anew.
fn rebuild(
    nodes: Vec<Node>,
    switch: &mut Option<SwitchProgram>,
    change: &Change,
    layout: &Layout,
    fx: &mut Effects,
) -> Result<Vec<Node>, Complaint> {
    let founders = nodes
        .iter()
        .fold(Copyset::EMPTY, |set, node| set.with(node.id));
    let who = Members {
        epoch: change.epoch,
        founders,
        switch: switch.is_some(),
    };
    let nodes = nodes.into_iter();
    let mut members: Vec<Member> = nodes
        .map(|node| Member::enter(node, who, change, layout, fx))
        .collect();
    let mut control = switch.as_mut().map(|switch| {
        switch.freeze();
        Rebuild::switch(who, FIT, |home| switch.entries_of(home))
    });
    for _ in 0..ROUNDS {
        for at in 0..members.len() {
            while let Some(output) = members[at].rebuild.poll_output() {
                let records = members[at].rebuild.records(output.to).to_vec();
                let words = members[at].rescue(output.header.tag);
                deliver(
                    &mut members,
                    &mut control,
                    &output,
                    &records,
                    words,
                    change,
                    layout,
                );
            }
            members[at].go_on(change, layout, fx);
        }
        while let Some(output) = control.as_mut().and_then(Rebuild::poll_output) {
            let records = control.as_ref().map(|c| c.records(output.to).to_vec());
            let records = records.unwrap_or_default();
            deliver(
                &mut members,
                &mut control,
                &output,
                &records,
                None,
                change,
                layout,
            );
        }
        if members
            .iter()
            .all(|member| member.rebuild.next() == Next::Done)
        {
            if let Some(switch) = switch {
                switch.reset(change.epoch, None);
            }
            return Ok(members.into_iter().map(|member| member.node).collect());
        }
    }
    let detail = "the members wait for each other for ever".into();
    Err(("a rebuild ends", "§5.4", detail))
}

/// A packet of a rebuild arrives, and its acknowledgement goes back.
fn deliver(
    members: &mut [Member],
    control: &mut Option<Rebuild>,
    output: &Output,
    records: &[Record],
    words: Option<Value>,
    change: &Change,
    layout: &Layout,
) {
    let to = match output.to {
        Dest::Agent(node) => node,
        _ => SWITCH,
    };
    let body = match output.data {
        Data::Cache => BLOCK_BYTES,
        _ => 0,
    };
    let ack = match members.iter_mut().find(|member| member.node.id == to) {
        Some(member) => member.hear(&output.header, body, records, words, change, layout),
        None => match control {
            Some(control) if to == SWITCH => control.handle(&output.header, body).1,
            _ => None,
        },
    };
    if let Some(ack) = ack {
        deliver(members, control, &ack, &[], None, change, layout);
    }
}

impl Member {
    /// A node stops: what is under way has not happened, what is held has.
    fn enter(
        mut node: Node,
        who: Members,
        change: &Change,
        layout: &Layout,
        fx: &mut Effects,
    ) -> Self {
        node.home.freeze(change.epoch);
        node.executed = LastExecuted::default();
        let (mut open, mut read) = (Vec::new(), Vec::new());
        for at in 0..node.threads.len() {
            let engine = &mut node.threads[at].engine;
            let waiting = engine.open()[0].is_some() && !engine.holds();
            let cut = engine.enter(change.epoch, who.switch);
            open.extend(cut.open.into_iter().flatten());
            read.extend(cut.unfinished.into_iter().flatten());
            fx.seen
                .see_if(waiting && cut.open[2].is_some(), Witness::Fenced);
            fx.seen
                .see_if(!waiting && cut.open[2].is_some(), Witness::FencedHeld);
            node.advance(at, layout, fx);
        }
        let homes = Copyset(!change.gone.0);
        for block in 0..layout.blocks() {
            if !homes.contains(layout.scenario.homes[block]) {
                node.slots[block].status = LocalStatus::Invalid;
            }
        }
        for open in &open {
            node.home.note_open(node.id, *open, change.settled);
        }
        Member {
            rebuild: Rebuild::node(node.id, who, BLOCK_BYTES, FIT, &open),
            open: open.into_iter().map(|open| (node.id, open)).collect(),
            read,
            rescues: Vec::new(),
            node,
        }
    }

    fn rescue(&self, tag: Tag) -> Option<Value> {
        let row = self.rescues.iter().find(|row| row.0 == tag)?;
        Some(row.1)
    }

    fn hear(
        &mut self,
        header: &Header,
        body: u32,
        records: &[Record],
        words: Option<Value>,
        change: &Change,
        layout: &Layout,
    ) -> Option<Output> {
        let (heard, ack) = self.rebuild.handle(header, body);
        let home = &mut self.node.home;
        match heard {
            Heard::Records(stream) => {
                for record in records {
                    match stream {
                        Stream::Open => {
                            let open = Open::from_record(*record);
                            self.open.push((header.sender, open));
                            home.note_open(header.sender, open, change.settled);
                        }
                        Stream::Copies => home.note_copy(header.sender, *record),
                        Stream::Entries => home.note_registers(*record),
                        Stream::Ready => {}
                    }
                }
            }
            Heard::Rescue { whole, .. } => {
                if let (Some(block), Some(words)) = (layout.block(header.tag), words) {
                    self.node.memory[usize::from(block)] = words;
                }
                if whole {
                    home.note_rescued(header.tag);
                }
            }
            Heard::Rescued(tag) => self.let_go(tag, layout),
            Heard::Nothing => {}
        }
        ack
    }

    /// Home has this block.
    fn let_go(&mut self, tag: Tag, layout: &Layout) {
        if let Some(block) = layout.block(tag) {
            self.node.downgraded[usize::from(block)] = false;
            self.node.retained.retain(|row| row.2 != block);
        }
    }

    fn go_on(&mut self, change: &Change, layout: &Layout, fx: &mut Effects) {
        match self.rebuild.next() {
            Next::Collect => self.collect(layout, fx),
            Next::Settle => {
                self.node.home.settle(change.gone, change.switch_lost);
                self.rebuild.settled();
            }
            Next::Wait | Next::Done => {}
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
                self.node.home.note_rescued(tag);
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
