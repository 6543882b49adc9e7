//! A lock of any kind over a run of bytes.

use super::LockKind;
use super::error::{Error, Result};
use super::layout::Layout;
use super::local::Local;
use super::seat::TakenPlace;
use super::service::Compared;
use rackmem::Node;
use rackmem::locked::{RangesLock, RangesReadGuard, RangesWriteGuard, Waiting};
use rackmem::{LockError, LockShape};
use rackmem_baselines::locks::Access;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a lock protects at most.
const MOST: usize = 64 << 10;

/// A lock over up to 64 KiB of coherent memory, of whichever kind: see [the module](super).
#[derive(Clone)]
pub struct AnyLock {
    node: Node,
    kind: LockKind,
    addr: u64,
    len: usize,
    /// Where what it protects is.
    data: u64,
    lock: Inner,
}

#[derive(Clone)]
enum Inner {
    Gcp(RangesLock),
    Compared(Arc<Local>),
}

/// An [`AnyLock`], held to read.
pub struct AnyReadGuard<'a>(Held<'a, RangesReadGuard<'a>>);

/// An [`AnyLock`], held to write.
pub struct AnyWriteGuard<'a>(Held<'a, RangesWriteGuard<'a>>);

/// What a guard holds: GCP's guard, or a seat.
struct Held<'a, G> {
    lock: &'a AnyLock,
    by: By<'a, G>,
}

enum By<'a, G> {
    Gcp(G),
    /// Left when it is dropped.
    Seat {
        _seat: TakenPlace<'a>,
    },
}

impl AnyLock {
    /// A new one over `len` bytes of zeros, of the kind that the rack is configured for,
    /// at home on this node.
    ///
    /// # Errors
    /// [`LockError::BadShape`] when there are none of them, or more than 64 KiB;
    /// [`rackmem::AllocError::OutOfMemory`], [`LockError::TooManyLocks`].
    pub fn create(node: &Node, len: usize) -> Result<Self> {
        let kind = node.guest::<Compared>().map(|guest| guest.kind);
        AnyLock::create_as(node, kind.unwrap_or_default(), len)
    }

    /// The same, of this kind.
    ///
    /// # Errors
    /// Those of [`AnyLock::create`].
    pub fn create_as(node: &Node, kind: LockKind, len: usize) -> Result<Self> {
        let most = MOST;
        if len == 0 || len > most {
            let why = LockShape::TooLong { most };
            return Err(LockError::BadShape { why }.into());
        }
        let layout = Layout::create(node, kind, len)?;
        if kind == LockKind::Service {
            Compared::of(node)?.manage(layout.addr)?;
        }
        AnyLock::of(node, layout)
    }

    /// The one that some node has made at this address.
    ///
    /// # Errors
    /// [`LockError::NoLock`], [`rackmem::RackError::NodeLost`].
    pub fn attach(node: &Node, addr: u64) -> Result<Self> {
        AnyLock::of(node, Layout::read(node, addr)?)
    }

    fn of(node: &Node, layout: Layout) -> Result<Self> {
        let Layout {
            kind,
            addr,
            len,
            data,
            ..
        } = layout;
        let lock = match kind {
            LockKind::Gcp => Inner::Gcp(RangesLock::attach(node, layout.base)?),
            _ => Inner::Compared(Compared::of(node)?.open(node, layout)?),
        };
        Ok(AnyLock {
            node: node.clone(),
            kind,
            addr,
            len,
            data,
            lock,
        })
    }

    /// Its global address, which [`AnyLock::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// Which kind it is.
    pub fn kind(&self) -> LockKind {
        self.kind
    }

    /// Bytes that it protects.
    pub fn size(&self) -> usize {
        self.len
    }

    /// Who waits for it, as far as this node knows: of locks that are not GCP's only that of its
    /// own threads, nothing of nodes.
    pub fn waiting(&self) -> Waiting {
        match &self.lock {
            Inner::Gcp(lock) => lock.waiting(),
            Inner::Compared(local) => Waiting {
                threads: local.waiting(),
                nodes: 0,
            },
        }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    pub(super) fn local(&self) -> Option<&Local> {
        match &self.lock {
            Inner::Gcp(_) => None,
            Inner::Compared(local) => Some(local),
        }
    }

    /// Holds it together with other readers (of [`LockKind::Mcs`]: alone),
    /// as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`rackmem::locked::Mutex::lock`], and
    /// [`Error::Abandoned`](super::Error::Abandoned).
    pub fn read(&self) -> Result<AnyReadGuard<'_>> {
        let held = self.read_timeout(Duration::MAX)?;
        held.ok_or_else(|| self.busy())
    }

    /// Holds it alone, as soon as it is this thread's turn.
    ///
    /// # Errors
    /// Those of [`AnyLock::read`].
    pub fn write(&self) -> Result<AnyWriteGuard<'_>> {
        let held = self.write_timeout(Duration::MAX)?;
        held.ok_or_else(|| self.busy())
    }

    /// Holds it together with other readers, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`AnyLock::read`]; a wait that takes longer is
    /// [`Error::Abandoned`](super::Error::Abandoned) for kinds that no thread can stop waiting for,
    /// and the lock is then no more use to this node.
    pub fn read_timeout(&self, at_most: Duration) -> Result<Option<AnyReadGuard<'_>>> {
        let by = match &self.lock {
            Inner::Gcp(lock) => lock.read_within(at_most)?.map(By::Gcp),
            Inner::Compared(local) => self.enter(local, Access::Read, at_most)?,
        };
        Ok(by.map(|by| AnyReadGuard(Held { lock: self, by })))
    }

    /// Holds it alone, if it is this thread's turn within this time.
    ///
    /// # Errors
    /// Those of [`AnyLock::read_timeout`].
    pub fn write_timeout(&self, at_most: Duration) -> Result<Option<AnyWriteGuard<'_>>> {
        let by = match &self.lock {
            Inner::Gcp(lock) => lock.write_within(at_most)?.map(By::Gcp),
            Inner::Compared(local) => self.enter(local, Access::Write, at_most)?,
        };
        Ok(by.map(|by| AnyWriteGuard(Held { lock: self, by })))
    }

    #[cold]
    fn busy(&self) -> Error {
        LockError::Busy { addr: self.addr }.into()
    }

    fn enter<'a, G>(
        &'a self,
        local: &'a Local,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<By<'a, G>>> {
        let mut seat = TakenPlace::take(&self.node, local)?;
        let inside = seat.enter(access, at_most)?;
        Ok(inside.then_some(By::Seat { _seat: seat }))
    }

    /// The address of bytes that it protects.
    pub(super) fn within(&self, offset: usize, len: usize) -> rackmem::Result<u64, LockError> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        end.map(|_| self.data + offset as u64)
            .ok_or(LockError::OutsideRanges {
                addr: self.data.wrapping_add(offset as u64),
                len,
            })
    }
}

impl AnyReadGuard<'_> {
    /// Reads bytes of what the lock protects, from this one on.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`]; those of [`Node::read`].
    pub fn read(&self, offset: usize, out: &mut [u8]) -> rackmem::Result<()> {
        let Held { lock, by } = &self.0;
        let addr = lock.within(offset, out.len())?;
        match by {
            By::Gcp(guard) => Ok(guard.read(addr, out)?),
            By::Seat { .. } => Ok(lock.node.read(addr, out)?),
        }
    }
}

impl AnyWriteGuard<'_> {
    /// Reads bytes of what the lock protects, from this one on.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`]; those of [`Node::read`].
    pub fn read(&self, offset: usize, out: &mut [u8]) -> rackmem::Result<()> {
        let Held { lock, by } = &self.0;
        let addr = lock.within(offset, out.len())?;
        match by {
            By::Gcp(guard) => Ok(guard.read(addr, out)?),
            By::Seat { .. } => Ok(lock.node.read(addr, out)?),
        }
    }

    /// Writes bytes of what the lock protects, from this one on.
    ///
    /// # Errors
    /// [`LockError::OutsideRanges`]; those of [`Node::write`].
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> rackmem::Result<()> {
        let Held { lock, by } = &mut self.0;
        let addr = lock.within(offset, bytes.len())?;
        match by {
            By::Gcp(guard) => Ok(guard.write(addr, bytes)?),
            By::Seat { .. } => Ok(lock.node.write(addr, bytes)?),
        }
    }
}
