//! The tree against a plain vector, and collections against memory that fills up.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::node::{LEAF_MAX, Node, Place};
use super::tree::{Nodes, Tree};
use super::{hashed, unhashed};
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::memory::HeapMemory;
use crate::store::Store;
use crate::{Clock, Options};

/// Nodes by address. An address is used once.
#[derive(Default)]
struct Shelf {
    nodes: RefCell<HashMap<u64, Vec<u8>>>,
    next: Cell<u64>,
}

impl Nodes for Shelf {
    fn load(&self, place: Place) -> Result<Vec<u8>> {
        let nodes = self.nodes.borrow();
        let bytes = nodes.get(&place.addr).expect("it was freed before");
        assert_eq!(bytes.len(), place.len);
        Ok(bytes.clone())
    }

    fn store(&self, bytes: &[u8]) -> Result<u64> {
        self.next.set(self.next.get() + 1);
        self.nodes
            .borrow_mut()
            .insert(self.next.get(), bytes.to_vec());
        Ok(self.next.get())
    }
}

impl Shelf {
    /// Stores a tree, frees what it does not need any more, and looks at every node.
    fn settle(&self, tree: &mut Tree) {
        tree.store(self, 100, &mut Vec::new()).unwrap();
        for place in tree.freed.drain(..) {
            assert!(self.nodes.borrow_mut().remove(&place.addr).is_some());
        }
        let places = tree.places(self).unwrap();
        assert_eq!(places.len(), self.nodes.borrow().len(), "nodes are lost");
        for place in places {
            let node = Node::decode(&self.load(place).unwrap()).unwrap();
            if let Node::Leaf(leaf) = &node {
                assert!(leaf.bytes.len() <= LEAF_MAX || leaf.count == 1);
            }
        }
    }

    fn all(&self, tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        let note = |into: &mut Vec<_>, key: &[u8], value: &[u8]| {
            into.push((key.to_vec(), value.to_vec()));
            true
        };
        tree.walk(self, 0, &mut |k, v| note(&mut forth, k, v))
            .unwrap();
        let last = tree.count().saturating_sub(1);
        tree.walk_back(self, last, &mut |k, v| note(&mut back, k, v))
            .unwrap();
        back.reverse();
        assert_eq!(forth, back);
        assert_eq!(forth.len() as u64, tree.count());
        forth
    }
}

fn value(rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = match rng.u8(..) {
        0 => rng.usize(..3 * LEAF_MAX),
        1..50 => rng.usize(..200),
        _ => rng.usize(..20),
    };
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

#[test]
fn a_tree_by_key_is_a_map() {
    for seed in 0..6 {
        let (mut rng, shelf) = (fastrand::Rng::with_seed(seed), Shelf::default());
        let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
        for step in 0..6000 {
            let growing = step % 3000 < 2000;
            let key = hashed(format!("{:x}", rng.u16(..4096)).as_bytes());
            if rng.u8(..10) < if growing { 8 } else { 2 } {
                let value = value(&mut rng);
                let old = tree.put(&shelf, &key, &value).unwrap();
                assert_eq!(old, model.insert(key, value));
            } else if rng.u8(..20) == 0 && !model.is_empty() {
                let from = rng.u64(..tree.count());
                let to = (from + rng.u64(..300)).min(tree.count());
                let gone = model.keys().skip(from as usize).take((to - from) as usize);
                let gone: Vec<Vec<u8>> = gone.cloned().collect();
                gone.iter().for_each(|key| drop(model.remove(key)));
                tree.cut(&shelf, from..to).unwrap();
            } else {
                assert_eq!(tree.remove(&shelf, &key).unwrap(), model.remove(&key));
            }
            if rng.u8(..8) == 0 {
                shelf.settle(&mut tree);
            }
            let key = hashed(format!("{:x}", rng.u16(..4096)).as_bytes());
            assert_eq!(tree.get(&shelf, &key).unwrap().as_ref(), model.get(&key));
            if step % 500 == 0 {
                let rank = model.range(..key.clone()).count() as u64;
                let there = model.contains_key(&key);
                assert_eq!(tree.rank(&shelf, &key).unwrap(), (rank, there));
                assert!(shelf.all(&tree).into_iter().eq(model.clone()));
            }
        }
    }
}

#[test]
fn a_tree_by_position_is_a_vector() {
    for seed in 0..6 {
        let (mut rng, shelf) = (fastrand::Rng::with_seed(seed), Shelf::default());
        let (mut tree, mut model) = (Tree::default(), Vec::<Vec<u8>>::new());
        for step in 0..6000 {
            let len = model.len() as u64;
            match rng.u8(..20) {
                0..4 => {
                    model.push(value(&mut rng));
                    tree.insert(&shelf, len, &model[len as usize]).unwrap();
                }
                4..8 => {
                    model.insert(0, value(&mut rng));
                    tree.insert(&shelf, 0, &model[0]).unwrap();
                }
                8..12 => {
                    let at = rng.u64(..=len);
                    model.insert(at as usize, value(&mut rng));
                    tree.insert(&shelf, at, &model[at as usize]).unwrap();
                }
                12..15 if len != 0 => {
                    let at = rng.u64(..len);
                    model[at as usize] = value(&mut rng);
                    assert!(tree.set(&shelf, at, &model[at as usize]).unwrap());
                }
                _ if len != 0 => {
                    let from = [0, rng.u64(..len), len - 1][rng.usize(..3)];
                    let longest = if rng.u8(..40) == 0 { len } else { 3 };
                    let to = (from + rng.u64(..=longest)).min(len);
                    model.drain(from as usize..to as usize);
                    tree.cut(&shelf, from..to).unwrap();
                }
                _ => {}
            }
            if rng.u8(..8) == 0 {
                shelf.settle(&mut tree);
            }
            if step % 300 == 0 {
                let values = shelf.all(&tree).into_iter().map(|(_, value)| value);
                assert!(values.eq(model.clone()));
            }
        }
    }
}

#[test]
fn what_is_put_at_the_end_fills_its_leaves() {
    let (shelf, mut tree) = (Shelf::default(), Tree::default());
    for i in 0..20_000u64 {
        tree.insert(&shelf, i, &i.to_be_bytes()).unwrap();
    }
    shelf.settle(&mut tree);
    let bytes: usize = shelf.nodes.borrow().values().map(Vec::len).sum();
    assert!(bytes < 20_000 * 12, "{bytes} bytes for 20,000 of 8");
}

#[test]
fn garbage_is_no_node() {
    let mut rng = fastrand::Rng::with_seed(1);
    let (shelf, mut tree) = (Shelf::default(), Tree::default());
    for i in 0..5000u32 {
        tree.put(&shelf, &hashed(&i.to_be_bytes()), b"value")
            .unwrap();
    }
    shelf.settle(&mut tree);
    let nodes: Vec<Vec<u8>> = shelf.nodes.borrow().values().cloned().collect();
    for _ in 0..20_000 {
        let mut bytes = nodes[rng.usize(..nodes.len())].clone();
        bytes.truncate(rng.usize(..=bytes.len()));
        for _ in 0..rng.usize(..4) {
            if let Some(byte) = rng.choice(&mut bytes) {
                *byte = rng.u8(..);
            }
        }
        if let Ok(node) = Node::decode(&bytes) {
            assert!(!node.encode().is_empty());
        }
    }
}

fn store() -> Store<HeapMemory> {
    let options = Options {
        buckets: 4,
        ..Options::default()
    };
    Store::open(HeapMemory::new(4096, 4 << 20, 1), options).unwrap()
}

/// Puts so many fields into a hash, and says how many there are.
fn fill(store: &Store<HeapMemory>, key: &[u8], fields: u32) -> Result<u64> {
    store.first().change(key, Kind::Hash, |hash| {
        for i in 0..fields {
            hash.put(0, &hashed(&i.to_be_bytes()), b"some value")?;
        }
        Ok(hash.count(0))
    })
}

fn fields(store: &Store<HeapMemory>, key: &[u8]) -> Option<u64> {
    let view = store.first().view(key, Kind::Hash, |hash| {
        let mut fields = 0;
        hash.walk(0, 0, |key, value| {
            assert_eq!((unhashed(key).len(), value), (4, &b"some value"[..]));
            fields += 1;
            true
        })?;
        Ok(fields)
    });
    view.unwrap()
}

#[test]
fn a_collection_has_the_life_of_its_key() {
    let store = store();
    let db = store.first();
    for size in [3, 5000] {
        assert_eq!(fill(&store, b"hash", size).unwrap(), u64::from(size));
        assert!(matches!(
            store.get(b"hash", &mut Vec::new()),
            Err(Error::WrongType)
        ));
        assert!(matches!(store.increment(b"hash", 1), Err(Error::WrongType)));
        assert!(matches!(db.append(b"hash", b"x"), Err(Error::WrongType)));
        assert!(db.view(b"hash", Kind::Set, |_| Ok(())).is_err());
        assert_eq!(db.copy(b"hash", 0, b"copy", true).unwrap(), Some(true));
        assert!(db.rename(b"hash", b"other", true).unwrap());
        assert_eq!(fields(&store, b"hash"), None);
        assert!(store.remove(b"other").unwrap());
        assert_eq!(fields(&store, b"copy"), Some(u64::from(size)));
        let cut = |hash: &mut super::Collection<'_, HeapMemory>| hash.cut(0, 0..u64::MAX);
        db.change(b"copy", Kind::Hash, cut).unwrap();
        assert!(
            db.meta(b"copy").unwrap().is_none(),
            "an empty one is no key"
        );
    }
    assert_eq!(db.len().unwrap(), 0);
}

#[test]
fn memory_comes_back_whatever_ends_a_collection() {
    let store = store();
    let db = store.first();
    // Each takes more than a tenth of the memory.
    for round in 0..40 {
        fill(&store, b"hash", 20_000).unwrap();
        match round % 5 {
            0 => drop(store.remove(b"hash").unwrap()),
            1 => store.set(b"hash", b"a string").unwrap(),
            2 => db.replace(b"hash", Kind::Set, |_| Ok(())).unwrap(),
            3 => db.flush().unwrap(),
            _ => drop(db.expire(b"hash", 1, Default::default()).unwrap()),
        }
        store.remove(b"hash").unwrap();
    }
}

#[test]
fn what_has_expired_goes_with_all_that_it_had() {
    let (memory, time) = (
        HeapMemory::new(4096, 4 << 20, 1),
        Arc::new(AtomicU64::new(1000)),
    );
    let options = Options {
        buckets: 4,
        clock: Clock::manual(time.clone()),
        ..Options::default()
    };
    let store = Store::open(memory.clone(), options).unwrap();
    let db = store.first();
    fn push(list: &mut super::Collection<'_, HeapMemory>) -> Result<()> {
        list.insert(0, 0, b"element")
    }
    db.change(b"other", Kind::List, push).unwrap();
    let begun = memory.live_bytes();
    for round in 0..4 {
        match round % 2 {
            0 => store.set(b"key", &[7; 20_000]).unwrap(),
            _ => drop(fill(&store, b"key", 5000).unwrap()),
        }
        assert!(memory.live_bytes() > begun + 10_000);
        let soon = time.load(Relaxed) + 10;
        assert!(db.expire(b"key", soon, Default::default()).unwrap());
        time.fetch_add(100, Relaxed);
        match round / 2 {
            0 => db.change(b"key", Kind::List, push).unwrap(),
            _ => db
                .change_both([b"key", b"other"], Kind::List, |key, _| push(key))
                .unwrap(),
        }
        assert!(store.remove(b"key").unwrap());
        let left = memory.live_bytes();
        assert!(left < begun + 4096, "{round}: {left} bytes, {begun} before");
    }
}

#[test]
fn a_change_that_finds_no_memory_changes_nothing() {
    let store = store();
    let mut size = 1000;
    fill(&store, b"hash", size).unwrap();
    while fill(&store, b"hash", 2 * size).is_ok() {
        size *= 2;
    }
    assert_eq!(fields(&store, b"hash"), Some(u64::from(size)));
    let failed: Result<()> = store.first().change(b"hash", Kind::Hash, |hash| {
        hash.cut(0, 0..10)?;
        Err(Error::NotAnInteger)
    });
    assert!(failed.is_err());
    assert_eq!(fields(&store, b"hash"), Some(u64::from(size)));
    assert!(store.remove(b"hash").unwrap());
    fill(&store, b"hash", size).unwrap();
}
