//! Writing items, under a lock of the rack.

use super::domain::Domain;
use crate::bytes::value::Value;
use crate::error::{AccessError, RegionError};
use crate::locked::MutexGuard;

/// The region's one writer, as long as this lives: what it reads is what the home has.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::bounded::{Domain, DomainWriter};
/// use rackmem::{Contract, Rack, RegionSpec};
/// use std::time::Duration;
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("totals", 64 * 8).contract(Contract::Bounded);
/// let totals = Domain::<u64>::of(&rack.node(1).create_region(&spec)?, Duration::from_secs(1))?;
/// let mut writer: DomainWriter<'_, u64> = totals.writer()?;
/// writer.set(0, &5)?;
/// assert_eq!(writer.update(0, |total| total + 2)?, 7);
/// drop(writer);
/// assert_eq!(totals.read(0)?, 7); // own writes are seen
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DomainWriter<'a, T: Value> {
    pub(super) domain: &'a Domain<T>,
    guard: MutexGuard<'a, u64>,
}

impl<'a, T: Value> DomainWriter<'a, T> {
    pub(super) fn new(domain: &'a Domain<T>) -> Result<Self, RegionError> {
        let guard = domain.lock()?.lock()?;
        Ok(DomainWriter { domain, guard })
    }

    pub(super) async fn new_async(domain: &'a Domain<T>) -> Result<Self, RegionError> {
        let guard = domain.lock()?.lock_async().await?;
        Ok(DomainWriter { domain, guard })
    }

    /// An item was written.
    pub(super) fn count(&mut self) {
        self.guard.update(|writes| writes.wrapping_add(1));
    }

    /// An item as it is now.
    ///
    /// # Errors
    /// [`AccessError::OutOfBounds`], [`AccessError::Gone`], those of [`Node`](crate::Node).
    pub fn get(&self, index: usize) -> Result<T, AccessError> {
        self.domain.copies.fetch(index)
    }

    /// An item is this from now on, for all sections that begin when the bound is over. Readers see
    /// what was there or all of this, never parts of both.
    ///
    /// # Errors
    /// Those of [`DomainWriter::get`]. After [`RackError::Timeout`](crate::RackError::Timeout) it
    /// may have been written.
    pub fn set(&mut self, index: usize, value: &T) -> Result<(), AccessError> {
        self.domain.copies.write(index, value)?;
        self.count();
        Ok(())
    }

    /// Changes an item; what it is then.
    ///
    /// # Errors
    /// Those of [`DomainWriter::set`].
    pub fn update(&mut self, index: usize, f: impl FnOnce(T) -> T) -> Result<T, AccessError> {
        let value = f(self.get(index)?);
        self.set(index, &value)?;
        Ok(value)
    }

    /// How often the region was written under its lock.
    pub fn writes(&self) -> u64 {
        self.guard.get()
    }
}
