//! A region in a program's hands.

use super::creating::Opened;
use super::row::{ROW, Ready, Row, look};
use super::{insist, spec::RegionSpec};
#[cfg(doc)]
use crate::error::AccessError;
use crate::error::RegionError;
use crate::node::Node;
use rackmem_proto::heap::Backing;
use rackmem_proto::wire::{Contract, HomeId, Tag};

/// A named region, as this handle found it. Another region that has the name later is another one,
/// and this handle says so.
///
/// What is read and written at [`Region::addr`] by the node's own operations is not checked against
/// the region: it would take a second look in every hit.
///
/// Dropping the handle frees nothing: the region has its name and its memory until
/// [`Node::remove_region`], after which handles of all nodes say [`RegionError::Removed`].
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionError, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("log", 1 << 20);
/// let log = rack.node(0).create_region(&spec)?;
/// log.write(100, b"entry")?;
/// let same = rack.node(1).open_region(&spec)?;
/// rack.node(1).remove_region("log")?;
/// assert!(matches!(same.read(100, &mut [0; 5]), Err(RegionError::Removed { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Region {
    node: Node,
    spec: RegionSpec,
    row: u64,
    ready: Ready,
    created: bool,
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region")
            .field("name", &self.name())
            .field("addr", &format_args!("{:#018x}", self.addr()))
            .field("bytes", &self.bytes())
            .field("contract", &self.contract())
            .finish()
    }
}

impl Region {
    pub(super) fn new(node: &Node, spec: &RegionSpec, opened: Opened) -> Self {
        Region {
            node: node.clone(),
            spec: spec.clone(),
            row: opened.row,
            ready: opened.ready,
            created: opened.created,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.spec.name()
    }

    /// Where its memory begins; the contract is part of this.
    pub fn addr(&self) -> u64 {
        self.ready.addr
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.ready.what.len as usize
    }

    /// Its contract.
    pub fn contract(&self) -> Contract {
        self.ready.what.contract
    }

    /// Where its bytes are.
    pub fn backing(&self) -> Backing {
        self.ready.what.backing
    }

    /// Whose memory it is.
    pub fn home(&self) -> HomeId {
        Tag(self.ready.addr).home()
    }

    /// Whether the call that returned this handle has created it.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// Whether it is still there. A look at one row of the table, which is a hit unless names of
    /// its block have changed.
    ///
    /// # Errors
    /// [`RegionError::Removed`].
    pub fn check(&self) -> Result<(), RegionError> {
        let name = self.name();
        let row = insist(&self.node, || {
            self.node.snapshot(self.row, ROW, |view| look(view, name))
        })?;
        match row {
            Row::Ready(now) if now == self.ready => Ok(()),
            _ => Err(RegionError::Removed { name: name.into() }),
        }
    }

    /// Reads from a byte of it on. Each block's part is read at one moment.
    /// What is read was there while the region was.
    ///
    /// # Errors
    /// [`RegionError::Removed`], [`RegionError::OutOfBounds`], [`AccessError::WrongContract`] where
    /// it has no bytes, and those of [`Node::read`].
    pub fn read(&self, at: usize, out: &mut [u8]) -> Result<(), RegionError> {
        let addr = self.within(at, out.len())?;
        let read = self.node.read(addr, out);
        self.check()?;
        Ok(read?)
    }

    /// Writes from a byte of it on. Each block's part is written at one moment. A removal between
    /// the check and the write is not noticed.
    ///
    /// # Errors
    /// Those of [`Region::read`].
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), RegionError> {
        let addr = self.within(at, bytes.len())?;
        self.check()?;
        Ok(self.node.write(addr, bytes)?)
    }

    fn within(&self, at: usize, len: usize) -> Result<u64, RegionError> {
        match at.checked_add(len) {
            Some(end) if end <= self.bytes() => Ok(self.ready.addr + at as u64),
            _ => Err(RegionError::OutOfBounds {
                name: self.name().into(),
                at,
                len,
            }),
        }
    }
}
