//! Transactions: buckets held together, so that everything done to them is one step.

use std::time::Duration;

use super::Store;
use super::bus::{Message, News};
use super::core::Core;
use super::db::{Db, Mark};
use super::held::Held;
use super::lock::Scope;
use super::right::Right;
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};

/// What a transaction is going to touch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// All keys there are, not only those named.
    pub whole: bool,
    /// It may flush databases.
    pub flush: bool,
}

/// Buckets held to be changed, and the flushes the transaction goes by. Dropping it makes
/// everything visible at once.
pub struct Transaction<'a, M: Memory> {
    core: &'a Core<M>,
    /// Dropped after this value's own `drop`, which needs the buckets.
    held: Held<'a, M>,
    /// Outlives `held`: buckets are let go before the right to flush is.
    _right: Option<Right<M>>,
    began: u64,
}

impl<M: Memory> Store<M> {
    /// Takes what `keys` and `plan` name; waits for others to let go of it, not for ever.
    ///
    /// Keys that were not named cannot be touched: such an operation ends as [`Error::BadOption`].
    pub fn transaction<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        plan: Plan,
    ) -> Result<Transaction<'_, M>> {
        let core = &*self.core;
        let keys = keys.into_iter();
        let hashes = keys.map(|key| Ok(core.id(0, key)?.hash));
        let hashes = hashes.collect::<Result<Vec<_>>>()?;
        let right = match plan.flush {
            true => Some(core.flush_right()?),
            false => None,
        };
        let mut held = match plan.whole {
            true => core.hold_all(Access::Write)?,
            false => core.hold(&hashes, Access::Write)?,
        };
        held.right = right.as_ref().map(Right::addr);
        let began = held.pinned.get().epoch;
        Ok(Transaction {
            core,
            held,
            _right: right,
            began,
        })
    }
}

impl<M: Memory> Store<M> {
    /// Takes all there is, to read it as it is at one moment: others read meanwhile.
    ///
    /// What has died with nodes is an error then, for mending is a change.
    pub(crate) fn standstill(&self) -> Result<Transaction<'_, M>> {
        let held = self.core.hold_all(Access::Read)?;
        Ok(Transaction {
            core: &self.core,
            began: held.pinned.get().epoch,
            held,
            _right: None,
        })
    }
}

impl<M: Memory> Transaction<'_, M> {
    /// A database as the transaction sees it, for its next command; `None` when there is none of
    /// that number.
    ///
    /// A command that finds that a node has died with something which an earlier one has used ends
    /// with an error ([`Error::is_node_lost`]): it does not go on as if that had never been there.
    pub fn db(&self, number: u8) -> Option<Db<'_, M>> {
        self.held.begin_step();
        Db {
            core: self.core,
            scope: Scope(Some(&self.held)),
            number: 0,
        }
        .select(number)
    }

    /// Lets what is changed from now on be undone: see [`Self::undo`].
    pub(crate) fn keep_journal(&mut self) {
        self.held.keep_journal();
    }

    /// Undoes what was changed since [`Self::keep_journal`]; `false`: it cannot be undone, since
    /// it was too much or a flush. To be called once, before this is dropped.
    ///
    /// # Errors
    /// When the memory fails: then some of it may stay.
    pub(crate) fn undo(&self) -> Result<bool> {
        self.held.undo()
    }

    /// Whether [`Self::undo`] would.
    pub(crate) fn can_undo(&self) -> bool {
        self.held.can_undo()
    }

    /// Whether a key can be touched.
    pub(crate) fn holds(&self, key: &[u8]) -> Result<bool> {
        let hash = self.core.id(0, key)?.hash;
        Ok(self.held.owner(hash).is_ok())
    }

    /// Whether all keys can be.
    pub(crate) fn holds_all(&self) -> bool {
        self.held.whole
    }

    /// Whether it may flush.
    pub(crate) fn may_flush(&self) -> bool {
        self.held.right.is_some()
    }

    /// Takes a key besides those that were named, waiting for others no longer than `wait` where
    /// they could wait for this transaction meanwhile. `false`: it could not.
    pub(crate) fn hold_also(&mut self, key: &[u8], wait: Duration) -> Result<bool> {
        let hash = self.core.id(0, key)?.hash;
        while self.held.owner(hash).is_err() {
            let Some(bucket) = self.held.missing(hash)? else {
                return Ok(false);
            };
            if !self.core.hold_also(&mut self.held, bucket, wait)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same of all keys.
    pub(crate) fn hold_all(&mut self, wait: Duration) -> Result<bool> {
        let mut next: Vec<usize> = (0..self.core.map.roots).collect();
        for depth in self.core.map.root_depth().. {
            for bucket in next {
                if !self.core.hold_also(&mut self.held, bucket, wait)? {
                    return Ok(false);
                }
            }
            next = match self.held.children(depth)? {
                Ok(children) => children,
                Err(_) => return Ok(false),
            };
            if next.is_empty() {
                break;
            }
        }
        self.held.whole = true;
        Ok(true)
    }

    /// Whether a key is still what it was when marked.
    pub fn unchanged(&self, db: u8, key: &[u8], mark: &Mark) -> Result<bool> {
        Ok(self
            .db(db)
            .map(|db| db.mark(key))
            .transpose()?
            .is_some_and(|now| now == *mark))
    }
}

impl<M: Memory> Drop for Transaction<'_, M> {
    fn drop(&mut self) {
        if self.held.pinned.get().epoch == self.began {
            return;
        }
        // Others may still act as if before our flush, and must then not see what we did before it.
        for bucket in self.held.buckets() {
            // Fails only when the memory is gone.
            let refreshed = |bucket: &mut super::bucket::Bucket<'_, M>| bucket.refresh();
            let _ = self
                .core
                .writing(Scope(Some(&self.held)), *bucket, refreshed);
        }
    }
}

impl<M: Memory> Db<'_, M> {
    /// Whether a key can be touched: a transaction holds its bucket, or there is none. One that is
    /// too long is nobody's.
    pub(crate) fn holds(&self, key: &[u8]) -> Result<bool> {
        if key.len() > self.core.geometry.key_max() {
            return Ok(true);
        }
        let hash = self.core.id(0, key)?.hash;
        Ok(self.scope.0.is_none_or(|held| held.owner(hash).is_ok()))
    }

    /// A command begins, of the transaction that this is in.
    pub(crate) fn begin_step(&self) {
        if let Some(held) = self.scope.0 {
            held.begin_step();
        }
    }

    /// Whether the transaction that this is in can be undone.
    pub(crate) fn can_undo(&self) -> bool {
        self.scope.0.is_some_and(Held::can_undo)
    }

    /// Whether all keys can be.
    pub(crate) fn holds_all(&self) -> bool {
        self.scope.0.is_none_or(|held| held.whole)
    }

    /// Whether it may be flushed.
    pub(crate) fn may_flush(&self) -> bool {
        self.scope.0.is_none_or(|held| held.right.is_some())
    }

    /// Removes every key of this database.
    pub fn flush(&self) -> Result<()> {
        self.flush_some(Some(self.number))
    }

    /// Removes every key of every database.
    pub fn flush_all(&self) -> Result<()> {
        self.flush_some(None)
    }

    fn flush_some(&self, db: Option<u8>) -> Result<()> {
        let Some(held) = self.scope.0 else {
            let right = self.core.flush_right()?;
            self.core.flush(db, right.addr())?;
            drop(right);
            self.core.tell(u64::MAX, &Message::Flush { db });
            return Ok(());
        };
        let Some(right) = held.right else {
            return Err(Error::BadOption("the transaction was not planned to flush"));
        };
        // Others see it at once.
        held.give_up_journal();
        held.pinned.set(self.core.flush(db, right)?);
        held.news.borrow_mut().push(News {
            nodes: u64::MAX,
            message: Message::Flush { db },
        });
        Ok(())
    }
}
