//! A node: what an application does with the rack's memory.

mod ahead;
mod bulk;
mod guests;
pub(crate) mod members;
mod operation;
pub(crate) mod places;
mod zeroed;

use crate::bytes::window::{Window, WindowMut};
use crate::error::{AccessError, AllocError, BulkError, BulkResult, RackError};
use crate::host::access::coherent;
use crate::host::bulk::Partly;
use crate::host::hot::HotBlock;
use crate::host::inner::NodeInner;
use crate::host::locks::status::LockStatus;
use crate::host::locks::table::LockMetrics;
use crate::host::metrics::NodeMetrics;
use crate::host::told::NodeReport;
use rackmem_fabric::PacketCounts;
use rackmem_proto::wire::{AtomicOp, Contract, Kind, Tag};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// One node of a rack, as seen from its own process. Cheap to clone;
/// any number of threads may use it.
///
/// Addresses are global: `node:16 | contract:3 | offset:45`. Every operation on a range within one
/// block is atomic and linearizable across the rack. On a hit, reads and writes take no lock and
/// make no system call. Lengths and offsets are in bytes.
///
/// **When something fails**, every operation on memory returns an [`AccessError`], and a hit never
/// does: [`AccessError::BadAddress`] and [`AccessError::BadRange`] for an address where nothing can
/// be; [`AccessError::WrongContract`] for memory that is shared otherwise; [`RackError::NodeLost`]
/// when the memory's home has died; [`AccessError::Lost`] when the block's last content died with
/// the node that had it; [`RackError::Timeout`] when a member does not answer in `patience`;
/// [`RackError::Closed`], [`RackError::Fenced`] and [`RackError::NoLease`] when this process cannot
/// take part. What takes a lock or allocates says what else can happen.
///
/// **Many threads and nodes** may use the same addresses at a time. Operations on one block happen
/// one after the other, in the same order for all; of several blocks each is on its own.
///
/// Dropping a handle leaves the node where it is, and frees nothing that was allocated by it:
/// what is allocated is there until it is freed ([`Node::free_bytes`], `free` of its handle),
/// or its node dies.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
///
/// let rack = Rack::local(2)?;
/// let (here, there) = (rack.node(0), rack.node(1));
/// let addr = here.alloc_bytes(100)?;
/// here.write(addr, b"hello")?;
/// let mut text = [0; 5];
/// there.read(addr, &mut text)?;
/// assert_eq!(&text, b"hello");
/// there.free_bytes(addr, 100)?; // on any node
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<NodeInner>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id())
            .field("nodes", &self.nodes())
            .field("block_size", &self.block_size())
            .finish()
    }
}

impl Node {
    /// Its number, from 0 on.
    pub fn id(&self) -> u16 {
        self.inner.id
    }

    /// How many nodes the rack has.
    pub fn nodes(&self) -> usize {
        self.inner.nodes
    }

    /// Bytes of a block, the unit of coherence and of atomicity.
    pub fn block_size(&self) -> usize {
        self.inner.block
    }

    /// Whether operations may go on; waits for the lease.
    #[inline]
    pub(crate) fn open(&self) -> Result<(), RackError> {
        if self.inner.serving.load(Relaxed) {
            return Ok(());
        }
        self.wait_to_serve()
    }

    #[cold]
    fn wait_to_serve(&self) -> Result<(), RackError> {
        let mut backoff = crate::backoff::Backoff::new(self.inner.access.patience);
        loop {
            match self.open_now() {
                Some(open) => return open,
                None if backoff.wait() => {}
                None => return Err(RackError::NoLease),
            }
        }
    }

    /// The same, if it is known. `None`: the lease is late.
    pub(crate) fn open_now(&self) -> Option<Result<(), RackError>> {
        if self.inner.closed.load(Relaxed) {
            return Some(Err(RackError::Closed));
        }
        let standing = &self.inner.access.standing;
        if standing.is_fenced() {
            return Some(Err(RackError::Fenced));
        }
        let serves = self.inner.serving.load(Relaxed) && standing.holds();
        serves.then_some(Ok(()))
    }

    /// Returns when what this thread has read and written so far may be told to others: at some
    /// moment since, this process was certainly a member. Reads the clock, so it does not depend on
    /// any other thread having run. After a lease that is over it waits: if the lease comes back,
    /// the rack has not gone on without this process.
    ///
    /// A hit alone is not as strict: see `docs/membership.md`. What answers clients calls this
    /// before it answers.
    ///
    /// # Errors
    /// [`RackError::Fenced`] when the rack goes on without it, [`RackError::NoLease`] when the
    /// membership store does not answer: then what was read may be old,
    /// and what was written may be lost.
    #[inline]
    pub fn confirm(&self) -> Result<(), RackError> {
        self.inner.access.confirm()
    }

    /// Where a range lies in its block: tag, offset. Both ends must be in one block.
    #[inline]
    pub(crate) fn within(&self, addr: u64, len: usize) -> Result<(Tag, usize), AccessError> {
        let block = self.inner.block;
        let tag = self.inner.access.agents.cache.tag_of(addr);
        let offset = (addr - tag.0) as usize;
        if len > block - offset {
            return Err(AccessError::BadRange { addr, len, block });
        }
        if !self.inner.has_home(tag.home()) {
            return Err(no_home(addr));
        }
        Ok((tag, offset))
    }

    /// Looks at `len` bytes within one block. What `f` returns comes from a run that saw them at
    /// one moment after this call began; `f` may run before that on bytes that change under it,
    /// so it must tolerate torn data and have no side effects.
    ///
    /// # Errors
    /// [`AccessError::BadRange`] when they are not all of one block, and those of
    /// [the type](Self).
    #[inline]
    pub fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        mut f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, AccessError> {
        let (tag, offset) = self.within(addr, len)?;
        self.open()?;
        self.inner
            .access
            .read(tag, |words| f(&Window::new(words, offset, len)))
    }

    /// Changes `len` bytes within one block, alone in the whole rack. `f` runs once;
    /// it must be short and must not use the rack.
    ///
    /// # Errors
    /// Those of [`Node::snapshot`]: `f` has not run.
    #[inline]
    pub fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R, AccessError> {
        let (tag, offset) = self.within(addr, len)?;
        self.open()?;
        self.inner
            .access
            .write(tag, |words| f(&mut WindowMut::new(words, offset, len)))
    }

    /// Reads any range. Each block's part is read at one moment; the whole is not,
    /// when there are several. Keeps a copy of each block in this node's cache:
    /// [`SharedSlice::read_into`](crate::SharedSlice::read_into) reads long ranges without.
    ///
    /// # Errors
    /// Those of [the type](Self). `out` may have been written in part.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), AccessError> {
        let read = self.parts(addr, out.len(), |addr, range| {
            let part = &mut out[range];
            let len = part.len();
            self.snapshot(addr, len, |view| view.read(0, part))
        });
        read.map_err(|(_, error)| error)
    }

    /// Writes any range. Each block's part is written at one moment; the whole is not,
    /// when there are several.
    ///
    /// # Errors
    /// A [`BulkError`], which says how many bytes have been written, with a cause of
    /// [the type](Self).
    pub fn write(&self, addr: u64, bytes: &[u8]) -> BulkResult<()> {
        let written = self.parts(addr, bytes.len(), |addr, range| {
            let part = &bytes[range];
            self.update(addr, part.len(), |view| {
                view.write(0, part);
            })
        });
        written.map_err(|(done, error)| BulkError::writing(done, error).in_bytes())
    }

    fn parts(
        &self,
        addr: u64,
        len: usize,
        mut f: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), AccessError>,
    ) -> Partly<()> {
        self.open().map_err(|error| (0, error.into()))?;
        let block = self.inner.block as u64;
        let mut done = 0;
        while done < len {
            let at = addr.checked_add(done as u64);
            let at = at.ok_or((done, AccessError::BadAddress { addr }))?;
            let n = ((block - at % block) as usize).min(len - done);
            let part = self.within(at, n).and_then(|_| f(at, done..done + n));
            part.map_err(|error| (done, error))?;
            done += n;
        }
        Ok(())
    }

    /// The word at an address that is a multiple of eight.
    ///
    /// # Errors
    /// [`AccessError::BadRange`] for another address, and those of [the type](Self).
    #[inline]
    pub fn load(&self, addr: u64) -> Result<u64, AccessError> {
        let (tag, at) = self.word(addr)?;
        self.inner.access.look(tag, at)
    }

    /// Changes the word at an address that is a multiple of eight, if `f` says so;
    /// what was there before.
    ///
    /// # Errors
    /// Those of [`Node::load`].
    #[inline]
    pub fn fetch_update(
        &self,
        addr: u64,
        f: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, AccessError> {
        let (tag, at) = self.word(addr)?;
        self.inner.access.write(tag, |words| {
            let old = words[at].load(Relaxed);
            if let Some(new) = f(old) {
                words[at].store(new, Relaxed);
            }
            old
        })
    }

    /// Adds to the word at an address that is a multiple of eight, wrapping; what was there before.
    ///
    /// # Errors
    /// Those of [`Node::load`].
    #[inline]
    pub fn fetch_add(&self, addr: u64, n: u64) -> Result<u64, AccessError> {
        self.atomic(addr, AtomicOp::Add { mask: u64::MAX, n })
    }

    /// Does something to the word at an address that is a multiple of eight; what was there before.
    #[inline]
    pub(crate) fn atomic(&self, addr: u64, op: AtomicOp) -> Result<u64, AccessError> {
        let (tag, at) = self.word(addr)?;
        self.inner.access.atomic(tag, at, op)
    }

    /// Stores to the word at an address that is a multiple of eight.
    ///
    /// # Errors
    /// Those of [`Node::load`].
    #[inline]
    pub fn store(&self, addr: u64, value: u64) -> Result<(), AccessError> {
        let (tag, at) = self.word(addr)?;
        self.inner.access.replace(tag, at, value)
    }

    #[inline]
    fn word(&self, addr: u64) -> Result<(Tag, usize), AccessError> {
        self.open()?;
        if !addr.is_multiple_of(8) {
            return Err(AccessError::BadRange {
                addr,
                len: 8,
                block: self.inner.block,
            });
        }
        let tag = self.inner.access.agents.cache.tag_of(addr);
        if !self.inner.has_home(tag.home()) {
            return Err(no_home(addr));
        }
        Ok((tag, (addr - tag.0) as usize / 8))
    }

    /// Gives back memory, on any node; `len` is what was asked for. It can be allocated again for
    /// any size, and a handle that still has the address will read and write what is allocated
    /// there next: that is not noticed, since it would take a look at the home in every hit.
    /// Memory that has died with its node is free already.
    ///
    /// Memory of another node goes home with others in one message, at once or a little later; it
    /// waits here while that node does not answer.
    ///
    /// # Errors
    /// [`AllocError::NotAllocated`] when no memory of this size is allocated there,
    /// or a lock that this node knows: that is freed by its handle
    /// ([`Mutex::free`](crate::locked::Mutex::free)). For memory of another node this may be known
    /// only when it gets there, and be returned by a later call: the error has the address that it
    /// is about.
    /// [`RackError::Timeout`] when the other node does not answer, and as much waits for it as can;
    /// the memory stays allocated.
    pub fn free_bytes(&self, addr: u64, len: usize) -> Result<(), AllocError> {
        if !self.inner.has_home(Tag(addr).home()) {
            return Err(no_home(addr).into());
        }
        let beneath = Tag(addr).under(Contract::Locked);
        if Tag(addr) != beneath && self.inner.access.agents.locks.is_lock(beneath) {
            return Err(AllocError::NotAllocated { addr });
        }
        self.inner.allocator.free(&self.inner.access, addr, len)
    }

    /// Drops this node's copy of the block that an address is in, writing it back if it is dirty.
    /// Says whether there was one.
    ///
    /// # Errors
    /// [`AccessError::Busy`] when other threads use the copy for as long as the configuration
    /// allows, and those of [the type](Self): the copy is still there.
    pub fn evict(&self, addr: u64) -> Result<bool, AccessError> {
        self.open()?;
        let (tag, _) = self.within(addr, 1)?;
        coherent(tag)?;
        let access = &self.inner.access;
        let mut backoff = crate::backoff::Backoff::new(access.patience);
        let Some(reserved) = access.pending.reserve(&access.agents.cache, tag) else {
            return Ok(false);
        };
        while !access.evict(&reserved)? {
            if !backoff.wait() {
                return Err(AccessError::Busy { addr });
            }
        }
        Ok(true)
    }

    /// Goes on with a block whose last content died with a node ([`AccessError::Lost`]):
    /// it then holds whatever its home had when the content was last written back. Nothing happens
    /// to a block that is not lost.
    ///
    /// # Errors
    /// Those of [the type](Self).
    pub fn accept_loss(&self, addr: u64) -> Result<(), AccessError> {
        self.open()?;
        let (tag, _) = self.within(addr, 1)?;
        self.inner.access.accept_loss(tag, false)
    }

    /// Lets a block whose last content died with a node ([`AccessError::Lost`]) begin anew as
    /// zeros, in one step: no reader sees what its home still had. Nothing happens to a block that
    /// is not lost.
    ///
    /// # Errors
    /// Those of [the type](Self).
    pub fn accept_empty(&self, addr: u64) -> Result<(), AccessError> {
        self.open()?;
        let (tag, _) = self.within(addr, 1)?;
        self.inner.access.accept_loss(tag, true)
    }

    /// What it has done so far. What a thread has sent for an operation that goes on for long is
    /// counted when that ends.
    pub fn metrics(&self) -> NodeMetrics {
        let access = &self.inner.access;
        let sent = access.requesters.sent();
        let of_kind = |&kind: &Kind| (kind, sent.kinds[kind as usize]);
        NodeMetrics {
            sent: PacketCounts(Kind::ALL.iter().map(of_kind).collect()),
            retransmissions: sent.again,
            ..access.agents.metrics()
        }
    }

    /// The blocks that it misses most, the most missed first, with the misses of each since it is
    /// among them. Costs nothing where there are none: they are counted as they are missed.
    pub fn hot_blocks(&self) -> Vec<HotBlock> {
        let agents = &self.inner.access.agents;
        agents.hot.all(|tag| agents.cache.written(tag))
    }

    /// The same and what else there is to count: of which [`Metric`](crate::diagnostics::Metric)s
    /// are made. Looks at each lock.
    pub fn report(&self) -> NodeReport {
        NodeReport {
            metrics: self.metrics(),
            locks: self.lock_metrics(),
            ..self.inner.access.agents.report()
        }
    }

    /// Its locks ([`crate::locked`]) that a thread of it is inside or waits for, or that other
    /// nodes wait for, in the order of their addresses; with `all`, every one that it knows. Each
    /// is looked at for itself, while others go on.
    pub fn locks(&self, all: bool) -> Vec<LockStatus> {
        self.inner.access.agents.locks.statuses(0, all)
    }

    /// Locks of other nodes whose homes have said, since some were forgotten last,
    /// that they need not be kept here.
    pub fn idle_locks(&self) -> usize {
        self.inner.access.agents.locks.idle_locks()
    }

    /// Forgets these, as far as no handle of this process is for them. Says how many.
    pub fn forget_locks(&self) -> usize {
        self.inner.access.agents.locks.forget_idle()
    }

    /// Of [`Node::lock_metrics`] what is kept, given up and dropped, without a look at each lock:
    /// for who asks often.
    pub fn lock_memory(&self) -> LockMetrics {
        self.inner.access.agents.locks.memory()
    }

    /// What its locks ([`crate::locked`]) have cost so far.
    pub fn lock_metrics(&self) -> LockMetrics {
        self.inner.access.agents.locks.metrics()
    }

    /// The directory entry of a block that this node is home of, as
    /// `(lock, status, copyset, in the switch)`: for tools and checkers.
    pub fn inspect(&self, addr: u64) -> Option<(u16, &'static str, u32, bool)> {
        let tag = self.inner.access.agents.cache.tag_of(addr);
        let (lock, status, copyset, in_switch) = self.inner.access.agents.inspect(tag)?;
        Some((
            lock,
            crate::host::metrics::status_name(status),
            copyset,
            in_switch,
        ))
    }
}

/// The rack has no memory there. Regions with copies are named by their groups, and not by nodes.
#[cold]
fn no_home(addr: u64) -> AccessError {
    match Tag(addr).is_under(Contract::Replicated) {
        true => AccessError::wrong_contract(Tag(addr), Contract::Coherent),
        false => AccessError::BadAddress { addr },
    }
}
