//! States of Lua, which the threads of a worker have in turns.
//!
//! Each use takes the state that was there first. So scripts that run one after another have the
//! same one, whichever threads run them, and functions find the variables of their library as they
//! left them. While a script waits for other nodes it keeps its state: those that its worker runs
//! meanwhile have another.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use super::engine::Engine;
use super::functions::Functions;
use crate::lock::lock;

/// States that are not in use, by when they were put here first.
pub(crate) struct Shelf<T>(Mutex<Shelved<T>>);

struct Shelved<T> {
    there: Vec<Lent<T>>,
    made: u64,
}

/// A state, for as long as its user has it.
pub(crate) struct Lent<T> {
    pub state: T,
    /// How many were made before it.
    nth: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        let there = Vec::new();
        Shelf(Mutex::new(Shelved { there, made: 0 }))
    }
}

impl<T> Shelf<T> {
    /// The first that is there; those that are of no use any more are thrown away.
    pub fn take(&self, is_of_use: impl Fn(&T) -> bool) -> Option<Lent<T>> {
        let mut shelved = lock(&self.0);
        shelved.there.retain(|lent| is_of_use(&lent.state));
        let ages = shelved.there.iter().enumerate();
        let (first, _) = ages.min_by_key(|(_, lent)| lent.nth)?;
        Some(shelved.there.swap_remove(first))
    }

    /// Takes in one more, for its first use.
    pub fn lend(&self, state: T) -> Lent<T> {
        let mut shelved = lock(&self.0);
        shelved.made += 1;
        let nth = shelved.made;
        Lent { state, nth }
    }

    /// The user does not need it any more.
    pub fn put_back(&self, lent: Lent<T>) {
        lock(&self.0).there.push(lent);
    }
}

/// The states of a worker: there are as many of each kind as were in use at a time, of which a
/// thread has one.
#[derive(Default)]
pub(crate) struct States {
    pub engines: Shelf<Engine>,
    pub functions: Shelf<Functions>,
}

thread_local! {
    static OURS: RefCell<Arc<States>> = RefCell::default();
}

impl States {
    /// Those of the calling thread's worker.
    pub fn ours() -> Arc<States> {
        OURS.with_borrow(Arc::clone)
    }

    /// The calling thread has these from now on, with others.
    pub fn share(states: Arc<States>) {
        OURS.replace(states);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_use_after_another_has_the_first_that_is_free() {
        let shelf = Shelf::default();
        let any = |_: &&str| true;
        assert!(shelf.take(any).is_none());
        let (first, second) = (shelf.lend("first"), shelf.lend("second"));
        shelf.put_back(second);
        let meanwhile = shelf.take(any).unwrap();
        assert_eq!(meanwhile.state, "second");
        shelf.put_back(first);
        shelf.put_back(meanwhile);
        for _ in 0..3 {
            let lent = shelf.take(any).unwrap();
            assert_eq!(lent.state, "first");
            shelf.put_back(lent);
        }
        assert!(shelf.take(|_| false).is_none());
        assert!(shelf.take(any).is_none(), "what is of no use stays there");
    }
}
