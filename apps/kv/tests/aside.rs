//! Commands that wait for a lock which another node has: their connections wait, and others do not.

mod support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(60);
/// Threads of a worker.
const THREADS: usize = 32;

/// Two servers of one store, with a worker each.
struct World {
    holds: Server,
    waits: Server,
}

impl World {
    fn new() -> Self {
        let options = Options {
            buckets: 1 << 10,
            patience: LONG,
            ..Options::default()
        };
        let store = Store::open(HeapMemory::new(4096, 512 << 20, 1), options).unwrap();
        let settings = || ServerConfig {
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            workers: 1,
            ..ServerConfig::default()
        };
        Self {
            holds: Server::bind(store.clone(), settings()).unwrap(),
            waits: Server::bind(store, settings()).unwrap(),
        }
    }

    fn client(&self) -> Client {
        Client::new(self.waits.local_addr())
    }

    /// Holds the bucket of a key with a script, until this is killed.
    fn hold(&self, key: &str) -> Holder {
        let mut script = Client::new(self.holds.local_addr());
        let mut killer = Client::new(self.holds.local_addr());
        assert_eq!(killer.say("CONFIG SET busy-reply-threshold 1"), "+OK");
        let text = b"redis.call('get', KEYS[1]) while true do end";
        script.send(&[b"EVAL", text, b"1", key.as_bytes()]);
        while killer.say("PING") == "+PONG" {}
        Holder { script, killer }
    }

    /// Threads of the server whose commands wait.
    fn threads(&self) -> usize {
        let name = format!("kv-{}-0", self.waits.local_addr().port());
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
        let mine = names.filter(|found| found.as_ref().is_ok_and(|found| found.starts_with(&name)));
        mine.count()
    }
}

struct Holder {
    script: Client,
    killer: Client,
}

impl Holder {
    fn let_go(mut self) {
        assert_eq!(self.killer.say("SCRIPT KILL"), "+OK");
        assert!(self.script.reply().contains("killed by user"));
    }
}

/// Whether a client has been answered by now.
fn answered(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let found = client.stream.peek(&mut [0; 1]).is_ok();
    client.stream.set_nonblocking(false).unwrap();
    found
}

/// Waits until something is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_command_that_waits_for_a_lock_keeps_nobody_else_waiting() {
    let world = World::new();
    let holder = world.hold("held");
    let (mut slow, mut other) = (world.client(), world.client());
    slow.send(&[b"SET", b"held", b"1"]);
    // Another thread has the helm.
    until("a second thread", || world.threads() >= 2);
    for nth in 0..100 {
        assert_eq!(other.say(&format!("SET mine {nth}")), "+OK");
        assert_eq!(other.say("GET mine"), format!("{:?}", nth.to_string()));
    }
    assert!(!answered(&slow));
    // One that comes meanwhile is served as well.
    assert_eq!(world.client().say("PING"), "+PONG");
    holder.let_go();
    assert_eq!(slow.reply(), "+OK");
    world.waits.shutdown();
}

const COUNTS: &[u8] = b"#!lua name=counts
local calls = 0
redis.register_function('count', function(keys)
    calls = calls + 1
    if #keys > 0 then redis.call('get', keys[1]) end
    return calls
end)";

#[test]
fn a_librarys_variables_are_the_workers_whichever_thread_runs_it() {
    let world = World::new();
    let (mut slow, mut other) = (world.client(), world.client());
    other.send(&[b"FUNCTION", b"LOAD", COUNTS]);
    assert_eq!(other.reply(), "\"counts\"");
    assert_eq!(other.say("FCALL count 0"), ":1");
    let holder = world.hold("held");
    slow.send(&[b"SET", b"held", b"1"]);
    until("a second thread", || world.threads() >= 2);
    // The first thread waits with a command that is no script.
    assert_eq!(other.say("FCALL count 0"), ":2");
    let mut function = world.client();
    function.send(&[b"FCALL", b"count", b"1", b"held"]);
    until("a third thread", || world.threads() >= 3);
    // It has the variables while it waits; others find new ones meanwhile, and those again later.
    assert_eq!(other.say("FCALL count 0"), ":1");
    holder.let_go();
    assert_eq!(
        (slow.reply(), function.reply()),
        ("+OK".into(), ":3".into())
    );
    for (client, count) in [(&mut slow, ":4"), (&mut other, ":5"), (&mut function, ":6")] {
        assert_eq!(client.say("FCALL count 0"), count);
    }
    world.waits.shutdown();
}

#[test]
fn what_a_client_has_said_behind_a_command_that_waits_is_done_behind_it() {
    let world = World::new();
    let holder = world.hold("held");
    let (mut slow, mut other) = (world.client(), world.client());
    slow.send(&[b"SET", b"held", b"1"]);
    until("a second thread", || world.threads() >= 2);
    slow.send(&[b"SET", b"mine", b"2"]);
    for word in [&b"held"[..], b"mine"] {
        slow.send(&[b"APPEND", word, b"3"]);
        slow.send(&[b"GET", word]);
    }
    // The server has had all of it by the time that it has served another one so often.
    for _ in 0..100 {
        assert_eq!(other.say("GET mine"), "nil");
    }
    holder.let_go();
    let replies: Vec<String> = (0..6).map(|_| slow.reply()).collect();
    assert_eq!(
        replies,
        ["+OK", "+OK", ":2", "\"13\"", ":2", "\"23\""].map(String::from)
    );
}

#[test]
fn so_many_commands_wait_at_a_time_and_then_all_connections_do() {
    let world = World::new();
    let holder = world.hold("held");
    let mut other = world.client();
    assert_eq!(other.say("PING"), "+PONG");
    let mut slow: Vec<Client> = (0..THREADS).map(|_| world.client()).collect();
    // The worker's sweep may wait for the bucket as well.
    let served = THREADS - 2;
    for (nth, client) in slow[..served].iter_mut().enumerate() {
        client.send(&[b"SET", b"held", b"1"]);
        until("another thread", || world.threads() >= nth + 2);
        assert_eq!(other.say("PING"), "+PONG");
    }
    for client in &mut slow[served..] {
        client.send(&[b"SET", b"held", b"1"]);
    }
    until("all threads", || world.threads() == THREADS);
    other.send(&[b"PING"]);
    holder.let_go();
    for client in &mut slow {
        assert_eq!(client.reply(), "+OK");
    }
    assert_eq!(other.reply(), "+PONG");
    assert_eq!(world.threads(), THREADS);
    // And it ends with all of them.
    let port = world.waits.local_addr().port();
    world.waits.shutdown();
    let name = format!("kv-{port}-0");
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
    assert_eq!(
        names.flatten().filter(|it| it.starts_with(&name)).count(),
        0
    );
}

#[test]
fn a_server_ends_while_a_command_waits_once_that_is_over() {
    let world = World::new();
    let holder = world.hold("held");
    let mut slow = world.client();
    slow.send(&[b"SET", b"held", b"1"]);
    until("a second thread", || world.threads() >= 2);
    let World { waits, holds } = world;
    let ending = std::thread::spawn(move || waits.shutdown());
    holder.let_go();
    ending.join().unwrap();
    assert_eq!(Client::new(holds.local_addr()).say("GET held"), "\"1\"");
}
