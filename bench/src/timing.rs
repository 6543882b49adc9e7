//! Threads that start together, work for a while, and count what they did.

use rackmem_fabric::Whole;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
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
    /// The time from the common start to this thread's end: a thread that had to wait for a
    /// processor has worked at a lower rate, not for a shorter time.
    pub elapsed: Duration,
}

impl ThreadCount {
    /// 0 where no time has passed: such a thread says nothing about a rate.
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

    /// Operations a second of all threads together: the sum of their rates, each over its own time.
    /// One thread that was starved past the end adds close to nothing,
    /// and takes nothing from the others.
    pub fn per_second(&self) -> f64 {
        self.threads.iter().map(ThreadCount::per_second).sum()
    }

    /// Operations a second of the thread that did least; 0 where there was none.
    pub fn least_per_second(&self) -> f64 {
        let rates = self.threads.iter().map(ThreadCount::per_second);
        rates.min_by(f64::total_cmp).unwrap_or(0.0)
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
/// on that thread, outside the measured time; the work is called again and again, at least once,
/// and returns how many operations it did, enough of them that looking at the time is cheap beside.
///
/// Unused results belong in [`std::hint::black_box`],
/// or the compiler leaves the work out.
pub fn run<W, F>(threads: usize, duration: Duration, prepare: F) -> Throughput
where
    F: Fn(usize) -> W + Sync,
    W: FnMut() -> u64,
{
    let threads = threads.clamp(1, MAX_THREADS);
    let start = Start::of(threads + 1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (start, stop, prepare) = (&start, &stop, &prepare);
        let spawn = |index| {
            scope.spawn(move || {
                let ready = ArriveOnPanic(start);
                let work = prepare(index);
                std::mem::forget(ready);
                count(work, stop, start.arrive())
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        start.arrive();
        crate::stop::sleep(duration);
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

/// A barrier that tells all threads the same moment: when the last of them arrived.
struct Start {
    missing: Mutex<Missing>,
    all: Condvar,
}

struct Missing {
    threads: usize,
    since: Option<Instant>,
}

impl Start {
    fn of(threads: usize) -> Start {
        let since = None;
        Start {
            missing: Mutex::new(Missing { threads, since }),
            all: Condvar::new(),
        }
    }

    fn arrive(&self) -> Instant {
        let mut missing = self.missing.lock().whole();
        missing.threads = missing.threads.saturating_sub(1);
        if missing.threads == 0 && missing.since.is_none() {
            missing.since = Some(Instant::now());
            self.all.notify_all();
        }
        loop {
            if let Some(since) = missing.since {
                return since;
            }
            missing = self.all.wait(missing).whole();
        }
    }
}

/// Arrives for a thread whose preparation panics, so that the others do not wait for ever.
struct ArriveOnPanic<'a>(&'a Start);

impl Drop for ArriveOnPanic<'_> {
    fn drop(&mut self) {
        self.0.arrive();
    }
}

/// Works until `stop`, at least once: a thread that gets no processor before `stop` counts as well.
fn count(mut work: impl FnMut() -> u64, stop: &AtomicBool, start: Instant) -> ThreadCount {
    let mut operations = work();
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

/// Measures again and again for a time, at least once, and takes the median.
pub fn median_for(duration: Duration, mut measure: impl FnMut() -> f64) -> Median {
    let began = Instant::now();
    let mut values = vec![measure()];
    while began.elapsed() < duration && !crate::stop::requested() {
        values.push(measure());
    }
    let mut values = values.into_iter();
    median_of(values.len(), || values.next().unwrap_or_default())
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
        let throughput = run(3, Duration::from_millis(5), |index| {
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
        for thread in &throughput.threads {
            assert!(thread.operations > 0 && thread.operations % 10 == 0);
        }
    }

    #[test]
    fn a_thread_that_gets_no_processor_before_the_end_works_once() {
        let start = Instant::now();
        let Some(a_second_ago) = start.checked_sub(Duration::from_secs(1)) else {
            return; // The machine's clock began less than a second ago.
        };
        let starved = count(|| 10, &AtomicBool::new(true), a_second_ago);
        assert_eq!(starved.operations, 10);
        assert!(starved.elapsed >= Duration::from_secs(1), "{starved:?}");
    }

    #[test]
    fn all_arrive_at_the_same_moment() {
        let start = Start::of(4);
        let moments: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| start.arrive())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(moments.iter().all(|moment| *moment == moments[0]));
    }

    fn thread(operations: u64, millis: u64) -> ThreadCount {
        ThreadCount {
            operations,
            elapsed: Duration::from_millis(millis),
        }
    }

    #[test]
    fn rates_add_up_over_threads() {
        let throughput = Throughput {
            threads: vec![thread(1000, 1000), thread(3000, 2000)],
        };
        assert!((throughput.per_second() - 2500.0).abs() < 1e-9);
        assert!((throughput.ns_per_operation() - 750_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_starved_thread_does_not_change_the_rate_of_the_others() {
        let threads = vec![thread(1000, 1000), thread(1, 10_000), thread(1, 0)];
        let rate = Throughput { threads }.per_second();
        assert!((rate - 1000.1).abs() < 1e-9, "{rate}");
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
