//! The content of memory dies under a server in the middle of what it does: memory of a node that
//! lives, whose last content only dead nodes had.

mod support;

use rackmem_kv::memory::{Events, HeapMemory, MemoryError, Step};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::Client;

type Result<T> = std::result::Result<T, MemoryError>;

const BLOCK: usize = 1024;

/// The memory of one node loses what was written to it. The store's own blocks, which it changes in
/// place, stay.
struct Losses {
    /// Writes that are left until everything is lost that was written before.
    left: AtomicUsize,
    lives: AtomicU64,
    /// Blocks that were written, and of them those that are lost.
    blocks: Mutex<(HashSet<u64>, HashSet<u64>)>,
}

impl Losses {
    fn new() -> Arc<Self> {
        Arc::new(Losses {
            left: AtomicUsize::new(usize::MAX),
            lives: AtomicU64::new(0),
            blocks: Mutex::default(),
        })
    }

    fn come_after(&self, writes: usize) {
        self.left.store(writes, SeqCst);
    }

    fn come(&self) {
        let mut blocks = self.blocks.lock().unwrap();
        blocks.1 = std::mem::take(&mut blocks.0);
        self.lives.fetch_add(1, SeqCst);
        self.left.store(usize::MAX, SeqCst);
    }

    fn blocks(addr: u64, len: usize) -> impl Iterator<Item = u64> {
        addr / BLOCK as u64..(addr + len as u64).div_ceil(BLOCK as u64)
    }

    fn there(&self, addr: u64, len: usize) -> Result<()> {
        let blocks = self.blocks.lock().unwrap();
        match Self::blocks(addr, len).find(|block| blocks.1.contains(block)) {
            Some(block) => Err(MemoryError::Lost(block * BLOCK as u64)),
            None => Ok(()),
        }
    }
}

impl Events for Losses {
    fn lives(&self) -> u64 {
        self.lives.load(SeqCst)
    }

    fn happens(&self, step: Step) -> Result<()> {
        match step {
            Step::Read(addr, len) | Step::Update(addr, len) => self.there(addr, len),
            Step::Write(addr, len) => {
                let left = |left: usize| (left != usize::MAX).then(|| left.saturating_sub(1));
                if self.left.fetch_update(SeqCst, SeqCst, left) == Ok(0) {
                    self.come();
                }
                self.there(addr, len)?;
                self.blocks
                    .lock()
                    .unwrap()
                    .0
                    .extend(Self::blocks(addr, len));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn serve(losses: &Arc<Losses>) -> Server {
    let memory = HeapMemory::new(BLOCK, 64 << 20, 1).with_events(losses.clone());
    let options = Options {
        buckets: 4,
        most_buckets: 4,
        ..Options::default()
    };
    let store = Store::open(memory, options).unwrap();
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
        let losses = Losses::new();
        let server = serve(&losses);
        let mut client = Client::new(server.local_addr());
        losses.come_after(writes);
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
        losses.come_after(usize::MAX);
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
    let losses = Losses::new();
    let server = serve(&losses);
    let mut client = Client::new(server.local_addr());
    let long = "x".repeat(2 * BLOCK);
    client.call(&[b"SET", b"old", long.as_bytes()]);
    losses.come();
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
        losses.come_after(writes);
        let answers = client.say("EXEC");
        losses.come_after(usize::MAX);
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
    let losses = Losses::new();
    let server = serve(&losses);
    let mut first = Client::new(server.local_addr());
    assert_eq!(first.say("SUBSCRIBE news"), "[\"subscribe\" \"news\" :1]");
    let mut other = Client::new(server.local_addr());
    for loss in 0..3 {
        losses.come();
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
