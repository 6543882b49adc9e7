//! Where the buckets are: which of them lie at one node, and the locks that they are behind.
//!
//! A slab is the buckets that one node is the home of, or a part of these. When the node has died
//! and is back, the slab gets other addresses, and with them other locks. Every operation goes by
//! the slabs as they are when it begins, and is told when they are gone.

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::layout::superblock::Map;
use crate::memory::{Memory, MemoryError};

/// Buckets with one home.
pub(crate) struct Slab<M: Memory> {
    pub addr: u64,
    /// Their head pages.
    pub heads: M::Pages,
}

impl<M: Memory> Slab<M> {
    pub fn new(memory: &M, map: &Map, page: usize, addr: u64) -> Result<Arc<Self>, MemoryError> {
        let heads = memory.pages(addr, map.slab_buckets, page)?;
        Ok(Arc::new(Slab { addr, heads }))
    }
}

/// All slabs at one time.
pub(crate) type Slabs<M> = Box<[Arc<Slab<M>>]>;

/// The slabs as they are now.
pub(crate) struct Buckets<M: Memory> {
    now: Mutex<Arc<Slabs<M>>>,
    /// Changes with `now`, and is another one for every store.
    version: AtomicU64,
}

/// Unique in the process.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

fn version() -> u64 {
    VERSIONS.fetch_add(1, Relaxed)
}

thread_local! {
    /// The slabs that this thread went by last, of one store, and their version. So a thread that
    /// finds everything as it was takes no reference, for which it would write to memory that all
    /// threads share.
    static LAST: Cell<Option<(u64, Arc<dyn Any + Send + Sync>)>> = const { Cell::new(None) };
}

impl<M: Memory> Buckets<M> {
    pub fn new(slabs: Slabs<M>) -> Self {
        Buckets {
            now: Mutex::new(Arc::new(slabs)),
            version: AtomicU64::new(version()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Slabs<M>>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slabs as they are now, to keep.
    pub fn now(&self) -> Arc<Slabs<M>> {
        self.lock().clone()
    }

    /// Shows `f` the slabs as they are now.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&Slabs<M>) -> R) -> R {
        let version = self.version.load(Acquire);
        let last = LAST.try_with(Cell::take).ok().flatten();
        if let Some((known, slabs)) = last.filter(|(known, _)| *known == version)
            && let Some(mine) = slabs.downcast_ref::<Slabs<M>>()
        {
            let result = f(mine);
            let _ = LAST.try_with(|last| last.set(Some((known, slabs))));
            return result;
        }
        let slabs = self.now();
        let result = f(&slabs);
        // Noted under the version read first: if there are newer ones by now,
        // the next look finds out.
        let _ = LAST.try_with(|last| last.set(Some((version, slabs))));
        result
    }

    /// One slab is another from now on.
    pub fn replace(&self, number: usize, slab: Arc<Slab<M>>) {
        let mut now = self.lock();
        let mut slabs: Vec<_> = now.iter().cloned().collect();
        slabs[number] = slab;
        *now = Arc::new(slabs.into());
        self.version.store(version(), Release);
    }

    pub fn addr(&self, slab: usize) -> u64 {
        self.lock()[slab].addr
    }
}
