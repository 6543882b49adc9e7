//! A home's side: what it has locked for whom, and what became of each requester's last
//! transaction.
//!
//! | a packet | new | being received | locked | ended |
//! |---|---|---|---|---|
//! | `TxLock` | is received; when all is here: all locked, or refused | likewise | answered as before | refused: answered as before |
//! | `TxCommit`, commits | done: it was locked in an earlier life of this home | nothing | written, made even; done | committed: done |
//! | `TxCommit`, releases | remembered, so that a late `TxLock` locks nothing; done | forgotten; done | made even as they were; done | not committed: done |
//!
//! Rows outlive epochs. What is locked stays so until its coordinator says, or is dead and all
//! homes have reported; with objects that have copies, until their keeper says ([`super::doubt`]).

use super::super::book::Spot;
use super::super::calls::Answer;
use super::super::effects::{Bytes, Defect, Effects};
use super::super::home::{Home, enter};
use super::super::layout::{Meta, all_granules, granules};
use super::super::rule::next;
use super::super::{len_of, own};
use super::doubt::ENDED;
use super::part::{Entry, MAX_PART};
use super::{MAX_OBJECTS, MAX_OPEN, WINDOW};
use crate::call::{PerRequester, Ticks};
use crate::wire::{
    Contract, Copyset, Dest, Flags, Header, HomeId, Kind, NodeId, Own, Reason, Record, RequesterId,
    Tag,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// What became of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum End {
    Refused(Answer),
    Released,
    Committed,
}

/// The last transaction of a requester.
#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
pub(super) struct Row {
    pub incarnation: u32,
    pub number: u64,
    /// The homes whose objects it writes.
    homes: Copyset,
    end: Option<End>,
}

/// One that has not ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Open {
    objects: u32,
    bytes: u32,
    /// Bytes that are here, and granules of the window behind them.
    here: u32,
    window: u64,
    /// Objects with the versions that they had: all of them, or none.
    pub locked: Vec<(Tag, u64)>,
    /// Objects with copies that it writes beside them, one of each region, the lowest first: who
    /// keeps them knows what comes of it.
    pub deciders: Vec<Tag>,
    /// Its coordinator is dead.
    pub is_orphan: bool,
}

/// A transaction as homes report it to one another.
type Name = (RequesterId, u32, u64);

/// Objects of a part that were locked, with the versions that they had, and who decides.
type Locked = (Vec<(Tag, u64)>, Vec<Tag>);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Participant {
    pub(super) rows: PerRequester<Row>,
    /// [`MAX_OPEN`] at most.
    pub(super) open: BTreeMap<RequesterId, Open>,
    /// When what is in doubt is asked for again.
    pub(super) pace: Ticks,
    /// Nodes of which an incarnation has ended.
    departed: Copyset,
    /// Those that are open here and another home has committed.
    told: BTreeSet<Name>,
}

/// What a `TxLock` has of its own.
struct Asked {
    homes: Copyset,
    objects: u32,
    bytes: u32,
}

impl Asked {
    fn of(own: &Own) -> Option<Self> {
        let asked = Asked {
            homes: Copyset((own.a >> 32) as u32),
            objects: own.a as u32,
            bytes: len_of(own),
        };
        let objects = (1..=MAX_OBJECTS as u32).contains(&asked.objects);
        (objects && asked.bytes <= MAX_PART).then_some(asked)
    }
}

impl Participant {
    /// Transactions that hold locks here.
    pub fn locked(&self) -> usize {
        let locked = self.open.values().filter(|open| !open.locked.is_empty());
        locked.count()
    }

    /// What it reports to homes of these nodes.
    pub(in super::super) fn report(&mut self, me: NodeId, members: Copyset) -> Vec<Record> {
        let mut records = Vec::new();
        for node in self.departed.iter() {
            for (who, row) in self.rows.of_node(node) {
                if row.end != Some(End::Committed) {
                    continue;
                }
                let others = Copyset(row.homes.0 & members.0).without(me);
                let name = (who, row.incarnation, row.number);
                records.extend(others.iter().map(|home| record(home, name)));
            }
        }
        records.extend(self.report_doubts(me, members));
        records
    }

    /// Another home has committed one.
    pub(in super::super) fn hear(&mut self, record: Record) {
        let name = name_of(record);
        let row = self.rows.row(name.0);
        let is_open = self.open.contains_key(&name.0);
        if is_open && (row.incarnation, row.number) == (name.1, name.2) {
            self.told.insert(name);
        }
    }

    /// Incarnations of these nodes have ended.
    pub(in super::super) fn forget(&mut self, gone: Copyset) {
        self.departed = self.departed.union(gone);
        let open = self.open.iter_mut();
        for (_, open) in open.filter(|(who, _)| gone.contains(who.node)) {
            open.is_orphan = true;
        }
    }

    /// Everything that decides what it will do.
    pub(in super::super) fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
        (&self.open, self.departed, &self.told).hash(into);
    }
}

/// As it travels: who in place of an offset.
fn record(home: NodeId, (who, incarnation, number): Name) -> Record {
    let who = u64::from(who.node) << 38 | u64::from(who.slot) << 32;
    let start = HomeId::of(home).start().0;
    Record {
        tag: Tag(start + (who | u64::from(incarnation))),
        word: number,
    }
}

fn name_of(record: Record) -> Name {
    let offset = record.tag.offset();
    let who = RequesterId {
        node: (offset >> 38) as NodeId,
        slot: (offset >> 32 & 0x3f) as u16,
    };
    (who, offset as u32, record.word)
}

impl Home {
    /// A packet of a transaction.
    pub(in super::super) fn transaction(
        &mut self,
        header: &Header,
        own: &Own,
        bytes: u32,
        fx: &mut impl Effects,
    ) {
        if header.seq == ENDED {
            return self.answer_whether_ended(header, fx);
        }
        let row = self.participant.rows.row(header.requester);
        let which = (header.incarnation, header.seq.0);
        let known = (row.incarnation, row.number);
        if which < known {
            return;
        }
        let new = which > known;
        // Its coordinator has one at a time: the one before has ended everywhere.
        if new && self.participant.open.contains_key(&header.requester) {
            return;
        }
        match header.kind {
            Kind::TxLock => self.tx_lock(header, own, (bytes, new), fx),
            _ => self.tx_commit(header, own, new, fx),
        }
    }

    fn tx_lock(
        &mut self,
        header: &Header,
        own: &Own,
        (bytes, new): (u32, bool),
        fx: &mut impl Effects,
    ) {
        let who = header.requester;
        let refused = |reason| Answer {
            reason,
            tag: header.tag,
            ..Answer::default()
        };
        let asked = Asked::of(own);
        if new {
            let full = self.participant.open.len() >= MAX_OPEN;
            *self.participant.rows.row(who) = Row {
                incarnation: header.incarnation,
                number: header.seq.0,
                homes: asked.as_ref().map_or(Copyset::EMPTY, |asked| asked.homes),
                end: match (&asked, full) {
                    (None, _) => Some(End::Refused(refused(Reason::Refused))),
                    (Some(_), true) => Some(End::Refused(refused(Reason::Locked))),
                    _ => None,
                },
            };
            if let (Some(asked), false) = (&asked, full) {
                let open = Open {
                    objects: asked.objects,
                    bytes: asked.bytes,
                    ..Open::default()
                };
                self.participant.open.insert(who, open);
            }
        }
        match self.participant.rows.row(who).end {
            Some(End::Refused(answer)) => return tell(header, answer, 0, fx),
            Some(_) => return,
            None => {}
        }
        let Some(open) = self.participant.open.get_mut(&who) else {
            return;
        };
        let same = asked.is_some_and(|a| (a.objects, a.bytes) == (open.objects, open.bytes));
        if !same {
            return;
        }
        if open.here < open.bytes {
            let behind = header.offset.checked_sub(open.here);
            let window = WINDOW.min(open.bytes - open.here);
            let granules = behind.and_then(|at| granules(at, bytes, window));
            match (granules, behind) {
                (Some(granules), _) => {
                    fx.stage_part(who);
                    open.window |= granules;
                }
                // The end of a window that was acknowledged: that was lost.
                (None, None) if header.offset.saturating_add(bytes) == open.here => {}
                _ => return,
            }
            if open.window == all_granules(window) {
                (open.here, open.window) = (open.here + window, 0);
            } else if granules.is_some() {
                return;
            }
        } else if header.offset.saturating_add(bytes) != open.bytes {
            return;
        }
        if open.here == open.bytes && open.locked.is_empty() {
            let objects = open.objects;
            match self.lock_all(who, objects, fx) {
                Ok(locked) => {
                    if let Some(open) = self.participant.open.get_mut(&who) {
                        (open.locked, open.deciders) = locked;
                    }
                }
                Err(answer) => {
                    self.close(who, End::Refused(answer), fx);
                    return tell(header, answer, 0, fx);
                }
            }
        }
        let here = self.participant.open.get(&who).map_or(0, |open| open.here);
        tell(header, refused(Reason::None), here, fx);
    }

    /// Keeps other writers out of all objects of a part.
    fn lock_all(
        &mut self,
        who: RequesterId,
        objects: u32,
        fx: &mut impl Effects,
    ) -> Result<Locked, Answer> {
        let refused = |tag, reason, version| Answer {
            tag,
            reason,
            version,
            generation: 0,
        };
        let Some(entries) = fx.entries(who, objects) else {
            return Err(refused(Tag(0).under(Contract::Object), Reason::Refused, 0));
        };
        let mut locked: Vec<(Tag, u64)> = Vec::new();
        let (deciders, own) = entries.iter().partition::<Vec<_>, _>(|(e, _)| decides(e));
        let mut why = None;
        for (entry, _) in own {
            let tag = entry.object.tag;
            let spot = self.book.spot(tag);
            let fits = |spot: Spot| !entry.is_written() || entry.len <= spot.room();
            let room = spot.and_then(|spot| match fits(spot) {
                true => Ok(()),
                false => Err(Reason::Refused),
            });
            let entered = room.and_then(|()| enter(tag, entry.object.generation, fx));
            let conditional = fx.defect() != Some(Defect::IgnoreExpected);
            match entered {
                Ok(version) if entry.expected != 0 && entry.expected != version && conditional => {
                    fx.release(tag, version);
                    why.get_or_insert(refused(tag, Reason::Invalid, version));
                }
                Ok(version) => locked.push((tag, version)),
                Err(reason) => {
                    why.get_or_insert(refused(tag, reason, 0));
                }
            }
            if why.is_some() {
                break;
            }
        }
        let deciders = deciders.iter().map(|(entry, _)| entry.object.tag);
        match why {
            None => Ok((locked, deciders.collect())),
            Some(_) if fx.defect() == Some(Defect::LockInPart) && !locked.is_empty() => {
                Ok((locked, deciders.collect()))
            }
            Some(answer) => {
                for (tag, version) in locked {
                    fx.release(tag, version);
                }
                Err(answer)
            }
        }
    }

    fn tx_commit(&mut self, header: &Header, own: &Own, new: bool, fx: &mut impl Effects) {
        let (who, commits) = (header.requester, own.a != 0);
        if new && !commits {
            // A commit of what is not known: it was locked in an earlier life of this home.
            if fx.defect() != Some(Defect::ForgetRelease) {
                *self.participant.rows.row(who) = Row {
                    incarnation: header.incarnation,
                    number: header.seq.0,
                    homes: Copyset::EMPTY,
                    end: Some(End::Released),
                };
            }
        }
        let end = self.participant.rows.row(who).end;
        let again = fx.defect() == Some(Defect::UnlockTwice) && !new;
        match (end, commits) {
            (Some(End::Released), false) if again => self.settle_one(who, false, fx),
            (None, true) if !new && !self.holds(who) => return,
            // Where it holds nothing, there is nothing to settle.
            (None, _) => self.settle_one(who, commits, fx),
            (Some(End::Committed), false) if !new => return,
            (Some(End::Released | End::Refused(_)), true) if !new => return,
            _ => {}
        }
        acknowledge(header, own.a, fx);
    }

    fn holds(&self, who: RequesterId) -> bool {
        let open = self.participant.open.get(&who);
        open.is_some_and(|open| !open.locked.is_empty())
    }

    /// Commits an open transaction, or releases it.
    pub(super) fn settle_one(&mut self, who: RequesterId, commits: bool, fx: &mut impl Effects) {
        let Some(open) = self.participant.open.get(&who) else {
            return;
        };
        let (objects, locked) = (open.objects, open.locked.clone());
        let entries = fx.entries(who, objects).unwrap_or_default();
        for (tag, version) in locked {
            let entry = entries.iter().find(|(entry, _)| entry.object.tag == tag);
            match entry.filter(|(entry, _)| commits && entry.is_written()) {
                Some((entry, content)) => {
                    let meta = fx.meta(tag);
                    let len = entry.len as u16;
                    fx.set_meta(tag, Meta { len, ..meta });
                    fx.put_part(who, content.clone(), tag);
                    fx.release(tag, next(version));
                }
                None => fx.release(tag, version),
            }
        }
        let end = match commits {
            true => End::Committed,
            false => End::Released,
        };
        self.close(who, end, fx);
    }

    fn close(&mut self, who: RequesterId, end: End, fx: &mut impl Effects) {
        self.participant.rows.row(who).end = Some(end);
        if fx.defect() == Some(Defect::UnlockTwice) && end == End::Released {
            return;
        }
        self.participant.open.remove(&who);
        fx.drop_part(who);
    }

    /// All homes have reported: what nodes that are gone have left open is committed where another
    /// home has, and released otherwise, unless a keeper is to be asked.
    pub(in super::super) fn settle_transactions(&mut self, fx: &mut impl Effects) {
        let told = core::mem::take(&mut self.participant.told);
        let open = self.participant.open.iter();
        let left = open.filter(|(_, open)| open.is_orphan);
        let left: Vec<(RequesterId, bool)> =
            left.map(|(who, open)| (*who, open.is_in_doubt())).collect();
        if fx.defect() == Some(Defect::KeepDeadLocks) {
            return;
        }
        for (who, is_in_doubt) in left {
            let row = self.participant.rows.row(who);
            let name = (who, row.incarnation, row.number);
            let commits = told.contains(&name) && self.holds(who);
            let commits = commits && fx.defect() != Some(Defect::CommitAtOneHome);
            match fx.defect() {
                Some(Defect::CommitInDoubt) if is_in_doubt => self.settle_one(who, true, fx),
                Some(Defect::ReleaseInDoubt) => self.settle_one(who, commits, fx),
                _ if is_in_doubt && !commits => {}
                _ => self.settle_one(who, commits, fx),
            }
        }
    }
}

/// Whether an entry of a part says who decides.
fn decides(entry: &Entry) -> bool {
    let tag = entry.object.tag;
    !entry.is_written() && tag.is_under(Contract::Object) && tag.home().group().is_some()
}

/// Answers a `TxCommit`: it is over.
pub(super) fn acknowledge(header: &Header, commits: u64, fx: &mut impl Effects) {
    let mut ack = header.answer(Kind::TxCommitAck, header.sender);
    (ack.offset, ack.flags) = (0, Flags(0));
    let own = own(commits, 0, 0);
    fx.send(Dest::Requester(header.requester), &ack, own, Bytes::Nothing);
}

/// Answers a `TxLock`: why not, or how many bytes of it are here.
fn tell(header: &Header, answer: Answer, here: u32, fx: &mut impl Effects) {
    let mut ack = header.refuse(Kind::TxLockAck, header.sender, answer.reason);
    (ack.tag, ack.offset, ack.flags) = (answer.tag, 0, Flags(0));
    let own = own(answer.version, 0, here);
    fx.send(Dest::Requester(header.requester), &ack, own, Bytes::Nothing);
}
