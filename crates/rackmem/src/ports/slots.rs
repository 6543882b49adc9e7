//! Slots, each with something that one thread at a time uses. A slot's lock is all that its users
//! share: who takes it later sees what was written before, elsewhere as well,
//! by who had it or has looked at it.

use crate::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

/// See the module.
pub(crate) struct Slots<T>(Box<[Mutex<Option<T>>]>);

/// A slot that this thread has for itself; `None` until somebody puts something in.
pub(crate) type Held<'a, T> = MutexGuard<'a, Option<T>>;

impl<T> Slots<T> {
    /// So many, empty.
    pub fn new(count: usize) -> Self {
        Slots((0..count).map(|_| Mutex::new(None)).collect())
    }

    /// The slot of this number, if nobody uses it and there is one.
    /// A thread that panicked has left it whole.
    pub fn try_at(&self, at: usize) -> Option<Held<'_, T>> {
        match self.0.get(at)?.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The first free slot from this one on, or this one once it is free.
    pub fn take(&self, home: usize) -> (usize, Held<'_, T>) {
        let count = self.0.len();
        let from_home = (0..count).map(|i| (home + i) % count);
        let mut free = from_home.filter_map(|at| Some((at, self.try_at(at)?)));
        free.next().unwrap_or_else(|| {
            let at = home % count;
            (at, unpoisoned(&self.0[at]))
        })
    }

    /// Does this to everything that a slot has, slot by slot. One that is in use is waited for,
    /// unless its user is past what this is about; between two looks there is a pause.
    ///
    /// Who takes a slot after that sees what was written before the call:
    /// so a change that users look for once they have their slot is either seen by them or comes to
    /// them here.
    pub fn visit(
        &self,
        mut f: impl FnMut(&mut T),
        mut is_past: impl FnMut(usize) -> bool,
        pause: impl Fn(),
    ) {
        for at in 0..self.0.len() {
            loop {
                if let Some(mut held) = self.try_at(at) {
                    held.as_mut().into_iter().for_each(&mut f);
                    break;
                }
                if is_past(at) {
                    break;
                }
                pause();
            }
        }
    }

    /// Does this to everything in slots that nobody uses.
    pub fn each_idle(&self, mut f: impl FnMut(&mut T)) {
        for at in 0..self.0.len() {
            if let Some(mut held) = self.try_at(at) {
                held.as_mut().into_iter().for_each(&mut f);
            }
        }
    }

    /// Looks at everything, by its slot's number. One that is in use is tried again as long as
    /// `pause` says so, and then left out.
    pub fn look(&self, pause: impl Fn() -> bool, mut f: impl FnMut(usize, &T)) {
        for (at, _) in self.0.iter().enumerate() {
            let held = loop {
                match self.try_at(at) {
                    None if pause() => {}
                    held => break held,
                }
            };
            if let Some(it) = held.as_deref().and_then(Option::as_ref) {
                f(at, it);
            }
        }
    }
}

fn unpoisoned<T>(slot: &Mutex<Option<T>>) -> Held<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_its_own_slot_or_the_next_free_one() {
        let slots = Slots::<u8>::new(3);
        let (first, held) = slots.take(2);
        let (second, next) = slots.take(2);
        assert_eq!((first, second), (2, 0));
        assert!(slots.try_at(2).is_none() && slots.try_at(3).is_none());
        drop((held, next));
        assert_eq!(slots.take(2).0, 2);
    }

    #[test]
    fn a_look_waits_no_longer_than_it_is_told_and_leaves_out_what_is_in_use() {
        let slots = Slots::<u8>::new(3);
        for at in 0..3 {
            *slots.take(at).1 = Some(at as u8);
        }
        let (_, used) = slots.take(1);
        let (left, mut seen) = (std::cell::Cell::new(5), Vec::new());
        let pause = || {
            left.set(left.get() - 1);
            left.get() > 0
        };
        slots.look(pause, |at, value| seen.push((at, *value)));
        assert_eq!((seen, left.get()), (vec![(0, 0), (2, 2)], 0));
        drop(used);
    }

    #[test]
    fn who_panics_with_a_slot_leaves_it_to_the_next_and_to_visitors() {
        let slots = Slots::<u8>::new(1);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let (_, mut held) = slots.take(0);
                *held = Some(7);
                panic!("an operation of the application");
            });
            assert!(panics.join().is_err());
        });
        let mut seen = 0;
        slots.visit(|value| seen += *value, |_| false, || panic!("a wait"));
        slots.each_idle(|value| seen += *value);
        slots.look(|| true, |_, value| seen += *value);
        assert_eq!((seen, *slots.take(0).1), (21, Some(7)));
    }
}
