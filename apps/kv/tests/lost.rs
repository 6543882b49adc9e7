//! The content of memory dies under a server in the middle of what it does: memory of a node that
//! lives, whose last content only dead nodes had.

mod support;

use rackmem::window::{Window, WindowMut};
use rackmem_kv::memory::{HeapMemory, HeapPages, Memory, MemoryError};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::Client;

type Result<T> = std::result::Result<T, MemoryError>;

const BLOCK: usize = 1024;

/// What all threads know of it.
#[derive(Default)]
struct Fate {
    /// Writes that are left until everything is lost that was written before.
    left: AtomicUsize,
    lives: AtomicU64,
    /// Blocks that were written, and of them those that are lost.
    blocks: Mutex<(HashSet<u64>, HashSet<u64>)>,
}

/// Memory of one node that loses what was written to it, once. The store's own blocks, which it
/// changes in place, stay.
#[derive(Clone)]
struct Losing {
    inner: HeapMemory,
    fate: Arc<Fate>,
}

impl Losing {
    fn new() -> Self {
        let losing = Losing {
            inner: HeapMemory::new(BLOCK, 64 << 20, 1),
            fate: Arc::default(),
        };
        losing.fate.left.store(usize::MAX, SeqCst);
        losing
    }

    fn loses_after(&self, writes: usize) {
        self.fate.left.store(writes, SeqCst);
    }

    fn lose(&self) {
        let mut blocks = self.fate.blocks.lock().unwrap();
        blocks.1 = std::mem::take(&mut blocks.0);
        self.fate.lives.fetch_add(1, SeqCst);
        self.fate.left.store(usize::MAX, SeqCst);
    }

    fn blocks(addr: u64, len: usize) -> impl Iterator<Item = u64> {
        addr / BLOCK as u64..(addr + len as u64).div_ceil(BLOCK as u64)
    }

    fn there(&self, addr: u64, len: usize) -> Result<()> {
        let blocks = self.fate.blocks.lock().unwrap();
        match Self::blocks(addr, len).find(|block| blocks.1.contains(block)) {
            Some(block) => Err(MemoryError::Lost(block * BLOCK as u64)),
            None => Ok(()),
        }
    }
}

impl Memory for Losing {
    type Pages = Arc<HeapPages>;

    fn block_size(&self) -> usize {
        BLOCK
    }

    fn id(&self) -> u16 {
        0
    }

    fn nodes(&self) -> usize {
        1
    }

    fn lives(&self) -> u64 {
        self.fate.lives.load(SeqCst)
    }

    fn pages_survive(&self) -> bool {
        false
    }

    fn snapshot<R>(&self, addr: u64, len: usize, f: impl FnMut(&Window<'_>) -> R) -> Result<R> {
        self.there(addr, len)?;
        self.inner.snapshot(addr, len, f)
    }

    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R> {
        self.there(addr, len)?;
        self.inner.update(addr, len, f)
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        self.there(addr, out.len())?;
        self.inner.read(addr, out)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        let left = |left: usize| (left != usize::MAX).then(|| left.saturating_sub(1));
        if self.fate.left.fetch_update(SeqCst, SeqCst, left) == Ok(0) {
            self.lose();
        }
        self.there(addr, bytes.len())?;
        let written = Self::blocks(addr, bytes.len());
        self.fate.blocks.lock().unwrap().0.extend(written);
        self.inner.write(addr, bytes)
    }

    fn alloc(&self, len: usize) -> Result<u64> {
        self.inner.alloc(len)
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64> {
        self.inner.alloc_on(home, len)
    }

    fn free(&self, addr: u64, len: usize) -> Result<()> {
        self.inner.free(addr, len)
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64> {
        self.inner.region(name, len, type_hash)
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<Arc<HeapPages>> {
        self.inner.pages(addr, count, len)
    }
}

fn serve(memory: &Losing) -> Server {
    let options = Options {
        buckets: 4,
        most_buckets: 4,
        ..Options::default()
    };
    let store = Store::open(memory.clone(), options).unwrap();
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    Server::bind(store, config).unwrap()
}

/// Members that a script puts into a set, one after the other.
const MEMBERS: usize = 120;

/// What a script has written and what it writes after a loss are one step: both are there, or its
/// client is told.
#[test]
fn a_script_does_not_go_on_without_what_it_has_written() {
    let script = format!(
        "redis.call('DEL', KEYS[1]) for i = 1, {MEMBERS} do \
         redis.call('ZADD', KEYS[1], i, 'a member of a sorted set, number ' .. i) end return 'all'"
    );
    let (mut told, mut done) = (0, 0);
    for writes in (0..3 * MEMBERS).step_by(10) {
        let memory = Losing::new();
        let server = serve(&memory);
        let mut client = Client::new(server.local_addr());
        memory.loses_after(writes);
        let answer = client.call(&[b"EVAL", script.as_bytes(), b"1", b"set"]);
        let there = client.say("ZCARD set");
        match answer.as_str() {
            "\"all\"" => {
                let whole = [":0".into(), format!(":{MEMBERS}")];
                assert!(whole.contains(&there), "{writes} writes: {there} members");
                done += 1;
            }
            error => {
                assert!(error.contains("NODELOST"), "{writes} writes: {error}");
                told += 1;
            }
        }
        // What was lost is found out once, and then it works.
        memory.loses_after(usize::MAX);
        let again = client.call(&[b"EVAL", script.as_bytes(), b"1", b"set"]);
        assert_eq!(again, "\"all\"", "after {writes} writes");
        assert_eq!(client.say("ZCARD set"), format!(":{MEMBERS}"));
    }
    assert!(told > 0 && done > 0, "{told} were told, {done} were done");
}

/// Elements that a transaction puts into a list, a command each.
const PUSHED: usize = 12;

/// The commands of a transaction as well; one before any has used the key finds it absent.
#[test]
fn a_transaction_is_told_of_a_loss_in_its_middle_and_not_of_one_before() {
    let memory = Losing::new();
    let server = serve(&memory);
    let mut client = Client::new(server.local_addr());
    let long = "x".repeat(2 * BLOCK);
    client.call(&[b"SET", b"old", long.as_bytes()]);
    memory.lose();
    for line in ["MULTI", "GETRANGE old 0 3", "SET old new", "GET old"] {
        client.say(line);
    }
    assert_eq!(client.say("EXEC"), "[\"\" +OK \"new\"]");

    let mut told = 0;
    for writes in 1..2 * PUSHED {
        client.say("DEL list");
        client.say("MULTI");
        for _ in 0..PUSHED {
            client.call(&[b"RPUSH", b"list", long.as_bytes()]);
        }
        memory.loses_after(writes);
        let answers = client.say("EXEC");
        memory.loses_after(usize::MAX);
        let there = client.say("LLEN list");
        match answers.contains("NODELOST") {
            true => told += 1,
            false => assert!(
                [":0".into(), format!(":{PUSHED}")].contains(&there),
                "{writes} writes: {there} of {answers}"
            ),
        }
    }
    assert!(told > 0, "nothing was lost in the middle");
}

/// Where the list of a node's subscriptions has died it is written anew, and counts once what was
/// tried several times.
#[test]
fn clients_subscribe_after_the_list_of_subscriptions_is_lost() {
    let memory = Losing::new();
    let server = serve(&memory);
    let mut first = Client::new(server.local_addr());
    assert_eq!(first.say("SUBSCRIBE news"), "[\"subscribe\" \"news\" :1]");
    let mut other = Client::new(server.local_addr());
    for loss in 0..3 {
        memory.lose();
        let mut late = Client::new(server.local_addr());
        late.stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        assert_eq!(
            late.say("SUBSCRIBE news"),
            "[\"subscribe\" \"news\" :1]",
            "after loss {loss}"
        );
        assert_eq!(other.say("PUBSUB NUMSUB news"), "[\"news\" :2]");
        assert_eq!(other.say("PUBLISH news it"), ":2");
        assert_eq!(late.reply(), "[\"message\" \"news\" \"it\"]");
        assert_eq!(first.reply(), "[\"message\" \"news\" \"it\"]");
        assert_eq!(
            late.say("UNSUBSCRIBE news"),
            "[\"unsubscribe\" \"news\" :0]"
        );
    }
}
