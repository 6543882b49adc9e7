//! Where the buckets are, as this node knows: the slabs that they are in, and how many bits of a
//! key's hash are the number of its bucket.
//!
//! A slab is buckets of one generation that one node is the home of, or a part of these. It comes
//! into being when one of its buckets does, and is looked up in the store's tables when this node
//! first needs it. When its node has died and is back, it gets other addresses, and with them other
//! locks. Every operation goes by the slabs as they are when it begins, and is told when they are
//! gone.
//!
//! How long the numbers are is a guess: another node may have split a bucket. The bucket itself
//! tells, to whoever is inside of its lock.

use std::any::Any;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::layout::superblock::Map;
use crate::memory::{Memory, MemoryError};

/// Bit of an entry of the store's tables: these locks took the place of others, which died.
const REPLACED: u64 = 1;

/// Buckets with one home.
pub(crate) struct Slab<M: Memory> {
    /// What the store's tables say.
    pub entry: u64,
    /// Their head pages.
    pub heads: M::Pages,
}

impl<M: Memory> Slab<M> {
    pub fn new(
        memory: &M,
        map: &Map,
        page: usize,
        (slab, entry): (usize, u64),
    ) -> Result<Arc<Self>, MemoryError> {
        let heads = memory.pages(Self::addr_of(entry), map.slab_buckets(slab), page)?;
        Ok(Arc::new(Slab { entry, heads }))
    }

    pub fn addr(&self) -> u64 {
        Self::addr_of(self.entry)
    }

    /// The address that an entry of the tables is about.
    pub fn addr_of(entry: u64) -> u64 {
        entry & !REPLACED
    }

    /// Whether others before it have died: a bucket that was never written may have been split.
    #[inline]
    pub fn is_replaced(&self) -> bool {
        self.entry & REPLACED != 0
    }

    /// The entry of locks at an address that take the place of others.
    pub fn replacing(addr: u64) -> u64 {
        addr | REPLACED
    }
}

/// All slabs that this node knows, at one time, by their numbers.
pub(crate) struct Slabs<M: Memory> {
    all: Box<[Option<Arc<Slab<M>>>]>,
    /// For the lowest bits of hashes: how many of them are the number of the bucket. A power of
    /// two.
    depths: Arc<[AtomicU8]>,
}

impl<M: Memory> Slabs<M> {
    pub fn new(all: Vec<Option<Arc<Slab<M>>>>, depth: u8) -> Self {
        Slabs {
            all: all.into(),
            depths: [AtomicU8::new(depth)].into(),
        }
    }

    #[inline]
    pub fn get(&self, slab: usize) -> Option<&Arc<Slab<M>>> {
        self.all.get(slab).and_then(Option::as_ref)
    }

    /// Those there are, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Arc<Slab<M>>)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, slab)| Some((number, slab.as_ref()?)))
    }

    /// How many bits of this hash are the number of its bucket, as far as is known.
    #[inline]
    pub fn depth(&self, hash: u64) -> u8 {
        self.depths[hash as usize & (self.depths.len() - 1)].load(Relaxed)
    }

    /// The bucket of this hash, as far as is known.
    #[inline]
    pub fn guess(&self, hash: u64) -> usize {
        hash as usize & ((1 << self.depth(hash)) - 1)
    }
}

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

/// Slabs that a thread goes by; the thread's next operation finds them again.
pub(crate) struct Used<M: Memory> {
    version: u64,
    /// Until this is dropped.
    slabs: Option<Arc<Slabs<M>>>,
}

impl<M: Memory> Deref for Used<M> {
    type Target = Slabs<M>;

    #[inline]
    fn deref(&self) -> &Slabs<M> {
        self.slabs.as_ref().expect("it is not dropped")
    }
}

impl<M: Memory> Drop for Used<M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(slabs) = self.slabs.take() {
            let _ = LAST.try_with(|last| last.set(Some((self.version, slabs))));
        }
    }
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

    /// The slabs as they are now, for one operation of this thread.
    #[inline]
    pub fn used(&self) -> Used<M> {
        let version = self.version.load(Acquire);
        if let Ok(Some((known, slabs))) = LAST.try_with(Cell::take)
            && known == version
            && let Ok(slabs) = slabs.downcast()
        {
            let slabs = Some(slabs);
            return Used { version, slabs };
        }
        // Noted under the version read first: if there are newer ones by now, the next look finds
        // out.
        let slabs = Some(self.now());
        Used { version, slabs }
    }

    fn become_now(&self, mut now: MutexGuard<'_, Arc<Slabs<M>>>, slabs: Slabs<M>) {
        *now = Arc::new(slabs);
        self.version.store(version(), Release);
    }

    /// One slab is this one from now on.
    pub fn put(&self, number: usize, slab: Arc<Slab<M>>) {
        let now = self.lock();
        let mut all = now.all.to_vec();
        if all.len() <= number {
            all.resize_with(number + 1, || None);
        }
        all[number] = Some(slab);
        let depths = now.depths.clone();
        let all = all.into();
        self.become_now(now, Slabs { all, depths });
    }

    /// The bucket of these hashes has a number of so many bits.
    pub fn learn(&self, hash: u64, depth: u8) {
        let now = self.lock();
        let slabs = match now.depths.len() >> depth {
            // They were all as long as the longest, but for the lower bits.
            0 => {
                let old = now.depths.iter().cycle().take(1 << depth);
                let depths = old.map(|depth| AtomicU8::new(depth.load(Relaxed)));
                let (all, depths) = (now.all.clone(), depths.collect());
                self.become_now(now, Slabs { all, depths });
                self.now()
            }
            _ => now.clone(),
        };
        let first = hash as usize & ((1 << depth) - 1);
        for at in (first..slabs.depths.len()).step_by(1 << depth) {
            slabs.depths[at].store(depth, Relaxed);
        }
    }

    /// The bucket of this hash has a number of so many bits at least.
    pub fn learn_at_least(&self, hash: u64, depth: u8) {
        if self.lock().depth(hash) < depth {
            self.learn(hash, depth);
        }
    }

    pub fn get(&self, slab: usize) -> Option<Arc<Slab<M>>> {
        self.lock().get(slab).cloned()
    }
}
