//! Two keys' collections changed as one: both, or neither.

use super::{Collection, Overwrite, Put, Tree, Update, head};
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::layout::page::record_size;
use crate::memory::{Access, Memory, MemoryError};
use crate::store::Db;
use crate::store::lock::Scope;

/// What a change of both does.
type Change<'a, M> =
    &'a mut dyn FnMut(&mut Collection<'_, M>, &mut Collection<'_, M>) -> Result<()>;

/// What is known of a collection while nothing of its bucket is borrowed.
struct Known {
    existed: bool,
    expiry: u64,
    trees: Vec<Tree>,
}

impl<M: Memory> Db<'_, M> {
    /// Lets `f` change the collections of two different keys, as [`Db::change`] does those of one.
    ///
    /// # Errors
    /// As for [`Db::change`]. When memory runs out, neither is changed.
    pub(crate) fn change_both<R>(
        &self,
        keys: [&[u8]; 2],
        kind: Kind,
        mut f: impl FnMut(&mut Collection<'_, M>, &mut Collection<'_, M>) -> Result<R>,
    ) -> Result<R> {
        self.together(&keys, Access::Write, |db| {
            let mut patience = db.core.patience();
            loop {
                let mut done = None;
                let mut once = |one: &mut Collection<'_, M>, other: &mut Collection<'_, M>| {
                    done = Some(f(one, other)?);
                    Ok(())
                };
                match db.try_both(keys, kind, &mut once) {
                    Err(error) if error.is_node_lost() => db.mend_both(keys, error)?,
                    tried => return tried.and_then(|()| done.ok_or_else(|| db.core.busy())),
                }
                patience.pause()?;
            }
        })
    }

    fn mend_both(&self, keys: [&[u8]; 2], error: Error) -> Result<()> {
        let Error::Memory(MemoryError::Lost(addr)) = error else {
            return Err(error);
        };
        for key in keys {
            let (hash, lost) = (self.id(key)?.hash, MemoryError::Lost(addr));
            self.core
                .writing_key(self.scope, hash, |bucket| bucket.recover(lost.into()))?;
        }
        Ok(())
    }

    fn known(&self, key: &[u8], kind: Kind) -> Result<Collection<'_, M>> {
        let id = self.id(key)?;
        let Known {
            existed,
            expiry,
            trees,
        } = self.core.writing_key(self.scope, id.hash, |bucket| {
            let found = bucket.collection(&id, kind)?;
            Ok(Known {
                existed: found.existed,
                expiry: found.expiry,
                trees: found.trees,
            })
        })?;
        Ok(Collection {
            core: self.core,
            kind,
            existed,
            expiry,
            trees,
        })
    }

    fn try_both(&self, keys: [&[u8]; 2], kind: Kind, f: Change<'_, M>) -> Result<()> {
        let core = self.core;
        let [mut first, mut second] = [self.known(keys[0], kind)?, self.known(keys[1], kind)?];
        f(&mut first, &mut second)?;
        let mut fresh = first.store()?;
        match second.store() {
            Ok(more) => fresh.extend(more),
            Err(error) => return core.keep(Scope::ALONE, Err(error), fresh),
        }
        self.scope.note_nodes(&fresh);
        let changed = [(keys[0], first), (keys[1], second)];
        let heads = changed
            .each_ref()
            .map(|(_, found)| head::encode(&found.trees));
        // Nothing that follows needs memory.
        let mut sizes = Vec::new();
        for ((key, _), head) in changed.iter().zip(&heads) {
            sizes.push((self.id(key)?.hash, record_size(key.len(), head.len())));
        }
        let mut stored = core.reserve(self.scope, &sizes);
        for ((key, found), head) in changed.iter().zip(&heads) {
            stored = stored.and_then(|()| self.put(key, found, head));
        }
        core.keep(self.scope, stored, fresh)?;
        for place in changed
            .iter()
            .flat_map(|(_, found)| &found.trees)
            .flat_map(|tree| &tree.freed)
        {
            core.release(self.scope, place.addr, place.len)?;
        }
        Ok(())
    }

    fn put(&self, key: &[u8], found: &Collection<'_, M>, head: &[u8]) -> Result<()> {
        let put = Put {
            kind: found.kind,
            head: found.is_any().then_some(head),
            expiry: found.expiry,
        };
        let (core, id) = (self.core, self.id(key)?);
        // What has expired goes with all that it had.
        match found.existed {
            true => core.edit(self.scope, &id, &mut Update(put))?,
            false => core.edit(self.scope, &id, &mut Overwrite(put))?,
        };
        Ok(())
    }
}
