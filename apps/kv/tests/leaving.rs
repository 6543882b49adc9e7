//! A node leaves while clients at all nodes go on: every key of every kind is at the others, and
//! none of the node's memory is given out. And nodes die at every moment of that.

#[path = "support/mortal.rs"]
mod mortal;
mod support;

use mortal::Mortal;

use rackmem::Rack;
use rackmem_kv::memory::{HeapMemory, Memory};
use rackmem_kv::{CannotLeave, Clock, Keys, Moved, Options, Server, ServerConfig, Store};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::Client;

/// The node that leaves.
const LEAVER: usize = 1;
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

/// Says a line of any length.
fn say(client: &mut Client, line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    client.call(&words)
}

fn open<M: Memory>(memory: M, buckets: usize) -> Store<M> {
    let options = Options {
        buckets,
        patience: LONG,
        ..Options::default()
    };
    Store::open(memory, options).unwrap()
}

fn serve<M: Memory>(store: &Store<M>) -> Server {
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    Server::bind(store.clone(), config).unwrap()
}

fn client(server: &Server) -> Client {
    let client = Client::new(server.local_addr());
    client.stream.set_read_timeout(Some(LONG)).unwrap();
    client
}

/// Keys of all kinds, of which a node writes those that are its own. What reads them all.
fn fill(clients: &mut [Client]) -> Vec<String> {
    let mut reads = Vec::new();
    let many = |of: usize, each: &dyn Fn(usize) -> String| -> String {
        (0..of).map(each).collect::<Vec<_>>().join(" ")
    };
    for n in 0..360 {
        let client = &mut clients[n % 3];
        let mut tell = |line: String| {
            let answer = say(client, &line);
            assert!(!answer.starts_with('-'), "{n}: {answer}");
        };
        let of = [3, 40, 400][n / 3 % 3];
        let key = format!("key:{n}");
        match n / 9 % 7 {
            0 => tell(format!("SET {key} {}", "v".repeat(10 + n))),
            1 => tell(format!("SET {key} {}", "w".repeat(700 * of))),
            2 => tell(format!(
                "HSET {key} {}",
                many(of, &|i| format!("f{i} value{i}"))
            )),
            3 => tell(format!(
                "RPUSH {key} {}",
                many(of, &|i| format!("element{i}"))
            )),
            4 => tell(format!(
                "SADD {key} {}",
                many(of, &|i| format!("member{i}"))
            )),
            5 => tell(format!("ZADD {key} {}", many(of, &|i| format!("{i} m{i}")))),
            _ => {
                for i in 1..=of / 4 + 1 {
                    tell(format!("XADD {key} {i}-1 field {}", "x".repeat(i)));
                }
                tell(format!("XGROUP CREATE {key} group 0"));
                tell(format!("XREADGROUP GROUP group me COUNT 2 STREAMS {key} >"));
            }
        }
        if n % 5 == 0 {
            tell(format!("PEXPIREAT {key} 9999999999999"));
        }
        reads.push(match n / 9 % 7 {
            0 | 1 => format!("GET {key}"),
            2 => format!("HGETALL {key}"),
            3 => format!("LRANGE {key} 0 -1"),
            4 => format!("SMEMBERS {key}"),
            5 => format!("ZRANGE {key} 0 -1 WITHSCORES"),
            _ => format!("XRANGE {key} - +"),
        });
        reads.push(format!("PEXPIRETIME {key}"));
        reads.push(format!("XPENDING {key} group"));
    }
    reads
}

fn all(client: &mut Client, reads: &[String]) -> Vec<String> {
    reads.iter().map(|line| client.say(line)).collect()
}

/// Changes keys of all lengths from one node until told to stop, and looks whether what was there
/// is what it wrote; how often it added one to each of two counters.
fn load(mut client: Client, me: usize, stop: &AtomicBool) -> (u64, BTreeMap<String, String>) {
    let (mut rounds, mut last) = (0, BTreeMap::new());
    let mut random = fastrand::Rng::with_seed(me as u64);
    while !stop.load(SeqCst) {
        let key = format!("load:{me}:{}", random.usize(..400));
        let value = format!("{rounds}").repeat([2, 200, 3000][random.usize(..3)]);
        assert_eq!(say(&mut client, &format!("SET {key} {value}")), "+OK");
        assert!(
            client.say(&format!("GET {key}")) == format!("{value:?}"),
            "{key}"
        );
        last.insert(format!("GET {key}"), format!("{value:?}"));
        let answer = say(&mut client, &format!("HSET all f{me}:{rounds} {rounds}"));
        assert_eq!(answer, ":1");
        assert_eq!(client.say("MULTI"), "+OK");
        client.say("INCR counter:a");
        client.say("INCR counter:b");
        let both = client.say("EXEC");
        let counts: Vec<&str> = both.trim_matches(['[', ']']).split(' ').collect();
        assert_eq!(counts[0], counts[1], "{both}");
        rounds += 1;
    }
    (rounds, last)
}

/// What ends when a test does, however.
struct Ends<'a>([&'a AtomicBool; 2]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|end| end.store(true, SeqCst));
    }
}

fn leaves_under_load<M: Memory>(stores: [Store<M>; 3]) {
    let mut servers: Vec<Option<Server>> = stores.iter().map(|store| Some(serve(store))).collect();
    let mut clients: Vec<Client> = servers.iter().flatten().map(client).collect();
    let mut subscriber = client(servers[LEAVER].as_ref().unwrap());
    subscriber.say("SUBSCRIBE news");
    let reads = fill(&mut clients);
    let before = all(&mut clients[0], &reads);
    let keys = clients[0].say("DBSIZE");
    assert_eq!(keys, ":360");
    let watched = clients[2].say("WATCH key:1 key:30 key:60");
    assert_eq!(watched, "+OK");
    let (stop, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = Ends([&stop, &gone]);
        let stop_of = |me: usize| if me == LEAVER { &gone } else { &stop };
        let loads: Vec<_> = (0..3)
            .map(|me| {
                let client = client(servers[me].as_ref().unwrap());
                let stop = stop_of(me);
                scope.spawn(move || load(client, me, stop))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        let go_on = &mut |_: &Moved| began.elapsed() < LONG;
        let moved = stores[LEAVER].leave(go_on).unwrap();
        assert!(
            moved.buckets > 0 && moved.values > 40 && moved.skipped == 0,
            "{moved:?}"
        );
        // Clients there go on until the last moment.
        assert!(all(&mut clients[LEAVER], &reads) == before);
        gone.store(true, SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        drop(servers[LEAVER].take());
        let left = stores[LEAVER].finish_leaving(go_on).unwrap();
        assert_eq!(left, 0, "bytes given out");
        stop.store(true, SeqCst);
        let mut rounds = 0;
        for load in loads {
            let (did, last) = load.join().unwrap();
            rounds += did;
            for (read, value) in last {
                assert!(clients[0].say(&read) == value, "{read}");
            }
        }
        let counter = format!("\"{rounds}\"");
        for name in ["counter:a", "counter:b"] {
            assert_eq!(clients[2].say(&format!("GET {name}")), counter);
        }
        assert_eq!(clients[0].say("HLEN all"), format!(":{rounds}"));
    });
    for node in [0, 2] {
        let now = all(&mut clients[node], &reads);
        let other = (0..reads.len()).find(|at| now[*at] != before[*at]);
        assert_eq!(other.map(|at| &reads[at]), None, "node {node}");
    }
    // What moved was not changed.
    clients[2].say("MULTI");
    clients[2].say("PING");
    assert_eq!(clients[2].say("EXEC"), "[+PONG]");
    let mut keys = Keys::default();
    let mut cursor = 0;
    loop {
        cursor = stores[0].first().scan(cursor, 100, &mut keys).unwrap();
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(stores[2].first().len().unwrap(), keys.len());
    for key in keys.iter() {
        assert!(stores[2].remove(key).unwrap());
    }
    assert_eq!(clients[0].say("DBSIZE"), ":0");
    // And nothing new is there.
    let again = fill(&mut [
        client(servers[0].as_ref().unwrap()),
        client(servers[2].as_ref().unwrap()),
        client(servers[0].as_ref().unwrap()),
    ]);
    assert!(all(&mut clients[2], &again) == before);
    assert_eq!(stores[LEAVER].memory().given_bytes(), 0);
}

#[test]
fn everything_is_at_the_others_in_one_process() {
    let memory = HeapMemory::new(1024, 512 << 20, 3);
    leaves_under_load([0, 1, 2].map(|id| open(memory.node(id), 16)));
}

#[test]
fn everything_is_at_the_others_in_a_rack() {
    let builder = Rack::builder(3).cache(32 << 20).memory(256 << 20);
    let rack = builder.build().unwrap();
    leaves_under_load([0, 1, 2].map(|id| open(rack.node(id), 64)));
}

#[test]
fn node_0_says_that_it_cannot() {
    let memory = HeapMemory::new(1024, 8 << 20, 2);
    let stores = [0, 1].map(|id| open(memory.node(id), 4));
    let leave = |store: &Store<HeapMemory>| store.leave(&mut |_| true);
    assert!(matches!(leave(&stores[0]), Err(CannotLeave::KeepsTheStore)));
    let stopped = stores[1].leave(&mut |_| false);
    assert!(matches!(stopped, Err(CannotLeave::Stopped)));
    stores[1].stay().unwrap();
    stores[1].set(b"long", &[7; 5000]).unwrap();
    assert!(stores[1].memory().given_bytes() >= 5000);
    leave(&stores[1]).unwrap();
    let mut value = Vec::new();
    assert!(stores[0].get(b"long", &mut value).unwrap() && value == [7; 5000]);
}

#[test]
fn a_node_that_finds_no_room_stays_whole() {
    const VALUE: usize = 1 << 20;
    let rack = Rack::builder(3)
        .cache(4 << 20)
        .memory(32 << 20)
        .build()
        .unwrap();
    let stores = [0, 1, 2].map(|id| open(rack.node(id), 16));
    let mut there = Vec::new();
    // All three give all that they have.
    for (id, store) in stores.iter().enumerate() {
        for n in 0.. {
            let key = format!("key:{id}:{n}").into_bytes();
            match store.set(&key, &vec![n as u8; VALUE]) {
                Ok(()) => there.push((key, n as u8)),
                Err(error) => {
                    assert_eq!(error.code(), "OOM", "{error}");
                    break;
                }
            }
        }
    }
    assert!(there.len() > 60, "{}", there.len());
    let full = stores[LEAVER].leave(&mut |_| true).unwrap_err();
    assert!(full.is_full(), "{full}");
    stores[LEAVER].stay().unwrap();
    let mut value = Vec::new();
    for (key, n) in &there {
        assert!(stores[2].get(key, &mut value).unwrap());
        assert!(value == vec![*n; VALUE], "{n}");
        value.clear();
    }
    // With room at the others it can.
    for (key, _) in there.iter().filter(|(key, _)| !key.starts_with(b"key:1")) {
        assert!(stores[0].remove(key).unwrap());
    }
    stores[LEAVER].leave(&mut |_| true).unwrap();
    assert_eq!(stores[LEAVER].finish_leaving(&mut |_| true).unwrap(), 0);
    for (key, n) in there.iter().filter(|(key, _)| key.starts_with(b"key:1")) {
        assert!(stores[2].get(key, &mut value).unwrap());
        assert!(value == vec![*n; VALUE], "{n}");
        value.clear();
    }
}

/// More moments than it takes to leave.
const MOST: usize = 20_000;
const KEYS: usize = 60;

/// Three nodes, each with memory that dies with it, and a store whose values are spread over them.
struct Mortals {
    memory: Vec<Mortal>,
    stores: Vec<Store<Mortal>>,
}

/// What became of keys, by their numbers.
type Fates = Vec<Option<Vec<u8>>>;

fn key(n: usize) -> Vec<u8> {
    format!("key:{n}").into_bytes()
}

fn value(n: usize) -> Vec<u8> {
    vec![b'a' + (n % 26) as u8; [30, 700, 5000][n % 3]]
}

impl Mortals {
    /// The same ones every time.
    fn new() -> Mortals {
        fastrand::seed(7);
        let memory = Mortal::with_homes(&HeapMemory::new(1024, 8 << 20, 3), 3);
        let time = Arc::new(AtomicU64::new(1_000_000_000_000));
        let open = |memory: &Mortal| {
            let options = Options {
                buckets: 4,
                most_buckets: 4,
                clock: Clock::manual(time.clone()),
                patience: Duration::from_millis(50),
                ..Options::default()
            };
            Store::open(memory.clone(), options).unwrap()
        };
        let stores: Vec<_> = memory.iter().map(open).collect();
        for n in 0..KEYS {
            stores[n / 3 % 3].set(&key(n), &value(n)).unwrap();
        }
        Mortals { memory, stores }
    }

    fn leave(&self) -> Result<usize, CannotLeave> {
        let mut turns = 0;
        let go_on = &mut |_: &Moved| {
            turns += 1;
            turns < 1000
        };
        self.stores[LEAVER].leave(go_on)?;
        self.stores[LEAVER].finish_leaving(go_on)
    }

    /// What a node finds.
    fn seen(&self, node: usize) -> Fates {
        let look = |n| {
            let mut found = Vec::new();
            let there = self.stores[node].get(&key(n), &mut found);
            match there {
                Ok(there) => there.then_some(found),
                Err(error) => {
                    assert_eq!(error.code(), "NODELOST", "{n}: {error}");
                    None
                }
            }
        };
        (0..KEYS).map(look).collect()
    }

    /// Both who live see the same, nothing that was not written, and what `must` names; what a node
    /// changes the other sees.
    fn judge(&self, (one, other): (usize, usize), must: impl Fn(usize) -> bool) -> usize {
        let seen = self.seen(one);
        assert!(seen == self.seen(other), "they differ");
        let mut there = 0;
        for (n, found) in seen.iter().enumerate() {
            match found {
                Some(found) => assert!(*found == value(n), "{n} is torn"),
                None => assert!(!must(n), "{n} is lost"),
            }
            there += usize::from(found.is_some());
        }
        for n in 0..KEYS {
            let new = value(n + 1);
            let set = self.stores[one].set(&key(n), &new);
            let mut found = Vec::new();
            match set {
                Ok(()) => {
                    assert!(self.stores[other].get(&key(n), &mut found).unwrap());
                    assert!(found == new, "{n}");
                }
                Err(error) => assert_eq!(error.code(), "NODELOST", "{n}: {error}"),
            }
        }
        there
    }
}

#[test]
fn a_node_that_dies_at_any_moment_of_leaving_loses_no_more_than_it_had() {
    let dead = Mortals::new();
    dead.memory[LEAVER].dies_after(0);
    let _ = dead.leave();
    let before = dead.seen(0);
    let lost = before.iter().filter(|found| found.is_none()).count();
    assert!(lost > 5 && lost < KEYS, "{lost}");
    let mut most = 0;
    for moment in 0.. {
        assert!(moment < MOST);
        let world = Mortals::new();
        world.memory[LEAVER].dies_after(moment);
        let left = world.leave();
        let lives = world.memory[LEAVER].lives();
        if lives {
            assert_eq!(left.unwrap(), 0);
            world.memory[LEAVER].dies_after(0);
            let _ = world.stores[LEAVER].remove(b"any");
            assert_eq!(world.judge((0, 2), |_| true), KEYS);
            assert!(moment > 100, "{moment}");
            break;
        }
        let there = world.judge((2, 0), |n| before[n].is_some());
        most = most.max(there);
    }
    assert!(most > KEYS - 3, "what had moved is there: {most}");
}

#[test]
fn it_leaves_though_another_one_dies_meanwhile() {
    const OTHER: usize = 2;
    let spared = |who: usize| {
        let dead = Mortals::new();
        dead.memory[who].dies_after(0);
        let _ = dead.stores[who].remove(b"any");
        dead.seen(0)
    };
    let (without, alone) = (spared(OTHER), spared(LEAVER));
    for moment in (0..MOST).step_by(3) {
        let world = Mortals::new();
        world.memory[LEAVER].outlives(&world.memory[OTHER], moment);
        let left = world.leave();
        let over = world.memory[OTHER].lives();
        if let Err(error) = left {
            // Of both something may be away.
            assert!(matches!(error, CannotLeave::Store(_)), "{moment}: {error}");
        }
        if over {
            return;
        }
        let must = |n: usize| without[n].is_some() && alone[n].is_some();
        world.judge((0, LEAVER), must);
    }
    panic!("more than {MOST} moments");
}
