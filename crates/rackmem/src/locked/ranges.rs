//! A lock over a list of byte ranges of the rack's memory.

use super::descriptor::{Descriptor, Kind};
use super::handle::{HEAD, Handle, Inside, MOST};
use crate::bytes::window::{Window, WindowMut};
use crate::error::{AccessError, LockError, LockShape, RackError};
use crate::host::locks::cell::Waiting;
use crate::host::locks::seat::Content;
use crate::node::Node;
use rackmem_proto::gcp::{Access, Region, Regions, RegionsError};
use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

/// One lock over up to 64 ranges of the rack's memory, 64 KiB in all: who holds it has them all,
/// by one transaction.
///
/// From its making on the ranges are the lock's. They are read and written through its guards only:
/// the lock keeps them by itself, and what [`Node::read`] and [`Node::write`] do at these addresses
/// has nothing to do with it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::RangesLock;
/// use std::time::Duration;
///
/// let rack = Rack::local(2)?;
/// let addr = rack.node(0).alloc_bytes(4096)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8), (addr + 100, 50)])?;
/// let same = RangesLock::attach(&rack.node(1), lock.addr())?;
/// let mut held = same.write(Duration::MAX)?.expect("waits without end");
/// held.write(addr + 100, b"both")?;
/// drop(held);
/// lock.free()?; // its ranges are memory again, with what it had
/// let mut text = [0; 4];
/// rack.node(0).read(addr + 100, &mut text)?;
/// assert_eq!(&text, b"both");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RangesLock {
    handle: Handle,
    regions: Regions,
}

/// A [`RangesLock`], held to read.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{RangesReadGuard, RangesLock};
/// use std::time::Duration;
///
/// let rack = Rack::local(1)?;
/// let addr = rack.node(0).alloc_bytes(8)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8)])?;
/// let held: Option<RangesReadGuard<'_>> = lock.read(Duration::from_secs(1))?;
/// let mut byte = [9];
/// held.expect("no other thread is inside").read(addr, &mut byte)?;
/// assert_eq!(byte, [0]);
/// # Ok(())
/// # }
/// ```
pub struct RangesReadGuard<'a> {
    inside: Inside<'a>,
    regions: &'a Regions,
}

/// A [`RangesLock`], held to write.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{RangesWriteGuard, RangesLock};
/// use std::time::Duration;
///
/// let rack = Rack::local(1)?;
/// let addr = rack.node(0).alloc_bytes(8)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8)])?;
/// let held: Option<RangesWriteGuard<'_>> = lock.write(Duration::from_secs(1))?;
/// let mut byte = [9];
/// held.expect("no other thread is inside").read(addr, &mut byte)?;
/// assert_eq!(byte, [0]);
/// # Ok(())
/// # }
/// ```
pub struct RangesWriteGuard<'a>(RangesReadGuard<'a>);

impl Debug for RangesLock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self.ranges().collect();
        f.debug_struct("RangesLock")
            .field("addr", &format_args!("{:#018x}", self.addr()))
            .field("ranges", &ranges)
            .finish()
    }
}

impl Debug for RangesReadGuard<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangesReadGuard")
            .field(
                "addr",
                &format_args!("{:#018x}", self.inside.handle().addr()),
            )
            .field("content", &self.content())
            .finish()
    }
}

impl Debug for RangesWriteGuard<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The list as the protocol's.
fn regions(list: &[Region]) -> Result<Regions, LockError> {
    Regions::new(list).map_err(|why| LockError::BadShape {
        why: match why {
            RegionsError::Many => LockShape::ManyRanges {
                most: super::MAX_REGIONS,
            },
            RegionsError::Long => LockShape::TooLong { most: MOST },
            RegionsError::Bad => LockShape::BadRange,
            RegionsError::Overlap => LockShape::Overlap,
        },
    })
}

/// Where the bytes at an address lie among what the lock protects, if they are all of one range.
fn place(regions: &Regions, addr: u64, len: usize) -> Result<usize, LockError> {
    let mut at = 0;
    for region in regions.iter() {
        let end = region.addr + u64::from(region.len);
        if addr >= region.addr && addr < end && len as u64 <= end - addr {
            return Ok(at + (addr - region.addr) as usize);
        }
        at += region.len as usize;
    }
    Err(LockError::OutsideRanges { addr, len })
}

impl RangesLock {
    /// A new one over these ranges, each an address and a length in bytes, at home on this node.
    /// It begins with what memory has there now.
    ///
    /// # Errors
    /// [`LockError::BadShape`] says what is wrong with the list; those of [`Node::read`];
    /// [`LockError::TooManyLocks`].
    pub fn create(node: &Node, ranges: &[(u64, usize)]) -> Result<Self, LockError> {
        let region = |&(addr, len): &(u64, usize)| Region {
            addr,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        let list: Vec<Region> = ranges.iter().map(region).collect();
        let regions = regions(&list)?;
        let len = regions.len() as usize;
        let mut bytes = Vec::with_capacity(len);
        for region in &list {
            let at = bytes.len();
            bytes.resize(at + region.len as usize, 0);
            node.read(region.addr, &mut bytes[at..])?;
        }
        let what = Descriptor {
            kind: Kind::Ranges,
            len,
            of: 0,
            regions: list,
        };
        let handle = Handle::create(node, what, |words| {
            WindowMut::new(words, HEAD, len).write(0, &bytes);
        })?;
        Ok(RangesLock { handle, regions })
    }

    /// The one that some node has made at this address.
    ///
    /// # Errors
    /// [`LockError::NoLock`], [`RackError::NodeLost`].
    pub fn attach(node: &Node, addr: u64) -> Result<Self, LockError> {
        let (handle, what) = Handle::attach_any(node, addr, Kind::Ranges)?;
        let regions = regions(&what.regions)?;
        if regions.len() as usize != what.len {
            return Err(LockError::NoLock { addr });
        }
        Ok(RangesLock { handle, regions })
    }

    /// Frees it, as [`super::Mutex::free`]. Its ranges are memory like any other again, with what
    /// the lock had there last; ranges whose home has died are left out.
    ///
    /// # Errors
    /// Those of [`super::Mutex::free`], and of [`Node::write`]: the lock is not freed then.
    pub fn free(self) -> Result<(), LockError> {
        self.handle.free(|_| {
            let (mut at, words) = (0, self.handle.words());
            for region in self.regions.iter() {
                let mut bytes = vec![0; region.len as usize];
                Window::new(words, HEAD, self.handle.len()).read(at, &mut bytes);
                at += bytes.len();
                match self.handle.node().write(region.addr, &bytes) {
                    Ok(()) => {}
                    Err(bulk) => match bulk.error {
                        AccessError::Rack(RackError::NodeLost { .. }) => {}
                        error => return Err(error.into()),
                    },
                }
            }
            Ok(())
        })
    }

    /// Its global address, which [`RangesLock::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.handle.addr()
    }

    /// Who waits for it, as far as this node knows.
    pub fn waiting(&self) -> Waiting {
        self.handle.waiting()
    }

    /// The ranges, each an address and a length.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, usize)> {
        self.regions.iter().map(|r| (r.addr, r.len as usize))
    }

    fn guard<'a>(&'a self, inside: Inside<'a>) -> RangesReadGuard<'a> {
        let regions = &self.regions;
        RangesReadGuard { inside, regions }
    }

    /// Holds them together with other readers, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn read(&self, at_most: Duration) -> Result<Option<RangesReadGuard<'_>>, LockError> {
        let inside = self.handle.enter(Access::Read, at_most)?;
        Ok(inside.map(|inside| self.guard(inside)))
    }

    /// Holds them alone, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn write(&self, at_most: Duration) -> Result<Option<RangesWriteGuard<'_>>, LockError> {
        let inside = self.handle.enter(Access::Write, at_most)?;
        Ok(inside.map(|inside| RangesWriteGuard(self.guard(inside))))
    }
}

impl RangesReadGuard<'_> {
    /// Reads bytes of one range.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`] when they are not all of one range.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), LockError> {
        let at = place(self.regions, addr, out.len())?;
        let handle = self.inside.handle();
        Window::new(handle.words(), HEAD, handle.len()).read(at, out);
        Ok(())
    }

    /// The fencing token: as [`super::MutexGuard::token`].
    pub fn token(&self) -> u64 {
        self.inside.token()
    }

    /// Whether what is found inside is what the last writer left. All who enter after a death are
    /// told, until one of them has written.
    pub fn content(&self) -> Content {
        self.inside.content()
    }
}

impl RangesWriteGuard<'_> {
    /// Reads bytes of one range.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`] when they are not all of one range.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), LockError> {
        self.0.read(addr, out)
    }

    /// Writes bytes of one range.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`] when they are not all of one range.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), LockError> {
        let at = place(self.0.regions, addr, bytes.len())?;
        let handle = self.0.inside.handle();
        WindowMut::new(handle.words(), HEAD, handle.len()).write(at, bytes);
        Ok(())
    }

    /// The fencing token: as [`super::MutexGuard::token`].
    pub fn token(&self) -> u64 {
        self.0.token()
    }

    /// As [`RangesReadGuard::content`].
    pub fn content(&self) -> Content {
        self.0.content()
    }
}
