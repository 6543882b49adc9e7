//! What nodes tell each other: clients that wait, publish, subscribe and keep copies, at every node
//! of a rack.

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use rackmem::Rack;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;

struct World {
    servers: Vec<Server>,
    _rack: Rack,
}

fn world(workers: usize) -> World {
    let rack = Rack::local(3).unwrap();
    let serve = |id: usize| {
        let options = Options {
            buckets: 64,
            ..Options::default()
        };
        let store = Store::open(rack.node(id), options).unwrap();
        let config = ServerConfig {
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            workers,
            ..ServerConfig::default()
        };
        Server::bind(store, config).unwrap()
    };
    World {
        servers: (0..3).map(serve).collect(),
        _rack: rack,
    }
}

impl World {
    fn client(&self, node: usize) -> Client {
        Client::new(self.servers[node].local_addr())
    }
}

/// The connection's number.
fn id(client: &mut Client) -> String {
    client.say("CLIENT ID").trim_start_matches(':').to_owned()
}

#[test]
fn a_client_that_waits_is_served_by_a_change_at_any_node() {
    let world = world(1);
    let mut one = world.client(0);
    assert_eq!(one.say("XADD s 1-1 a 1"), "\"1-1\"");
    for n in 2..60 {
        let served = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (world, served) = (&world, &served);
            scope.spawn(move || {
                let mut other = world.client(n % 3);
                // The first may come before the other reads: what it waits for is then the next.
                for sent in 1.. {
                    let added = other.say(&format!("XADD s {n}-{sent} a b"));
                    assert_eq!(added, format!("\"{n}-{sent}\""));
                    if served.load(SeqCst) {
                        break;
                    }
                }
            });
            one.send(&[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"t", b"s", b"$", b"$"]);
            one.send(&[b"PING"]);
            let reply = one.reply();
            served.store(true, SeqCst);
            assert!(reply.contains(&format!("\"{n}-")), "{reply}");
            assert_eq!(one.reply(), "+PONG", "what follows has waited");
        });
    }
}

/// Returns once so many clients of a node wait.
fn until_waiting(at: &mut Client, count: usize) {
    while !at
        .say("INFO clients")
        .contains(&format!("blocked_clients:{count}\\r"))
    {}
}

#[test]
fn those_who_wait_at_a_node_are_served_in_their_order() {
    let world = world(1);
    let mut waiting: Vec<Client> = (0..4).map(|_| world.client(0)).collect();
    let (mut near, mut far) = (world.client(0), world.client(2));
    for (i, client) in waiting.iter_mut().enumerate() {
        match i {
            // One that waits for something else does not keep what comes from those behind it.
            1 => client.send(&[b"BZPOPMIN", b"q", b"0"]),
            _ => client.send(&[b"BLPOP", b"other", b"q", b"0"]),
        }
        until_waiting(&mut near, i + 1);
    }
    assert_eq!(far.say("RPUSH q first"), ":1");
    assert_eq!(waiting[0].reply(), "[\"q\" \"first\"]");
    assert_eq!(near.say("RPUSH q second third fourth"), ":3");
    // At the node where they wait it is gone before the answer comes.
    assert_eq!(near.say("LRANGE q 0 -1"), "[\"fourth\"]");
    assert_eq!(waiting[2].reply(), "[\"q\" \"second\"]");
    assert_eq!(waiting[3].reply(), "[\"q\" \"third\"]");
    assert_eq!(far.say("DEL q"), ":1");
    assert_eq!(far.say("ZADD q 1 member"), ":1");
    assert_eq!(waiting[1].reply(), "[\"q\" \"member\" \"1\"]");
    until_waiting(&mut near, 0);
    waiting[0].send(&[b"BLMOVE", b"from", b"to", b"LEFT", b"RIGHT", b"0"]);
    waiting[1].send(&[b"BLPOP", b"to", b"0"]);
    until_waiting(&mut near, 2);
    assert_eq!(far.say("LPUSH from through"), ":1");
    assert_eq!(waiting[0].reply(), "\"through\"");
    assert_eq!(waiting[1].reply(), "[\"to\" \"through\"]");
}

#[test]
fn a_client_that_waits_leaves_after_its_time_or_when_told_to() {
    let world = world(2);
    let (mut one, mut other) = (world.client(0), world.client(0));
    let number = id(&mut one);
    assert_eq!(one.say("XREAD BLOCK 1 STREAMS s $"), "nil");
    assert_eq!(one.say("MULTI"), "+OK");
    assert_eq!(one.say("XREAD BLOCK 0 STREAMS s $"), "+QUEUED");
    assert_eq!(
        one.say("EXEC"),
        "[nil]",
        "within a transaction nobody waits"
    );
    for (word, reply) in [
        ("TIMEOUT", "nil"),
        ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        one.send(&[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]);
        while other.say(&format!("CLIENT UNBLOCK {number} {word}")) != ":1" {}
        assert_eq!(one.reply(), reply);
        assert_eq!(one.say("PING"), "+PONG");
    }
    assert_eq!(other.say(&format!("CLIENT UNBLOCK {number}")), ":0");
    one.send(&[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]);
    drop(one);
    while other.say("CLIENT LIST").contains(&format!("id={number} ")) {}
}

#[test]
fn a_message_reaches_the_subscribers_of_all_nodes() {
    let world = world(1);
    let mut publisher = world.client(0);
    assert_eq!(publisher.say("PUBLISH news nobody"), ":0");
    let mut listeners: Vec<Client> = (0..3).map(|node| world.client(node)).collect();
    for listener in &mut listeners {
        assert_eq!(
            listener.say("SUBSCRIBE news"),
            "[\"subscribe\" \"news\" :1]"
        );
    }
    assert_eq!(
        listeners[2].say("PSUBSCRIBE n*"),
        "[\"psubscribe\" \"n*\" :2]"
    );
    assert_eq!(listeners[1].say("PING"), "[\"pong\" \"\"]");
    assert_eq!(
        listeners[1].say("GET a"),
        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    );
    for n in 0..100 {
        let node = n % 3;
        let mut publisher = world.client(node);
        assert_eq!(publisher.say(&format!("PUBLISH news {n}")), ":4", "{n}");
        for listener in &mut listeners {
            assert_eq!(listener.reply(), format!("[\"message\" \"news\" \"{n}\"]"));
        }
        let matching = format!("[\"pmessage\" \"n*\" \"news\" \"{n}\"]");
        assert_eq!(listeners[2].reply(), matching);
    }
    assert_eq!(
        publisher.say("PUBSUB NUMSUB news x"),
        "[\"news\" :3 \"x\" :0]"
    );
    assert_eq!(publisher.say("PUBSUB CHANNELS n*"), "[\"news\"]");
    assert_eq!(publisher.say("PUBSUB NUMPAT"), ":1");
    assert_eq!(
        listeners[0].say("UNSUBSCRIBE"),
        "[\"unsubscribe\" \"news\" :0]"
    );
    assert_eq!(publisher.say("PUBLISH news x"), ":3");
    assert_eq!(publisher.say("PUBLISH other x"), ":0");
    drop(listeners);
    while publisher.say("PUBLISH news x") != ":0" {}
    let mut shard = world.client(1);
    assert_eq!(shard.say("HELLO 3").chars().next(), Some('{'));
    assert_eq!(shard.say("SSUBSCRIBE s"), ">3");
    for part in ["\"ssubscribe\"", "\"s\"", ":1"] {
        assert_eq!(shard.reply(), part);
    }
    let long = "x".repeat(100_000);
    assert_eq!(publisher.call(&[b"SPUBLISH", b"s", long.as_bytes()]), ":1");
    assert_eq!(shard.reply(), ">3");
    for part in ["\"smessage\"", "\"s\"", &format!("\"{long}\"")] {
        assert_eq!(shard.reply(), part);
    }
    assert_eq!(shard.say("GET nothing"), "nil");
}

/// A client that keeps a copy of what it reads, until it is told that it has changed.
struct Cache {
    client: Client,
    /// Where it is told.
    ears: Client,
}

impl Cache {
    fn new(world: &World, node: usize) -> Self {
        let (mut client, mut ears) = (world.client(node), world.client(node));
        let number = id(&mut ears);
        ears.say("SUBSCRIBE __redis__:invalidate");
        let on = client.say(&format!("CLIENT TRACKING ON REDIRECT {number}"));
        assert_eq!(on, "+OK");
        Cache { client, ears }
    }

    /// Waits until told that this key has changed.
    fn until_told(&mut self, key: &str) {
        let told = format!("[\"message\" \"__redis__:invalidate\" [\"{key}\"]]");
        while self.ears.reply() != told {}
    }
}

#[test]
fn a_client_that_keeps_copies_hears_of_every_change() {
    let world = world(1);
    let mut cache = Cache::new(&world, 0);
    let mut writers: Vec<Client> = (0..3).map(|node| world.client(node)).collect();
    let mut random = fastrand::Rng::with_seed(7);
    for n in 0..300 {
        let key = format!("key{}", random.u8(..5));
        let before = cache.client.say(&format!("GET {key}"));
        let set = format!("SET {key} {n}");
        let writer = random.usize(..3);
        assert_eq!(writers[writer].say(&set), "+OK");
        assert_ne!(before, format!("\"{n}\""));
        // Nothing is missed: it would wait for ever.
        cache.until_told(&key);
        assert_eq!(cache.client.say(&format!("GET {key}")), format!("\"{n}\""));
    }
    cache.client.say("GET gone");
    writers[1].say("FLUSHALL");
    while cache.ears.reply() != "[\"message\" \"__redis__:invalidate\" nil]" {}
}

#[test]
fn under_writes_from_all_nodes_no_copy_stays_old() {
    let world = world(2);
    const KEYS: usize = 4;
    std::thread::scope(|scope| {
        for node in 0..3 {
            let mut writer = world.client(node);
            scope.spawn(move || {
                for _ in 0..200 {
                    for key in 0..KEYS {
                        writer.say(&format!("INCR n{key}"));
                    }
                }
            });
        }
        for node in 0..2 {
            let mut cache = Cache::new(&world, node);
            scope.spawn(move || {
                // A copy that does not change any more is the last value: 600 increments.
                for key in 0..KEYS {
                    while cache.client.say(&format!("GET n{key}")) != "\"600\"" {
                        cache.until_told(&format!("n{key}"));
                    }
                }
            });
        }
    });
}

#[test]
fn settings_of_tracking() {
    let world = world(1);
    let mut client = world.client(0);
    for (said, heard) in [
        (
            "CLIENT TRACKINGINFO",
            "[\"flags\" [\"off\"] \"redirect\" :-1 \"prefixes\" []]",
        ),
        ("CLIENT GETREDIR", ":-1"),
        (
            "CLIENT CACHING YES",
            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ),
        (
            "CLIENT TRACKING ON PREFIX a",
            "-ERR PREFIX option requires BCAST mode to be enabled",
        ),
        (
            "CLIENT TRACKING ON REDIRECT 999",
            "-ERR The client ID you want redirect to does not exist",
        ),
        ("CLIENT TRACKING ON OPTIN", "+OK"),
        (
            "CLIENT CACHING NO",
            "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        ),
        ("CLIENT CACHING YES", "+OK"),
        (
            "CLIENT TRACKINGINFO",
            "[\"flags\" [\"on\" \"optin\" \"caching-yes\"] \"redirect\" :0 \"prefixes\" []]",
        ),
        (
            "CLIENT TRACKING ON BCAST",
            "-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        ),
        ("CLIENT TRACKING OFF", "+OK"),
        ("HELLO 3", ""),
        (
            "CLIENT TRACKING ON BCAST PREFIX user: PREFIX item: NOLOOP",
            "+OK",
        ),
        ("SET user:1 mine", "+OK"),
    ] {
        let reply = client.say(said);
        assert!(heard.is_empty() || reply == heard, "{said}: {reply}");
    }
    let mut other = world.client(2);
    assert_eq!(other.say("SET elsewhere 1"), "+OK");
    assert_eq!(other.say("SET item:1 1"), "+OK");
    assert_eq!(client.reply(), ">2");
    assert_eq!(client.reply(), "\"invalidate\"");
    assert_eq!(client.reply(), "[\"item:1\"]");
}

#[test]
fn what_happens_to_keys_is_published_to_all_nodes() {
    let world = world(1);
    let (mut listener, mut client) = (world.client(0), world.client(2));
    assert_eq!(
        world.client(1).say("CONFIG SET notify-keyspace-events KEA"),
        "+OK"
    );
    let told = "[\"notify-keyspace-events\" \"AKE\"]";
    assert_eq!(client.say("CONFIG GET notify-keyspace-events"), told);
    listener.say("PSUBSCRIBE __key*__:*");
    for (said, events) in [
        ("SET a 1", &[("set", "a")][..]),
        ("INCR a", &[("incrby", "a")]),
        ("APPEND a x", &[("append", "a")]),
        ("EXPIRE a 100", &[("expire", "a")]),
        ("PERSIST a", &[("persist", "a")]),
        ("RENAME a b", &[("rename_from", "a"), ("rename_to", "b")]),
        ("DEL b nothing", &[("del", "b")]),
        ("SADD s m n", &[("sadd", "s")]),
        ("SMOVE s t m", &[("srem", "s"), ("sadd", "t")]),
        ("SREM s n", &[("srem", "s"), ("del", "s")]),
        ("HSET h f v", &[("hset", "h")]),
        ("HDEL h nothing", &[]),
        ("XADD x 1-1 f v", &[("xadd", "x")]),
        ("XGROUP CREATE x g 0", &[("xgroup-create", "x")]),
        (
            "XREADGROUP GROUP g a STREAMS x >",
            &[("xgroup-createconsumer", "x")],
        ),
        ("XREADGROUP GROUP g a STREAMS x 0", &[]),
        ("XCLAIM x g b 0 1-1", &[("xgroup-createconsumer", "x")]),
        ("XAUTOCLAIM x g c 0 0", &[("xgroup-createconsumer", "x")]),
        ("XAUTOCLAIM x g c 0 0", &[]),
        (
            "SETEX short 1 v",
            &[("set", "short"), ("expire", "short"), ("expired", "short")],
        ),
    ] {
        client.say(said);
        for (event, key) in events {
            let pattern = "\"pmessage\" \"__key*__:*\"";
            let space = format!("[{pattern} \"__keyspace@0__:{key}\" \"{event}\"]");
            assert_eq!(listener.reply(), space, "{said}");
            let by_event = format!("[{pattern} \"__keyevent@0__:{event}\" \"{key}\"]");
            assert_eq!(listener.reply(), by_event, "{said}");
        }
    }
    assert_eq!(client.say("CONFIG SET notify-keyspace-events ''"), "+OK");
}
