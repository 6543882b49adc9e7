//! A store in memory with copies: nodes of a real rack over UDP die, the one that serves the memory
//! among them, and no key that was acknowledged is lost. Answers wait for what follows; none says
//! `NODELOST`.

mod support;

use rackmem::membership::{self, Role};
use rackmem::{Config, Node, Rack};
use rackmem_kv::memory::CopiedMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::Client;

type CopiedStore = Store<CopiedMemory>;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);
/// An operator says who is dead, and nobody is late for a lease.
const LEASE: Duration = Duration::from_secs(16);
const BUCKETS: usize = 8;
const KEYS: usize = 400;

struct Cluster {
    config: Config,
    folder: PathBuf,
}

impl Cluster {
    fn new(name: &str, nodes: usize) -> Cluster {
        let folder = std::env::temp_dir().join(format!("rackmem-kv-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses: Vec<String> = rackmem_hosts::addresses(nodes)
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let text = format!(
            "nodes = [{}]\nmembership = \"dir:{}\"\nlease_ms = {}\nmemory = {}\ncache = {}\n\
             patience_ms = {}\nreplace_after = '200ms'",
            addresses.join(", "),
            folder.display(),
            LEASE.as_millis(),
            64 << 20,
            8 << 20,
            LONG.as_millis(),
        );
        Cluster {
            config: Config::parse(&text).unwrap(),
            folder,
        }
    }

    /// Says that a node is dead, as `rackmem members remove` does.
    fn bury(&self, id: u16) {
        let settings = &self.config.membership;
        let store = settings.source.open(&settings.name).unwrap().unwrap();
        membership::remove(&*store, Role::Node(id), LONG).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn open(node: &Node) -> CopiedStore {
    let options = Options {
        buckets: BUCKETS,
        patience: LONG,
        ..Options::default()
    };
    let memory = CopiedMemory::open(node, "store", 32 << 20, 3).unwrap();
    Store::open(memory, options).unwrap()
}

fn serve(store: &CopiedStore) -> Server {
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    Server::bind(store.clone(), config).unwrap()
}

fn client(server: &Server) -> Client {
    let client = Client::new(server.local_addr());
    client.stream.set_read_timeout(Some(LONG * 2)).unwrap();
    client
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Of all lengths: in a page, in a chain of pages, in memory of their own.
fn value(key: usize) -> Vec<u8> {
    let len = [3, 200, 1_000, 9_000][key % 4];
    (0..len).map(|at| b'a' + ((key + at) % 26) as u8).collect()
}

#[test]
fn every_node_sees_one_store() {
    let rack = Rack::local(3).unwrap();
    let stores: Vec<CopiedStore> = rack.nodes().iter().map(open).collect();
    std::thread::scope(|scope| {
        for (nth, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let db = store.db(0).unwrap();
                for key in (nth..240).step_by(3) {
                    db.set(format!("key {key}").as_bytes(), &value(key))
                        .unwrap();
                    db.increment(b"count", 1).unwrap();
                    if key % 5 == 0 {
                        let gone = format!("key {key}");
                        assert!(db.remove(gone.as_bytes()).unwrap());
                    }
                }
            });
        }
    });
    for store in &stores {
        let db = store.db(0).unwrap();
        for key in 0..240 {
            let mut found = Vec::new();
            let there = db.get(format!("key {key}").as_bytes(), &mut found);
            assert_eq!(there.unwrap(), key % 5 != 0, "key {key}");
            assert!(found.is_empty() || found == value(key), "key {key}");
        }
        let mut count = Vec::new();
        assert!(db.get(b"count", &mut count).unwrap() && count == b"240");
    }
}

#[test]
fn any_node_dies_and_no_key_is_lost() {
    let cluster = Cluster::new("copies", 4);
    let mut racks: Vec<Option<Rack>> = (0..4)
        .map(|id| Some(Rack::join(&cluster.config, id).unwrap()))
        .collect();
    let nodes: Vec<Node> = racks
        .iter()
        .enumerate()
        .map(|(id, rack)| rack.as_ref().unwrap().node(id))
        .collect();
    let stores: Vec<CopiedStore> = nodes.iter().map(open).collect();
    let servers = [serve(&stores[2]), serve(&stores[3])];
    let acknowledged: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let (stop, writes) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (nth, server) in servers.iter().enumerate() {
            let (acknowledged, stop, writes) = (&acknowledged, &stop, &writes);
            scope.spawn(move || {
                let mut client = client(server);
                for key in (nth..KEYS).step_by(2).cycle() {
                    if stop.load(SeqCst) {
                        return;
                    }
                    let name = format!("key {key}");
                    let reply = client.call(&[b"SET", name.as_bytes(), &value(key)]);
                    assert!(!reply.contains("NODELOST"), "{reply}");
                    if reply == "+OK" {
                        acknowledged.lock().unwrap().insert(name.clone(), key);
                        writes.fetch_add(1, SeqCst);
                    }
                    let reply = client.call(&[b"GET", name.as_bytes()]);
                    assert!(!reply.contains("NODELOST"), "{reply}");
                }
            });
        }
        // Nodes that die at work, inside of locks perhaps.
        for store in &stores[..2] {
            scope.spawn(|| {
                let db = store.db(0).unwrap();
                while db.increment(b"count", 1).is_ok() {}
                // Its node is gone.
            });
        }
        for (dies, rack) in racks.iter_mut().enumerate().take(2) {
            let before = writes.load(SeqCst);
            let more = || writes.load(SeqCst) > before + 50;
            eventually("they write", more);
            *rack = None;
            cluster.bury(dies as u16);
            let before = writes.load(SeqCst);
            let more = || writes.load(SeqCst) > before + 50;
            eventually("they go on", more);
            eventually("a live node has its copies", || {
                let groups = nodes[3].groups();
                let whole = |copy: &rackmem::CopyStatus| copy.counts && copy.live;
                let count = |group: &rackmem::GroupStatus| {
                    group.copies.iter().filter(|copy| whole(copy)).count()
                };
                groups.iter().all(|group| count(group) >= 3 - dies)
            });
        }
        stop.store(true, SeqCst);
    });
    for server in &servers {
        let mut client = client(server);
        for (name, key) in acknowledged.lock().unwrap().iter() {
            let reply = client.call(&[b"GET", name.as_bytes()]);
            let text = String::from_utf8(value(*key)).unwrap();
            assert_eq!(reply, format!("{text:?}"), "{name}");
        }
    }
}

/// A store of three nodes in this process.
fn local() -> (Rack, Vec<CopiedStore>) {
    let rack = Rack::local(3).unwrap();
    let stores = (0..3).map(|id| open(&rack.node(id))).collect();
    (rack, stores)
}

/// Who only reads leaves a page as it was, which is no write: short values, long ones, and keys
/// behind the first page of their bucket.
#[test]
fn a_read_writes_nothing() {
    let (rack, stores) = local();
    let long = vec![7; 100_000];
    stores[0].set(b"long", &long).unwrap();
    for key in 0..KEYS {
        stores[key % 3]
            .set(format!("key:{key}").as_bytes(), b"a value")
            .unwrap();
    }
    let written = || -> u64 {
        let events = (0..3).map(|id| rack.node(id).metrics().events);
        events
            .map(|events| events.write_miss + events.write_shared + events.evict_modified)
            .sum()
    };
    let before = written();
    let mut value = Vec::new();
    for store in &stores {
        assert!(store.get(b"long", &mut value).unwrap() && value == long);
        assert!(!store.get(b"nothing", &mut value).unwrap());
        for key in 0..KEYS {
            let key = format!("key:{key}");
            assert!(store.get(key.as_bytes(), &mut value).unwrap() && value == b"a value");
        }
    }
    assert_eq!(written(), before);
}

/// Each read of a value that changes meanwhile, and whose memory others get, is of one writer.
#[test]
fn reads_beside_writers_are_whole() {
    let (_rack, stores) = local();
    let over = AtomicBool::new(false);
    let read = AtomicUsize::new(0);
    let key = |nth: u8| vec![b'k', nth % 4];
    std::thread::scope(|scope| {
        for store in &stores[..2] {
            scope.spawn(|| {
                for round in (0..=255u8).cycle().take(2000) {
                    let len = 1 + usize::from(round) * 40;
                    store.set(&key(round), &vec![round; len]).unwrap();
                }
                over.store(true, SeqCst);
            });
        }
        scope.spawn(|| {
            let mut value = Vec::new();
            while !over.load(SeqCst) {
                for nth in 0..4 {
                    if stores[2].get(&key(nth), &mut value).unwrap() {
                        let round = value[0];
                        assert_eq!(value.len(), 1 + usize::from(round) * 40);
                        assert!(value.iter().all(|byte| *byte == round));
                        read.fetch_add(1, SeqCst);
                    }
                }
            }
        });
    });
    assert!(read.load(SeqCst) > 0);
}
