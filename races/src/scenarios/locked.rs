//! The way into a lock by its word, and turns that close and open it.

use super::fast::Word;
use crate::Scenario;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use loom::thread;
use rackmem_proto::gcp::{Access, Right};
use std::sync::Arc;

pub const ALL: &[Scenario] = &[
    ("two writers by the word", two_writers),
    ("a reader and a writer by the word", a_reader_and_a_writer),
    ("a turn closes the word", closed),
    ("a turn opens the word", opened),
];

#[derive(Default)]
struct Lock {
    word: Word,
    data: [AtomicU64; 2],
}

impl Lock {
    fn open(right: Right) -> Arc<Lock> {
        let lock = Lock::default();
        lock.word.open(right);
        Arc::new(lock)
    }

    fn look(&self) -> [u64; 2] {
        [0, 1].map(|at| self.data[at].load(Relaxed))
    }

    fn set(&self, value: u64) {
        self.data.iter().for_each(|word| word.store(value, Relaxed));
    }

    /// Adds to both words, if the word lets a writer in; says whether it did and whether the writer
    /// has left by it.
    fn add(&self) -> (bool, bool) {
        if !self.word.enter(Access::Write) {
            return (false, false);
        }
        let [first, second] = self.look();
        assert_eq!(first, second, "half of what the last one left");
        self.set(first + 1);
        (true, self.word.leave(Access::Write))
    }
}

fn two_writers() {
    let lock = Lock::open(Right::Modified);
    let there = lock.clone();
    let other = thread::spawn(move || there.add().0);
    let mine = lock.add().0;
    let theirs = other.join().expect("it adds");
    let sum = u64::from(mine) + u64::from(theirs);
    assert_eq!(lock.look(), [sum, sum], "a lost write");
}

fn a_reader_and_a_writer() {
    let lock = Lock::open(Right::Modified);
    let there = lock.clone();
    let writer = thread::spawn(move || there.add());
    if lock.word.enter(Access::Read) {
        let [first, second] = lock.look();
        assert_eq!(first, second, "half a write");
        assert!(lock.word.leave(Access::Read));
    }
    writer.join().expect("it adds");
}

/// A turn closes the word and, when nobody is inside by it, has what the last writer left.
fn closed() {
    let lock = Lock::open(Right::Modified);
    let there = lock.clone();
    let other = thread::spawn(move || there.add());
    let inside = lock.word.close();
    if !inside.writer {
        let left = u64::from(inside.entries);
        assert_eq!(lock.look(), [left, left], "less than a writer has left");
    }
    let (entered, left) = other.join().expect("it adds");
    assert_eq!(entered, inside.entries == 1);
    assert_eq!(left, entered && !inside.writer, "left by a closed word");
}

/// A turn installs something and opens the word: who enters by it finds that.
fn opened() {
    let lock = Arc::new(Lock::default());
    let there = lock.clone();
    let other = thread::spawn(move || {
        let entered = there.word.enter(Access::Read);
        entered.then(|| there.look())
    });
    lock.set(9);
    lock.word.open(Right::Shared);
    let seen = other.join().expect("it looks");
    assert!(
        seen.is_none_or(|seen| seen == [9, 9]),
        "older than the right to see it"
    );
}
