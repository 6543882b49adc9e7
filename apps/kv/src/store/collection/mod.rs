//! Values that consist of many: lists, sets, hashes, sorted sets, streams.
//!
//! Each is one tree, or two, of entries in an order (`tree.rs`).
//! A small one lies in its record like a short string; of a larger one the record has the address
//! of the root, and the nodes are memory of their own. The lock of the key's bucket protects all of
//! it, so an operation on an element is one step like any other,
//! and moves the nodes on the way to the element only.
//!
//! | kind | tree | key | value |
//! |---|---|---|---|
//! | list | 0 | none: by position | element |
//! | set | 0 | hash of the member, member ([`hashed`]) | none |
//! | hash | 0 | hash of the field, field | value |
//! | sorted set | 0 | score, member | none |
//! | | 1 | hash of the member, member: while tree 0 has several leaves (`sorted.rs`) | score |
//! | stream | 0 | number of the entry | fields |
//! | | 1 | what is known of the stream and its groups | |
//!
//! Commands use [`Db::view`], [`Db::change`], [`Db::change_both`] and [`Db::replace`].
//! What they are given is a [`Collection`].

mod both;
mod encoding;
mod head;
mod node;
pub(crate) mod sorted;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod tree;

use std::ops::Range;

pub(super) use self::node::Place;
use self::tree::{Nodes, Tree};
use super::bucket::Bucket;
use super::core::Core;
use super::db::Db;
use super::edit::{Current, Edit, Operation};
use super::lock::Scope;
use super::value::{Meta, Reach, Value};
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::layout::page::KeyId;
use crate::layout::page_mut::Payload;
use crate::memory::{Memory, MemoryError};

/// Bytes of a key's hash in front of members and fields.
pub(crate) const HASH: usize = 4;

/// A member or field as the key of an entry: its hash first, so that a scan's cursor, which is a
/// number, can say where to go on.
pub(crate) fn hashed(member: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(HASH + member.len());
    key.extend_from_slice(&((crate::hash::hash(0, member) >> 32) as u32).to_be_bytes());
    key.extend_from_slice(member);
    key
}

/// The member or field of such a key.
pub(crate) fn unhashed(key: &[u8]) -> &[u8] {
    key.get(HASH..).unwrap_or_default()
}

impl<M: Memory> Nodes for Core<M> {
    fn load(&self, place: Place) -> Result<Vec<u8>> {
        if place.len > crate::MAX_VALUE + 64 {
            return Err(Error::Corrupt("a node of a collection is too long"));
        }
        let mut bytes = vec![0; place.len];
        self.memory.read(place.addr, &mut bytes)?;
        Ok(bytes)
    }

    fn store(&self, bytes: &[u8]) -> Result<u64> {
        let addr = self.alloc(bytes.len())?;
        match self.memory.write(addr, bytes) {
            Ok(()) => Ok(addr),
            Err(error) => {
                let error = Error::from(error);
                if error.certain() {
                    self.memory.free(addr, bytes.len())?;
                }
                Err(error)
            }
        }
    }
}

/// A key's collection, while its bucket is held. Trees are numbered as in the table above.
pub(crate) struct Collection<'a, M: Memory> {
    core: &'a Core<M>,
    pub kind: Kind,
    /// Whether the key is there.
    pub existed: bool,
    /// ms since 1970, 0 for none. May be changed.
    pub expiry: u64,
    trees: Vec<Tree>,
}

impl<M: Memory> Collection<'_, M> {
    /// Entries in a tree.
    pub fn count(&self, tree: usize) -> u64 {
        self.trees[tree].count()
    }

    /// Levels of a tree above its leaves.
    pub fn level(&self, tree: usize) -> u8 {
        self.trees[tree].root().level()
    }

    /// Whether a tree lies in the key's record, as far as is known before the change is stored.
    pub fn is_small(&self, tree: usize) -> bool {
        let root = self.trees[tree].root();
        matches!(&root.link, node::Link::Here(node) if node.level() == 0)
    }

    /// Whether all of it lies in the key's record, as [`Self::is_small`] says of a tree.
    pub fn is_in_record(&self) -> bool {
        (0..self.trees.len()).all(|tree| self.is_small(tree))
    }

    /// The value of a key.
    pub fn get(&self, tree: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.trees[tree].get(self.core, key)
    }

    /// How many keys are lower, and whether this one is there.
    pub fn rank(&self, tree: usize, key: &[u8]) -> Result<(u64, bool)> {
        self.trees[tree].rank(self.core, key)
    }

    /// Key and value at a position.
    pub fn at(&self, tree: usize, index: u64) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.trees[tree].at(self.core, index)
    }

    /// Shows `f` keys and values from a position on, until it says `false`.
    pub fn walk(
        &self,
        tree: usize,
        from: u64,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.trees[tree].walk(self.core, from, &mut f)
    }

    /// The same from a position downwards.
    pub fn walk_back(
        &self,
        tree: usize,
        from: u64,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.trees[tree].walk_back(self.core, from, &mut f)
    }

    /// Sets the value of a key; says the old one.
    pub fn put(&mut self, tree: usize, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        self.trees[tree].put(self.core, key, value)
    }

    /// Takes a key out; says its value.
    pub fn remove(&mut self, tree: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.trees[tree].remove(self.core, key)
    }

    /// Takes keys out; says how many were there.
    pub fn remove_all(&mut self, tree: usize, keys: &[Vec<u8>]) -> Result<usize> {
        let mut gone = 0;
        for key in keys {
            gone += usize::from(self.remove(tree, key)?.is_some());
        }
        Ok(gone)
    }

    /// Puts an entry before the one at `index`, in a tree without keys.
    pub fn insert(&mut self, tree: usize, index: u64, value: &[u8]) -> Result<()> {
        self.trees[tree].insert(self.core, index, value)
    }

    /// Sets the value at a position; says whether there is one.
    pub fn set(&mut self, tree: usize, index: u64, value: &[u8]) -> Result<bool> {
        self.trees[tree].set(self.core, index, value)
    }

    /// Takes out what is at these positions.
    pub fn cut(&mut self, tree: usize, range: Range<u64>) -> Result<()> {
        self.trees[tree].cut(self.core, range)
    }

    /// Bytes of leaves that may stay in the record.
    fn inline(&self) -> usize {
        self.core.geometry.inline_max() / self.trees.len().max(1) - head::POINTER
    }
}

/// How a changed collection is put into its record.
struct Put<'a> {
    kind: Kind,
    /// `None`: it is empty, and its key goes.
    head: Option<&'a [u8]>,
    expiry: u64,
}

/// Over a collection whose nodes it has itself freed as far as they are to go.
struct Update<'a>(Put<'a>);

/// Over any value.
struct Overwrite<'a>(Put<'a>);

impl Put<'_> {
    fn edit(&self) -> Edit {
        match self.head {
            Some(_) => Edit::Put {
                expiry: self.expiry,
            },
            None => Edit::Remove,
        }
    }

    fn payload(&self) -> Payload<'_> {
        Payload::Head {
            kind: self.kind,
            bytes: self.head.unwrap_or_default(),
        }
    }
}

impl Operation for Update<'_> {
    fn any_kind(&self) -> bool {
        true
    }
    fn keeps_nodes(&self) -> bool {
        true
    }

    fn decide(&mut self, _: Option<&Current<'_>>) -> Edit {
        self.0.edit()
    }

    fn payload(&self) -> Payload<'_> {
        self.0.payload()
    }
}

impl Operation for Overwrite<'_> {
    fn any_kind(&self) -> bool {
        true
    }

    fn decide(&mut self, _: Option<&Current<'_>>) -> Edit {
        self.0.edit()
    }

    fn payload(&self) -> Payload<'_> {
        self.0.payload()
    }
}

/// What a look at a collection does; `None`: there is none.
type Look<'a, M> = &'a mut dyn FnMut(Option<&Collection<'_, M>>) -> Result<()>;
/// What a change of a collection does.
type Change<'a, M> = &'a mut dyn FnMut(&mut Collection<'_, M>) -> Result<()>;

impl<'a, M: Memory> Db<'a, M> {
    /// Shows `f` a collection, which may run several times. `None`: there is no such key.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key is of another kind; what `f` says.
    pub(crate) fn view<R>(
        &self,
        key: &[u8],
        kind: Kind,
        mut f: impl FnMut(&Collection<'_, M>) -> Result<R>,
    ) -> Result<Option<R>> {
        let mut seen = None;
        self.show(key, kind, &mut |found| {
            seen = found.map(&mut f).transpose()?;
            Ok(())
        })?;
        Ok(seen)
    }

    /// [`Db::view`], once for all who look.
    fn show(&self, key: &[u8], kind: Kind, f: Look<'_, M>) -> Result<()> {
        let id = self.id(key)?;
        self.core.reading_key(self.scope, id.hash, |bucket| {
            let found = bucket.collection(&id, kind)?;
            f(found.existed.then_some(&found))
        })
    }

    /// Lets `f` change a collection, an empty one if there is no such key; it may run again when
    /// something it has met died with a node. A collection that is empty then is no key any more.
    /// Nothing is changed if `f` fails.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the key is of another kind; what `f` says.
    pub(crate) fn change<R>(
        &self,
        key: &[u8],
        kind: Kind,
        mut f: impl FnMut(&mut Collection<'_, M>) -> Result<R>,
    ) -> Result<R> {
        let mut done = None;
        self.alter(key, kind, &mut |found| {
            done = Some(f(found)?);
            Ok(())
        })?;
        done.ok_or_else(|| self.core.busy())
    }

    /// [`Db::change`], once for all who change something.
    fn alter(&self, key: &[u8], kind: Kind, f: Change<'_, M>) -> Result<()> {
        let id = self.id(key)?;
        self.core.writing_key(self.scope, id.hash, |bucket| {
            let mut patience = self.core.patience();
            loop {
                match bucket.change_collection(&id, kind, f) {
                    Err(error) if error.is_node_lost() => bucket.recover(error)?,
                    done => return done,
                }
                patience.pause()?;
            }
        })
    }

    /// Lets `f` fill an empty collection, which takes the place of what the key had. One that stays
    /// empty leaves no key.
    pub(crate) fn replace<R>(
        &self,
        key: &[u8],
        kind: Kind,
        f: impl FnOnce(&mut Collection<'_, M>) -> Result<R>,
    ) -> Result<R> {
        let id = self.id(key)?;
        let mut made = self.core.empty(kind);
        let done = f(&mut made)?;
        let fresh = made.store()?;
        self.scope.note_nodes(&fresh);
        let (any, expiry) = (made.is_any(), made.expiry);
        let head = head::encode(&made.trees);
        let mut op = Overwrite(Put {
            kind,
            head: any.then_some(&head),
            expiry,
        });
        let put = self.core.edit(self.scope, &id, &mut op);
        self.core.keep(self.scope, put, fresh)?;
        Ok(done)
    }
}

impl<M: Memory> Collection<'_, M> {
    fn is_any(&self) -> bool {
        self.trees.iter().any(|tree| tree.count() != 0)
    }

    /// Stores what has to be; says where, or stores nothing.
    fn store(&mut self) -> Result<Vec<Place>> {
        let (inline, core, mut fresh) = (self.inline(), self.core, Vec::new());
        for tree in &mut self.trees {
            let stored = tree.store(core, inline, &mut fresh);
            if stored.is_err() {
                return core.keep(Scope::ALONE, stored, fresh).map(|()| Vec::new());
            }
        }
        Ok(fresh)
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// The collection of a key, or an empty one.
    fn collection(&self, id: &KeyId<'_>, kind: Kind) -> Result<Collection<'_, M>> {
        let mut copy = |meta: &Meta, value: Value<'_>| {
            let mut bytes = Vec::new();
            if meta.kind == kind {
                value.append_to(&mut bytes);
            }
            (*meta, bytes)
        };
        let Some((meta, bytes)) = self.lookup(id, Reach::All, &mut copy)?.found else {
            return Ok(self.core.empty(kind));
        };
        if meta.kind != kind {
            return Err(Error::WrongType);
        }
        self.core.found(kind, &bytes, meta.expiry)
    }

    fn change_collection(&mut self, id: &KeyId<'_>, kind: Kind, f: Change<'_, M>) -> Result<()> {
        let (core, scope) = (self.core, self.scope());
        // What a flush ends after this look is ended after the change: the old nodes are not freed
        // under it.
        self.flushes()?;
        let mut found = self.collection(id, kind)?;
        let expiry = found.expiry;
        f(&mut found)?;
        let same = found.expiry == expiry || !found.existed;
        if same && !found.trees.iter().any(|tree| tree.changed) {
            return Ok(());
        }
        let fresh = found.store()?;
        scope.note_nodes(&fresh);
        let (any, expiry, existed) = (found.is_any(), found.expiry, found.existed);
        let head = head::encode(&found.trees);
        let trees = std::mem::take(&mut found.trees);
        drop(found);
        let put = Put {
            kind,
            head: any.then_some(&head),
            expiry,
        };
        // What has expired goes with all that it had.
        let put = match existed {
            true => self.edit(id, &mut Update(put)),
            false => self.edit(id, &mut Overwrite(put)),
        };
        let effects = core.keep(scope, put, fresh)?;
        core.free(scope, &effects.freed)?;
        for place in trees.iter().flat_map(|tree| &tree.freed) {
            core.release(scope, place.addr, place.len)?;
        }
        Ok(())
    }
}

impl<M: Memory> Core<M> {
    fn empty(&self, kind: Kind) -> Collection<'_, M> {
        Collection {
            core: self,
            kind,
            existed: false,
            expiry: 0,
            trees: (0..kind.trees()).map(|_| Tree::default()).collect(),
        }
    }

    /// The collection that a record has.
    pub(super) fn found(&self, kind: Kind, bytes: &[u8], expiry: u64) -> Result<Collection<'_, M>> {
        Ok(Collection {
            core: self,
            kind,
            existed: true,
            expiry,
            trees: head::decode(kind, bytes)?,
        })
    }

    /// Frees new nodes if it is certain that no record points to them.
    fn keep<T>(&self, scope: Scope<'_, M>, outcome: Result<T>, fresh: Vec<Place>) -> Result<T> {
        if outcome.as_ref().is_err_and(Error::certain) {
            for place in fresh {
                self.release(scope, place.addr, place.len)?;
            }
        }
        outcome
    }

    /// Frees the nodes of a collection that no record has any more.
    pub fn free_nodes(&self, scope: Scope<'_, M>, kind: Kind, bytes: &[u8]) -> Result<()> {
        for tree in head::decode(kind, bytes)? {
            for place in tree.places(self)? {
                self.release(scope, place.addr, place.len)?;
            }
        }
        Ok(())
    }

    /// Bytes of memory that the nodes of a collection have been given.
    pub fn node_bytes(&self, kind: Kind, bytes: &[u8]) -> Result<usize> {
        let mut sum = 0;
        for tree in head::decode(kind, bytes)? {
            sum += tree
                .places(self)?
                .iter()
                .map(|place| place.len)
                .sum::<usize>();
        }
        Ok(sum)
    }

    /// Whether all nodes of a collection are still there, or may come back.
    pub fn is_whole(&self, kind: Kind, bytes: &[u8]) -> Result<bool> {
        for tree in head::decode(kind, bytes)? {
            let places = match tree.places(self) {
                Err(Error::Memory(MemoryError::Lost(_))) => return Ok(false),
                Err(Error::Memory(MemoryError::NodeLost(_))) => continue,
                places => places?,
            };
            for place in places {
                if !self.readable(place.addr, place.len)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Stores nodes of a collection anew that are at addresses that `there` names. `put` is given
    /// the record's new value, which is as long as the old one; then the old nodes are freed.
    /// Whether there were any; nothing has changed if it fails.
    pub fn renew_nodes(
        &self,
        (kind, bytes): (Kind, &[u8]),
        there: &impl Fn(u64) -> bool,
        put: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let (mut trees, mut fresh, mut any) = (head::decode(kind, bytes)?, Vec::new(), false);
        let mut renew = || -> Result<()> {
            for tree in &mut trees {
                any |= tree.renew(self, there, &mut fresh)?;
            }
            Ok(())
        };
        let renewed = renew();
        self.keep(Scope::ALONE, renewed, fresh.clone())?;
        if !any {
            return Ok(false);
        }
        let head = head::encode(&trees);
        let put = match head.len() == bytes.len() {
            true => put(&head),
            false => Err(Error::Corrupt("a collection's record makes no sense")),
        };
        self.keep(Scope::ALONE, put, fresh)?;
        for place in trees.iter().flat_map(|tree| &tree.freed) {
            self.memory.free(place.addr, place.len)?;
        }
        Ok(true)
    }

    /// Whether a node of a collection is at an address that `there` names.
    pub fn has_nodes(
        &self,
        (kind, bytes): (Kind, &[u8]),
        there: &impl Fn(u64) -> bool,
    ) -> Result<bool> {
        for tree in head::decode(kind, bytes)? {
            if tree.places(self)?.iter().any(|place| there(place.addr)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A copy of a collection, for another record.
    pub fn duplicate<R>(
        &self,
        scope: Scope<'_, M>,
        (kind, bytes): (Kind, &[u8]),
        place: impl FnOnce(&[u8]) -> Result<R>,
        placed: impl FnOnce(&R) -> bool,
    ) -> Result<R> {
        let mut copy = self.empty(kind);
        copy.trees = head::decode(kind, bytes)?
            .iter()
            .map(|tree| tree.duplicate(self))
            .collect::<Result<_>>()?;
        let fresh = copy.store()?;
        scope.note_nodes(&fresh);
        let put = place(&head::encode(&copy.trees));
        let done = self.keep(scope, put, fresh.clone())?;
        if !placed(&done) {
            for place in fresh {
                self.release(scope, place.addr, place.len)?;
            }
        }
        Ok(done)
    }
}
