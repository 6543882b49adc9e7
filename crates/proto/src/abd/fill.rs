//! A member that fills: how it gets what the others have, so that it can count.
//!
//! It goes through the group's lines range by range. Of each range, a quorum of the counting
//! members, which live by the config in which it fills, lists its lines and stamps; the member
//! fetches the highest of each line that it lacks, and goes on behind the range when it has them.
//! Writes of requesters reach it meanwhile, and do not count. A line that was written in an earlier
//! config is with one of any such quorum, and nothing is written in an earlier config any more when
//! that quorum has answered: so nothing is missed ([`super::Config`]).
//!
//! What it keeps is bounded by one range, whatever the size of the group:
//! lists are asked for again, never kept.

use super::config::Config;
use super::effects::{Body, Defect, Effects, Staging};
use super::replica::{FILLING, Replica, own};
use super::{Layout, Stamp};
use crate::call::Assembly;
use crate::wire::{Dest, Flags, Header, Kind, NodeId, Own, Record, RequesterId, Tag};
use alloc::collections::BTreeMap;

/// Lines that are fetched at a time.
pub const IN_FLIGHT: usize = 64;

/// A line that another member has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Lack {
    /// Its stamp is at least this.
    stamp: Stamp,
    /// There.
    place: u8,
    /// Where segments of it are put together, and under which stamp. None: it has not been asked
    /// for. What comes of it then was asked for before: two lines would share a place.
    at: Option<u8>,
    gathered: Stamp,
    received: Assembly,
    /// It is here, and on its way to the durable store.
    syncing: bool,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fill {
    /// The group's address from which on lines may be missing.
    cursor: Tag,
    /// Members that have listed the range from there on, as far as this.
    listed: u8,
    end: Option<Tag>,
    /// What is missing of it.
    lacking: BTreeMap<Tag, Lack>,
    /// Nothing is.
    whole: bool,
    /// Lines that were fetched.
    fetched: u64,
}

/// Who fills, and of what.
pub struct Filling<'a> {
    /// The member's node.
    pub me: NodeId,
    /// Its incarnation.
    pub incarnation: u32,
    /// The config in which it fills.
    pub config: &'a Config,
    /// The group's lines.
    pub layout: Layout,
}

impl Filling<'_> {
    fn header(&self, kind: Kind, tag: Tag) -> Header {
        let requester = RequesterId {
            node: self.me,
            slot: 0,
        };
        let mut header = Header::request(kind, 0, tag, requester, FILLING);
        header.incarnation = self.incarnation;
        header
    }
}

/// Where what is fetched of a line is put together.
fn place(line: Tag, at: u8) -> Staging {
    Staging::Fill(line.home().0, at)
}

impl Fill {
    /// Of a group whose first address this is.
    pub fn new(first: Tag) -> Self {
        Fill {
            cursor: first,
            listed: 0,
            end: None,
            lacking: BTreeMap::new(),
            whole: false,
            fetched: 0,
        }
    }

    /// Whether the member has all.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// How far it is: the address, and how many lines it has fetched.
    pub fn progress(&self) -> (Tag, u64) {
        (self.cursor, self.fetched)
    }

    /// Asks for the range from the cursor on, also if it has been before: who has listed it, or has
    /// a line of it, may be gone.
    pub fn ask(&mut self, filling: &Filling<'_>, fx: &mut impl Effects) {
        if self.whole {
            return;
        }
        (self.listed, self.end) = (0, None);
        self.lacking.retain(|_, lack| lack.syncing);
        let header = filling.header(Kind::AbdFill, self.cursor);
        let nodes = filling.config.nodes(filling.config.counting);
        let to = Dest::Agents {
            nodes,
            provider: None,
        };
        let own = own(Stamp::NONE, filling.config.number);
        fx.send(to, &header, own, Body::Nothing);
    }

    /// A member has listed its lines from an address on. `true`: this member has all.
    pub fn listed(
        &mut self,
        filling: &Filling<'_>,
        replica: &Replica,
        (header, own, records): (&Header, &Own, &[Record]),
        fx: &mut impl Effects,
    ) -> bool {
        let place = filling.config.place(header.sender);
        let Some(place) = place.filter(|place| filling.config.counting >> place & 1 == 1) else {
            return false;
        };
        let done = self.listed_enough(filling, fx.defect());
        if self.whole || done || header.tag != self.cursor || self.listed >> place & 1 == 1 {
            return false;
        }
        if own.a != 0 {
            // There is more behind these.
            let Some(last) = records.last().filter(|last| last.tag >= self.cursor) else {
                return false;
            };
            let end = Tag(last.tag.0.saturating_add(1));
            self.end = Some(self.end.map_or(end, |other| other.min(end)));
        }
        self.listed |= 1 << place;
        let ours = |record: &&Record| {
            record.tag >= self.cursor && filling.layout.has(self.cursor.home().0, record.tag)
        };
        for record in records.iter().filter(ours) {
            let lack = Lack {
                stamp: Stamp(record.word),
                place: place as u8,
                at: None,
                gathered: Stamp::NONE,
                received: Assembly::default(),
                syncing: false,
            };
            let known = self.lacking.entry(record.tag).or_insert(lack);
            if known.stamp < lack.stamp {
                *known = lack;
            }
        }
        if !self.listed_enough(filling, fx.defect()) {
            return false;
        }
        self.fetch(filling, replica, fx)
    }

    fn listed_enough(&self, filling: &Filling<'_>, defect: Option<Defect>) -> bool {
        let one = defect == Some(Defect::FillFromOne) && self.listed != 0;
        one || filling.config.is_quorum(self.listed)
    }

    /// Fetches what is missing of the range, and goes on behind it if nothing is.
    fn fetch(&mut self, filling: &Filling<'_>, replica: &Replica, fx: &mut impl Effects) -> bool {
        let end = self.end;
        self.lacking.retain(|tag, lack| {
            end.is_none_or(|end| *tag < end) && replica.stamp(*tag) < lack.stamp
        });
        if let Some(next) = self.lacking.keys().nth(IN_FLIGHT).copied() {
            self.end = Some(next);
            self.lacking.retain(|tag, _| *tag < next);
        }
        // What is on its way to the store keeps its place.
        let taken = self.lacking.values().filter(|lack| lack.syncing);
        let taken = taken.filter_map(|lack| lack.at);
        let taken = taken.fold(0u64, |set, at| set | 1 << at);
        let mut free = (0..IN_FLIGHT as u8).filter(|at| taken >> at & 1 == 0);
        for (tag, lack) in self.lacking.iter_mut().filter(|row| !row.1.syncing) {
            let Some(at) = free.next() else {
                break;
            };
            lack.at = Some(at);
            let header = filling.header(Kind::AbdFetch, *tag);
            let own = own(lack.stamp, filling.config.number);
            if let Some(node) = filling.config.node(lack.place.into()) {
                fx.send(Dest::Agent(node), &header, own, Body::Nothing);
            }
        }
        self.go_on(filling, fx)
    }

    /// If nothing is missing of the range: what is behind it.
    fn go_on(&mut self, filling: &Filling<'_>, fx: &mut impl Effects) -> bool {
        if !self.lacking.is_empty() {
            return false;
        }
        let Some(end) = self.end else {
            self.whole = true;
            return true;
        };
        self.cursor = end;
        self.ask(filling, fx);
        false
    }

    /// A segment of a line that was asked for. `true`: this member has all.
    pub fn fetched(
        &mut self,
        filling: &Filling<'_>,
        replica: &mut Replica,
        (header, own, len): (&Header, &Own, u32),
        fx: &mut impl Effects,
    ) -> bool {
        let stamp = Stamp(own.a);
        let Some(lack) = self.lacking.get_mut(&header.tag) else {
            return false;
        };
        let mixes = fx.defect() == Some(Defect::MixFetches);
        let Some(at) = lack.at.or(mixes.then_some(0)) else {
            return false;
        };
        let late = stamp < lack.stamp || stamp < lack.gathered || lack.syncing;
        if !header.flags.has(Flags::DATA) || late {
            return false;
        }
        if stamp > lack.gathered {
            (lack.gathered, lack.received) = (stamp, Assembly::default());
        }
        let at = place(header.tag, at);
        match lack.received.add(header.offset, len, filling.layout.line) {
            Some(true) => fx.stage(at),
            _ => return false,
        }
        if !lack.received.complete() {
            return false;
        }
        // What is durable counts, as everywhere: a member that has filled is asked for all of it.
        let early = fx.defect() == Some(Defect::FillBeforeDurable);
        if replica.is_durable() && !early {
            lack.syncing = true;
            fx.sync(at, header, *own);
            return false;
        }
        self.has(filling, replica, (header.tag, stamp, at), fx)
    }

    /// A line that was fetched is durable. `true`: this member has all.
    pub fn synced(
        &mut self,
        filling: &Filling<'_>,
        replica: &mut Replica,
        (tag, stamp): (Tag, Stamp),
        fx: &mut impl Effects,
    ) -> bool {
        let lack = self.lacking.get(&tag);
        let lack = lack.filter(|lack| lack.syncing && lack.gathered == stamp);
        let Some(at) = lack.and_then(|lack| lack.at) else {
            return false;
        };
        let at = place(tag, at);
        self.has(filling, replica, (tag, stamp, at), fx)
    }

    fn has(
        &mut self,
        filling: &Filling<'_>,
        replica: &mut Replica,
        (tag, stamp, at): (Tag, Stamp, Staging),
        fx: &mut impl Effects,
    ) -> bool {
        self.lacking.remove(&tag);
        self.fetched += 1;
        replica.store(at, tag, stamp, fx);
        self.go_on(filling, fx)
    }
}
