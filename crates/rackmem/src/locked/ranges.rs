//! A lock over a list of byte ranges of the rack's memory.

use super::descriptor::{Descriptor, Kind};
use super::guard::{Guard, Reading, Writing};
use super::handle::{HEAD, Handle, MOST};
use crate::bytes::window::{Window, WindowMut};
use crate::error::{AccessError, LockError, LockShape, RackError};
use crate::host::locks::cell::Waiting;
use crate::node::Node;
use crate::wait::Wait;
use rackmem_proto::gcp::{Region, Regions, RegionsError};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

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
///
/// let rack = Rack::local(2)?;
/// let addr = rack.node(0).alloc_bytes(4096)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8), (addr + 100, 50)])?;
/// let same = RangesLock::attach(&rack.node(1), lock.addr())?;
/// let mut held = same.write()?;
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
    /// With the ranges.
    handle: Handle,
}

/// What a [`RangesLock`] protects: bytes, which its guards read and write by their addresses.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Guard, Ranges, RangesLock, Writing};
///
/// let rack = Rack::local(1)?;
/// let addr = rack.node(0).alloc_bytes(8)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8)])?;
/// let mut held: Guard<'_, Ranges, Writing> = lock.write()?;
/// held.write(addr, &[7])?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Ranges {}

/// A [`RangesLock`], held to read.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{RangesReadGuard, RangesLock};
///
/// let rack = Rack::local(1)?;
/// let addr = rack.node(0).alloc_bytes(8)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8)])?;
/// let held: Option<RangesReadGuard<'_>> = lock.try_read()?;
/// let mut byte = [9];
/// held.expect("no other thread is inside").read(addr, &mut byte)?;
/// assert_eq!(byte, [0]);
/// # Ok(())
/// # }
/// ```
pub type RangesReadGuard<'a> = Guard<'a, Ranges, Reading>;

/// A [`RangesLock`], held to write.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{RangesWriteGuard, RangesLock};
///
/// let rack = Rack::local(1)?;
/// let addr = rack.node(0).alloc_bytes(8)?;
/// let lock = RangesLock::create(&rack.node(0), &[(addr, 8)])?;
/// let held: Option<RangesWriteGuard<'_>> = lock.try_write()?;
/// let mut byte = [9];
/// held.expect("no other thread is inside").read(addr, &mut byte)?;
/// assert_eq!(byte, [0]);
/// # Ok(())
/// # }
/// ```
pub type RangesWriteGuard<'a> = Guard<'a, Ranges, Writing>;

impl Debug for RangesLock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self.ranges().collect();
        f.debug_struct("RangesLock")
            .field("addr", &format_args!("{:#018x}", self.addr()))
            .field("ranges", &ranges)
            .finish()
    }
}

impl<A> Debug for Guard<'_, Ranges, A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("addr", &format_args!("{:#018x}", self.handle().addr()))
            .field("content", &self.content())
            .finish()
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
fn place(handle: &Handle, addr: u64, len: usize) -> Result<usize, LockError> {
    let mut at = 0;
    for region in ranges_of(handle) {
        let end = region.addr + u64::from(region.len);
        if addr >= region.addr && addr < end && len as u64 <= end - addr {
            return Ok(at + (addr - region.addr) as usize);
        }
        at += region.len as usize;
    }
    Err(LockError::OutsideRanges { addr, len })
}

fn ranges_of(handle: &Handle) -> impl Iterator<Item = &Region> {
    handle.regions.iter().flat_map(|regions| regions.iter())
}

impl RangesLock {
    fn of(handle: Handle, regions: Regions) -> Self {
        let regions = Some(Arc::new(regions));
        RangesLock {
            handle: Handle { regions, ..handle },
        }
    }

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
        Ok(RangesLock::of(handle, regions))
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
        Ok(RangesLock::of(handle, regions))
    }

    /// Frees it, as [`super::Mutex::free`]. Its ranges are memory like any other again, with what
    /// the lock had there last; ranges whose home has died are left out.
    ///
    /// # Errors
    /// Those of [`super::Mutex::free`], and of [`Node::write`]: the lock is not freed then.
    pub fn free(self) -> Result<(), LockError> {
        self.handle.free(|_| {
            let (mut at, words) = (0, self.handle.words());
            for region in ranges_of(&self.handle) {
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
        ranges_of(&self.handle).map(|r| (r.addr, r.len as usize))
    }

    /// Holds them together with other readers, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn read(&self) -> Result<RangesReadGuard<'_>, LockError> {
        Guard::hold(&self.handle)
    }

    /// Holds them alone, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn write(&self) -> Result<RangesWriteGuard<'_>, LockError> {
        Guard::hold(&self.handle)
    }

    /// Holds them together with other readers, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn read_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<RangesReadGuard<'_>>, LockError> {
        Guard::hold_within(&self.handle, wait)
    }

    /// Holds them alone, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn write_within(
        &self,
        wait: impl Into<Wait>,
    ) -> Result<Option<RangesWriteGuard<'_>>, LockError> {
        Guard::hold_within(&self.handle, wait)
    }

    /// Holds them together with other readers, as [`super::RwLock::try_read`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn try_read(&self) -> Result<Option<RangesReadGuard<'_>>, LockError> {
        Guard::try_hold(&self.handle)
    }

    /// Holds them alone, as [`super::RwLock::try_write`].
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn try_write(&self) -> Result<Option<RangesWriteGuard<'_>>, LockError> {
        Guard::try_hold(&self.handle)
    }
}

impl<A> Guard<'_, Ranges, A> {
    /// Reads bytes of one range.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`] when they are not all of one range.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), LockError> {
        let handle = self.handle();
        let at = place(handle, addr, out.len())?;
        Window::new(handle.words(), HEAD, handle.len()).read(at, out);
        Ok(())
    }
}

impl Guard<'_, Ranges, Writing> {
    /// Writes bytes of one range.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`] when they are not all of one range.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), LockError> {
        let handle = self.handle();
        let at = place(handle, addr, bytes.len())?;
        WindowMut::new(handle.words(), HEAD, handle.len()).write(at, bytes);
        Ok(())
    }
}
