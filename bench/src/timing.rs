//! Threads that start together, work for a while, and count what they did.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most threads of one run.
pub const MAX_THREADS: usize = 1024;

/// What the threads of a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Throughput {
    /// One a thread.
    pub threads: Vec<ThreadCount>,
}

/// What one thread did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadCount {
    /// Operations.
    pub operations: u64,
    /// The time from its start to its end.
    pub elapsed: Duration,
}

impl ThreadCount {
    fn per_second(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.operations as f64 / seconds
        } else {
            0.0
        }
    }
}

impl Throughput {
    /// Operations of all threads together.
    pub fn operations(&self) -> u64 {
        self.threads.iter().map(|thread| thread.operations).sum()
    }

    /// Operations a second of all threads together, each by its own clock.
    pub fn per_second(&self) -> f64 {
        self.threads.iter().map(ThreadCount::per_second).sum()
    }

    /// The mean time of one operation on one thread, in nanoseconds; 0 where there was none.
    pub fn ns_per_operation(&self) -> f64 {
        let operations = self.operations();
        let elapsed: Duration = self.threads.iter().map(|thread| thread.elapsed).sum();
        if operations == 0 {
            0.0
        } else {
            elapsed.as_nanos() as f64 / operations as f64
        }
    }
}

/// Runs `threads` threads (1 to [`MAX_THREADS`]) for a duration. `prepare` makes each thread's work
/// on that thread, outside the measured time; the work is called again and again and returns how many
/// operations it did, enough of them that looking at the time is cheap beside.
///
/// Results that nobody uses belong in [`std::hint::black_box`], or the compiler leaves the work out.
pub fn run<W, F>(threads: usize, duration: Duration, prepare: F) -> Throughput
where
    F: Fn(usize) -> W + Sync,
    W: FnMut() -> u64,
{
    let threads = threads.clamp(1, MAX_THREADS);
    let barrier = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (barrier, stop, prepare) = (&barrier, &stop, &prepare);
        let spawn = |index| {
            scope.spawn(move || {
                let start = StartTogether(barrier);
                let work = prepare(index);
                drop(start);
                count(work, stop)
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        barrier.wait();
        std::thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
        let joined = handles.into_iter().map(|handle| match handle.join() {
            Ok(count) => count,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Throughput {
            threads: joined.collect(),
        }
    })
}

/// Waits for the others when dropped, also by a panic, so that none waits for ever.
struct StartTogether<'a>(&'a Barrier);

impl Drop for StartTogether<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

fn count(mut work: impl FnMut() -> u64, stop: &AtomicBool) -> ThreadCount {
    let start = Instant::now();
    let mut operations = 0;
    while !stop.load(Ordering::Relaxed) {
        operations += work();
    }
    ThreadCount {
        operations,
        elapsed: start.elapsed(),
    }
}

/// Several runs: the middle of them and how far they are apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The middle one.
    pub value: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

/// Measures `runs` times, at least once, and takes the median.
pub fn median_of(runs: usize, mut measure: impl FnMut() -> f64) -> Median {
    let mut values: Vec<f64> = (0..runs.max(1)).map(|_| measure()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let value = match values.len().is_multiple_of(2) {
        true => values[middle - 1].midpoint(values[middle]),
        false => values[middle],
    };
    Median {
        value,
        least: values[0],
        most: values[values.len() - 1],
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn all_threads_start_together_and_are_counted() {
        let (prepared, started_early) = (AtomicUsize::new(0), AtomicBool::new(false));
        let throughput = run(3, Duration::from_millis(50), |index| {
            std::thread::sleep(Duration::from_millis(10 * index as u64));
            prepared.fetch_add(1, Ordering::SeqCst);
            let (prepared, started_early) = (&prepared, &started_early);
            move || {
                if prepared.load(Ordering::SeqCst) != 3 {
                    started_early.store(true, Ordering::SeqCst);
                }
                black_box(index);
                10
            }
        });
        assert!(!started_early.into_inner());
        assert_eq!(throughput.threads.len(), 3);
        assert_eq!(throughput.operations() % 10, 0);
        assert!(
            throughput
                .threads
                .iter()
                .all(|thread| thread.operations > 0)
        );
        assert!(
            throughput
                .threads
                .iter()
                .all(|t| t.elapsed >= Duration::from_millis(40))
        );
    }

    #[test]
    fn rates_add_up_over_threads() {
        let thread = |operations, millis| ThreadCount {
            operations,
            elapsed: Duration::from_millis(millis),
        };
        let throughput = Throughput {
            threads: vec![thread(1000, 1000), thread(3000, 2000)],
        };
        assert!((throughput.per_second() - 2500.0).abs() < 1e-9);
        assert!((throughput.ns_per_operation() - 750_000.0).abs() < 1e-6);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let of = |values: &[f64]| {
            let mut values = values.iter().copied();
            let runs = values.len();
            median_of(runs, || values.next().unwrap())
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]).value, 2.0);
        let four = of(&[8.0, 1.0, 2.0, 4.0]);
        assert_eq!((four.value, four.least, four.most), (3.0, 1.0, 8.0));
        assert_eq!(median_of(0, || 5.0).value, 5.0);
    }

    #[test]
    #[should_panic(expected = "no work today")]
    fn a_panic_in_a_thread_is_passed_on() {
        run(2, Duration::from_millis(5), |index| {
            assert_ne!(index, 1, "no work today");
            || 1
        });
    }
}
