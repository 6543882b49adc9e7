//! Changing a key inside of its bucket's lock: in the head page,
//! when the record is there or can be.
//!
//! An operation says what to do about what it finds ([`Operation::decide`]); this file does it.
//! What does not fit the head page goes to `chain.rs`.

use super::bucket::Bucket;
use super::core::Core;
use super::lock::Scope;
use super::value::{Extents, Meta, Value};
use crate::error::{Error, Result};
use crate::layout::counters::Counts;
use crate::layout::kind::Kind;
use crate::layout::page::{KeyId, Page, Record};
use crate::layout::page_mut::{PageMut, Payload};
use crate::layout::superblock::Era;
use crate::memory::Memory;

/// A live record as an operation sees it.
pub(crate) struct Current<'a> {
    pub meta: Meta,
    pub value: Value<'a>,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Keep,
    Remove,
    /// Store [`Operation::payload`] with this expiry (0: none).
    Put {
        expiry: u64,
    },
    /// Change only the expiry.
    Expire(u64),
    /// Leave everything as it is and tell the caller to take the long way.
    Escalate,
}

/// One change of one key.
pub(crate) trait Operation {
    /// Whether `decide` must see the bytes of a value that lies in an extent.
    fn wants_value(&self) -> bool {
        false
    }
    /// Whether it works on values that are not strings.
    fn any_kind(&self) -> bool {
        false
    }
    /// Whether the nodes of the collection that was there stay in use, or are freed by the caller.
    fn keeps_nodes(&self) -> bool {
        false
    }

    /// What to do. May be asked several times, with what is there at the time;
    /// the last answer counts.
    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit;

    /// The new value, asked for after `decide` said to put it.
    fn payload(&self) -> Payload<'_> {
        Payload::Inline(&[])
    }
}

/// What a change leaves to do: count, and free.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub counts: Counts,
    pub freed: Extents,
    pub escalated: bool,
    pub removed: bool,
    pub changed: bool,
    /// The nodes that want to hear of a change, as bits.
    pub watchers: u64,
    /// The bucket is to be split or merged.
    pub unbalanced: bool,
}

/// How a look at the head page ends.
enum Step {
    Done(Effects),
    /// The page holds what a flush has removed, or the operation needs more than this page.
    Chain,
    WrongType,
}

impl<M: Memory> Core<M> {
    /// Does the operation, counts and frees. Says whether it escalated.
    #[inline]
    pub fn edit(
        &self,
        scope: Scope<'_, M>,
        id: &KeyId<'_>,
        op: &mut impl Operation,
    ) -> Result<bool> {
        let effects = self.edit_keeping(scope, id, op)?;
        self.free(scope, &effects.freed)?;
        Ok(effects.escalated)
    }

    /// Does the operation and counts, but leaves it to the caller to free.
    #[inline]
    pub fn edit_keeping(
        &self,
        scope: Scope<'_, M>,
        id: &KeyId<'_>,
        op: &mut impl Operation,
    ) -> Result<Effects> {
        self.writing_key(scope, id.hash, |bucket| bucket.edit(id, op))
    }
}

impl<M: Memory> Bucket<'_, M> {
    #[inline]
    pub fn edit(&mut self, id: &KeyId<'_>, op: &mut impl Operation) -> Result<Effects> {
        let (core, era) = (self.core, self.era(id.db)?);
        match self.change_head(|page| core.step(page, era, id, op))? {
            Step::Done(effects) => {
                self.note_effects(id, &effects, era.watchers);
                if effects.unbalanced {
                    self.unbalanced = Some(id.hash);
                }
                self.count(id.db, era.flushed, effects.counts)?;
                Ok(effects)
            }
            Step::Chain => self.edit_chain(id, op),
            Step::WrongType => Err(Error::WrongType),
        }
    }
}

impl<M: Memory> Core<M> {
    #[inline]
    fn step(
        &self,
        page: &mut PageMut<'_, '_>,
        era: Era,
        id: &KeyId<'_>,
        op: &mut impl Operation,
    ) -> Step {
        if is_unclean(page, era) {
            return Step::Chain;
        }
        let now = page.page();
        let (record, stamp) = (now.find(id), now.version() + 1);
        if record.is_none() && now.next() != 0 {
            return Step::Chain;
        }
        let live = record.as_ref().filter(|r| !r.expired(|| self.clock.now()));
        let current = live.map(|record| current(&now, record));
        let remote = current
            .as_ref()
            .is_some_and(|c| matches!(c.value, Value::Remote(_)));
        if remote && op.wants_value() {
            return Step::Chain;
        }
        if !suits(op, current.as_ref()) {
            return Step::WrongType;
        }
        let edit = op.decide(current.as_ref());
        match apply(page, id, record.as_ref(), edit, op, stamp) {
            Some(mut effects) => {
                seal(page, &mut effects, stamp);
                effects.unbalanced = self.is_unbalanced(&page.page(), &effects);
                Step::Done(effects)
            }
            None => Step::Chain,
        }
    }
}

impl<M: Memory> Core<M> {
    /// Whether a bucket is to be split or merged after a change.
    #[inline]
    pub fn is_unbalanced(&self, head: &Page<'_>, effects: &Effects) -> bool {
        match effects.removed {
            true => self.growth.is_empty(head, self.map.root_depth()),
            false => effects.changed && self.growth.is_crowded(head),
        }
    }
}

/// Whether the page holds what a flush has removed. An empty page is brought up to date.
#[inline]
fn is_unclean(page: &mut PageMut<'_, '_>, era: Era) -> bool {
    let now = page.page();
    if now.epoch() >= era.epoch {
        return false;
    }
    if now.count() != 0 || now.next() != 0 {
        return true;
    }
    page.set_epoch(era.epoch);
    false
}

/// Whether an operation works on what is there.
#[inline]
pub(crate) fn suits(op: &(impl Operation + ?Sized), current: Option<&Current<'_>>) -> bool {
    op.any_kind() || current.is_none_or(|current| current.meta.kind == Kind::String)
}

/// Whether the nodes of a record's collection are to be freed.
pub(crate) fn goes_with(op: &(impl Operation + ?Sized), record: &Record) -> bool {
    record.kind != Kind::String && !op.keeps_nodes()
}

/// What a change of a record leaves to free of its collection.
fn nodes_of(
    op: &(impl Operation + ?Sized),
    page: &PageMut<'_, '_>,
    record: &Record,
) -> Option<Vec<u8>> {
    goes_with(op, record).then(|| page.page().inline_value(record))
}

fn current<'a>(page: &Page<'a>, record: &Record) -> Current<'a> {
    let value = match record.extent {
        Some(extent) => Value::Remote(extent),
        None => Value::Window {
            view: page.view,
            at: record.value_at(),
            len: record.val_len,
        },
    };
    Current {
        meta: Meta::from(record),
        value,
    }
}

/// Marks the head page as changed.
#[inline]
pub(crate) fn seal(head: &mut PageMut<'_, '_>, effects: &mut Effects, stamp: u64) {
    if effects.changed {
        effects.watchers = head.page().watchers();
        head.set_version(stamp);
        if effects.removed {
            head.set_deleted(stamp);
        }
    }
}

/// Makes the change in the page that holds (or gets) the record; `None`, and nothing changed,
/// when there is no room.
#[inline]
pub(crate) fn apply(
    page: &mut PageMut<'_, '_>,
    id: &KeyId<'_>,
    old: Option<&Record>,
    edit: Edit,
    op: &(impl Operation + ?Sized),
    stamp: u64,
) -> Option<Effects> {
    let mut effects = Effects::default();
    match (edit, old) {
        (Edit::Put { expiry }, _) => {
            let payload = op.payload();
            let nodes = old.and_then(|old| nodes_of(op, page, old));
            if !page.put(id, old, &payload, expiry, stamp) {
                return None;
            }
            let nearer = page.note_expiry(expiry);
            if let Some(old) = old {
                retire(&mut effects, old, &payload, nodes);
            }
            let new = Counts::record(true, expiry != 0).plus(Counts::nearer(nearer));
            effects.counts = effects.counts.plus(new);
            effects.changed = true;
        }
        (Edit::Remove, Some(old)) => {
            let nodes = nodes_of(op, page, old);
            page.remove(old);
            retire(&mut effects, old, &Payload::Inline(&[]), nodes);
            effects.changed = true;
            effects.removed = true;
        }
        (Edit::Expire(expiry), Some(old)) => {
            page.set_record_expiry(old, expiry, stamp);
            let nearer = page.note_expiry(expiry);
            let (gone, new) = (
                Counts::record(false, old.expiry != 0),
                Counts::record(true, expiry != 0),
            );
            effects.counts = gone.plus(new).plus(Counts::nearer(nearer));
            effects.changed = true;
        }
        (Edit::Keep | Edit::Remove | Edit::Expire(_), _) => {}
        (Edit::Escalate, _) => effects.escalated = true,
    }
    Some(effects)
}

/// Takes a record off the books. Its extent is freed, unless the new value lies in it, and so are
/// the nodes of its collection.
pub(crate) fn retire(
    effects: &mut Effects,
    old: &Record,
    new: &Payload<'_>,
    nodes: Option<Vec<u8>>,
) {
    if let Some(head) = nodes {
        effects.freed.push_collection(old.kind, head);
    }
    effects.counts = effects.counts.plus(Counts::record(false, old.expiry != 0));
    if let Some(extent) = old.extent
        && !matches!(new, Payload::Extent { extent: same, .. } if *same == extent)
    {
        effects.freed.push(extent);
    }
}
