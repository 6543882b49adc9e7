//! What a command has changed, for keyspace events: noted while the thread that runs it asks for
//! that.

use std::cell::{Cell, RefCell};

use crate::layout::counters::Counts;
use crate::layout::page::KeyId;

/// Changes noted of one command, at most; of one that makes more the rest is not told.
const MOST: usize = 1 << 16;

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    New,
    Other,
    Gone,
}

/// A key that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub db: u8,
    pub key: Vec<u8>,
    pub became: Became,
}

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
    static CHANGES: RefCell<Vec<Change>> = const { RefCell::new(Vec::new()) };
}

/// Notes what `f` changes in this thread.
pub(crate) fn watching<R>(f: impl FnOnce() -> R) -> (R, Vec<Change>) {
    let outer = ASKED.replace(true);
    let before = CHANGES.take();
    let result = f();
    ASKED.set(outer);
    (result, CHANGES.replace(before))
}

/// A record has changed, and with it the counts of keys.
#[inline]
pub(super) fn record(id: &KeyId<'_>, counts: Counts) {
    if ASKED.get() {
        note(id, counts);
    }
}

#[cold]
fn note(id: &KeyId<'_>, counts: Counts) {
    let became = match counts.keys as i32 {
        1.. => Became::New,
        0 => Became::Other,
        _ => Became::Gone,
    };
    let (db, key) = (id.db, id.key.to_vec());
    CHANGES.with_borrow_mut(|changes| {
        if changes.len() < MOST {
            changes.push(Change { db, key, became });
        }
    });
}
