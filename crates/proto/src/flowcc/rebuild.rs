//! A new epoch begins: the members make all directory entries anew before anyone goes on (§5.4
//! "Crash safety").
//!
//! Every member runs a [`Rebuild`], after any death or arrival: a node that dies,
//! a switch that dies, a fresh switch are one case. Events under way have ended
//! ([`Requester::enter`](super::Requester::enter)); caches are as they are.
//!
//! | step | a node tells | and goes on when |
//! |---|---|---|
//! | 1 | every node its open events | it has every node's |
//! | 2 | homes the blocks that they may not have (`Rescue`): given away to an event of step 1, or downgraded with the write-back still under way | all are acknowledged |
//! | 3 | every home which of its blocks it caches; the switch, if it has survived, tells its entries | it has every node's, and the switch's |
//! | 4 | it settles its entries, and tells everyone that it is ready | everyone is |
//!
//! Another change in the middle begins again with step 1 in the next epoch. That loses nothing:
//! a node lets go of a rescued block only when home has it, home remembers that until it has
//! settled, and a home serves nothing before everyone has told it everything; what is told of an
//! event that was cut off in an epoch before the one in which a home's entries were made explains
//! none of that home's locks.

use crate::call::{Assembly, Received, Stream, Streams, Ticks};
use crate::wire::{Copyset, Flags, Header, HomeId, Kind, NodeId, Record, RequesterId, Seq, Tag};
use crate::{Data, Dest, Output};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// An event that the end of an epoch has cut off.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Open {
    /// The block.
    pub tag: Tag,
    /// The event.
    pub seq: Seq,
    /// The requester's slot of its node.
    pub slot: u16,
    /// Low bits of the epoch in which it was granted, if it was ([`Open::is_of`]).
    pub epoch: u16,
    /// It takes the lock as a reader.
    pub shared: bool,
    /// It is a bare lock, and held: the application keeps it.
    pub bare: bool,
    /// It is a WRITE-MISS whose data has not come: the data that its provider sent has not arrived.
    pub awaits_data: bool,
}

impl Open {
    /// What there is of an epoch.
    const EPOCH: u32 = 0x1ff;
    /// What there is of a tag: no home has a number, and no block an address, with other bits.
    const TAG: u64 = 0x003f_ffff_ffff_ff00;

    /// Of an event's request or unlock.
    pub(super) fn of(packet: &Header) -> Self {
        Open {
            tag: packet.tag,
            seq: packet.seq,
            slot: packet.requester.slot,
            epoch: (packet.epoch & Self::EPOCH) as u16,
            shared: packet.kind.locks_shared() || packet.flags.has(Flags::READER),
            bare: false,
            awaits_data: false,
        }
    }

    /// Whether it was granted in this epoch, if it was.
    pub fn is_of(&self, epoch: u32) -> bool {
        u32::from(self.epoch) == epoch & Self::EPOCH
    }

    /// As a record. The word is the number. A block's tag leaves room: of the home's sixteen bits
    /// six are kept, and eight at the end are zero.
    /// `awaits_data:1 | epoch:9 | home:6 | offset / 256:40 | shared:1 | bare:1 | slot:6`
    pub fn to_record(self) -> Record {
        let above = u64::from(self.awaits_data) << 63 | u64::from(self.epoch) << 54;
        let below = u64::from(self.shared) << 7 | u64::from(self.bare) << 6;
        Record {
            tag: Tag(self.tag.0 & Self::TAG | above | below | u64::from(self.slot & 0x3f)),
            word: self.seq.0,
        }
    }

    /// From a record.
    pub fn from_record(record: Record) -> Self {
        let packed = record.tag.0;
        Open {
            tag: Tag(packed & Self::TAG),
            seq: Seq(record.word),
            slot: packed as u16 & 0x3f,
            epoch: (packed >> 54) as u16 & Self::EPOCH as u16,
            shared: packed & 1 << 7 != 0,
            bare: packed & 1 << 6 != 0,
            awaits_data: packed >> 63 != 0,
        }
    }
}

/// What the host of a [`Rebuild`] does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Send what there is to send, and wait for packets.
    Wait,
    /// All open events are known: look for what must be rescued, and call [`Rebuild::collect`].
    Collect,
    /// All copies are known: settle the entries, and call [`Rebuild::settled`].
    Settle,
    /// Go on.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Opening,
    Rescuing,
    Telling,
    Ready,
}

/// What has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Nothing new.
    Nothing,
    /// These records are part of a list.
    Records(Stream),
    /// A segment of a block: store it in home's memory. `whole`: that was all of it.
    Rescue {
        /// The bytes are new.
        store: bool,
        /// The block is complete.
        whole: bool,
    },
    /// Home has this block: the node may let go of it.
    Rescued(Tag),
}

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Members {
    /// The epoch that begins.
    pub epoch: u32,
    /// The nodes that found it.
    pub founders: Copyset,
    /// Whether there is a switch in it, surviving or fresh.
    pub switch: bool,
}

/// One member's part.
#[derive(Clone, Hash, Debug)]
pub struct Rebuild {
    me: NodeId,
    members: Members,
    block: u32,
    phase: Phase,
    streams: Streams,
    copies: Vec<Record>,
    rescues: VecDeque<Tag>,
    rescue: Option<(Header, bool)>,
    rescue_pace: Ticks,
    rescue_seq: Seq,
    arriving: Vec<(Seq, Assembly)>,
}

impl Rebuild {
    /// A node's. `fit` records go into a packet; `open` are its open events.
    pub fn node(me: NodeId, members: Members, block: u32, fit: usize, open: &[Open]) -> Self {
        let mut rebuild = Rebuild::new(me, members, block, fit);
        let records: Vec<Record> = open.iter().map(|open| open.to_record()).collect();
        for node in members.founders.without(me).iter() {
            rebuild.streams.tell(node, Stream::Open, &records);
        }
        if members.switch {
            // It needs no events; but a sign of a newer epoch makes a member read the view.
            let switch = crate::switch::SWITCH;
            rebuild.streams.tell(switch, Stream::Open, &[]);
        }
        rebuild.streams.hear_self(Stream::Open);
        rebuild
    }

    /// The switch's: `entries` gives what it has of a home's blocks.
    pub fn switch(members: Members, fit: usize, entries: impl Fn(HomeId) -> Vec<Record>) -> Self {
        let mut rebuild = Rebuild::new(crate::switch::SWITCH, members, 0, fit);
        for node in members.founders.iter() {
            rebuild
                .streams
                .tell(node, Stream::Entries, &entries(HomeId::of(node)));
        }
        rebuild.phase = Phase::Ready;
        rebuild
    }

    fn new(me: NodeId, members: Members, block: u32, fit: usize) -> Self {
        Rebuild {
            me,
            members,
            block,
            phase: Phase::Opening,
            streams: Streams::new(me, members.epoch, fit),
            copies: Vec::new(),
            rescues: VecDeque::new(),
            rescue: None,
            rescue_pace: Ticks::default(),
            rescue_seq: Seq(0),
            arriving: alloc::vec![Default::default(); rackmem_wire::MAX_NODES],
        }
    }

    /// The epoch that begins.
    pub fn epoch(&self) -> u32 {
        self.members.epoch
    }

    /// Whether a packet is for a rebuild.
    pub fn concerns(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Rebuild | Kind::RebuildAck | Kind::Rescue | Kind::RescueAck
        )
    }

    /// What the host does next.
    pub fn next(&self) -> Next {
        let Members {
            founders, switch, ..
        } = self.members;
        let heard = |stream| self.streams.heard(stream, founders, false);
        match self.phase {
            Phase::Opening if heard(Stream::Open) => Next::Collect,
            Phase::Telling
                if heard(Stream::Copies)
                    && self.streams.heard(Stream::Entries, Copyset::EMPTY, switch) =>
            {
                Next::Settle
            }
            Phase::Ready if heard(Stream::Ready) => Next::Done,
            _ => Next::Wait,
        }
    }

    /// Step 2: the blocks that their homes may not have, and the copies that this node has of
    /// others' blocks. The host has put its own home's in place already.
    pub fn collect(&mut self, rescues: impl IntoIterator<Item = Tag>, copies: Vec<Record>) {
        let founders = self.members.founders.without(self.me);
        self.rescues = rescues.into_iter().collect();
        self.rescues.retain(|tag| tag.home().lives_with(founders));
        self.copies = copies;
        self.phase = Phase::Rescuing;
        self.rescue_next();
    }

    fn rescue_next(&mut self) {
        self.rescue_pace.reset();
        self.rescue = self.rescues.pop_front().map(|tag| {
            self.rescue_seq = self.rescue_seq.next();
            let id = RequesterId {
                node: self.me,
                slot: 0,
            };
            let mut header =
                Header::request(Kind::Rescue, self.members.epoch, tag, id, self.rescue_seq);
            header.flags = Flags::DATA;
            (header, false)
        });
        if self.rescue.is_none() && self.phase == Phase::Rescuing {
            self.tell_copies();
        }
    }

    fn tell_copies(&mut self) {
        let mut copies = core::mem::take(&mut self.copies);
        copies.sort_unstable();
        let keeper = self.members.founders.iter().next();
        let own = copies.partition_point(|copy| copy.tag.home().is_own());
        for node in self.members.founders.without(self.me).iter() {
            let from = copies.partition_point(|copy| copy.tag.home() < HomeId::of(node));
            let to = copies.partition_point(|copy| copy.tag.home() <= HomeId::of(node));
            let told = &copies[from..to];
            match keeper == Some(node) {
                true => {
                    let with_kept = [told, &copies[own..]].concat();
                    self.streams.tell(node, Stream::Copies, &with_kept);
                }
                false => self.streams.tell(node, Stream::Copies, told),
            }
        }
        self.streams.hear_self(Stream::Copies);
        self.phase = Phase::Telling;
    }

    /// Step 4: the entries are settled.
    pub fn settled(&mut self) {
        for node in self.members.founders.without(self.me).iter() {
            self.streams.tell(node, Stream::Ready, &[]);
        }
        if self.members.switch {
            self.streams.tell(crate::switch::SWITCH, Stream::Ready, &[]);
        }
        self.streams.hear_self(Stream::Ready);
        self.phase = Phase::Ready;
    }

    /// Whether its entries are made ([`Rebuild::settled`]).
    pub fn has_settled(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The next packet to send: with [`Data::Cache`], the bytes of the block that it names; with
    /// [`Data::Records`], [`Rebuild::records`].
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some((header, sent)) = &mut self.rescue
            && !*sent
        {
            *sent = true;
            let to = Dest::Home(header.tag.home());
            return Some(Output::with(to, *header, Data::Cache));
        }
        self.streams.poll_output()
    }

    /// The records of the packet that goes to a member.
    pub fn records(&self, to: Dest) -> &[Record] {
        self.streams.records(to)
    }

    /// Sends again what has not been acknowledged for long: the host says so every few round trips.
    /// The pauses grow while nothing is acknowledged.
    pub fn tick(&mut self) {
        self.streams.tick();
        if let Some((_, sent)) = &mut self.rescue
            && *sent
        {
            *sent = !self.rescue_pace.tick();
        }
    }

    /// Sends again whatever is not acknowledged, at once.
    pub fn resend(&mut self) {
        self.streams.resend();
        if let Some((_, sent)) = &mut self.rescue {
            *sent = false;
        }
    }

    /// Members have left, who had all that they needed of this one: these are here yet.
    pub fn keep(&mut self, nodes: Copyset) {
        self.streams.keep(nodes);
    }

    /// Whether every member has acknowledged everything: no member waits for this one.
    pub fn all_told(&self) -> bool {
        self.rescue.is_none() && self.streams.all_told()
    }

    /// A packet has come, with `body_len` bytes. The output, if any, is the acknowledgement.
    pub fn handle(&mut self, header: &Header, body_len: u32) -> (Heard, Option<Output>) {
        if header.epoch != self.members.epoch {
            return (Heard::Nothing, None);
        }
        match header.kind {
            Kind::Rebuild => match self.streams.receive(header) {
                Some(Received { stream, ack, fresh }) => {
                    let heard = if fresh {
                        Heard::Records(stream)
                    } else {
                        Heard::Nothing
                    };
                    (heard, Some(ack))
                }
                None => (Heard::Nothing, None),
            },
            Kind::RebuildAck => {
                self.streams.acknowledged(header);
                (Heard::Nothing, None)
            }
            Kind::Rescue => self.rescue_came(header, body_len),
            Kind::RescueAck => match self.rescue {
                Some((sent, _)) if sent.seq == header.seq && sent.tag == header.tag => {
                    self.rescue_next();
                    (Heard::Rescued(header.tag), None)
                }
                _ => (Heard::Nothing, None),
            },
            _ => (Heard::Nothing, None),
        }
    }

    fn rescue_came(&mut self, header: &Header, body_len: u32) -> (Heard, Option<Output>) {
        let nothing = (Heard::Nothing, None);
        // After all copies are reported there are no more rescues: this is a delayed duplicate.
        if !matches!(
            self.phase,
            Phase::Opening | Phase::Rescuing | Phase::Telling
        ) {
            return nothing;
        }
        let Some((seq, assembly)) = self.arriving.get_mut(usize::from(header.sender)) else {
            return nothing;
        };
        match header.seq.cmp(seq) {
            core::cmp::Ordering::Less => return nothing,
            core::cmp::Ordering::Greater => (*seq, *assembly) = (header.seq, Assembly::default()),
            core::cmp::Ordering::Equal => {}
        }
        let Some(store) = assembly.add(header.offset, body_len, self.block) else {
            return nothing;
        };
        let whole = assembly.complete();
        let ack = whole.then(|| {
            Output::new(
                Dest::Agent(header.sender),
                header.answer(Kind::RescueAck, self.me),
            )
        });
        (Heard::Rescue { store, whole }, ack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::host;
    use crate::switch::SWITCH;
    use crate::wire::{MAX_NODES, MAX_REQUESTERS, MIN_BLOCK};

    fn members(nodes: u32, switch: bool) -> Members {
        Members {
            epoch: 2,
            founders: Copyset((1 << nodes) - 1),
            switch,
        }
    }

    /// Lets members exchange packets until none is left; every `lossy`th packet is lost.
    fn talk(rebuilds: &mut [(NodeId, Rebuild)], lossy: usize) -> Vec<(NodeId, Heard, Tag)> {
        let mut heard = Vec::new();
        let mut count = 0;
        for _ in 0..200 {
            for at in 0..rebuilds.len() {
                while let Some(output) = rebuilds[at].1.poll_output() {
                    post(rebuilds, output, &mut count, lossy, &mut heard);
                }
            }
            for (_, rebuild) in rebuilds.iter_mut() {
                match rebuild.next() {
                    Next::Collect => rebuild.collect([], Vec::new()),
                    Next::Settle => rebuild.settled(),
                    Next::Wait | Next::Done => rebuild.resend(),
                }
            }
        }
        heard
    }

    fn post(
        rebuilds: &mut [(NodeId, Rebuild)],
        output: Output,
        count: &mut usize,
        lossy: usize,
        heard: &mut Vec<(NodeId, Heard, Tag)>,
    ) {
        *count += 1;
        if count.is_multiple_of(lossy) {
            return;
        }
        let to = match output.to.hosted(host) {
            Some(Dest::Agent(node)) => node,
            _ => SWITCH,
        };
        let body = if output.data == Data::Cache { 4096 } else { 0 };
        let Some((me, rebuild)) = rebuilds.iter_mut().find(|member| member.0 == to) else {
            return;
        };
        let (what, ack) = rebuild.handle(&output.header, body);
        heard.push((*me, what, output.header.tag));
        if let Some(ack) = ack {
            post(rebuilds, ack, count, lossy, heard);
        }
    }

    #[test]
    fn everyone_goes_on_together_and_only_when_all_are_ready() {
        for lossy in [usize::MAX, 3, 2] {
            let members = members(3, true);
            let node = |me| (me, Rebuild::node(me, members, 4096, 10, &[]));
            let mut all: Vec<_> = (0..3).map(node).collect();
            // Without the switch's entries no home can settle.
            talk(&mut all, lossy.max(3));
            assert!(all.iter().all(|(_, r)| r.next() == Next::Wait));
            let entries = |home: HomeId| {
                alloc::vec![Record {
                    tag: home.start(),
                    word: 0
                }]
            };
            all.push((SWITCH, Rebuild::switch(members, 10, entries)));
            let heard = talk(&mut all, lossy.max(3));
            assert!(all.iter().all(|(_, r)| r.next() == Next::Done), "{lossy}");
            let entries = Heard::Records(Stream::Entries);
            assert_eq!(heard.iter().filter(|h| h.1 == entries).count(), 3);
        }
    }

    #[test]
    fn copies_are_told_when_the_rescued_blocks_are_home() {
        let members = members(2, false);
        let mut all = [0, 1].map(|me| (me, Rebuild::node(me, members, 4096, 10, &[])));
        let tag = Tag(1 << 48 | 0x3000);
        // Let the open events be known first.
        let mut count = 0;
        let mut heard = Vec::new();
        for at in 0..2 {
            let output = all[at].1.poll_output().unwrap();
            post(&mut all, output, &mut count, usize::MAX, &mut heard);
        }
        assert_eq!(all[0].1.next(), Next::Collect);
        all[0].1.collect([tag], Vec::new());
        assert!(
            !all[1]
                .1
                .streams
                .heard(Stream::Copies, Copyset::of(0), false)
        );
        let heard = talk(&mut all, 4);
        let whole = Heard::Rescue {
            store: true,
            whole: true,
        };
        assert!(heard.contains(&(1, whole, tag)));
        assert!(heard.contains(&(0, Heard::Rescued(tag), tag)));
        assert!(all.iter().all(|(_, r)| r.next() == Next::Done));
    }

    /// Who serves the groups' homes is told of what they keep beside what is its own, once.
    #[test]
    fn a_copy_is_told_to_who_serves_its_home_and_to_nobody_else() {
        let members = members(3, false);
        let mut all = [0, 1, 2].map(|me| (me, Rebuild::node(me, members, 4096, 10, &[])));
        let homes = [HomeId::of(0), HomeId::of(2), HomeId::of_group(3)];
        let copies = homes.map(|home| Record {
            tag: home.start(),
            word: 0,
        });
        all[1].1.collect([], copies.to_vec());
        let mut told = Vec::new();
        while let Some(output) = all[1].1.poll_output() {
            let records = all[1].1.records(output.to).iter();
            told.extend(records.map(|record| (output.to, record.tag.home())));
            post(&mut all, output, &mut 0, usize::MAX, &mut Vec::new());
        }
        let to = |node| Vec::from_iter(told.iter().filter(|row| row.0 == Dest::Agent(node)));
        assert_eq!(
            to(0),
            [&(Dest::Agent(0), homes[0]), &(Dest::Agent(0), homes[2])]
        );
        assert_eq!(to(2), [&(Dest::Agent(2), homes[1])]);
    }

    #[test]
    fn an_open_event_comes_back_from_its_record() {
        let open = Open {
            tag: Tag((MAX_NODES as u64 - 1) << 48 | 0xffff_ffff_ff00),
            seq: Seq(u64::MAX - 1),
            slot: MAX_REQUESTERS as u16 - 1,
            epoch: 0x1fe,
            shared: true,
            bare: false,
            awaits_data: true,
        };
        assert_eq!(Open::from_record(open.to_record()), open);
        let other = Open {
            tag: Tag(MIN_BLOCK as u64),
            seq: Seq(1 << 32),
            slot: 0,
            epoch: 1,
            shared: false,
            bare: true,
            awaits_data: false,
        };
        assert_eq!(Open::from_record(other.to_record()), other);
        assert!(open.is_of(0x3fe) && !open.is_of(0x1ff));
    }
}
