//! An etcd of a soak's own. It ends with the value.

use crate::failure::{Failure, Result};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to answer.
const START: Duration = Duration::from_secs(30);
/// Between two looks whether it answers.
const STEP: Duration = Duration::from_millis(20);

/// Runs a program until standard input ends, which is when this process does,
/// or until the program does.
const GUARD: &str = "\
    exec 3<&0; \"$@\" < /dev/null 3<&- & program=$!; { read -r _ <&3; kill -9 $program; } & guard=$!; \
    wait $program; kill $guard 2> /dev/null";

pub struct Etcd(Child);

impl Etcd {
    /// Starts it in a folder, and returns when it takes connections, with its address.
    pub fn start(folder: &Path) -> Result<(Etcd, String)> {
        let log = folder.join("etcd.log");
        let addresses = rackmem_hosts::addresses(2);
        let (client, peer) = (addresses[0], addresses[1]);
        let mut etcd = Etcd(spawn(folder, &log, client, peer)?);
        if etcd.answers(client)? {
            return Ok((etcd, format!("http://{client}")));
        }
        let told = std::fs::read_to_string(&log).unwrap_or_default();
        let last = told.lines().last().unwrap_or("it said nothing");
        Err(Failure::new(
            format!("etcd did not start: {last}"),
            "see whether `etcd` alone starts, or leave out --membership etcd",
        ))
    }

    /// Waits until it takes connections; `false` when it ends first, or takes too long.
    fn answers(&mut self, at: SocketAddr) -> Result<bool> {
        let end = Instant::now() + START;
        while Instant::now() < end && self.0.try_wait()?.is_none() {
            if TcpStream::connect_timeout(&at, STEP).is_ok() {
                return Ok(true);
            }
            std::thread::sleep(STEP);
        }
        Ok(false)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // The shell ends it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn spawn(folder: &Path, log: &Path, client: SocketAddr, peer: SocketAddr) -> Result<Child> {
    let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
    let cluster = format!("default={peer}");
    let child = Command::new("sh")
        .args(["-c", GUARD, "sh", "etcd"])
        .arg("--data-dir")
        .arg(data(folder))
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &cluster])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::create(log)?)
        .spawn()?;
    Ok(child)
}

fn data(folder: &Path) -> PathBuf {
    folder.join("etcd")
}
