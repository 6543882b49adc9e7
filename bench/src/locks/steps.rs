//! A lock taken and left one operation at a time, by a thread that does several parts:
//! to count what each costs.

use super::any::AnyLock;
use super::error::{Error, Result};
use super::seat::TakenPlace;
use rackmem_baselines::locks::Access;

/// What a step has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// An operation has been executed, and there are more.
    Did,
    /// It has to wait for others: another step looks again.
    Waits,
    /// It is inside.
    Inside,
    /// It is outside.
    Outside,
}

/// One thread's part in a lock over coherent memory, an operation a step. Unless it is outside when
/// it is dropped it leaves first, or, if it is in the middle of something, the lock is abandoned.
pub struct Steps<'a> {
    lock: &'a AnyLock,
    seat: TakenPlace<'a>,
}

impl AnyLock {
    /// Takes a seat, to enter and leave by steps.
    ///
    /// # Errors
    /// [`Error::NoSteps`] for GCP, which has no steps; [`Error::Abandoned`].
    pub fn steps(&self) -> Result<Steps<'_>> {
        let why = Error::NoSteps("a lock that is coherence has no steps");
        let local = self.local().ok_or(why)?;
        let seat = TakenPlace::take(self.node(), local)?;
        Ok(Steps { lock: self, seat })
    }
}

impl Steps<'_> {
    /// Wants to be inside, to write, or to read together with others. Unless it is outside,
    /// it goes on with what it does.
    pub fn enter(&mut self, write: bool) {
        self.seat.begin(match write {
            true => Access::Write,
            false => Access::Read,
        });
    }

    /// Wants to be outside. Unless it is inside, it goes on with what it does.
    pub fn leave(&mut self) {
        self.seat.begin_to_leave();
    }

    /// Executes the next operation, if it need not wait.
    ///
    /// # Errors
    /// Those of [`rackmem::Node::load`] and [`rackmem::Node::fetch_update`].
    pub fn step(&mut self) -> Result<Progress> {
        self.seat.step()
    }

    /// Writes bytes of what the lock protects, from this one on, being inside.
    ///
    /// # Errors
    /// [`rackmem::LockError::OutsideRanges`], [`Error::NoSteps`] outside; those of
    /// [`rackmem::Node::write`].
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        if !self.seat.inside() {
            return Err(Error::NoSteps("writing outside of a lock"));
        }
        let addr = self.lock.within(offset, bytes.len())?;
        Ok(self.lock.node().write(addr, bytes)?)
    }

    /// Goes on until it has to wait, or is where it wants to be.
    ///
    /// # Errors
    /// Those of [`Steps::step`].
    pub fn run(&mut self) -> Result<Progress> {
        loop {
            match self.step()? {
                Progress::Did => {}
                end => return Ok(end),
            }
        }
    }
}
