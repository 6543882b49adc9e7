//! Where tests make the engine `locks` leave something out, or have a node die in the middle of it.

use super::Locks;
use crate::error::Result;
use crate::layout::Cell;
#[cfg(test)]
use crate::tests::Defect;

#[cfg(not(test))]
impl Locks {
    /// A transaction has the lock of a cell.
    pub(super) fn took(&self, _: Cell, _: bool) {}

    /// A step of a commit is done at a node.
    pub(super) fn moment(&self, _: usize) -> Result<()> {
        Ok(())
    }

    /// Whether a thread keeps its locks that cannot finish its commit.
    pub(super) fn stays_inside(&self) -> bool {
        true
    }

    /// Whether a commit has a log, where the database outlives nodes.
    pub(super) fn writes_log(&self) -> bool {
        true
    }

    /// Whether cells that are going to be changed are not locked.
    pub(super) fn skips_lock(&self) -> bool {
        false
    }

    /// Whether what was read under a lock that was left to get it to write is compared.
    pub(super) fn looks_again(&self) -> bool {
        true
    }
}

#[cfg(test)]
impl Locks {
    pub(super) fn took(&self, cell: Cell, to_write: bool) {
        self.taken.lock().unwrap().push((cell, to_write));
    }

    pub(super) fn moment(&self, node: usize) -> Result<()> {
        self.dying.as_ref().map_or(Ok(()), |it| it.moment(node))
    }

    pub(super) fn stays_inside(&self) -> bool {
        self.dying.as_ref().is_none_or(|it| it.stays_inside)
    }

    pub(super) fn writes_log(&self) -> bool {
        self.defect != Some(Defect::Unlogged)
    }

    pub(super) fn skips_lock(&self) -> bool {
        self.defect == Some(Defect::WritesUnlocked)
    }

    pub(super) fn looks_again(&self) -> bool {
        self.defect != Some(Defect::UpgradesUnchecked)
    }

    /// Settles all logs of a node as if it were dead.
    pub(crate) fn bury(&self, node: usize, dead: u16) -> Result<()> {
        let survival = self.survival.as_ref().expect("a database with copies");
        let moment = || self.moment(node);
        survival.settle_of(&self.settler(node, &moment), &|owner, _| owner == dead)
    }
}
