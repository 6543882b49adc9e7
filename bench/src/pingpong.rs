//! How long a cache line takes from one core to another.
//!
//! Two threads, each pinned to a core, hand a number back and forth in one cache line. The time of
//! a way is what no exchange between cores on this machine can be faster than.
//! It differs by several times with where the cores are, and on a virtual machine with where the
//! host put them this time: so every bench of more than one thread measures it first and reports it
//! beside its own numbers.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::histogram::Histogram;

/// Round trips that are timed together: a clock read costs about as much as one.
const BATCH: u64 = 1000;
/// Spins after which a waiting thread lets others run, for machines where the two share a core.
const PATIENCE: u32 = 10_000;

/// The time of one way between two cores.
#[derive(Clone, Debug)]
pub struct PingPong {
    /// The two cores.
    pub cores: [usize; 2],
    /// Nanoseconds a way, the median of all batches.
    pub ns: u64,
    /// Nanoseconds a way in each batch.
    pub batches: Histogram,
}

/// Why there is no measurement.
#[derive(Debug)]
pub enum PingPongError {
    /// This process may run on one core only.
    OneCore,
    /// The system refused to tell of cores, or to pin a thread to one.
    Affinity(io::Error),
}

impl fmt::Display for PingPongError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PingPongError::OneCore => f.write_str("only one core to run on"),
            PingPongError::Affinity(error) => write!(f, "threads cannot be pinned: {error}"),
        }
    }
}

impl std::error::Error for PingPongError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PingPongError::OneCore => None,
            PingPongError::Affinity(error) => Some(error),
        }
    }
}

/// The cores this thread may run on.
pub fn cores() -> io::Result<Vec<usize>> {
    // SAFETY: all bytes zero is the empty set of cores.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the size that is passed with it.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |&core: &usize| {
        // SAFETY: `core` is below CPU_SETSIZE, the number of bits in the set.
        unsafe { libc::CPU_ISSET(core, &set) }
    };
    Ok((0..libc::CPU_SETSIZE as usize).filter(is_set).collect())
}

/// Lets this thread run on one core only.
pub fn pin(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all bytes zero is the empty set of cores.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is below CPU_SETSIZE, as was checked.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the pointer is valid for the size that is passed with it.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A number alone in its cache line, and in the neighbour that is fetched along with it.
#[repr(align(128))]
struct Line(AtomicU64);

/// Measures between the first two cores this process may use, over about so many round trips.
pub fn measure(round_trips: u64) -> Result<PingPong, PingPongError> {
    match cores().map_err(PingPongError::Affinity)?[..] {
        [first, second, ..] => between(first, second, round_trips),
        _ => Err(PingPongError::OneCore),
    }
}

/// Measures between two cores.
pub fn between(first: usize, second: usize, round_trips: u64) -> Result<PingPong, PingPongError> {
    let line = Line(AtomicU64::new(0));
    // The first batch warms up.
    let batches = round_trips.div_ceil(BATCH).saturating_add(1);
    let (served, returned) = std::thread::scope(|scope| {
        let returner = scope.spawn(|| {
            let pinned = pin(second);
            // Unpinned, the game is still played, so that the other side ends.
            play(&line, 1, batches, &mut |_| {});
            pinned
        });
        let server = scope.spawn(|| {
            let pinned = pin(first);
            let mut times = Histogram::new();
            play(&line, 0, batches, &mut |ns| times.record(ns));
            pinned.map(|()| times)
        });
        (joined(server), joined(returner))
    });
    returned.map_err(PingPongError::Affinity)?;
    let batches = served.map_err(PingPongError::Affinity)?;
    Ok(PingPong {
        cores: [first, second],
        ns: batches.percentile(50.0),
        batches,
    })
}

fn joined<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// One side: waits for the line to hold its turns, in order, and passes it on. Tells the time of a
/// way after each batch but the first.
fn play(line: &Line, side: u64, batches: u64, tell: &mut dyn FnMut(u64)) {
    let mut turn = side;
    for batch in 0..batches {
        let start = Instant::now();
        for _ in 0..BATCH {
            wait_for(line, turn);
            line.0.store(turn + 1, Ordering::Release);
            turn += 2;
        }
        let ways = 2 * u128::from(BATCH);
        let ns = (start.elapsed().as_nanos() + ways / 2) / ways;
        if batch > 0 {
            tell(u64::try_from(ns).unwrap_or(u64::MAX));
        }
    }
}

fn wait_for(line: &Line, turn: u64) {
    let mut spins = 0;
    while line.0.load(Ordering::Acquire) != turn {
        spins += 1;
        match spins < PATIENCE {
            true => std::hint::spin_loop(),
            false => {
                std::thread::yield_now();
                spins = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_takes_some_time() {
        match measure(20_000) {
            Ok(found) => {
                assert_eq!(found.batches.count(), 20);
                assert_ne!(found.cores[0], found.cores[1]);
                assert!(found.ns > 0 && found.ns <= found.batches.max(), "{found:?}");
            }
            Err(PingPongError::OneCore) => assert_eq!(cores().unwrap().len(), 1),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error_and_not_a_wait() {
        let absent = libc::CPU_SETSIZE as usize;
        let found = between(cores().unwrap()[0], absent, 1000);
        assert!(matches!(found, Err(PingPongError::Affinity(_))));
    }

    #[test]
    fn pinning_leaves_one_core() {
        let first = cores().unwrap()[0];
        let thread = std::thread::spawn(move || {
            pin(first).unwrap();
            cores().unwrap()
        });
        assert_eq!(thread.join().unwrap(), [first]);
    }
}
