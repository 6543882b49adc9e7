//! Mutexes, conditions and the like in files: the lock of the rack behind each, by the object's
//! place in its file.
//!
//! An object's bytes say nothing that has to outlive the node which wrote them last; what is to be
//! known of it lies in its lock's page. A place has its lock for as long as the file is there.

use crate::answer::{Done, refuse};
use crate::files::File;
use crate::member::LOCKS;
use rackmem::locked::{Entered, Reading, Writing};
use rackmem::{Wait, Window, WindowMut};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The lock over the table of places.
const PLACES: usize = 0;
/// The locks before this one are of the file's tables.
const FIRST: usize = 3;
/// Bits of a place's word that say which place; what the object is lies above them.
const PLACE_BITS: u32 = 56;
/// Bytes of the table: which file it is of, and a place a lock.
const TABLE: usize = 8 + LOCKS * 8;

/// Objects that this process has used.
#[derive(Default)]
pub struct Objects(RwLock<HashMap<usize, Arc<Object>>>);

impl Objects {
    pub fn all(&self) -> Vec<Arc<Object>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().cloned().collect()
    }
}

/// What this process knows of one.
pub struct Object {
    pub index: usize,
    /// What kind it is, as its table said when this process first looked: its page may have gone
    /// with a node.
    pub kind: AtomicU64,
    /// The thread that has it to write, if one of this process does.
    pub thread: AtomicU32,
    held: Mutex<Held>,
}

/// By what this process is inside.
#[derive(Default)]
pub struct Held {
    pub writer: Option<Entered<Writing>>,
    pub readers: Vec<Entered<Reading>>,
    /// How often its holder has it, beside the first time.
    pub again: u32,
    /// Its last holder has died, and nobody has said that all is well again.
    pub died: bool,
    pub flags: u64,
}

impl Object {
    pub fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread, by its number.
pub fn thread() -> u32 {
    thread_local! {
        static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            // SAFETY: a question without arguments.
            number.set(unsafe { libc::syscall(libc::SYS_gettid) as u32 });
        }
        number.get()
    })
}

impl File {
    /// The object at this place.
    pub fn object(&self, place: usize) -> Done<Arc<Object>> {
        let known = self
            .objects
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = known.get(&place) {
            return Ok(object.clone());
        }
        drop(known);
        let (index, kind) = self.index(place, None)?;
        let mut known = self
            .objects
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let object = known.entry(place).or_insert_with(|| {
            Arc::new(Object {
                index,
                kind: AtomicU64::new(kind),
                thread: AtomicU32::new(0),
                held: Mutex::default(),
            })
        });
        Ok(object.clone())
    }

    /// The object at this place is of this kind from now on, a number of seven bits.
    pub fn set_kind(&self, place: usize, object: &Object, kind: u64) -> Done {
        self.index(place, Some(kind))?;
        object.kind.store(kind, Relaxed);
        Ok(())
    }

    /// Which lock it has, found or given, and what kind of object it is; or is from now on.
    fn index(&self, place: usize, kind: Option<u64>) -> Done<(usize, u64)> {
        let (life, key) = (self.life(), place as u64 + 1);
        if kind.is_none()
            && let Place::Has(index, kind) = find(&self.locks.read(PLACES)?.view(), life, key)
        {
            return Ok((index, kind));
        }
        let mut held = self.locks.write(PLACES)?;
        let mut view = held.view_mut(TABLE);
        if view.u64(0) != life {
            for at in (0..TABLE).step_by(8) {
                view.set_u64(at, 0);
            }
            view.set_u64(0, life);
        }
        match find(&view, life, key) {
            Place::Has(index, is) => {
                let kind = kind.unwrap_or(is);
                view.set_u64(8 + index * 8, key | kind << PLACE_BITS);
                Ok((index, kind))
            }
            Place::Free(index) => {
                let kind = kind.unwrap_or(0);
                view.set_u64(8 + index * 8, key | kind << PLACE_BITS);
                Ok((index, kind))
            }
            Place::None => {
                let text = format!(
                    "{}: it has mutexes, conditions and the like at {} places, which is as many as \
                     a file can have; use another file for more",
                    self.name,
                    LOCKS - FIRST
                );
                refuse(libc::ENOSPC, &text)
            }
        }
    }

    /// Looks at an object's page without waiting for who is inside... as its readers do, when it is
    /// their turn, until `look` says something.
    pub fn await_object<R>(
        &self,
        object: &Object,
        wait: impl Into<Wait>,
        mut look: impl FnMut(&Window<'_>) -> Option<R>,
    ) -> Done<Option<R>> {
        let life = self.life();
        let zeros = [const { AtomicU64::new(0) }; 1];
        Ok(self
            .locks
            .await_page(object.index, wait, |page| match page.u64(0) == life {
                true => look(page),
                // Another file's, before this one.
                false => look(&Window::new(&zeros, 0, 0)),
            })?)
    }

    /// Changes an object's page, alone in the rack.
    pub fn change_object<R>(
        &self,
        object: &Object,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Done<R> {
        let mut held = self.locks.write(object.index)?;
        let mut view = held.view_mut(WORDS * 8);
        renew(&mut view, self.life());
        Ok(f(&mut view))
    }
}

/// Words of an object's page: which file it is of, and four of the object's own.
pub const WORDS: usize = 5;

/// What is in the page of an object is of this file, or zeros.
pub fn renew(view: &mut WindowMut<'_>, life: u64) {
    if view.u64(0) != life {
        for word in 0..WORDS {
            view.set_u64(word * 8, 0);
        }
        view.set_u64(0, life);
    }
}

enum Place {
    /// And of which kind.
    Has(usize, u64),
    Free(usize),
    None,
}

fn find(view: &Window<'_>, life: u64, key: u64) -> Place {
    let count = LOCKS - FIRST;
    let first = (key / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    for step in 0..count {
        let index = FIRST + (first as usize + step) % count;
        let is = match view.u64(0) == life {
            true => view.u64(8 + index * 8),
            false => 0,
        };
        if is & ((1 << PLACE_BITS) - 1) == key {
            return Place::Has(index, is >> PLACE_BITS);
        }
        if is == 0 {
            return Place::Free(index);
        }
    }
    Place::None
}
