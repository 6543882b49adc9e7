//! A reconfigurable match table pipeline, as far as a stateful program feels it (paper §2.2).
//!
//! A register array belongs to one stage. A packet passes the stages in order, once, and may read,
//! modify and write one item of an array as it passes. Going back needs a resubmission,
//! which is a new pass. An
//! [`Array`] refuses everything else, so what runs here can be written in P4 and laid out on such a
//! chip.

use alloc::boxed::Box;
use core::cell::Cell;

/// A broken rule. It is a defect of the program, never the fault of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// The packet has passed this stage already.
    Backward {
        /// The stage that was asked for.
        stage: u8,
    },
    /// The array was accessed in this pass already.
    Twice {
        /// The stage it lives in.
        stage: u8,
    },
    /// The index is outside the array.
    Index {
        /// The stage it lives in.
        stage: u8,
    },
}

/// One packet's way through the stages.
pub struct Pass {
    number: u64,
    stage: Cell<u8>,
}

/// Hands out passes.
#[derive(Clone, Default)]
pub struct Pipeline {
    passes: u64,
}

impl Pipeline {
    /// A packet enters, or enters again.
    #[inline]
    pub fn enter(&mut self) -> Pass {
        self.passes += 1;
        Pass {
            number: self.passes,
            stage: Cell::new(0),
        }
    }

    /// Packets that entered, resubmissions included.
    pub fn passes(&self) -> u64 {
        self.passes
    }
}

/// A register array.
#[derive(Clone)]
pub struct Array<T> {
    stage: u8,
    last_pass: u64,
    items: Box<[T]>,
}

impl<T: Clone + Default> Array<T> {
    /// `len` items in a stage.
    pub fn new(stage: u8, len: usize) -> Self {
        Array {
            stage,
            last_pass: 0,
            items: alloc::vec![T::default(); len].into_boxed_slice(),
        }
    }
}

impl<T> Array<T> {
    /// The one read-modify-write of an item that a pass may do.
    #[inline]
    pub fn access<R>(
        &mut self,
        pass: &Pass,
        index: usize,
        f: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Violation> {
        let stage = self.stage;
        if pass.stage.get() > stage {
            return Err(Violation::Backward { stage });
        }
        if self.last_pass == pass.number {
            return Err(Violation::Twice { stage });
        }
        let item = self
            .items
            .get_mut(index)
            .ok_or(Violation::Index { stage })?;
        pass.stage.set(stage);
        self.last_pass = pass.number;
        Ok(f(item))
    }

    /// The stage it lives in.
    pub fn stage(&self) -> u8 {
        self.stage
    }

    /// How many items it has.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of one item.
    pub fn item_bytes(&self) -> usize {
        size_of::<T>()
    }

    /// The items, as the control plane reads them.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Writes an item, as the control plane does. Says whether there was something to write,
    /// and a place for it.
    pub fn put(&mut self, index: usize, value: Option<T>) -> bool {
        match (self.items.get_mut(index), value) {
            (Some(item), Some(value)) => *item = value,
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_only_goes_forward() {
        let mut pipeline = Pipeline::default();
        let mut early = Array::<u32>::new(1, 4);
        let mut late = Array::<u32>::new(2, 4);
        let pass = pipeline.enter();
        assert_eq!(late.access(&pass, 0, |v| *v), Ok(0));
        assert_eq!(
            early.access(&pass, 0, |v| *v),
            Err(Violation::Backward { stage: 1 })
        );
        let pass = pipeline.enter();
        assert_eq!(early.access(&pass, 0, |v| *v), Ok(0));
    }

    #[test]
    fn an_array_is_touched_once_a_pass() {
        let mut pipeline = Pipeline::default();
        let mut array = Array::<u32>::new(0, 4);
        let pass = pipeline.enter();
        assert_eq!(array.access(&pass, 1, |v| core::mem::replace(v, 7)), Ok(0));
        assert_eq!(
            array.access(&pass, 1, |v| *v),
            Err(Violation::Twice { stage: 0 })
        );
        let again = pipeline.enter();
        assert_eq!(array.access(&again, 1, |v| *v), Ok(7));
        let other = pipeline.enter();
        assert_eq!(
            array.access(&other, 4, |v| *v),
            Err(Violation::Index { stage: 0 })
        );
    }

    #[test]
    fn arrays_of_one_stage_go_together() {
        let mut pipeline = Pipeline::default();
        let mut lock = Array::<u16>::new(3, 1);
        let mut status = Array::<u8>::new(3, 1);
        let pass = pipeline.enter();
        assert!(status.access(&pass, 0, |_| ()).is_ok());
        assert!(lock.access(&pass, 0, |_| ()).is_ok());
    }
}
