//! Objects of homes that groups keep: they do not die with the node that serves them, which is the
//! rack's keeper of the epoch.
//!
//! Each object is a line of the group. **Stored in a quorum, then published**: what changes an
//! object is a line of a majority first, and only then what readers find. So whatever has been read
//! is there after any minority has died, and readers see the object as it was for as long as that
//! takes.
//!
//! What a keeper has in its memory is nothing until it has asked a majority for it in this epoch.
//! A step of this value says what it needs ([`Need`]); who has that brings it, and gives the packet
//! again.
//!
//! | a packet | needs |
//! |---|---|
//! | that reads an object | its line, once in an epoch |
//! | that changes one | the requester's row and the object's line, once in an epoch each; then that a majority has the new line |
//! | and the object's last change was another requester's, who may not have heard of it | that a majority has that in the other one's row, before |
//! | that makes one | a free place: lines are looked at until there is one; and its place in the requester's row, before |
//! | that writes several together | their lines, once in an epoch each; then that a majority has a record of all of it in each region that it writes ([`together`]); then their lines |
//! | any | the region's last such record, once in an epoch, and what it says; if that is not in lines, and of several regions, what those say of it |
//! | of a home that asks what has come of a call | as one that writes |
//! | about a region that this node has not heard of, or that says that one is removed which is here | that it hears of the newest groups |
//!
//! **Once, over deaths too.** A line says by which call it was changed last, and before it is
//! overwritten by another requester's the row says it. So a requester that asks the next keeper for
//! the same call is answered from its row, from the object, or nothing has come of it.

mod change;
mod checked;
mod commit;
mod outcome;
mod record;
mod region;
mod removal;
mod together;
mod written;

pub use self::record::{RECORD, ROWS};
pub use self::removal::{Laid, span_of};

pub(super) use self::record::{Call, who_of, who_to};
use self::record::{CallRow, Head};
use self::together::Together;
use self::written::{Record, bytes_of_records};
use super::calls::{Answer, Calls, Came};
use super::effects::{Defect, Effects};
use super::home::read;
use super::layout::Meta;
use crate::wire::{Flags, Header, Kind, Own, Reason, RequesterId, Tag};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// What stands in a packet's way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Need {
    /// This line as a majority has it, written again in this epoch: [`KeptObjects::fetched`], and
    /// then the packet again.
    Line(Tag),
    /// That a majority has this in this line: [`KeptObjects::stored`], and then the packet again.
    Store(Tag, Vec<u8>),
    /// That this node hears of the newest groups. The packet comes again by itself.
    News,
}

/// What is on its way to a majority.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Pending {
    /// A requester's row.
    Row(u16, RequesterId, CallRow),
    /// A change of an object.
    Change(Change),
    /// So many lines of what does not fit into the first one of a call's record.
    Stretch(u16, Call, u32),
    /// A record.
    Record(u16, Record),
    /// That a region's record has taken effect.
    Told(u16),
    /// A line that a record says.
    Left(u16),
}

/// A change of an object, which its answer names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Change {
    head: Head,
    of: RequesterId,
    content: Content,
    answer: Answer,
}

/// What an object has in it after a change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Content {
    /// What the requester writes, so many bytes.
    Written(u32),
    /// So many zeros.
    Zeros(u32),
    /// Nothing.
    Freed,
}

/// A region: all of the home that a group keeps.
#[derive(Clone, Debug, Default)]
struct Region {
    laid: Laid,
    line: u32,
    places: u32,
    class: u8,
    /// By place, those that are here as a majority has them, and the call that has changed each
    /// last.
    here: BTreeMap<u32, Option<Call>>,
    /// Those without an object.
    free: BTreeSet<u32>,
    /// Whoever looks for a free place goes on here.
    cursor: u32,
    /// By line, rows that are here as a majority has them.
    rows: BTreeMap<u32, Vec<CallRow>>,
    /// What has come in this epoch.
    calls: Calls,
    /// What was written together.
    together: Together,
}

/// Those that this node knows, by group.
#[derive(Clone, Debug, Default)]
struct Regions(BTreeMap<u16, Region>);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct KeptObjects {
    regions: Regions,
    /// An epoch begins, and not all have told of the last one.
    closed: bool,
    pending: Option<Pending>,
    /// What stands in the way of the last packet that was not answered.
    need: Option<Need>,
    /// The line that was asked for last, until its region is another one.
    asked: Option<Tag>,
    /// Calls of which homes were told in this epoch that they have taken effect, by requester: so
    /// all homes are told so, though a region is removed.
    said: BTreeMap<RequesterId, Call>,
}

/// Bytes of a group's lines for objects of so many bytes in all, whose lines have so many: rows of
/// requesters are behind them, and what is written together.
pub const fn bytes_with_rows(bytes: u64, line: u32) -> u64 {
    let rows = ROWS.next_multiple_of(line as u64);
    bytes.next_multiple_of(line as u64) + rows + bytes_of_records(line)
}

/// Bytes for objects in lines of so many bytes in all.
pub const fn bytes_without_rows(bytes: u64, line: u32) -> u64 {
    bytes.saturating_sub(bytes_with_rows(0, line))
}

/// The longest object of a region with copies whose lines have so many bytes.
pub const fn room_of(line: u32) -> u32 {
    line.saturating_sub(RECORD)
}

impl KeptObjects {
    /// Whether a packet needs nothing that takes a majority.
    pub fn answers_at_once(&self, header: &Header) -> bool {
        let group = header.tag.home().group();
        let region = group.and_then(|group| self.regions.0.get(&group));
        let is_here = |region: &Region| {
            let place = region.place(header.tag);
            let here = place.is_ok_and(|place| region.here.contains_key(&place));
            here && region.together.is_published()
        };
        !self.closed && reads(header.kind) && region.is_some_and(is_here)
    }

    /// Whether an object can be there.
    pub fn has_place(&self, object: Tag) -> bool {
        let group = object.home().group();
        let region = group.and_then(|group| self.regions.0.get(&group));
        region.is_some_and(|region| region.place(object).is_ok())
    }

    /// What stands in the way of the last packet that was not answered.
    pub fn take_need(&mut self) -> Option<Need> {
        self.need.take()
    }

    /// An epoch begins: what is here may not be what the next keeper makes of it.
    pub fn enter(&mut self) {
        (self.closed, self.pending, self.need, self.asked) = (true, None, None, None);
        self.said.clear();
        for region in self.regions.0.values_mut() {
            *region = region.anew();
        }
    }

    /// All members are in the epoch, so nobody is answered by its last keeper any more.
    pub fn serve(&mut self) {
        self.closed = false;
    }

    /// A packet for the keeper, of its epoch. If it is not answered, see what it needs
    /// ([`KeptObjects::take_need`]); if that is nothing, it is one of several segments, or dropped.
    pub fn packet(&mut self, header: &Header, own: &Own, bytes: u32, fx: &mut impl Effects) {
        let Some(group) = header.tag.home().group().filter(|_| !self.closed) else {
            return;
        };
        let packet = (header, own, bytes);
        let step = match header.kind {
            // No writer is ever in while packets are served: what is changed is changed in one
            // section.
            kind if reads(kind) => self.regions.answer_read(group, packet, fx),
            Kind::ObjWrite | Kind::ObjAlloc | Kind::ObjFree | Kind::TxCommit => {
                self.pending = None;
                self.regions.answer_call(group, packet, fx)
            }
            // A keeper locks nothing: a home asks for what it has locked itself.
            Kind::TxLock => {
                self.pending = None;
                self.regions
                    .answer_home(group, &mut self.said, (header, own), fx)
            }
            _ => Ok(()),
        };
        if let Err(Next::Needs(need, pending)) = step {
            if let Need::Line(line) = need {
                self.asked = Some(line);
            }
            (self.need, self.pending) = (Some(need), pending);
            if fx.defect() == Some(Defect::PublishBeforeQuorum) {
                self.stored(fx);
            }
        }
    }

    /// A majority has this line, as of this epoch.
    pub fn fetched(&mut self, (line, epoch): (Tag, u32), value: &[u8], fx: &mut impl Effects) {
        let group = line.home().0;
        // Of a region that has this number since, it says nothing. Nor does one of an ended epoch,
        // in whose place another may have been asked for.
        let now = !self.closed && epoch == fx.epoch();
        let asked = self.asked.take_if(|asked| now && *asked == line).is_some();
        let Some(region) = self.regions.0.get_mut(&group).filter(|_| asked) else {
            return;
        };
        let nth = (line.offset() / u64::from(region.line.max(1))) as u32;
        if let Some(record) = nth.checked_sub(region.first_record()) {
            region.fetched_record(record, value, fx.defect());
            return;
        }
        if let Some(row) = nth.checked_sub(region.places) {
            region.rows.insert(row, CallRow::all(value));
            return;
        }
        let (head, tag) = (Head::of(value), region.tag(group, nth));
        let meta = Meta {
            class: region.class,
            ..head.meta
        };
        let content = value.get(RECORD as usize..).unwrap_or_default();
        let content = &content[..content.len().min(meta.len.into())];
        let version = fx.version(tag);
        fx.take(tag, version);
        fx.set_meta(tag, meta);
        fx.fill(tag, content);
        fx.release(tag, head.version);
        region.note(nth, meta, head.last);
    }

    /// A majority has what was to be stored last.
    pub fn stored(&mut self, fx: &mut impl Effects) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let Some(region) = self.regions.0.get_mut(&pending.group()) else {
            return;
        };
        match pending {
            Pending::Row(_, of, row) => {
                let (line, nth) = region.row_at(of);
                let rows = region.rows.get_mut(&line);
                if let Some(there) = rows.and_then(|rows| rows.get_mut(nth)) {
                    *there = row;
                }
            }
            Pending::Change(change) => region.publish(&change, fx),
            Pending::Stretch(_, call, lines) => region.stored_stretch(call, lines),
            Pending::Record(_, record) => region.stored_record(record, fx),
            Pending::Left(_) => region.stored_left(),
            Pending::Told(_) => region.stored_told(),
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.closed, &self.pending, self.asked, &self.said).hash(into);
        for (group, region) in &self.regions.0 {
            (
                (group, region.laid),
                &region.here,
                &region.free,
                region.cursor,
                &region.rows,
                &region.together,
            )
                .hash(into);
            region.calls.fingerprint(into);
        }
    }
}

/// Whether a packet reads an object.
fn reads(kind: Kind) -> bool {
    matches!(kind, Kind::ObjRead | Kind::ObjReadLocked)
}

/// What a call comes to next.
enum Next {
    Needs(Need, Option<Pending>),
    Ends(Answer),
}

type Step<T> = Result<T, Next>;
type Packet<'a> = (&'a Header, &'a Own, u32);

fn ends<T>(answer: Answer) -> Step<T> {
    Err(Next::Ends(answer))
}

impl Pending {
    fn group(&self) -> u16 {
        match self {
            Pending::Row(group, ..)
            | Pending::Stretch(group, ..)
            | Pending::Record(group, _)
            | Pending::Left(group)
            | Pending::Told(group) => *group,
            // No address of an object is outside the homes of groups.
            Pending::Change(change) => change.answer.tag.home().group().unwrap_or(u16::MAX),
        }
    }
}

impl Regions {
    fn answer_read(
        &mut self,
        group: u16,
        (header, own, _): Packet<'_>,
        fx: &mut impl Effects,
    ) -> Step<()> {
        let Some(region) = self.0.get(&group) else {
            return Ok(());
        };
        if region.is_unheard(header, own) {
            return Err(Next::Needs(Need::News, None));
        }
        let place = region.place(header.tag);
        if place != Err(Reason::Gone) {
            self.know(group, fx)?;
        }
        if let (Ok(place), Some(region)) = (place, self.0.get(&group)) {
            region.last(group, place)?;
        }
        read(place.map(|_| header.tag), header, own, Flags(0), fx);
        Ok(())
    }

    /// What changes something, once.
    fn answer_call(&mut self, group: u16, packet: Packet<'_>, fx: &mut impl Effects) -> Step<()> {
        let (header, own, _) = packet;
        let Some(region) = self.0.get(&group) else {
            return Ok(());
        };
        let unheard = region.is_unheard(header, own);
        let answers = unheard && fx.defect() == Some(Defect::AnswerUnheard);
        if unheard && !answers {
            return Err(Next::Needs(Need::News, None));
        }
        let is_gone = answers || region.is_gone(header.tag);
        if is_gone && header.kind != Kind::TxCommit {
            region.answer_gone(header, own, fx);
            return Ok(());
        }
        if !is_gone {
            self.carry_out(group, fx)?;
        }
        let Some(region) = self.0.get_mut(&group) else {
            return Ok(());
        };
        // What was stored of another one's record may say what is no longer so.
        let call = Call::of(header);
        region.together.stored.take_if(|(of, _)| *of != call);
        let answer = match region.calls.came(header, own, fx.defect()) {
            Came::Late => return Ok(()),
            Came::Again(answer) => answer,
            Came::Open => {
                let step = match header.kind {
                    Kind::TxCommit if is_gone => self.came_of(group, packet, fx),
                    Kind::TxCommit => self.commit(group, packet, fx),
                    _ => region.call(group, packet, fx),
                };
                match step {
                    Err(Next::Ends(answer)) => answer,
                    Err(Next::Needs(need, pending)) => {
                        let decides = matches!(pending, Some(Pending::Record(..)));
                        if decides && fx.defect() == Some(Defect::AnswerBeforeRecord) {
                            let answer = Answer::refused(header.tag, Reason::None);
                            self.end(group, header, answer, fx);
                        }
                        return Err(Next::Needs(need, pending));
                    }
                    Ok(()) => return Ok(()),
                }
            }
        };
        self.end(group, header, answer, fx);
        Ok(())
    }

    /// A call has ended with this.
    fn end(&mut self, group: u16, header: &Header, answer: Answer, fx: &mut impl Effects) {
        if let Some(region) = self.0.get_mut(&group) {
            region.calls.end(header.requester, answer, fx.defect());
        }
        answer.tell(header, Flags(0), fx);
    }
}
