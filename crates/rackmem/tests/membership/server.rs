//! A real etcd, started by a test at an address of its own, with its data in a folder of its own.

use crate::witness::{PATIENCE, Scratch};
use rackmem::membership::{Etcd, Store};
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Server {
    scratch: Scratch,
    client: SocketAddr,
    peer: SocketAddr,
    child: Child,
}

impl Server {
    /// None where there is no etcd, which is said.
    pub fn start(name: &str) -> Option<Server> {
        let found = Command::new("etcd")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if found.is_err() {
            let _ = writeln!(std::io::stdout(), "skipped: etcd was not found");
            return None;
        }
        let scratch = Scratch::new(&format!("etcd-{name}"));
        let [client, peer] = rackmem_hosts::addresses(2)[..] else {
            panic!("two addresses");
        };
        let child = spawn(&scratch, client, peer);
        let server = Server {
            scratch,
            client,
            peer,
            child,
        };
        server.wait();
        Some(server)
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.client)
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn restart(&mut self) {
        self.child = spawn(&self.scratch, self.client, self.peer);
        self.wait();
    }

    fn wait(&self) {
        let end = Instant::now() + PATIENCE;
        let store = Etcd::new(vec![self.endpoint()], "probe");
        while let Err(error) = store.load(Duration::from_secs(1)) {
            assert!(Instant::now() < end, "etcd does not come: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn store(&self, name: &str) -> Arc<dyn Store> {
        Arc::new(Etcd::new(vec![self.endpoint()], name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(scratch: &Scratch, client: SocketAddr, peer: SocketAddr) -> Child {
    let client = format!("http://{client}");
    let peer = format!("http://{peer}");
    Command::new("etcd")
        .arg("--data-dir")
        .arg(scratch.path())
        .args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ])
        .args(["--initial-cluster", &format!("default={peer}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
