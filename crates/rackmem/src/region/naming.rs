//! Regions, as a node offers them.

use super::creating::{Absent, Purpose, Want, fits, open};
use super::handle::Region;
use super::row::{ROW, RegionInfo};
use super::spec::RegionSpec;
use super::{TABLE, all_rows, await_table, copied, copies, creating::Opened};
use super::{find, insist, is_gone, name_lost, removing};
#[cfg(doc)]
use crate::error::{AccessError, AllocError};
use crate::error::{RackError, RegionError};
use crate::node::Node;
use rackmem_proto::wire::{Contract, HomeId};

impl Node {
    /// The region of a name, created (zeroed) if there is none yet. All nodes see the same table.
    ///
    /// # Errors
    /// [`RegionError::ContractNotBuilt`] and [`RegionError::BackingNotBuilt`];
    /// [`AccessError::WrongContract`] when there is one under another contract, and
    /// [`RegionError::Mismatch`] when it differs otherwise; [`RegionError::NameLost`] when it has
    /// died with its home:
    /// [`RegionSpec::renew`] makes it anew. [`RegionError::TableFull`],
    /// [`AllocError::OutOfMemory`];
    /// [`RackError::NodeLost`] when node 0, which has the table, is gone;
    /// [`RackError::NoSuchNode`] for memory of a node that the rack does not have. Where nodes have
    /// copies of it ([`Config::copies`](crate::Config::copies)),
    /// [`RegionError::FewMembers`] before there are as many nodes, and [`RackError::Timeout`] while
    /// no majority of the copies is there.
    pub fn create_region(&self, spec: &RegionSpec) -> Result<Region, RegionError> {
        spec.is_built()?;
        if spec.copies > 0 {
            // A lease is nothing to it: whoever has lost one may still have a majority.
            let copied = copies::create(self, spec)?;
            return Ok(Region::copied(self, spec, copied));
        }
        self.open()?;
        let home = spec.home.unwrap_or(HomeId::of(self.inner.id));
        let node = usize::from(home.0);
        if home.is_own() && node >= self.inner.nodes {
            return Err(RackError::NoSuchNode { node }.into());
        }
        let want = Want {
            name: &spec.name,
            what: spec.what(),
            absent: match spec.renew {
                true => Absent::Renew,
                false => Absent::Report,
            },
            purpose: match spec.contract {
                Contract::Object => Purpose::Objects { home },
                Contract::Bounded => Purpose::Items {
                    home,
                    shape: spec.items()?,
                },
                _ => Purpose::Bytes { home },
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
        if spec.copies > 0 {
            return Ok(Region::copied(self, spec, copies::open(self, spec)?));
        }
        self.open()?;
        copied(self, &spec.name, spec.contract)?;
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
    /// Handles that are left return [`RegionError::Removed`]; a program that has kept the
    /// bare address reads and writes what is allocated there next. The name can be used again, for
    /// anything. Of several who remove one region at a time one does,
    /// and for the others there is none.
    ///
    /// # Errors
    /// [`RegionError::NotFound`]; [`RegionError::NotRemovable`] when it is a lock's,
    /// which goes with its lock ([`Mutex::free`](crate::locked::Mutex::free)), or of locks, which
    /// cannot be freed yet. Those of [`Node::free_bytes`], after which the name is gone all the
    /// same; so it is where the node that serves objects or coherent memory with copies does not
    /// say in time that it knows, and is still answering for them meanwhile.
    ///
    /// Coherent memory with copies has addresses of its own for ever: those of a removed region say
    /// [`AccessError::BadAddress`], on each node as soon as that has heard, within a beat of the
    /// rack. Until then a thread there uses what its node's cache has.
    ///
    /// With a region of objects its objects go: their handles say [`AccessError::Gone`] from then
    /// on. Its memory is there for objects of the same sizes in other regions. With copies it is
    /// there for anything, and a call that the removal has met, and that is told the same, may have
    /// been seen by others before.
    pub fn remove_region(&self, name: &str) -> Result<(), RegionError> {
        self.open()?;
        // One that has copies is in the rack's groups, if the rack has such.
        let groups = &self.inner.access.groups;
        if groups.has_store() {
            match copies::remove(self, name) {
                Ok(copies::Removed::Lines) => return Ok(()),
                // Once its keeper knows, nobody is answered by it.
                Ok(copies::Removed::Home(begin)) => {
                    return Ok(self.inner.access.remove_objects(begin)?);
                }
                Err(error) if groups.address_of(name).is_some() => return Err(error),
                _ => {}
            }
        }
        removing::remove(self, name)
    }

    /// Has a region with copies keep more of them from now on: 3, 5 or 7. Returns when that is
    /// agreed on. Live nodes are added one at a time; each fills while the region is in use, and
    /// counts when it has all. [`Node::groups`] says how far that is. Handles go on; who
    /// opens the region from now on asks for as many copies.
    ///
    /// While one copy becomes three, there are two for a time: both have to answer then. When the
    /// second one dies the first goes on alone, after the configuration's `replace_after`.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Rack, RegionSpec};
    ///
    /// let rack = Rack::local(3)?;
    /// let log = rack.node(0).create_region(&RegionSpec::new("log", 640).copies(1))?;
    /// log.replicated::<u64>(0)?.write(7)?;
    /// rack.node(2).grow_region("log", 3)?;
    /// while rack.node(0).groups()[0].copies.iter().filter(|copy| copy.counts).count() < 3 {
    ///     std::thread::yield_now();
    /// }
    /// assert_eq!(log.replicated::<u64>(0)?.read()?, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RegionError::NotFound`] where no region with copies has this name;
    /// [`RegionError::BadCopies`]; [`RegionError::OtherCopies`] when it is to have as many or more;
    /// [`RegionError::FewMembers`].
    pub fn grow_region(&self, name: &str, copies: u8) -> Result<(), RegionError> {
        self.open()?;
        copies::grow(self, name, copies)
    }

    /// The regions of the rack and its named locks, in the order of their names. Each row of the
    /// table is looked at for itself, while others go on.
    pub fn regions(&self) -> Result<Vec<RegionInfo>, RegionError> {
        self.open()?;
        let mut found = Vec::new();
        await_table(self)?;
        for row in all_rows() {
            let look = |addr| self.snapshot(addr, ROW, RegionInfo::of);
            found.extend(insist(self, row, look)?);
        }
        found.extend(copies::infos(&self.inner.access.groups.known()));
        found.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Ok(found)
    }

    /// The coherent region of `len` bytes and this type, created (zeroed) if there is none yet:
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
    /// this node. Of several nodes that ask at once one makes it, and learns that.
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
        copied(self, name, Contract::Coherent)?;
        let (_, found) = find(self, name)?;
        let len = found.what.len as usize;
        let spec = RegionSpec::new(name, len).element(type_hash);
        fits(name, &spec.what(), &found)?;
        Ok((found.addr, len))
    }

    /// Bytes of this node's memory that the table of names takes, which are given out from the
    /// start ([`MemoryMetrics::given`](crate::diagnostics::MemoryMetrics::given)): of node 0,
    /// or of every node where any may have to keep it.
    pub fn bytes_of_names(&self) -> u64 {
        match self.inner.id == 0 || self.name_copies().is_some() {
            true => TABLE,
            false => 0,
        }
    }
}
