//! Regions, as a node offers them.

use super::{Absent, find, open_or_create};
use crate::error::Result;
use crate::node::Node;

impl Node {
    /// The named region of `len` bytes and this type, created (zeroed) if nobody has yet: its address, and
    /// whether this call created it. All nodes see the same table.
    ///
    /// # Errors
    /// [`Error::NameLost`](crate::Error::NameLost) when it has died with its home: [`Node::renewed_region`] makes it anew. [`Error::RegionMismatch`](crate::Error::RegionMismatch),
    /// [`Error::RegionTable`](crate::Error::RegionTable), [`Error::OutOfMemory`](crate::Error::OutOfMemory); [`Error::NodeLost`](crate::Error::NodeLost) when node 0, which has the table, is gone.
    pub fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<(u64, bool)> {
        self.cached("named regions")?;
        let (home, what) = (self.inner.id, (len, type_hash));
        open_or_create(self, home, name, what, Absent::Report)
    }

    /// Like [`Node::region`]; a region that has died with its home is made anew, with its memory at this node. Of several nodes
    /// that ask at once one makes it, and is told so.
    ///
    /// # Errors
    /// Those of [`Node::region`], but [`Error::NameLost`](crate::Error::NameLost).
    pub fn renewed_region(&self, name: &str, len: usize, type_hash: u64) -> Result<(u64, bool)> {
        self.cached("named regions")?;
        let (home, what) = (self.inner.id, (len, type_hash));
        open_or_create(self, home, name, what, Absent::Renew)
    }

    /// Like [`Node::region`], with a new region's memory at node `home` and not at this one: what is at node 0, as the
    /// table itself is, does not die with others.
    pub fn region_on(
        &self,
        home: u16,
        name: &str,
        len: usize,
        type_hash: u64,
    ) -> Result<(u64, bool)> {
        self.cached("named regions")?;
        open_or_create(self, home, name, (len, type_hash), Absent::Report)
    }

    /// A named region that exists already: its address and length.
    pub fn find_region(&self, name: &str, type_hash: u64) -> Result<(u64, usize)> {
        self.cached("named regions")?;
        find(self, name, type_hash)
    }
}
