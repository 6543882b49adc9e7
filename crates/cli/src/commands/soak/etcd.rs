//! An etcd of a soak's own. It ends with the value.

use crate::failure::{Failure, Result};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to answer.
const START: Duration = Duration::from_secs(30);
/// How often it is started, should somebody else take a port in the meantime.
const TRIES: u32 = 3;
/// Between two looks whether it answers.
const STEP: Duration = Duration::from_millis(20);

pub struct Etcd(Child);

impl Etcd {
    /// Starts it in a folder, and returns when it takes connections, with its address.
    pub fn start(folder: &Path) -> Result<(Etcd, String)> {
        let log = folder.join("etcd.log");
        let mut tries = TRIES;
        loop {
            let [client, peer] = free_ports()?;
            // What an attempt at other ports has left; usually there is nothing.
            let _ = std::fs::remove_dir_all(data(folder));
            let mut etcd = Etcd(spawn(folder, &log, client, peer)?);
            if etcd.answers(client)? {
                return Ok((etcd, format!("http://{client}")));
            }
            tries -= 1;
            if tries == 0 {
                let told = std::fs::read_to_string(&log).unwrap_or_default();
                let last = told.lines().last().unwrap_or("it said nothing");
                return Err(Failure::new(
                    format!("etcd did not start: {last}"),
                    "see whether `etcd` alone starts, or leave out --membership etcd",
                ));
            }
        }
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
        // Gone already is as good as killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(folder: &Path, log: &Path, client: SocketAddr, peer: SocketAddr) -> Result<Child> {
    let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
    let cluster = format!("default={peer}");
    let child = Command::new("etcd")
        .arg("--data-dir")
        .arg(data(folder))
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &cluster])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log)?)
        .spawn()?;
    Ok(child)
}

fn data(folder: &Path) -> PathBuf {
    folder.join("etcd")
}

/// Two that are free now.
fn free_ports() -> Result<[SocketAddr; 2]> {
    let (one, other) = (
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    );
    Ok([one.local_addr()?, other.local_addr()?])
}
