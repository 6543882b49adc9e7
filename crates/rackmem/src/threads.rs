//! Places of threads: a thread counts in a place of its own by plain stores.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

/// Threads that have one at a time. What is behind them, all others share.
pub(crate) const PLACES: usize = 64;

/// Which are taken: a bit each. Who takes one sees what the thread before has counted there.
static TAKEN: AtomicU64 = AtomicU64::new(0);

const UNKNOWN: usize = usize::MAX;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(UNKNOWN) };
    static HELD: Held = const { Held };
}

/// Gives the place back when the thread ends. What it counts after that, it counts in the shared
/// one.
struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        let place = PLACE.with(|place| place.replace(PLACES));
        if place < PLACES {
            TAKEN.fetch_and(!(1 << place), AcqRel);
        }
    }
}

/// This thread's place; [`PLACES`] is the one that is shared.
#[inline]
pub(crate) fn place() -> usize {
    match PLACE.with(Cell::get) {
        UNKNOWN => take(),
        place => place,
    }
}

#[cold]
fn take() -> usize {
    // Where the thread is ending already, nobody would give it back.
    let place = match HELD.try_with(|_| ()) {
        Ok(()) => free(),
        Err(_) => PLACES,
    };
    PLACE.with(|mine| mine.set(place));
    place
}

fn free() -> usize {
    let first = |taken: u64| {
        let place = taken.trailing_ones();
        (place < u64::BITS).then(|| taken | 1 << place)
    };
    let taken = TAKEN.fetch_update(AcqRel, Relaxed, first);
    taken.map_or(PLACES, |before| before.trailing_ones() as usize)
}

const _: () = assert!(PLACES == u64::BITS as usize);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn no_two_threads_have_one_place_and_those_that_end_give_theirs_back() {
        for _ in 0..3 {
            let (all, some) = (Barrier::new(100), std::sync::Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for _ in 0..100 {
                    scope.spawn(|| {
                        let mine = place();
                        assert_eq!(place(), mine);
                        all.wait();
                        some.lock().unwrap().push(mine);
                    });
                }
            });
            let mut own = some.into_inner().unwrap();
            own.retain(|place| *place < PLACES);
            let count = own.len();
            own.sort_unstable();
            own.dedup();
            // Other tests have threads, too.
            assert!(own.len() == count && count > 0);
        }
    }
}
