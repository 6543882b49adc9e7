//! A rack's memory, as one of its nodes sees it.

use std::cmp::Ordering;
use std::time::Duration;

use rackmem::locked::{Access, Content, Entered, Reading, RwLockArray, Writing};
use rackmem::window::{Window, WindowMut};
use rackmem::{AccessError, AllocError, Error, Node, RackError, RegionError, RegionSpec, Survives};

use super::{Fate, Memory, MemoryError, Pages};

impl From<Error> for MemoryError {
    #[cold]
    fn from(error: Error) -> Self {
        // In the middle of a long value the cause is the same.
        match (error.rack(), error.access(), error) {
            (Some(RackError::NodeLost { node }), ..) => Self::NodeLost(node),
            (Some(RackError::Fenced), ..) => Self::Fenced,
            (Some(RackError::NoLease), ..) => Self::NoLease,
            (_, Some(AccessError::Lost { addr }), _) => Self::Lost(addr),
            (.., Error::Alloc(AllocError::OutOfMemory { .. })) => Self::OutOfMemory,
            (.., Error::Region(RegionError::Mismatch { name })) => Self::Mismatch(name),
            (.., Error::Region(RegionError::NameLost { node, .. })) => Self::NodeLost(node),
            (.., other) => Self::Other(Box::new(other)),
        }
    }
}

rackmem::from_families!(MemoryError);

/// That a thread is inside of a page's lock in a rack.
#[derive(Debug)]
pub enum NodeInside {
    /// Together with other readers.
    Reading(Entered<Reading>),
    /// Alone.
    Writing(Entered<Writing>),
}

impl Pages for RwLockArray {
    type Inside = NodeInside;

    #[inline]
    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<NodeInside>, MemoryError> {
        Ok(match access {
            Access::Read => RwLockArray::enter(self, page, at_most)?.map(NodeInside::Reading),
            Access::Write => RwLockArray::enter(self, page, at_most)?.map(NodeInside::Writing),
        })
    }

    #[inline]
    fn leave(&self, inside: NodeInside) {
        match inside {
            NodeInside::Reading(entered) => RwLockArray::leave(self, entered),
            NodeInside::Writing(entered) => RwLockArray::leave(self, entered),
        }
    }

    #[inline]
    fn is_outdated(&self, inside: &NodeInside) -> bool {
        let content = match inside {
            NodeInside::Reading(entered) => entered.content(),
            NodeInside::Writing(entered) => entered.content(),
        };
        content != Content::Current
    }

    #[inline]
    fn view<'a>(&'a self, inside: &'a NodeInside) -> Window<'a> {
        match inside {
            NodeInside::Reading(entered) => RwLockArray::view(self, entered),
            NodeInside::Writing(entered) => RwLockArray::view(self, entered),
        }
    }

    #[inline]
    fn view_mut<'a>(&'a self, inside: &'a mut NodeInside, len: usize) -> Option<WindowMut<'a>> {
        match inside {
            NodeInside::Reading(_) => None,
            NodeInside::Writing(entered) => Some(RwLockArray::view_mut(self, entered, len)),
        }
    }

    fn is_known(&self, page: usize) -> bool {
        RwLockArray::is_known(self, page)
    }

    fn tell_home(&self, page: usize) {
        RwLockArray::tell_home(self, page);
    }

    fn trim(&self, inside: &mut NodeInside, len: usize) {
        if let NodeInside::Writing(entered) = inside {
            RwLockArray::trim(self, entered, len);
        }
    }
}

impl Memory for Node {
    type Pages = RwLockArray;

    fn block_size(&self) -> usize {
        Node::block_size(self)
    }

    fn id(&self) -> u16 {
        Node::id(self)
    }

    fn nodes(&self) -> usize {
        Node::nodes(self)
    }

    #[inline]
    fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, MemoryError> {
        Ok(Node::snapshot(self, addr, len, f)?)
    }

    #[inline]
    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R, MemoryError> {
        Ok(Node::update(self, addr, len, f)?)
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        Ok(Node::read(self, addr, out)?)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        Ok(Node::write(self, addr, bytes)?)
    }

    fn alloc(&self, len: usize) -> Result<u64, MemoryError> {
        Ok(self.alloc_bytes(len)?)
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64, MemoryError> {
        Ok(self.alloc_bytes_on(home, len)?)
    }

    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        match self.free_bytes(addr, len) {
            // Its home does not answer, and much waits for it: this stays allocated. What the
            // caller did has happened.
            Err(AllocError::Rack(RackError::Timeout { .. })) => Ok(()),
            freed => Ok(freed?),
        }
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError> {
        match self.name_copies() {
            // With names that outlive any node, this does.
            Some(copies @ 3..) => {
                let spec = RegionSpec::new(name, len).element(type_hash);
                let spec = spec.copies(copies).survives(Survives::Rest);
                Ok(self.create_region(&spec)?.addr())
            }
            // Beside the table of regions, with which it is lost anyhow when node 0 dies.
            _ => Ok(Node::region_on(self, 0, name, len, type_hash)?.0),
        }
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<RwLockArray, MemoryError> {
        Ok(RwLockArray::attach(self, addr, count, len)?)
    }

    fn used_bytes(&self) -> usize {
        let locks = self.lock_memory();
        let given = self.metrics().memory.given as usize;
        given + locks.kept_home + locks.kept + locks.remembered
    }

    fn idle_pages(&self) -> usize {
        self.idle_locks()
    }

    fn forget_pages(&self) {
        self.forget_locks();
    }

    fn fate(&self, addr: u64) -> Fate {
        if self.has_copies(addr) {
            return Fate::Live;
        }
        let Some(home) = self.host_of(addr) else {
            return Fate::Away;
        };
        let (known, mine) = (self.incarnation_of(home), self.incarnation_at(addr));
        match (self.is_member(home), known.cmp(&mine)) {
            (_, Ordering::Less) | (true, Ordering::Equal) => Fate::Live,
            (true, Ordering::Greater) => Fate::Gone,
            (false, _) => Fate::Away,
        }
    }

    #[inline]
    fn home_of(&self, addr: u64) -> Option<u16> {
        self.host_of(addr).filter(|_| !self.has_copies(addr))
    }

    fn withhold(&self, yes: bool) {
        self.withhold_memory(yes);
    }

    fn given_bytes(&self) -> usize {
        let given = self.metrics().memory.given;
        given.saturating_sub(self.bytes_of_names()) as usize
    }

    fn undisturbed(&self) -> bool {
        (0..Node::nodes(self) as u16).all(|node| match self.incarnation_of(node) {
            0 => true, // one that this process has not heard of yet
            1 => self.is_member(node),
            _ => false,
        })
    }

    fn is_member(&self, node: u16) -> bool {
        Node::is_member(self, node)
    }

    fn lives(&self) -> u64 {
        let life = |node| {
            2 * u64::from(self.incarnation_of(node)) + u64::from(Node::is_member(self, node))
        };
        (0..Node::nodes(self) as u16)
            .map(life)
            .fold(0, |sum, life| sum.wrapping_mul(31).wrapping_add(life))
    }

    fn life(&self) -> u64 {
        u64::from(self.incarnation_of(self.id()))
    }

    fn accept(&self, addr: u64) -> Result<(), MemoryError> {
        Ok(self.accept_loss(addr)?)
    }

    #[inline]
    fn confirm(&self) -> Result<(), MemoryError> {
        Ok(Node::confirm(self)?)
    }

    fn publish(&self, addr: u64) -> Result<(), MemoryError> {
        self.evict(addr)?;
        // Somebody may have taken it before we could write it back: whoever is read from writes
        // back.
        Node::snapshot(self, addr, 8, |_| ())?;
        Ok(())
    }
}
