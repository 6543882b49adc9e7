//! The benches, one file each. Every one returns a [`Report`] whose case names are stable:
//! `docs/benchmarks.md` lists them.

pub mod bounded;
pub mod bulk;
mod child;
pub mod copies;
#[cfg(feature = "xdp")]
pub mod dataplane;
pub mod dbm;
pub mod dropin;
pub mod evict;
#[path = "../../../crates/rackmem/tests/support/executor.rs"]
mod executor;
pub mod failover;
pub mod failover_sim;
pub mod graph;
pub mod hit;
pub mod keys;
pub mod kv;
mod kv_memory;
pub mod kv_rack;
mod kv_recorded;
pub mod lock;
pub mod loss;
pub mod mapped;
pub mod micro;
pub mod micro_hosts;
pub mod micro_member;
pub mod miss;
mod miss_many;
pub mod objects;
mod objects_crew;
pub mod objects_home;
mod objects_many;
mod objects_map;
pub mod python;
mod resp;
pub mod sim;
pub mod tpcc;
mod ways;
pub mod words;

use crate::report::{Report, ReportError};
use crate::{locks, pingpong, stop};
use std::net::{SocketAddr, TcpStream};

/// Why a bench gave no report.
#[derive(Debug)]
pub enum BenchError {
    /// The rack said no.
    Rack(rackmem::Error),
    /// Two cases collided or a figure was no number: a defect of the bench.
    Report(ReportError),
    /// A socket or a thread could not be had.
    Io(std::io::Error),
    /// Something the bench needs is not on this machine.
    Missing(String),
    /// The user wants no more of it.
    Stopped,
    /// What clients were told cannot have come from one memory: a defect of the rack.
    NotLinearizable(String),
    /// What is measured has not kept what it promises: a defect of it.
    Broken(String),
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Rack(error) => error.fmt(f),
            BenchError::Report(error) => error.fmt(f),
            BenchError::Io(error) => error.fmt(f),
            BenchError::Stopped => f.write_str("stopped"),
            BenchError::Missing(what)
            | BenchError::NotLinearizable(what)
            | BenchError::Broken(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<rackmem::Error> for BenchError {
    fn from(error: rackmem::Error) -> Self {
        BenchError::Rack(error)
    }
}

rackmem::from_families!(BenchError);

impl From<locks::Error> for BenchError {
    fn from(error: locks::Error) -> Self {
        match error {
            locks::Error::Rack(error) => BenchError::Rack(error),
            other => BenchError::Missing(other.to_string()),
        }
    }
}

impl From<ReportError> for BenchError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Stopped => BenchError::Stopped,
            other => BenchError::Report(other),
        }
    }
}

impl From<std::io::Error> for BenchError {
    fn from(error: std::io::Error) -> Self {
        BenchError::Io(error)
    }
}

/// The result of a bench.
pub type Result<T> = std::result::Result<T, BenchError>;

/// Ends where the user has asked for it.
fn stopped() -> Result<()> {
    match stop::requested() {
        true => Err(BenchError::Stopped),
        false => Ok(()),
    }
}

/// What the bench needs is not on this machine, for this reason.
fn missing(why: impl std::fmt::Display) -> BenchError {
    BenchError::Missing(why.to_string())
}

/// A bench's progress for display: what is being measured now.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// A connection; errors name the address.
fn connect(addr: SocketAddr) -> std::io::Result<TcpStream> {
    let named = |error: std::io::Error| {
        let why = format!("cannot connect to {addr}: {error}");
        std::io::Error::new(error.kind(), why)
    };
    TcpStream::connect(addr).map_err(named)
}

/// What a bench does once: it adds its cases to the report. It gets the number of the run, from 1.
pub type Once<'a> = &'a mut dyn FnMut(usize, &mut Report, Progress<'_>) -> Result<()>;

/// Runs a bench several times and takes the median of every case. Each run begins with what the
/// machine does just now: the way of a cache line between two cores, which varies by a factor of
/// three from one minute to the next on a virtual machine.
///
/// Where the end was asked for meanwhile the report has what was measured before, and says so.
///
/// # Errors
/// Those of the bench, but for its end.
pub fn repeated(
    mut blank: Report,
    runs: usize,
    progress: Progress<'_>,
    once: Once<'_>,
) -> Result<Report> {
    let (mut done, mut whole) = (Vec::new(), 0);
    for run in 1..=runs.max(1) {
        let mut report = Report::new(&blank.bench);
        let mut tell = |what: &str| match runs {
            0 | 1 => progress(what),
            _ => progress(&format!("run {run} of {runs}: {what}")),
        };
        let ended = ping_pong(&mut report).and_then(|()| once(run, &mut report, &mut tell));
        done.push(report);
        match ended {
            // Whatever went wrong then, it went wrong because of that.
            _ if stop::requested() => break,
            Err(error) => return Err(error),
            Ok(()) => whole += 1,
        }
    }
    blank.runs = whole;
    blank.partial = stop::requested();
    Ok(blank.median_of(&done))
}

fn ping_pong(report: &mut Report) -> Result<()> {
    if let Ok(found) = pingpong::measure(20_000) {
        report.add("machine/cache-line-ping-pong", found.ns as f64, "ns")?;
    }
    Ok(())
}
