//! A table of keys and values on objects (FaRM's shape, SABRes §6): a lookup is one read of a
//! bucket, by whatever way this process has to it, and a change is a conditional write that the
//! bucket's home carries out.
//!
//! A bucket is an object, its *head*. What does not fit there is in a second object, its *tail*,
//! or in several where objects are short, which are never changed: who changes it makes a new one,
//! names that in the head, and frees the old one. So the head's version is the version of the
//! whole bucket, and there is one write by which a change takes effect. A reader whose tail has
//! been freed meanwhile finds it gone, and begins again at the head.

mod bucket;
mod entries;
mod finding;
mod futures;
pub(crate) mod hash;
mod root;
mod tail;
mod updating;

pub use self::entries::Entries;
pub use self::root::MapSpec;

use self::bucket::{Seen, find};
use self::finding::Finding;
use self::hash::hash;
use super::{Object, ObjectRef};
use crate::bytes::window::Window;
use crate::error::AccessError;
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks};
use crate::node::Node;
use std::sync::Arc;

/// A table of keys and values, both bytes, that any number of threads of all nodes use at a time.
///
/// A lookup reads one object where its bucket is: a search in memory that this process has, also
/// mapped from another process of the host, and elsewhere one packet to the bucket's home and one
/// back. It takes no lock. A change reads the bucket and asks its home for a conditional write;
/// where another change came first it is made again. Each operation on one key happens at one
/// moment between its call and its return (it is linearizable); operations on several keys are
/// several operations.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::object::{Map, MapSpec};
/// use rackmem::{Contract, Rack, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// let spec = |name| RegionSpec::new(name, 1 << 20).contract(Contract::Object);
/// let near = rack.node(0).create_region(&spec("near"))?;
/// let far = rack.node(0).create_region(&spec("far").on(1))?;
/// // Buckets are at both homes, for some 1,000 entries of 50 bytes.
/// let wanted = MapSpec::new(1000, 50);
/// let users = rack.node(0).create_map(&[near.addr(), far.addr()], wanted)?;
/// users.insert(b"ada", b"1815")?;
///
/// let same: Map = rack.node(1).attach_map(users.at())?;
/// assert_eq!(same.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// same.update(b"visits", |old| Some(vec![old.map_or(1, |n| n[0] + 1)]))?;
/// same.update(b"visits", |old| Some(vec![old.map_or(1, |n| n[0] + 1)]))?;
/// assert_eq!(users.get(b"visits")?, Some(vec![2]));
/// assert_eq!(users.remove(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// assert_eq!(same.get(b"ada")?, None);
/// # Ok(())
/// # }
/// ```
///
/// **When something fails**: in regions with copies
/// ([`RegionSpec::copies`](crate::RegionSpec::copies)) nothing is lost while a majority of a
/// region's nodes lives, and operations wait for the next node that serves them. Elsewhere what a
/// home had dies with it, and operations on keys whose bucket was there say
/// [`RackError::NodeLost`](crate::RackError::NodeLost); other keys go on. A thread or process that
/// dies in a change leaves the old value or the new one, and at most one tail that nobody uses. Of
/// a change that failed [`Error::changed`](crate::Error::changed) says whether it may have been
/// made all the same.
#[derive(Clone)]
pub struct Map {
    shape: Arc<Shape>,
}

/// What all handles of a map agree on.
struct Shape {
    node: Node,
    root: ObjectRef,
    seed: u64,
    /// Bytes that a head has room for.
    room: usize,
    /// Bytes of an object of a tail at most.
    most: usize,
    /// Where tails are made: a bucket's is in the region of its head.
    regions: Vec<u64>,
    directories: Vec<ObjectRef>,
    heads: Vec<Object<[u8]>>,
}

/// A key's bucket.
struct Of<'a> {
    head: &'a Object<[u8]>,
    region: u64,
    hash: u32,
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map")
            .field("at", &self.shape.root)
            .field("buckets", &self.shape.heads.len())
            .finish()
    }
}

impl Map {
    /// What another node, or a program's own data, finds it by.
    pub fn at(&self) -> ObjectRef {
        self.shape.root
    }

    /// How many buckets it has: as many as it was made with.
    pub fn buckets(&self) -> usize {
        self.shape.heads.len()
    }

    fn of(&self, key: &[u8]) -> Of<'_> {
        let shape = &*self.shape;
        let hash = hash(shape.seed, key);
        // The upper bits say which bucket, the lower ones which entry.
        let nth = ((u128::from(hash) * shape.heads.len() as u128) >> 64) as usize;
        Of {
            head: &shape.heads[nth],
            region: shape.regions[nth % shape.regions.len()],
            hash: hash as u32,
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`Object::read`]; [`AccessError::Gone`] when the map has been freed,
    /// [`AccessError::Busy`] when its bucket changed for longer than the configuration's
    /// `patience`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, AccessError> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// The same, into bytes that are there; whether the key is. What is in `value` where it is not
    /// is of no use.
    ///
    /// # Errors
    /// Those of [`Map::get`].
    #[inline]
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, AccessError> {
        let of = self.of(key);
        let mut look = |view: &Window<'_>| search(view, of.hash, key, value);
        let mut finding = Finding::new(&of);
        self.call(|came| finding.go_on((self, &of), &mut look, came))
    }

    /// Goes through an operation in this thread.
    fn call<R>(
        &self,
        go_on: impl FnMut(Option<Answered>) -> Action<R, Asks>,
    ) -> Result<R, AccessError> {
        self.shape.node.inner.access.call_home(go_on)
    }

    /// The values of several keys, in their order. Homes are asked together
    /// ([`Node::read_many`]), so this takes about as long as one lookup of a key elsewhere. Each
    /// lookup is on its own: they are not of one moment.
    pub fn get_many(&self, keys: &[&[u8]]) -> Vec<Result<Option<Vec<u8>>, AccessError>> {
        let asked: Vec<usize> = (0..keys.len())
            .filter(|nth| self.of(keys[*nth]).head.is_asked_for())
            .collect();
        let heads: Vec<&Object<[u8]>> =
            (asked.iter()).map(|nth| self.of(keys[*nth]).head).collect();
        let mut read = asked
            .iter()
            .zip(self.shape.node.read_many(&heads))
            .peekable();
        let of_key = |(nth, key): (usize, &&[u8])| {
            let Some((_, bytes)) = read.next_if(|(asked, _)| **asked == nth) else {
                return self.get(key);
            };
            let words = super::reading::words_of(&bytes?.1);
            let view = Window::new(&words, 0, words.len() * 8);
            let (of, mut value) = (self.of(key), Vec::new());
            let mut look = |view: &Window<'_>| search(view, of.hash, key, &mut value);
            let mut finding = Finding::after(&of, look(&view));
            let found = self.call(|came| finding.go_on((self, &of), &mut look, came))?;
            Ok(found.then_some(value))
        };
        keys.iter().enumerate().map(of_key).collect()
    }
}

/// Looks for a key, and copies its value. May run on bytes that change under it.
#[inline]
fn search(view: &Window<'_>, hash: u32, key: &[u8], value: &mut Vec<u8>) -> Seen {
    let seen = find(view, hash, key);
    if let Seen::Value { at, len } = seen {
        value.resize(len, 0);
        view.read(at, value);
    }
    seen
}
