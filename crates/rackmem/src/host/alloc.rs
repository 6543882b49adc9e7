//! Memory for objects (paper §6): asked of its home, and given back to it, from whichever node.
//!
//! A home keeps the books of its memory ([`rackmem_proto::heap`]). Threads of the home itself go to
//! the books directly. Other nodes ask for several objects at a time and give several back at a
//! time ([`crate::host::magazine`]), by calls that take effect once
//! ([`rackmem_proto::call::Call`]). What a magazine holds is bounded, and goes home when it has not
//! been used for a while: only while another home does not answer can more wait here.

use crate::error::{AccessError, AllocError, RackError};
use crate::host::access::{Access, coherent};
use crate::host::cleaning::Cleaning;
use crate::host::magazine::{Back, Magazine, Object};
use crate::ports::requester::Bytes;
use rackmem_fabric::Whole;
use rackmem_proto::call::Call;
use rackmem_proto::flowcc::Grant;
use rackmem_proto::heap::class;
use rackmem_proto::wire::{HomeId, Kind, MAX_NODES, Record, Tag};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a magazine is not used before what is in it goes home: between one and two of these.
pub(crate) const QUIET: Duration = Duration::from_millis(50);

/// Lets [`QUIET`] pass. Being woken does not end it, for it was for something that has been seen
/// already or will be then; `closed` does.
pub(crate) fn rest(closed: &AtomicBool) {
    let begun = Instant::now();
    while let Some(left) = QUIET.checked_sub(begun.elapsed())
        && !closed.load(Relaxed)
    {
        std::thread::park_timeout(left);
    }
}

/// A node's allocator.
pub(crate) struct Allocator {
    block: u64,
    /// Bytes of memory that an incarnation of a node has, and so the distance between the addresses
    /// of two.
    span: u64,
    homes: Box<[Home]>,
    /// Who empties magazines that are not used.
    keeper: OnceLock<Thread>,
    cleaning: Mutex<Cleaning>,
}

/// Another node, as far as its memory is concerned.
#[derive(Default)]
struct Home {
    magazine: Mutex<Magazine>,
    /// Held during a call: the next begins when it is answered.
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    last: u32,
    /// The last one, while it is not answered. It may have taken effect,
    /// and is asked again under its number.
    open: Option<Open>,
}

/// A call.
#[derive(Clone)]
struct Open {
    /// The home's incarnation.
    incarnation: u32,
    what: What,
}

#[derive(Clone)]
enum What {
    /// Objects of this size.
    Alloc(u64),
    /// These are free.
    Free(Vec<Record>),
}

impl Allocator {
    pub fn new(block: usize, span: u64) -> Self {
        Allocator {
            block: block as u64,
            span,
            homes: (0..MAX_NODES).map(|_| Home::default()).collect(),
            keeper: OnceLock::new(),
            cleaning: Mutex::default(),
        }
    }

    /// From now on this thread is woken when there is something in a magazine.
    /// It calls [`Allocator::tidy`].
    pub fn set_keeper(&self, thread: Thread) {
        let _ = self.keeper.set(thread);
    }

    /// The incarnation of its home that an address belongs to.
    fn incarnation(&self, addr: u64) -> u32 {
        (Tag(addr).offset() / self.span) as u32 + 1
    }

    /// Memory of `home` for `len` bytes: within one block when they fit, else whole blocks. Old
    /// bytes may be in it, unless it says that it is zeros.
    pub fn alloc(&self, access: &Access, home: u16, len: usize) -> Result<Object, AllocError> {
        let full = AllocError::OutOfMemory { node: home };
        let Some(class) = class(len as u64, self.block).filter(|class| *class <= self.span) else {
            return Err(full);
        };
        if home == access.me() {
            return match access.agents.give(class, len as u64) {
                Some((Tag(addr), zeros)) => Ok(Object { addr, zeros }),
                None => Err(full),
            };
        }
        match self.take(access, home, class) {
            // What this node keeps may be what is missing.
            Err(AllocError::OutOfMemory { .. }) => {
                self.homes[usize::from(home)]
                    .magazine
                    .lock()
                    .whole()
                    .unready();
                match self.flush(access, home) {
                    // About what others have freed, and no reason not to allocate.
                    Ok(()) | Err(AllocError::NotAllocated { .. }) => {}
                    Err(error) => return Err(error),
                }
                self.take(access, home, class)
            }
            taken => taken,
        }
    }

    /// An object that is ready, or else the first of some that the home gives.
    fn take(&self, access: &Access, number: u16, class: u64) -> Result<Object, AllocError> {
        let home = &self.homes[usize::from(number)];
        // A home that has come just now may not be known here yet; what is asked is asked of an
        // incarnation.
        access.alive(HomeId::of(number).start())?;
        let now = access.standing.incarnation(number);
        if let Some(object) = home.magazine.lock().whole().of(now).take(class) {
            return Ok(object);
        }
        let mut calls = home.calls.lock().whole();
        // Another thread may have asked meanwhile.
        if let Some(object) = home.magazine.lock().whole().of(now).take(class) {
            return Ok(object);
        }
        self.finish(access, number, &mut calls)?;
        let grant = self.begin(access, number, &mut calls, What::Alloc(class))?;
        self.keep(number, &grant, grant.copyset.0 & !1, class);
        Ok(first(&grant))
    }

    /// Puts objects that a home has given with the others of its incarnation.
    fn keep(&self, number: u16, grant: &Grant, objects: u32, class: u64) {
        let mut magazine = self.homes[usize::from(number)].magazine.lock().whole();
        let theirs = self.incarnation(grant.tag.0);
        // Given before the home died: its memory is no more.
        if theirs >= magazine.incarnation() {
            magazine.of(theirs).put(first(grant), objects, class);
            self.notice(&mut magazine);
        }
    }

    /// Somebody is to look after what is in a magazine.
    fn notice(&self, magazine: &mut Magazine) {
        if !std::mem::replace(&mut magazine.noticed, true)
            && let Some(keeper) = self.keeper.get()
        {
            keeper.unpark();
        }
    }

    /// Gives back what [`Allocator::alloc`] gave for `len` bytes, on whichever node.
    pub fn free(&self, access: &Access, addr: u64, len: usize) -> Result<(), AllocError> {
        coherent(Tag(addr))?;
        let number = access.standing.host(Tag(addr).home());
        let number = number.ok_or(AllocError::Access(AccessError::BadAddress { addr }))?;
        let class = class(len as u64, self.block).ok_or(AllocError::NotAllocated { addr })?;
        if number == access.me() {
            // Memory of an earlier incarnation of this node has died with it.
            let mine = self.incarnation(addr) >= access.standing.incarnation(number);
            return match access.agents.books(|home| home.take_back(Tag(addr), class)) {
                false if mine => Err(AllocError::NotAllocated { addr }),
                _ => Ok(()),
            };
        }
        let home = self.homes.get(usize::from(number));
        let home = home.ok_or(AllocError::Access(AccessError::BadAddress { addr }))?;
        let theirs = self.incarnation(addr);
        if theirs > access.standing.incarnation(number) {
            // Its home may have come just now.
            let alive = access.alive(Tag(addr));
            if theirs > access.standing.incarnation(number) {
                alive?;
                return Err(AllocError::NotAllocated { addr });
            }
        }
        let mut magazine = home.magazine.lock().whole();
        if theirs
            < access
                .standing
                .incarnation(number)
                .max(magazine.incarnation())
        {
            return Ok(());
        }
        let magazine_of = magazine.of(theirs);
        let back = magazine_of.give_back(addr, class);
        self.notice(magazine_of);
        drop(magazine);
        match back {
            Back::Waits => Ok(()),
            Back::Known => Err(AllocError::NotAllocated { addr }),
            Back::Full => Err(AllocError::Rack(RackError::Timeout { node: number })),
            Back::Due => match self.flush(access, number) {
                Err(error @ AllocError::NotAllocated { .. }) => Err(error),
                // It waits on, and goes home later, or has died with its home.
                _ => Ok(()),
            },
        }
    }

    /// Gives back what waits for it.
    ///
    /// # Errors
    /// [`AllocError::NotAllocated`] with the first object that was not given out;
    /// the others are given back all the same.
    fn flush(&self, access: &Access, number: u16) -> Result<(), AllocError> {
        let home = &self.homes[usize::from(number)];
        let mut calls = home.calls.lock().whole();
        let mut given = self.finish(access, number, &mut calls);
        while !matches!(given, Err(ref error) if !is_refusal(error)) {
            let batch = home.magazine.lock().whole().batch();
            if batch.is_empty() {
                break;
            }
            let next = self.begin(access, number, &mut calls, What::Free(batch));
            given = given.and(next.map(|_| ()));
        }
        let answered = given.as_ref().err().is_none_or(is_refusal);
        home.magazine.lock().whole().answered(answered);
        given
    }

    /// Ends the last call, if it is not answered yet.
    fn finish(&self, access: &Access, number: u16, calls: &mut Calls) -> Result<(), AllocError> {
        let Some(open) = calls.open.clone() else {
            return Ok(());
        };
        match (self.run(access, number, calls), open.what) {
            (Ok(grant), What::Alloc(class)) => {
                self.keep(number, &grant, grant.copyset.0, class);
                Ok(())
            }
            // What it was for has failed long ago.
            (Err(AllocError::OutOfMemory { .. }), _) => Ok(()),
            (ended, _) => ended.map(|_| ()),
        }
    }

    fn begin(
        &self,
        access: &Access,
        number: u16,
        calls: &mut Calls,
        what: What,
    ) -> Result<Grant, AllocError> {
        let incarnation = access.member(number)?;
        calls.last = stream(calls.last).next().number;
        calls.open = Some(Open { incarnation, what });
        self.run(access, number, calls)
    }

    /// Asks until the call is answered, or cannot be.
    fn run(&self, access: &Access, number: u16, calls: &mut Calls) -> Result<Grant, AllocError> {
        let Some(Open { incarnation, what }) = &calls.open else {
            return Err(AllocError::Rack(RackError::NodeLost { node: number }));
        };
        let home = HomeId::of(number).start();
        let nothing = Cell::new(0);
        let (kind, tag, body) = match what {
            What::Alloc(class) => (Kind::Alloc, Tag(home.0 | *class), Vec::new()),
            What::Free(objects) => {
                let bytes = objects.iter().flat_map(|object| object.to_bytes());
                (Kind::Free, home, bytes.collect())
            }
        };
        let bytes = match what {
            What::Alloc(_) => Bytes::Nothing,
            What::Free(_) => Bytes::Operand(&body, &nothing),
        };
        let offset = stream(calls.last).to_offset();
        let answer = access.call(kind, tag, offset, *incarnation, bytes);
        let freed = matches!(what, What::Free(_));
        if !matches!(
            answer,
            Err(AllocError::Rack(
                RackError::Timeout { .. } | RackError::NoSocket { .. }
            ))
        ) {
            calls.open = None;
        }
        let grant = answer?;
        let current = self.incarnation(grant.tag.0) >= access.standing.incarnation(number);
        if freed && !grant.copyset.is_empty() && current {
            return Err(AllocError::NotAllocated { addr: grant.tag.0 });
        }
        Ok(grant)
    }

    /// Gives back everything that this node keeps of other homes' memory, as far as they answer.
    pub fn give_all_back(&self, access: &Access) {
        for number in 0..self.homes.len() as u16 {
            let mut magazine = self.homes[usize::from(number)].magazine.lock().whole();
            magazine.unready();
            if !magazine.is_empty() {
                drop(magazine);
                // Nobody is left to be told.
                let _ = self.flush(access, number);
            }
        }
    }

    /// Cleans free memory of this node. Says whether there is more to do now.
    pub fn clean(&self, access: &Access) -> bool {
        self.cleaning.lock().whole().turn(access)
    }

    /// Gives back what is in magazines that have not been used since this was called last; `may`
    /// says whether to ask others. Says whether there is something left.
    pub fn tidy(&self, access: &Access, may: bool) -> bool {
        let mut left = false;
        for number in 0..self.homes.len() as u16 {
            let home = &self.homes[usize::from(number)];
            let mut magazine = home.magazine.lock().whole();
            if magazine.is_empty() {
                magazine.noticed = false;
                continue;
            }
            let incarnation = access.standing.incarnation(number);
            if magazine.incarnation() < incarnation || !access.standing.live(number) {
                magazine.of(incarnation);
                continue;
            }
            left = true;
            if magazine.was_used() || !may {
                continue;
            }
            magazine.unready();
            drop(magazine);
            // An error is about objects whose threads have gone on.
            let _ = self.flush(access, number);
        }
        left
    }
}

/// The first object that a home has given.
fn first(grant: &Grant) -> Object {
    Object {
        addr: grant.tag.0,
        zeros: grant.zeros(),
    }
}

/// The one stream of calls that this node has to a home.
fn stream(number: u32) -> Call {
    Call { stream: 0, number }
}

/// Whether the home has answered.
fn is_refusal(error: &AllocError) -> bool {
    matches!(
        error,
        AllocError::NotAllocated { .. } | AllocError::OutOfMemory { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A magazine that is looked at twice at once was not used in between, and would go home.
    #[test]
    fn a_rest_is_as_long_however_often_it_is_woken() {
        let (closed, begun) = (AtomicBool::new(false), Instant::now());
        std::thread::current().unpark();
        rest(&closed);
        assert!(begun.elapsed() >= QUIET);
        closed.store(true, Relaxed);
        rest(&closed);
    }
}
