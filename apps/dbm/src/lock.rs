//! The one lock over all of a database.

use rackmem::locked::RwLock;
use std::error::Error;

/// Why a lock was not to be had.
pub type LockFailure = Box<dyn Error + Send + Sync>;

/// A reader-writer lock as one node has it; the other nodes' databases have the same one.
///
/// The section runs once, or not at all if the lock fails. What a section has written to coherent
/// memory is seen by all sections that come after it.
pub trait Lock: Sync {
    /// Runs a section that may run beside other shared ones.
    ///
    /// # Errors
    /// That the lock was not to be had.
    fn shared(&self, section: &mut dyn FnMut()) -> Result<(), LockFailure>;

    /// Runs a section beside which no other runs.
    ///
    /// # Errors
    /// That the lock was not to be had.
    fn exclusive(&self, section: &mut dyn FnMut()) -> Result<(), LockFailure>;
}

/// GCP's: the rack's own lock. What it protects itself is a word that nobody uses; the database
/// comes by coherence, page by page, since a section needs a few pages of many.
impl Lock for RwLock<u64> {
    fn shared(&self, section: &mut dyn FnMut()) -> Result<(), LockFailure> {
        let _held = self.read()?;
        section();
        Ok(())
    }

    fn exclusive(&self, section: &mut dyn FnMut()) -> Result<(), LockFailure> {
        let _held = self.write()?;
        section();
        Ok(())
    }
}
