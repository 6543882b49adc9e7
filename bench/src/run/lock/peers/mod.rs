//! The same beside real servers: locks of Redis and of etcd, with one server of our own each,
//! which ends with the bench.

pub(in crate::run) mod etcd;
pub(in crate::run) mod http;
mod redis;

use super::super::{BenchError, Progress, Result};
use super::Options;
use crate::histogram::Histogram;
use crate::report::Report;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Locks of servers: name, program, and how many rounds for each thousand of ours.
pub const ALL: [(&str, &str, usize); 3] = [
    ("redis/poll", "redis-server", 1000),
    ("redis/blpop", "redis-server", 1000),
    ("etcd", "etcd", 50),
];

/// How long a holder goes on when the other has begun to wait: its request may still be under way
/// to the server.
const SETTLE: Duration = Duration::from_micros(300);
/// How long a holder waits for the other to wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// One client of a lock.
trait Client: Send {
    /// Returns inside; says when it knows that it has to wait.
    fn acquire(&mut self, waits: &dyn Fn()) -> Result<()>;

    /// Lets go.
    fn release(&mut self) -> Result<()>;
}

/// Measures those whose programs are on the path. What was left out, and why.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let redis = found("redis-server", &mut missing)
        .then(super::super::kv::Redis::start)
        .transpose()?;
    let etcd = found("etcd", &mut missing)
        .then(etcd::Server::start)
        .transpose()?;
    for (name, _, share) in ALL {
        options.go_on()?;
        let connect = || -> Result<Option<Box<dyn Client>>> {
            Ok(match (name, &redis, &etcd) {
                ("redis/poll", Some(redis), _) => Some(redis::polling(redis.addr())?),
                ("redis/blpop", Some(redis), _) => Some(redis::blocking(redis.addr())?),
                ("etcd", _, Some(etcd)) => Some(etcd.client()?),
                _ => None,
            })
        };
        let (Some(mut one), Some(mut other)) = (connect()?, connect()?) else {
            continue;
        };
        progress(&format!("{name}: uncontended"));
        let rounds = (options.rounds * share / 1000).max(4);
        let times = uncontended(&mut *one, rounds)?;
        add(report, &format!("{name}/uncontended"), &times)?;
        options.go_on()?;
        progress(&format!("{name}: hand-overs"));
        let times = hand_over(&mut *one, &mut *other, rounds / 2)?;
        add(report, &format!("{name}/hand-over"), &times)?;
    }
    Ok(missing)
}

fn add(report: &mut Report, case: &str, times: &Histogram) -> Result<()> {
    let us = |percent| times.percentile(percent) as f64 / 1e3;
    report.add(case, us(50.0), "us")?;
    report.add(&format!("{case}/p99"), us(99.0), "us")?;
    Ok(())
}

/// Whether a program is on the path; if not, that is said.
fn found(program: &str, missing: &mut Vec<String>) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&folders).any(|folder| folder.join(program).is_file());
    if !here {
        missing.push(format!("{program} was not found: its locks are left out"));
    }
    here
}

/// Acquired and released.
fn uncontended(client: &mut dyn Client, rounds: usize) -> Result<Histogram> {
    let mut times = Histogram::new();
    for _ in 0..rounds {
        let began = Instant::now();
        client.acquire(&|| ())?;
        client.release()?;
        times.record(began.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// What two clients in strict turn know of each other.
#[derive(Default)]
struct Turns {
    waits: [AtomicBool; 2],
    through: [AtomicBool; 2],
    released: AtomicU64,
}

/// From just before the holder lets go to when the other is inside.
fn hand_over(one: &mut dyn Client, other: &mut dyn Client, turns: usize) -> Result<Histogram> {
    let (table, began) = (Turns::default(), Instant::now());
    let [mine, theirs] = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| play(other, 1, turns, &table, began));
        let mine = play(one, 0, turns, &table, began);
        let theirs = theirs.join();
        [
            mine,
            theirs.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        ]
    });
    let mut times = mine?;
    times.merge(&theirs?);
    Ok(times)
}

fn play(
    client: &mut dyn Client,
    me: usize,
    turns: usize,
    table: &Turns,
    began: Instant,
) -> Result<Histogram> {
    let now = || began.elapsed().as_nanos() as u64;
    let mut times = Histogram::new();
    let mut take_turns = || -> Result<()> {
        for _ in 0..turns {
            client.acquire(&|| table.waits[me].store(true, Release))?;
            let (inside, at) = (now(), table.released.load(Acquire));
            // Without a wait there was no hand-off.
            if table.waits[me].swap(false, Acquire) && at > 0 {
                times.record(inside.saturating_sub(at));
            }
            let end = Instant::now() + PATIENCE;
            let waits = || table.waits[1 - me].load(Acquire) || table.through[1 - me].load(Acquire);
            while !waits() {
                if Instant::now() > end {
                    return Err(BenchError::Missing(
                        "a client of a server's lock does not come".into(),
                    ));
                }
                std::thread::yield_now();
            }
            std::thread::sleep(SETTLE);
            table.released.store(now(), Release);
            client.release()?;
        }
        Ok(())
    };
    let ended = take_turns();
    table.through[me].store(true, Release);
    ended.map(|()| times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn locks_of_servers_are_taken_and_handed_over() {
        let options = Options {
            rounds: 80,
            ..Options::default()
        };
        let mut report = Report::new("lock");
        let missing = run(&options, &mut report, &mut |_| ()).unwrap();
        for why in &missing {
            let _ = writeln!(std::io::stdout(), "skipped: {why}");
        }
        for (name, program, _) in ALL {
            let told = ["uncontended", "hand-over"].map(|what| {
                let case = report.case(&format!("{name}/{what}"));
                case.is_some_and(|case| case.value > 0.0)
            });
            let here = !missing.iter().any(|why| why.starts_with(program));
            assert_eq!(told, [here; 2], "{name}");
        }
    }
}
