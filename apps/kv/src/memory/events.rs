//! What else happens while the memory of one process is used: what can befall a rack, for tests of
//! what a store makes of it.

use super::{Fate, MemoryError};

/// What a store does in its memory; addresses with lengths, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A range is about to be read.
    Read(u64, usize),
    /// A range is about to be written.
    Write(u64, usize),
    /// A range is about to be changed in place.
    Update(u64, usize),
    /// Memory of a node is about to be given out.
    Give(u16),
    /// It was, at an address.
    Given(u16, u64),
    /// Memory at an address is about to be taken back.
    TakeBack(u64),
    /// What was about to be done is done, or cannot be: reading, writing, changing, or taking back.
    Done,
    /// The lock of a page is about to be entered: one of those at an address.
    Enter(u64, usize),
    /// Others are inside, and are waited for.
    Wait(u64, usize),
    /// The lock was entered, or it was not the caller's turn in time.
    Entered(u64, usize),
    /// It is about to be left.
    Leave(u64, usize),
    /// It was left.
    Left(u64, usize),
}

/// What happens to a [`HeapMemory`](super::HeapMemory) beside what is done with it. Any thread that
/// uses the memory calls it, inside no lock of the memory's own.
pub trait Events: Send + Sync + 'static {
    /// A step of a store. An error keeps from being done what is about to be, but for waiting and
    /// leaving; otherwise it changes nothing.
    fn happens(&self, _step: Step) -> Result<(), MemoryError> {
        Ok(())
    }

    /// See [`Memory::fate`](super::Memory::fate).
    fn fate(&self, _addr: u64) -> Fate {
        Fate::Live
    }

    /// See [`Memory::lives`](super::Memory::lives).
    fn lives(&self) -> u64 {
        0
    }

    /// See [`Memory::undisturbed`](super::Memory::undisturbed).
    fn undisturbed(&self) -> bool {
        true
    }

    /// See [`Memory::confirm`](super::Memory::confirm).
    fn confirm(&self) -> Result<(), MemoryError> {
        Ok(())
    }
}

/// Nothing else happens.
pub(super) struct Calm;

impl Events for Calm {}
