//! Memory of their own for long values.
//!
//! An extent is filled before any record points to it. Should the step that makes a record point to
//! it fail, the extent is freed, unless the memory failed in a way that leaves open whether the
//! step took place: then it is left alone, for memory lost is better than memory used twice.

use super::core::Core;
use super::lock::Scope;
use crate::MAX_VALUE;
use crate::error::{Error, Result};
use crate::layout::page::Extent;
use crate::memory::Memory;

/// Bytes moved at a time from one extent to the next.
const PIECE: usize = 256 << 10;

impl<M: Memory> Core<M> {
    /// Writes a long value to memory of its own.
    pub fn store_value(&self, scope: Scope<'_, M>, value: &[u8]) -> Result<Extent> {
        if value.len() > MAX_VALUE {
            return Err(Error::ValueTooLong);
        }
        let extent = Extent {
            addr: self.alloc(value.len())?,
            capacity: value.len(),
        };
        scope.note_fresh(extent.addr, extent.capacity);
        let written = self.memory.write(extent.addr, value).map_err(Error::from);
        self.settle(scope, extent, written, |()| true)?;
        Ok(extent)
    }

    /// Frees the extent if `outcome` says that nothing points to it; hands the outcome on.
    pub fn settle<T>(
        &self,
        scope: Scope<'_, M>,
        extent: Extent,
        outcome: Result<T>,
        used: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        let unused = match &outcome {
            Ok(outcome) => !used(outcome),
            Err(error) => error.certain(),
        };
        if unused {
            self.discard(scope, extent)?;
        }
        outcome
    }

    /// Frees an extent that no record points to.
    pub fn discard(&self, scope: Scope<'_, M>, extent: Extent) -> Result<()> {
        self.release(scope, extent.addr, extent.capacity)
    }

    /// Copies between extents.
    pub fn copy_bytes(&self, from: u64, to: u64, len: usize) -> Result<()> {
        let mut buffer = vec![0; len.min(PIECE)];
        let mut done = 0;
        while done < len {
            let n = (len - done).min(buffer.len());
            self.memory.read(from + done as u64, &mut buffer[..n])?;
            self.memory.write(to + done as u64, &buffer[..n])?;
            done += n;
        }
        Ok(())
    }
}
