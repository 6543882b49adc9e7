//! A cache with one set: readers and writers of its blocks, and the network that takes them away
//! and brings others.

use super::cache::{Cache, WAYS};
use crate::Scenario;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use loom::thread;
use rackmem_proto::flowcc::LocalStatus::{self, Invalid, Modified, Shared};
use rackmem_proto::wire::Tag;
use std::sync::Arc;

pub const ALL: &[Scenario] = &[
    ("a read during a write of two words", a_write),
    ("a read during two stores of a word", two_stores),
    ("two writers of a word", two_writers),
    ("a word of a block that makes way for another", a_word_of_another),
    ("a block that makes way for another", another_block),
    ("a block taken away during a store", taken_away),
    ("two threads that each write and read the other's", one_order),
];

/// Bytes of a block: two words.
const BLOCK: usize = 16;
const OLD: Tag = Tag(0x1000);
const NEW: Tag = Tag(0x2000);

fn small() -> Arc<Cache> {
    Arc::new(Cache::new(WAYS * BLOCK, BLOCK))
}

/// Where a block is looked for first.
fn first_way(cache: &Cache, tag: Tag) -> usize {
    cache.set_of(tag).1
}

fn put(cache: &Cache, tag: Tag, entry: usize, value: u64, status: LocalStatus) {
    fill(cache.vacant(entry), value);
    cache.lock(entry).install(tag, status);
}

fn fill(block: &[AtomicU64], value: u64) {
    block.iter().for_each(|word| word.store(value, Relaxed));
}

fn pair(block: &[AtomicU64]) -> [u64; 2] {
    [block[0].load(Relaxed), block[1].load(Relaxed)]
}

/// A cache that has block `OLD`, and in which entry.
fn with_old(status: LocalStatus) -> (Arc<Cache>, usize) {
    let cache = small();
    let entry = first_way(&cache, OLD);
    put(&cache, OLD, entry, 10, status);
    (cache, entry)
}

fn a_write() {
    let (cache, _) = with_old(Modified);
    let there = cache.clone();
    let writer = thread::spawn(move || there.write(OLD, |block| fill(block, 11)));
    let [first, second] = cache.read(OLD, pair).expect("it is there");
    assert_eq!(first, second, "half a write");
    assert!(writer.join().expect("it writes").is_some());
    assert_eq!(cache.read(OLD, pair), Some([11, 11]));
}

fn two_stores() {
    let (cache, entry) = with_old(Modified);
    let there = cache.clone();
    let writer = thread::spawn(move || {
        for at in [0, 1] {
            let stored = there.write_word(entry, OLD, at, |word| word.store(11, Relaxed));
            assert_eq!(stored, Some(()));
        }
    });
    let [first, second] = cache.read(OLD, pair).expect("it is there");
    assert!(first >= second, "the second store without the first");
    writer.join().expect("it writes");
}

fn two_writers() {
    let (cache, entry) = with_old(Modified);
    let there = cache.clone();
    let add = |word: &AtomicU64| word.store(word.load(Relaxed) + 1, Relaxed);
    let writer = thread::spawn(move || there.write(OLD, |block| add(&block[0])));
    // A hit by word that fails says nothing: the long way does it.
    if cache.write_word(entry, OLD, 0, add).is_none() {
        cache.write(OLD, |block| add(&block[0]));
    }
    writer.join().expect("it writes");
    assert_eq!(cache.read(OLD, pair), Some([12, 10]), "a lost write");
}

/// The network takes `OLD` away, and `NEW` comes into the entry.
fn replace(cache: &Cache, entry: usize) {
    let locked = cache.lock_tag(OLD).expect("it is there");
    locked.set(Invalid);
    put(cache, NEW, entry, 20, Shared);
}

fn a_word_of_another() {
    let (cache, entry) = with_old(Shared);
    let there = cache.clone();
    let network = thread::spawn(move || replace(&there, entry));
    let read = cache.read_word(entry, OLD, 0);
    assert!(
        read.is_none_or(|value| value == 10),
        "a word of another block"
    );
    network.join().expect("it replaces");
}

/// Who takes the block away and who fills the entry are two threads,
/// which meet in the entry's tag alone.
fn another_block() {
    let (cache, entry) = with_old(Shared);
    let (agent, filler) = (cache.clone(), cache.clone());
    let takes = thread::spawn(move || {
        let locked = agent.lock_tag(OLD).expect("it is there");
        locked.set(Invalid);
    });
    let fills = thread::spawn(move || {
        // A miss that finds no free entry takes another one.
        if filler.free(0, |at| at == entry).is_some() {
            put(&filler, NEW, entry, 20, Shared);
        }
    });
    // By word: a reader that waits for a lock beside a filler that waits has orders without end.
    let read = cache.read_word(entry, OLD, 0);
    assert!(
        read.is_none_or(|value| value == 10),
        "bytes of another block"
    );
    takes.join().expect("it takes");
    fills.join().expect("it fills");
}

fn taken_away() {
    let (cache, entry) = with_old(Modified);
    let there = cache.clone();
    let writer = thread::spawn(move || {
        let word = there.write_word(entry, OLD, 0, |word| word.store(11, Relaxed));
        let block = there.write(OLD, |block| block[1].store(11, Relaxed));
        [word, block].map(|written| if written.is_some() { 11 } else { 10 })
    });
    let locked = cache.lock_tag(OLD).expect("it is there");
    let taken = pair(cache.block(locked.entry()));
    locked.set(Invalid);
    let written = writer.join().expect("it writes");
    assert_eq!(taken, written, "a store that was acknowledged and is lost");
}

fn one_order() {
    let (cache, old) = with_old(Modified);
    let new = first_way(&cache, NEW);
    assert_ne!(old, new);
    put(&cache, NEW, new, 10, Modified);
    let there = cache.clone();
    let set = |word: &AtomicU64| word.store(11, Relaxed);
    let other = thread::spawn(move || {
        assert!(there.write_word(new, NEW, 0, set).is_some());
        there.read_word(old, OLD, 0)
    });
    assert!(cache.write_word(old, OLD, 0, set).is_some());
    let mine = cache.read_word(new, NEW, 0);
    let theirs = other.join().expect("it reads");
    assert_ne!(
        [mine, theirs],
        [Some(10), Some(10)],
        "each has written before the other has read, and neither has seen it"
    );
}
