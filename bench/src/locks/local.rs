//! A lock as all threads of one node have it: its layout, and the machines of the node's seats.

use super::error::{Error, Result};
use super::layout::Layout;
use super::service::Post;
use rackmem::LockError;
use rackmem::Node;
use rackmem_baselines::locks::{At, Machine, ThreadPlace};
use rackmem_fabric::Whole;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// See the module.
pub(crate) struct Local {
    pub(super) layout: Layout,
    seats: Box<[Mutex<Machine>]>,
    /// What the manager has answered, a seat each.
    pub(super) posts: Box<[Post]>,
    /// Threads that have looked, and have to wait.
    waiting: AtomicUsize,
    /// A thread has gone in the middle of an operation that no other can finish.
    abandoned: AtomicBool,
}

impl Local {
    pub(super) fn new(node: &Node, layout: Layout) -> Result<Local> {
        let addr = layout.addr;
        let machine = |place| {
            let seat = ThreadPlace {
                node: node.id(),
                place,
            };
            let algorithm = layout.kind.algorithm().ok_or(LockError::NoLock { addr })?;
            let machine = Machine::new(algorithm, layout.shape, seat);
            machine.map(Mutex::new).ok_or(LockError::NoLock { addr })
        };
        let places = 0..layout.shape.places;
        Ok(Local {
            seats: places
                .clone()
                .map(machine)
                .collect::<std::result::Result<_, _>>()?,
            posts: places.map(|_| Post::default()).collect(),
            layout,
            waiting: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        })
    }

    /// A seat that no thread has.
    pub fn seat(&self) -> Option<(usize, MutexGuard<'_, Machine>)> {
        let seats = self.seats.iter().enumerate();
        seats
            .filter_map(|(place, seat)| match seat.try_lock() {
                Ok(machine) => Some((place, machine)),
                Err(TryLockError::Poisoned(poisoned)) => Some((place, poisoned.into_inner())),
                Err(TryLockError::WouldBlock) => None,
            })
            .next()
    }

    /// The same, once the first one's thread has left.
    pub fn wait_for_a_seat(&self) -> Option<(usize, MutexGuard<'_, Machine>)> {
        let first = self.seats.first()?.lock();
        Some((0, first.whole()))
    }

    /// Whether it still works.
    pub fn check(&self) -> Result<()> {
        match self.abandoned.load(Relaxed) {
            true => Err(self.abandoned_error()),
            false => Ok(()),
        }
    }

    /// A thread begins to wait, or does not any more.
    pub fn note(&self, waits: bool) {
        match waits {
            true => self.waiting.fetch_add(1, Relaxed),
            false => self.waiting.fetch_sub(1, Relaxed),
        };
    }

    /// Threads of this node that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    pub fn abandon(&self) {
        self.abandoned.store(true, Relaxed);
    }

    pub fn abandoned_error(&self) -> Error {
        Error::Abandoned {
            addr: self.layout.addr,
        }
    }

    /// The address of a word.
    #[inline]
    pub fn word(&self, at: At) -> Result<u64> {
        let block = self.layout.blocks.get(usize::from(at.block));
        let block = block.ok_or(LockError::NoLock {
            addr: self.layout.addr,
        })?;
        Ok(block + u64::from(at.word) * 8)
    }
}
