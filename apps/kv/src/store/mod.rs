//! The store: keys and values in the memory of a rack, the same from every node,
//! each operation one step.
//!
//! Keys hash to buckets; a bucket is a page behind a lock of the rack,
//! with further pages in memory when that is full. Whoever is inside of the lock has the page:
//! reading a key is entering the lock to read (`lookup.rs`), changing one is entering it to write
//! (`edit.rs`, and `chain.rs` for what takes several pages), and what takes several keys is inside
//! of several locks (`multi.rs`, `transaction.rs`). `lock.rs` tells how one enters. Buckets split
//! and are merged (`grow.rs`), so it takes a look to find the one of a key (`locate.rs`).

mod bucket;
mod buckets;
pub(crate) mod bus;
mod chain;
pub(crate) mod collection;
mod core;
mod db;
mod edit;
mod extent;
mod grow;
mod held;
mod internal;
mod keyspace;
mod leave;
mod locate;
mod lock;
mod lookup;
mod mend;
pub(crate) mod moving;
mod multi;
mod open;
mod ops;
mod refresh;
mod reserve;
mod right;
mod splice;
mod swap;
mod transaction;
mod undo;
pub(crate) mod value;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use self::core::Core;
use self::lock::Scope;
use crate::error::Result;
use crate::memory::Memory;

pub use crate::layout::kind::Kind;
pub use crate::layout::superblock::Losses;

pub use self::db::{Condition, Db, Expiry, Mark, SetOptions, SetOutcome};
pub use self::keyspace::{Keys, Sweep, Swept};
pub use self::leave::{CannotLeave, Moved};
pub use self::multi::Values;
pub use self::open::Options;
pub use self::ops::ExpireIf;
pub use self::transaction::{Plan, Transaction};
pub use self::value::Meta;

/// A store, open at one node. Clones are the same store; any thread may use any of them.
pub struct Store<M: Memory> {
    core: Arc<Core<M>>,
}

impl<M: Memory> Clone for Store<M> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

impl<M: Memory> Store<M> {
    /// One of the 16 databases; `None` for other numbers.
    pub fn db(&self, number: u8) -> Option<Db<'_, M>> {
        self.first().select(number)
    }

    /// Database 0.
    #[inline]
    pub fn first(&self) -> Db<'_, M> {
        Db {
            core: &self.core,
            scope: Scope::ALONE,
            number: 0,
        }
    }

    /// [`Db::get`] in database 0.
    #[inline]
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.first().get(key, value)
    }

    /// [`Db::set`] in database 0.
    #[inline]
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.first().set(key, value)
    }

    /// [`Db::remove`] in database 0.
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        self.first().remove(key)
    }

    /// [`Db::increment`] in database 0.
    pub fn increment(&self, key: &[u8], by: i64) -> Result<i64> {
        self.first().increment(key, by)
    }

    /// Cleans up to `budget` of this node's buckets: see [`Sweep`]. A server does this by itself.
    pub fn sweep(&self, sweep: &mut Sweep, budget: usize) -> Result<Swept> {
        self.core.sweep(sweep, budget)
    }

    /// Gives back the memory that this node takes for buckets of which it keeps nothing since they
    /// were flushed. A server does this by itself; whoever sweeps calls it from time to time.
    pub fn shed(&self) -> Result<()> {
        self.core.shed()
    }

    /// What this thread remembers of buckets does not keep memory from being given back. A thread
    /// that may not use the store for long calls it now and then; a server's do.
    pub fn catch_up(&self) {
        self.core.catch_up();
    }

    /// Returns when what this thread has read and written may be told to clients.
    /// Any server calls it before it answers: a process that was stopped for long may have been
    /// declared dead meanwhile, and find out only now.
    ///
    /// # Errors
    /// When the rack goes on without this node, or nobody can say: then reads may be old,
    /// and writes lost.
    #[inline]
    pub fn confirm(&self) -> Result<()> {
        Ok(self.core.memory.confirm()?)
    }

    /// Tries again while a node that it takes is away, as long as an operation waits for a bucket.
    pub(crate) fn waiting_for_members<R>(&self, f: impl FnMut() -> Result<R>) -> Result<R> {
        open::waiting_for_members(self.core.patience, f)
    }

    /// What has died with nodes since the store was made, anywhere in the rack.
    pub fn losses(&self) -> Result<Losses> {
        self.core.losses()
    }

    /// Buckets that cannot be reached, because their home is no member of the rack: their keys
    /// answer NODELOST until it is back.
    pub fn buckets_away(&self) -> usize {
        self.core.buckets_away()
    }

    /// Keys that this node has removed because their time was over, since the store was opened. A
    /// key is removed by the first who writes its bucket or sweeps it, some time after nobody can
    /// read it any more.
    pub fn expired_keys(&self) -> u64 {
        self.core.expired.load(Relaxed)
    }

    /// Begins that count anew.
    pub fn forget_expired_keys(&self) {
        self.core.expired.store(0, Relaxed);
    }

    /// The memory the store is in.
    pub fn memory(&self) -> &M {
        &self.core.memory
    }

    /// The longest key, in bytes.
    pub fn key_limit(&self) -> usize {
        self.core.geometry.key_max()
    }

    /// Bytes that this node keeps of the store: pages with their locks, and long values, trees and
    /// further pages that it is the home of. Not those that are only addresses of locks.
    pub fn used_bytes(&self) -> usize {
        let addresses = self.core.own_addresses();
        self.core.memory.used_bytes().saturating_sub(addresses)
    }

    /// Bytes of the rack's memory that the locks of buckets have, and the lock of those who flush:
    /// those of a bucket stay when it is merged, for it to be split again.
    pub fn lock_bytes(&self) -> Result<usize> {
        self.core.lock_bytes()
    }

    /// Buckets that there are locks for, as this node knows. It grows while a store does.
    pub fn buckets(&self) -> usize {
        self.core.slab_buckets(|_| true)
    }
}
