//! Locks of etcd, as its own clients' concurrency package makes them: a key under the lock's name
//! for each who wants it, tied to a lease; whose key was created first is inside, and everybody
//! else watches the key created just before its own.
//!
//! Through the JSON form of etcd's interface, which costs more than gRPC. Its data is in a folder
//! of `/dev/shm`, so that no disk is waited for.

use super::super::super::child::ends_with_us;
use super::super::super::{BenchError, Result};
use super::Client;
use super::http::Connection;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to answer after its start.
const START: Duration = Duration::from_secs(30);
/// Between two looks whether it does.
const STEP: Duration = Duration::from_millis(20);
/// Seconds after which a client that is silent has lost its keys.
const LEASE: u32 = 60;
const NAME: &str = "rackmem-bench-lock/";

/// An etcd of the bench's own. Ends when it is dropped, and its folder with it; also when this
/// process is killed, but for the folder.
pub(super) struct Server {
    process: Child,
    addr: SocketAddr,
    folder: PathBuf,
}

impl Server {
    pub fn start() -> Result<Server> {
        let [one, other] = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let (one, other) = (one?, other?);
        let (addr, peer) = (one.local_addr()?, other.local_addr()?);
        drop((one, other));
        let memory = PathBuf::from("/dev/shm");
        let root = if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        };
        let folder = root.join(format!("rackmem-bench-etcd-{}", std::process::id()));
        let (client, between) = (format!("http://{addr}"), format!("http://{peer}"));
        let mut command = Command::new("etcd");
        command
            .arg("--data-dir")
            .arg(&folder)
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &between])
            .args(["--initial-advertise-peer-urls", &between])
            .args(["--initial-cluster", &format!("default={between}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = ends_with_us(&mut command).spawn()?;
        let server = Server {
            process,
            addr,
            folder,
        };
        let end = Instant::now() + START;
        while server.client().is_err() {
            if Instant::now() > end {
                return Err(BenchError::Missing("etcd does not answer".into()));
            }
            std::thread::sleep(STEP);
        }
        Ok(server)
    }

    pub fn client(&self) -> Result<Box<dyn Client>> {
        let mut client = Etcd {
            calls: Connection::new(self.addr),
            addr: self.addr,
            lease: String::new(),
            key: String::new(),
        };
        let granted = client.call("/v3/lease/grant", &json!({"TTL": LEASE}))?;
        client.lease = text(&granted["ID"])?;
        client.key = format!("{NAME}{}", client.lease);
        Ok(Box::new(client))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A client, its connection, and its key.
struct Etcd {
    calls: Connection,
    addr: SocketAddr,
    lease: String,
    key: String,
}

impl Etcd {
    fn call(&mut self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.calls.post(path, &body.to_string())?;
        serde_json::from_slice(&answer).map_err(|_| garbage(&answer))
    }

    /// Waits until a key is gone that was there at this revision.
    fn await_end(&self, key: &str, revision: u64, waits: &dyn Fn()) -> Result<()> {
        let from = (revision + 1).to_string();
        let body = json!({"create_request": {"key": base64(key), "start_revision": from}});
        let mut watch = Connection::new(self.addr);
        watch.begin("/v3/watch", &body.to_string())?;
        loop {
            let line = watch.chunk()?;
            let told: Value = serde_json::from_slice(&line).map_err(|_| garbage(&line))?;
            let told = &told["result"];
            if told["created"] == true {
                waits();
            }
            let events = told["events"].as_array();
            if events.is_some_and(|events| events.iter().any(|event| event["type"] == "DELETE")) {
                return Ok(());
            }
        }
    }
}

impl Client for Etcd {
    fn acquire(&mut self, waits: &dyn Fn()) -> Result<()> {
        let key = base64(&self.key);
        let (name, end) = (base64(NAME), base64(&NAME.replace('/', "0")));
        // Its key, if that is not there; and in the same transaction whose is the first.
        let first = json!({"request_range": {
            "key": name, "range_end": end, "sort_order": "ASCEND", "sort_target": "CREATE", "limit": "1",
        }});
        let body = json!({
            "compare": [{"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
            "success": [{"request_put": {"key": key, "value": "", "lease": self.lease}}, first],
            "failure": [],
        });
        let told = self.call("/v3/kv/txn", &body)?;
        let mine: u64 = number(&told["header"]["revision"])?;
        let first = &told["responses"][1]["response_range"]["kvs"][0];
        if text(&first["key"])? == key {
            return Ok(());
        }
        loop {
            // The waiter just before it.
            let before = json!({
                "key": name, "range_end": end, "sort_order": "DESCEND", "sort_target": "CREATE", "limit": "1",
                "max_create_revision": (mine - 1).to_string(),
            });
            let told = self.call("/v3/kv/range", &before)?;
            let revision = number(&told["header"]["revision"])?;
            let Some(last) = told["kvs"].as_array().and_then(|kvs| kvs.first()) else {
                return Ok(());
            };
            let last = decode(&text(&last["key"])?).ok_or_else(|| garbage(b"a key"))?;
            self.await_end(&last, revision, waits)?;
        }
    }

    fn release(&mut self) -> Result<()> {
        let body = json!({"key": base64(&self.key)});
        self.call("/v3/kv/deleterange", &body).map(drop)
    }
}

fn garbage(answer: &[u8]) -> BenchError {
    let text: String = String::from_utf8_lossy(answer).chars().take(200).collect();
    BenchError::Missing(format!("etcd answered what it should not: {text}"))
}

fn text(value: &Value) -> Result<String> {
    let found = value.as_str().map(str::to_owned);
    found.ok_or_else(|| garbage(value.to_string().as_bytes()))
}

fn number(value: &Value) -> Result<u64> {
    let found = value.as_str().and_then(|text| text.parse().ok());
    found.ok_or_else(|| garbage(value.to_string().as_bytes()))
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as etcd's JSON has them.
pub(in crate::run) fn base64(text: &str) -> String {
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |nth: usize| u32::from(three.get(nth).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for nth in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * nth) & 63) as usize];
            out.push(if nth > three.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    out
}

fn decode(text: &str) -> Option<String> {
    let letters = text.bytes().filter(|byte| *byte != b'=');
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::new());
    for letter in letters {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_what_everybody_calls_so() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(
                (base64(plain).as_str(), decode(coded).as_deref()),
                (coded, Some(plain))
            );
        }
        assert_eq!(decode("!"), None);
    }
}
