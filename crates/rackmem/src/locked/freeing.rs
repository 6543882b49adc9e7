//! Freeing a lock, and making the next one in its place ([`Life`] says by which rules).
//!
//! Who frees a lock enters it to write, ends its life, leaves, and asks the home to take the lock
//! (`Yield` with that life) until the home says that it knows. The home puts the place to those in
//! which the next locks of its threads are made. A node that dies before the home knows leaves a
//! lock that lives on, or a place that is not used again until some handle finds the lock freed:
//! that node then tells the home.

use super::descriptor::{self, Name};
use super::handle::{Handle, Inside, locks};
use crate::backoff::Backoff;
use crate::error::{AccessError, LockError, RackError};
use crate::host::locks::leaving::{PAUSES, ask};
use crate::region;
use rackmem_proto::gcp::{Access, Life};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Who makes a lock waits so long for a place that a thread with an old handle has just entered,
/// and then takes another.
pub(super) const FOR_A_PLACE: Duration = Duration::from_millis(20);
/// Places that it tries before it asks for memory.
pub(super) const TRIES: usize = 4;
/// Who asks whether a lock with a name has been freed waits so long for whoever is inside, which
/// nobody is for long if it has.
const FOR_A_LOOK: Duration = Duration::from_secs(1);

impl Handle {
    /// Makes what is inside another lock's, or no lock's.
    fn end(&self, life: Life) {
        self.cell.content.renew(1);
        self.set_life(life);
        self.cell.told_len.store(0, Relaxed);
    }

    /// Frees the lock, whoever has made it; `before` is what its user does as the last one inside.
    pub fn free(
        &self,
        before: impl FnOnce(&Inside<'_>) -> Result<(), LockError>,
    ) -> Result<(), LockError> {
        let addr = self.addr();
        if self.copied.is_some() {
            return Err(LockError::Stays { addr });
        }
        let patience = self.node.inner.access.patience;
        let inside = self.enter(Access::Write, patience)?;
        let inside = inside.ok_or(LockError::Busy { addr })?;
        before(&inside)?;
        let ended = match self.is_named() {
            true => self.life.closed(),
            false => self.life.freed(),
        };
        self.end(ended);
        drop(inside);
        let rest = self.await_home(ended).and_then(|()| match self.is_named() {
            true => self.take_name_away(),
            false => Ok(()),
        });
        rest.map_err(|why| match why {
            // With its home, nothing of it is left.
            AccessError::Rack(RackError::NodeLost { .. }) => why.into(),
            why => LockError::FreedInPart { addr, why },
        })
    }

    /// The lock has been freed, and its home knows. Its name goes before its place is used again.
    pub(super) fn take_name_away(&self) -> Result<(), AccessError> {
        let (addr, freed) = (self.addr(), self.life.freed());
        let place = self.place();
        let inside = place.enter(Access::Write, self.node.inner.access.patience);
        let inside = inside.map_err(|error| beneath(error, addr))?;
        let inside = inside.ok_or(AccessError::Busy { addr })?;
        // Several may do it. What is at the place later may have the same name.
        if self.cell.life() == self.life.closed() {
            region::vacate(&self.node, addr, &|name| Name::of(name) == self.name)?;
            self.end(freed);
        }
        drop(inside);
        self.await_home(freed)
    }

    /// Whether a lock with a name is not one any more. Then the name does not lead there any more.
    pub fn is_gone(&self) -> Result<bool, LockError> {
        match self.enter(Access::Read, FOR_A_LOOK) {
            Err(LockError::Freed { .. }) => {
                self.take_name_away()?;
                Ok(true)
            }
            other => other.map(|_| false),
        }
    }

    /// Waits until the home has what the lock protects as of the end of this life,
    /// or of something later.
    fn await_home(&self, ended: Life) -> Result<(), AccessError> {
        let (locks, tag) = (locks(&self.node), self.cell.tag);
        if locks.is_home(tag) {
            self.send(locks.offer(&self.cell));
            return Ok(());
        }
        let mut backoff = Backoff::new(self.node.inner.access.patience);
        let (mut again, mut pause) = (Instant::now(), PAUSES[0]);
        loop {
            let now = Instant::now();
            if now >= again {
                // Another thread of this node may have ended a later life, and been told.
                locks.ends.await_end(tag);
                ask(&self.node.inner.access, &[&self.cell], Some(ended));
                (again, pause) = (now + pause, (pause * 2).min(PAUSES[1]));
            }
            let why = if locks.ends.is_known(tag, ended) {
                None
            } else if locks.look(&self.cell, |state| state.lock.is_over()) {
                Some(AccessError::gone(tag, locks.host(tag.home())))
            } else if let Some(error) = self.ended() {
                Some(error.into())
            } else if !backoff.wait() {
                Some(AccessError::silent(tag, locks.host(tag.home())))
            } else {
                continue;
            };
            locks.ends.forget(tag);
            return why.map_or(Ok(()), Err);
        }
    }

    /// A thread finds inside that this is not the lock that it has a handle on.
    #[cold]
    pub(super) fn refuse(&self, inside: Inside<'_>) -> LockError {
        let (addr, found) = (self.addr(), self.cell.life());
        inside.decline();
        if found.is_vacant() && found != Life::NONE {
            // Its home may not know: who has freed it may have died.
            let locks = locks(&self.node);
            match locks.is_home(self.cell.tag) {
                true => self.send(locks.offer(&self.cell)),
                false => ask(&self.node.inner.access, &[&self.cell], Some(found)),
            }
        }
        match found {
            Life::NONE => LockError::NoLock { addr },
            _ => LockError::Freed { addr },
        }
    }
}

/// Why a place has not been entered, whatever lock is there.
fn beneath(error: LockError, addr: u64) -> AccessError {
    match error {
        LockError::Rack(error) => error.into(),
        LockError::Access(error) => error,
        _ => AccessError::Busy { addr },
    }
}

/// Bytes of memory at the address of a lock with a name.
pub(super) fn room() -> usize {
    descriptor::room(0)
}
