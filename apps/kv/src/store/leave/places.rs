//! Who leaves, whose turn it is, and where memory comes from meanwhile.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{CannotLeave, PAUSE};
use crate::error::Result;
use crate::layout::superblock::LEAVING;
use crate::memory::{Memory, MemoryError};
use crate::store::core::Core;

type Maybe<T> = std::result::Result<T, MemoryError>;

/// Where in the word the one stands whose turn it is.
const TURN: u32 = 32;

/// Whether this node leaves, and what it has left of itself.
#[derive(Default)]
pub(crate) struct Leaving {
    yes: AtomicBool,
    /// The next who gets something of this node's, as a number to be counted on.
    next: AtomicUsize,
    /// Addresses of locks that are elsewhere by now, and their bytes. They are not freed before
    /// nobody takes memory of this node any more: these would not be as new locks are.
    retired: Mutex<Vec<(u64, usize)>>,
}

impl Leaving {
    fn retired(&self) -> MutexGuard<'_, Vec<(u64, usize)>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it does.
    pub fn is_on(&self) -> bool {
        self.yes.load(Relaxed)
    }

    pub fn retire(&self, addr: u64, len: usize) {
        self.retired().push((addr, len));
    }
}

impl<M: Memory> Core<M> {
    fn leaving_at(&self) -> u64 {
        self.map.settings(self.base) + LEAVING as u64
    }

    fn leaving_word(&self) -> Maybe<u64> {
        let look = || {
            self.memory
                .snapshot(self.leaving_at(), 8, |view| view.u64(0))
        };
        look().or_else(|_| {
            self.memory.accept(self.leaving_at())?;
            look()
        })
    }

    /// Changes the word, and says what it is then.
    fn change_leaving(&self, f: impl Fn(u64) -> u64) -> Result<u64> {
        let at = self.leaving_at();
        let change = || {
            self.memory.update(at, 8, |view| {
                let next = f(view.u64(0));
                view.set_u64(0, next);
                next
            })
        };
        let word = change().or_else(|error| self.insist(error, change))?;
        self.memory.publish(at)?;
        Ok(word)
    }

    fn others_that_stay(&self, word: u64) -> impl Iterator<Item = u16> {
        let me = self.memory.id();
        let stays = move |node: &u16| *node != me && word >> node & 1 == 0;
        (0..self.map.nodes as u16).filter(move |node| stays(node) && self.memory.is_member(*node))
    }

    /// Why this node does not leave. Who was to stay may leave by now, and gives no memory then.
    pub(super) fn unless_alone(&self, why: CannotLeave) -> CannotLeave {
        match self.leaving_word() {
            Ok(word) if why.is_full() && self.others_that_stay(word).next().is_none() => {
                CannotLeave::Alone
            }
            _ => why,
        }
    }

    /// Says that this node leaves, and waits for its turn.
    pub(super) fn begin_leaving(
        &self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> std::result::Result<(), CannotLeave> {
        let me = self.memory.id();
        if self.memory.home_of(self.base) == Some(me) {
            return Err(CannotLeave::KeepsTheStore);
        }
        let mine = u64::from(me + 1);
        loop {
            let word = self.change_leaving(|word| {
                let (all, turn) = (word & ((1 << TURN) - 1) | 1 << me, word >> TURN);
                let free = turn == 0 || !self.memory.is_member((turn - 1) as u16);
                all | if free { mine } else { turn } << TURN
            })?;
            if self.others_that_stay(word).next().is_none() {
                return Err(CannotLeave::Alone);
            }
            if word >> TURN == mine {
                break;
            }
            if !go_on() {
                return Err(CannotLeave::Stopped);
            }
            std::thread::sleep(PAUSE);
        }
        self.leaving.yes.store(true, Relaxed);
        self.memory.withhold(true);
        Ok(())
    }

    /// The next may move what it has.
    pub(super) fn end_turn(&self) -> Result<()> {
        let mine = u64::from(self.memory.id() + 1);
        let end = |word: u64| match word >> TURN == mine {
            true => word & ((1 << TURN) - 1),
            false => word,
        };
        self.change_leaving(end).map(|_| ())
    }

    /// This node does not leave, whatever it has said.
    pub fn stay(&self) -> Result<()> {
        if self.memory.pages_survive() {
            return Ok(());
        }
        let (me, mine) = (self.memory.id(), u64::from(self.memory.id() + 1));
        self.memory.withhold(false);
        self.leaving.yes.store(false, Relaxed);
        let word = self.leaving_word()?;
        if word >> me & 1 == 0 && word >> TURN != mine {
            return Ok(());
        }
        self.end_turn()?;
        self.change_leaving(|word| word & !(1 << me)).map(|_| ())
    }

    /// Memory for something of this node's: at this node, unless it leaves.
    #[inline]
    pub fn alloc(&self, len: usize) -> Maybe<u64> {
        if !self.leaving.yes.load(Relaxed) {
            match self.memory.alloc(len) {
                // It has begun to leave just now.
                Err(MemoryError::OutOfMemory) if self.leaving.yes.load(Relaxed) => {}
                allocated => return allocated,
            }
        }
        self.alloc_elsewhere(|node| self.memory.alloc_on(node, len))
    }

    /// Memory at node `home`, or at another if that one leaves.
    pub fn alloc_near(&self, home: u16, len: usize) -> Maybe<u64> {
        match self.memory.alloc_on(home, len) {
            Err(MemoryError::OutOfMemory) if self.leaving_word()? >> home & 1 == 1 => {
                self.alloc_elsewhere(|node| self.memory.alloc_on(node, len))
            }
            allocated => allocated,
        }
    }

    /// Lets one of the nodes that stay give memory, each in its turn; the next one if it has none,
    /// or dies.
    pub(in crate::store) fn alloc_elsewhere(
        &self,
        mut f: impl FnMut(u16) -> Maybe<u64>,
    ) -> Maybe<u64> {
        let nodes: Vec<u16> = self.others_that_stay(self.leaving_word()?).collect();
        let first = self.leaving.next.fetch_add(1, Relaxed);
        let mut last = MemoryError::OutOfMemory;
        for nth in 0..nodes.len() {
            match f(nodes[first.wrapping_add(nth) % nodes.len()]) {
                Err(error @ (MemoryError::OutOfMemory | MemoryError::NodeLost(_))) => last = error,
                given => return given,
            }
        }
        Err(last)
    }

    /// The node that one of the first slabs is to be at. One that has not come yet is waited for.
    pub(in crate::store) fn first_home(&self, slab: usize) -> Result<u16> {
        let wanted = self.map.home(slab);
        match self.memory.pages_survive() || self.leaving_word()? >> wanted & 1 == 0 {
            true => Ok(wanted),
            false => self.home_for(slab),
        }
    }

    /// The node that a new slab is to be at: another than it would be if that one leaves,
    /// or is away.
    pub(in crate::store) fn home_for(&self, slab: usize) -> Result<u16> {
        let (wanted, nodes) = (self.map.home(slab), self.map.nodes as u16);
        if self.memory.pages_survive() {
            return Ok(wanted);
        }
        let word = self.leaving_word()?;
        let stays = |node: &u16| word >> node & 1 == 0 && self.memory.is_member(*node);
        let mut from_there = (0..nodes).map(|nth| (wanted + nth) % nodes);
        Ok(from_there.find(stays).unwrap_or(wanted))
    }

    /// Bytes of addresses of locks that are elsewhere by now.
    pub(in crate::store) fn retired_bytes(&self) -> usize {
        self.leaving.retired().iter().map(|(_, len)| len).sum()
    }

    pub(super) fn free_retired(&self) -> Result<()> {
        for (addr, len) in self.leaving.retired().drain(..) {
            self.memory.free(addr, len)?;
        }
        Ok(())
    }
}
