//! A node leaves the rack, and what the store has of its memory moves to nodes that stay, while all
//! go on to use it.
//!
//! A node says in the superblock that it leaves. From then on nobody takes memory of it for new
//! things, and its books are closed, so that there is nothing new of it in any case. Then it goes
//! through the store:
//!
//! | what | how it moves | others meanwhile |
//! |---|---|---|
//! | long values, collections' nodes, pages (`values.rs`) | one by one | wait for its bucket |
//! | a slab's locks and head pages (`slabs.rs`) | all at once | wait for the slab |
//!
//! A value is written elsewhere under its bucket's lock; then the bucket points there. Of a slab,
//! new locks get the head pages, the store's table names the new ones, and the old pages say that
//! they are not it any more. Who comes to an old lock later finds that mark, or that its home is
//! gone, and looks the slab up again ([`Core::look_again`]). Where a slab is, is its address: so in
//! what every node has of it anyhow.
//!
//! One node moves at a time; a second one that wants to leave waits, and gets nothing meanwhile.
//! A node that dies in the middle has moved what it has moved. The rest dies with it, as with any
//! node that dies.
//!
//! The store's region, with the superblock and the tables, does not move. Where it has no copies it
//! is node 0's, which cannot leave.

mod places;
mod slabs;
mod values;

use std::fmt;
use std::time::{Duration, Instant};

use super::Store;
use super::core::Core;
use crate::error::{Error, Result};
use crate::memory::{Memory, MemoryError};

pub(crate) use self::places::Leaving;

/// How long other nodes may take to give back what they keep of a node's memory.
const SETTLES: Duration = Duration::from_millis(500);
/// Between two looks at what others do.
const PAUSE: Duration = Duration::from_millis(10);
/// Passes through the store after the node's own threads have ended, at most.
const LAST_PASSES: usize = 4;

/// What has been moved so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Buckets, by their locks.
    pub buckets: usize,
    /// Long values, collections and further pages of buckets.
    pub values: usize,
    /// Buckets that could not be looked at, since a node of theirs is away: they stay as they are.
    pub skipped: usize,
}

/// Why a node does not leave, or has stopped to.
#[derive(Debug)]
pub enum CannotLeave {
    /// It has the store's superblock, and the rack keeps no copies of that.
    KeepsTheStore,
    /// There is no other member that stays.
    Alone,
    /// The caller wanted it to stop.
    Stopped,
    /// Memory is full at all who stay ([`CannotLeave::is_full`]), or the store cannot be reached.
    Store(Error),
}

impl CannotLeave {
    /// Whether those who stay have no room for what the node has.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Store(Error::Memory(MemoryError::OutOfMemory)))
    }
}

impl From<Error> for CannotLeave {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for CannotLeave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepsTheStore => f.write_str(
                "it has the store's root: the store ends with it (`copies = 3` in the rack's file would keep that)",
            ),
            Self::Alone => f.write_str("no other node stays"),
            Self::Stopped => f.write_str("it was stopped before everything was moved"),
            Self::Store(error) if self.is_full() => {
                write!(f, "the nodes that stay have no room for its keys: {error}")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CannotLeave {}

/// What one pass through the store has met.
#[derive(Default)]
struct Pass {
    /// Slabs that somebody was inside of for too long.
    busy: usize,
    skipped: usize,
}

impl<M: Memory> Store<M> {
    /// Moves all that the store has of this node's memory to nodes that stay, while this and all
    /// other nodes go on to use the store. `go_on` is told what has moved, again and again,
    /// and says whether to go on. When this has returned, the node's servers end, and
    /// [`Store::finish_leaving`] moves what they have left.
    ///
    /// Memory that survives its nodes stays where it is.
    ///
    /// # Errors
    /// Those of [`CannotLeave`]. What was moved stays moved, and the node is as one that leaves:
    /// it gives no memory. [`Store::stay`] takes that back.
    pub fn leave(
        &self,
        go_on: &mut dyn FnMut(&Moved) -> bool,
    ) -> std::result::Result<Moved, CannotLeave> {
        let (core, mut moved) = (&self.core, Moved::default());
        if core.memory.pages_survive() {
            return Ok(moved);
        }
        core.begin_leaving(&mut || go_on(&Moved::default()))?;
        loop {
            let before = moved;
            let pass = core.pass(&mut moved, go_on);
            let pass = pass.map_err(|why| core.unless_alone(why))?;
            let nothing = (before.buckets, before.values) == (moved.buckets, moved.values);
            if pass.busy == 0 && (nothing || core.settles()) {
                return Ok(moved);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Moves what came last, when no other thread of this node uses the store any more, and frees
    /// the rest. Says how many bytes of the node's memory are given out nevertheless:
    /// what died with nodes while it was theirs. The node has to leave the rack after this.
    ///
    /// # Errors
    /// As for [`Store::leave`].
    pub fn finish_leaving(
        &self,
        go_on: &mut dyn FnMut(&Moved) -> bool,
    ) -> std::result::Result<usize, CannotLeave> {
        let (core, mut moved) = (&self.core, Moved::default());
        if core.memory.pages_survive() {
            return Ok(0);
        }
        core.stop_listening()?;
        for _ in 0..LAST_PASSES {
            if core.settles() {
                break;
            }
            let before = moved;
            core.pass(&mut moved, go_on)?;
            if before == moved {
                break;
            }
        }
        core.free_retired()?;
        core.end_turn()?;
        core.settles();
        Ok(core.memory.given_bytes())
    }

    /// The node does not leave after all, and gives memory again.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn stay(&self) -> Result<()> {
        self.core.stay()
    }
}

impl<M: Memory> Core<M> {
    /// Goes through the store once.
    fn pass(
        &self,
        moved: &mut Moved,
        go_on: &mut dyn FnMut(&Moved) -> bool,
    ) -> std::result::Result<Pass, CannotLeave> {
        let mut pass = Pass::default();
        self.move_values(moved, &mut pass, go_on)?;
        self.move_slabs(moved, &mut pass, go_on)?;
        self.move_right()?;
        moved.skipped = pass.skipped;
        Ok(pass)
    }

    /// Waits until nothing is given out of this node's memory but the addresses of locks that are
    /// elsewhere by now; not for ever.
    fn settles(&self) -> bool {
        let began = Instant::now();
        while self.memory.given_bytes() > self.retired_bytes() + self.log_bytes() {
            if began.elapsed() >= SETTLES {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }
}
