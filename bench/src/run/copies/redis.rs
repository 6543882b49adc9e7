//! Two servers of Redis on this machine, one of which is the other's replica: a value set and with
//! both (`WAIT 1`), and got, by one client, as one of ours writes and reads a line.
//!
//! Redis does not count this as agreement: the replica may be behind when it takes over.

use super::{BenchError, Options, Progress, Result, add, timed};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::run::kv::Redis;
use crate::run::resp::Client;
use std::time::{Duration, Instant};

/// How long the replica may take to be one.
const START: Duration = Duration::from_secs(60);
const KEY: &[u8] = b"rackmem-bench-copies";
/// Bytes of the value.
const VALUE: usize = 64;
/// Operations for each of ours.
const SHARE: usize = 4;

/// Sets a value, and waits until the replica has it. False: it has not.
fn set(client: &mut Client, number: usize) -> Result<bool> {
    let value = format!("{number:0VALUE$}");
    client.command(&[b"SET", KEY, value.as_bytes()]);
    client.command(&[b"WAIT", b"1", b"1000"]);
    let mut with = false;
    client.flush(|answer| with = answer == Some(b"1"))?;
    Ok(with)
}

/// If its program is on the path; if not, that is said.
pub fn run(
    options: &Options,
    report: &mut Report,
    progress: Progress<'_>,
    missing: &mut Vec<String>,
) -> Result<()> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder.join("redis-server").is_file()) {
        let why = "redis-server was not found: its two servers are left out (package redis-server)";
        missing.push(why.into());
        return Ok(());
    }
    progress("redis, a server and its replica");
    let (server, replica) = (Redis::start()?, Redis::start()?);
    let port = server.addr().port().to_string();
    let mut to_replica = Client::connect(replica.addr())?;
    to_replica.command(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
    to_replica.flush(|_| ())?;
    let mut client = Client::connect(server.addr())?;
    let end = Instant::now() + START;
    while !set(&mut client, 0)? {
        if Instant::now() > end {
            return Err(BenchError::Missing("redis has no replica".into()));
        }
    }
    let (mut sets, mut gets) = (Histogram::new(), Histogram::new());
    for nth in 0..(options.operations / SHARE).max(16) {
        if crate::stop::requested() {
            return Err(BenchError::Stopped);
        }
        timed(&mut sets, nth > 4, || match set(&mut client, nth)? {
            true => Ok(()),
            false => Err(BenchError::Missing("redis has lost its replica".into())),
        })?;
        timed(&mut gets, nth > 4, || {
            client.command(&[b"GET", KEY]);
            Ok(client.flush(|_| ())?)
        })?;
    }
    for (what, ours, times) in [("set-wait-1", "write", &sets), ("get", "read", &gets)] {
        let ours = format!("udp/switch/copies-3/{ours}/64");
        let ours = report.case(&ours).is_some().then_some(ours);
        add(report, &format!("redis/{what}"), times, ours.as_deref())?;
    }
    Ok(())
}
