//! Three nodes of etcd on this machine: one value put and got by one client, as one of ours writes
//! and reads a line.
//!
//! Through the JSON form of etcd's interface, which costs more than gRPC. Its data is in a folder
//! of `/dev/shm`, so that no disk is waited for: beside copies in memory.

use super::{BenchError, Options, Progress, Result, add, timed};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::run::child::ends_with_us;
use crate::run::lock::peers::etcd::base64;
use crate::run::lock::peers::http::Connection;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NODES: usize = 3;
/// How long they may take to agree after their start.
const START: Duration = Duration::from_secs(60);
/// Bytes of the value.
const VALUE: usize = 64;
/// Operations for each of ours.
const SHARE: usize = 4;

/// Ends when it is dropped, and its folder with it.
struct Cluster {
    processes: Vec<Child>,
    clients: Vec<SocketAddr>,
    folder: PathBuf,
}

fn free_addresses(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    let listeners = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listeners = listeners.collect::<std::io::Result<Vec<_>>>()?;
    listeners.iter().map(TcpListener::local_addr).collect()
}

impl Cluster {
    fn start() -> Result<Cluster> {
        let addresses = free_addresses(2 * NODES)?;
        let (clients, peers) = addresses.split_at(NODES);
        let memory = PathBuf::from("/dev/shm");
        let root = match memory.is_dir() {
            true => memory,
            false => std::env::temp_dir(),
        };
        let name = format!("rackmem-bench-etcd-three-{}", std::process::id());
        let all: Vec<String> = peers
            .iter()
            .enumerate()
            .map(|(n, at)| format!("n{n}=http://{at}"))
            .collect();
        let mut cluster = Cluster {
            processes: Vec::new(),
            clients: clients.to_vec(),
            folder: root.join(name),
        };
        for (nth, (client, peer)) in clients.iter().zip(peers).enumerate() {
            let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
            let mut command = Command::new("etcd");
            command
                .args(["--name", &format!("n{nth}")])
                .arg("--data-dir")
                .arg(cluster.folder.join(nth.to_string()))
                .args(["--listen-client-urls", &client])
                .args(["--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer])
                .args(["--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &all.join(",")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            cluster.processes.push(ends_with_us(&mut command).spawn()?);
        }
        let end = Instant::now() + START;
        while cluster.client().put(0).is_err() {
            if Instant::now() > end {
                return Err(BenchError::Missing(
                    "etcd's three nodes do not answer".into(),
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(cluster)
    }

    fn client(&self) -> Client {
        Client(Connection::new(self.clients[0]))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Gone already is as good as killed.
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Client(Connection);

impl Client {
    fn put(&mut self, number: usize) -> Result<()> {
        let value = format!("{number:0VALUE$}");
        let body = json!({"key": base64("copies"), "value": base64(&value)});
        self.call("/v3/kv/put", &body).map(drop)
    }

    fn get(&mut self) -> Result<()> {
        let told = self.call("/v3/kv/range", &json!({"key": base64("copies")}))?;
        match told["kvs"][0]["value"].is_string() {
            true => Ok(()),
            false => Err(BenchError::Missing("etcd has lost a value".into())),
        }
    }

    fn call(&mut self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.0.post(path, &body.to_string())?;
        let garbage = |_| BenchError::Missing("etcd answered what is no JSON".into());
        serde_json::from_slice(&answer).map_err(garbage)
    }
}

/// If its program is on the path; if not, that is said.
pub fn run(
    options: &Options,
    report: &mut Report,
    progress: Progress<'_>,
    missing: &mut Vec<String>,
) -> Result<()> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder.join("etcd").is_file()) {
        missing
            .push("etcd was not found: its three nodes are left out (package etcd-server)".into());
        return Ok(());
    }
    progress("etcd, three nodes");
    let cluster = Cluster::start()?;
    let mut client = cluster.client();
    let (mut puts, mut gets) = (Histogram::new(), Histogram::new());
    for nth in 0..(options.operations / SHARE).max(16) {
        if crate::stop::requested() {
            return Err(BenchError::Stopped);
        }
        timed(&mut puts, nth > 4, || client.put(nth))?;
        timed(&mut gets, nth > 4, || client.get())?;
    }
    for (what, ours, times) in [("put", "write", &puts), ("get", "read", &gets)] {
        let case = format!("etcd/three/{what}");
        let ours = format!("udp/switch/copies-3/{ours}/64");
        let ours = report.case(&ours).is_some().then_some(ours);
        add(report, &case, times, ours.as_deref())?;
    }
    Ok(())
}
