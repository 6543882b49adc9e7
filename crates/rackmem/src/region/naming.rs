//! Regions, as a node offers them.

use super::creating::{Absent, Purpose, Want, fits, open};
use super::handle::Region;
use super::row::{ROW, RegionInfo};
use super::spec::RegionSpec;
use super::{all_rows, creating::Opened, find, insist, is_gone, name_lost, removing};
use crate::error::RegionError;
#[cfg(doc)]
use crate::error::{AccessError, AllocError, RackError};
use crate::node::Node;
use rackmem_proto::wire::HomeId;

impl Node {
    /// The region of a name, created (zeroed) if nobody has yet. All nodes see the same table.
    ///
    /// # Errors
    /// [`RegionError::ContractNotBuilt`] and [`RegionError::BackingNotBuilt`];
    /// [`AccessError::WrongContract`] when there is one under another contract, and
    /// [`RegionError::Mismatch`] when it differs otherwise; [`RegionError::NameLost`] when it has
    /// died with its home:
    /// [`RegionSpec::renew`] makes it anew. [`RegionError::TableFull`],
    /// [`AllocError::OutOfMemory`];
    /// [`RackError::NodeLost`] when node 0, which has the table, is gone.
    pub fn create_region(&self, spec: &RegionSpec) -> Result<Region, RegionError> {
        spec.is_built()?;
        self.open()?;
        let want = Want {
            name: &spec.name,
            what: spec.what(),
            absent: match spec.renew {
                true => Absent::Renew,
                false => Absent::Report,
            },
            purpose: Purpose::Bytes {
                home: spec.home.unwrap_or(HomeId::of(self.inner.id)),
            },
        };
        Ok(Region::new(self, spec, open(self, &want)?))
    }

    /// A region that exists already.
    ///
    /// # Errors
    /// [`RegionError::NotFound`], and those of [`Node::create_region`].
    pub fn open_region(&self, spec: &RegionSpec) -> Result<Region, RegionError> {
        spec.is_built()?;
        self.open()?;
        let (row, ready) = find(self, &spec.name)?;
        fits(&spec.name, &spec.what(), &ready)?;
        if is_gone(self, ready.addr) {
            return Err(name_lost(self, &spec.name, ready.addr));
        }
        let opened = Opened {
            row,
            ready,
            created: false,
        };
        Ok(Region::new(self, spec, opened))
    }

    /// Takes a region's name away and gives its memory back, on any node.
    /// Handles that nodes still have are told so ([`RegionError::Removed`]); whoever has kept the
    /// bare address reads and writes what is allocated there next. The name can be used again, for
    /// anything. Of several who remove one region at a time one does,
    /// and the others are told that there is none.
    ///
    /// # Errors
    /// [`RegionError::NotFound`]; [`RegionError::NotRemovable`] when it is a lock's,
    /// which goes with its lock ([`Mutex::free`](crate::locked::Mutex::free)), or of locks, which
    /// cannot be freed yet. Those of [`Node::free_bytes`], after which the name is gone all the
    /// same.
    pub fn remove_region(&self, name: &str) -> Result<(), RegionError> {
        self.open()?;
        removing::remove(self, name)
    }

    /// The regions of the rack and its named locks, in the order of their names. Each row of the
    /// table is looked at for itself, while others go on.
    pub fn regions(&self) -> Result<Vec<RegionInfo>, RegionError> {
        self.open()?;
        let mut found = Vec::new();
        for row in all_rows(self) {
            found.extend(insist(self, || self.snapshot(row, ROW, RegionInfo::of))?);
        }
        found.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Ok(found)
    }

    /// The coherent region of `len` bytes and this type, created (zeroed) if nobody has yet:
    /// its address, and whether this call created it. [`Node::create_region`] in short.
    ///
    /// # Errors
    /// Those of [`Node::create_region`].
    pub fn region(
        &self,
        name: &str,
        len: usize,
        type_hash: u64,
    ) -> Result<(u64, bool), RegionError> {
        self.coherent(RegionSpec::new(name, len).element(type_hash))
    }

    /// Like [`Node::region`]; a region that has died with its home is made anew, with its memory at
    /// this node. Of several nodes that ask at once one makes it, and is told so.
    ///
    /// # Errors
    /// Those of [`Node::region`], but [`RegionError::NameLost`].
    pub fn renewed_region(
        &self,
        name: &str,
        len: usize,
        type_hash: u64,
    ) -> Result<(u64, bool), RegionError> {
        self.coherent(RegionSpec::new(name, len).element(type_hash).renew())
    }

    /// Like [`Node::region`], with a new region's memory at node `home` and not at this one:
    /// what is at node 0, as the table itself is, does not die with others.
    pub fn region_on(
        &self,
        home: u16,
        name: &str,
        len: usize,
        type_hash: u64,
    ) -> Result<(u64, bool), RegionError> {
        self.coherent(RegionSpec::new(name, len).element(type_hash).on(home))
    }

    fn coherent(&self, spec: RegionSpec) -> Result<(u64, bool), RegionError> {
        let region = self.create_region(&spec)?;
        Ok((region.addr(), region.is_new()))
    }

    /// A coherent region that exists already: its address and length.
    pub fn find_region(&self, name: &str, type_hash: u64) -> Result<(u64, usize), RegionError> {
        self.open()?;
        let (_, found) = find(self, name)?;
        let len = found.what.len as usize;
        let spec = RegionSpec::new(name, len).element(type_hash);
        fits(name, &spec.what(), &found)?;
        Ok((found.addr, len))
    }
}
