//! What the memory of a store is used for, and what happens where it has a limit.

mod support;

use std::time::Duration;

use rackmem::{Fabric, Mode, Rack};
use rackmem_kv::memory::{HeapMemory, Memory};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;
use support::talk::converse;

fn serve<M: Memory>(store: &Store<M>) -> Server {
    let config = ServerConfig {
        addr: "127.0.0.1:0".parse().unwrap(),
        ..ServerConfig::default()
    };
    Server::bind(store.clone(), config).unwrap()
}

fn open<M: Memory>(memory: &M) -> Store<M> {
    let options = Options {
        buckets: 64,
        ..Options::default()
    };
    Store::open(memory.clone(), options).unwrap()
}

fn number(reply: &str) -> usize {
    reply.strip_prefix(':').unwrap().parse().unwrap()
}

/// A record in a page takes no memory of its own; all else that is given out for a key is counted.
#[test]
fn usage_is_what_the_memory_has_given_out() {
    const RECORD: usize = 128;
    let memory = HeapMemory::new(4096, 64 << 20, 1);
    let store = open(&memory);
    let server = serve(&store);
    let mut client = Client::new(server.local_addr());
    for fill in [
        "for i = 1, 20000 do redis.call('RPUSH', KEYS[1], i) end",
        "for i = 1, 20000 do redis.call('SADD', KEYS[1], i) end",
        "for i = 1, 20000 do redis.call('HSET', KEYS[1], i, 'value ' .. i) end",
        "for i = 1, 20000 do redis.call('ZADD', KEYS[1], i % 7, i) end",
        "for i = 1, 5000 do redis.call('XADD', KEYS[1], i, 'field', i) end",
        "redis.call('SETRANGE', KEYS[1], 100000, 'x')",
    ] {
        let before = memory.live_bytes();
        assert_eq!(client.say("MEMORY USAGE key"), "nil");
        assert_eq!(
            client.call(&[b"EVAL", fill.as_bytes(), b"1", b"key"]),
            "nil"
        );
        let given = memory.live_bytes() - before;
        let usage = number(&client.say("MEMORY USAGE key SAMPLES 5"));
        assert!(given > 10_000, "{given} {fill}");
        assert!(
            (given..given + RECORD).contains(&usage),
            "{usage} bytes of {given}: {fill}"
        );
        assert_eq!(client.say("DEL key"), ":1");
        assert_eq!(memory.live_bytes(), before, "{fill}");
    }
    for (words, reply) in [
        ("SAMPLES", "-ERR syntax error"),
        ("SAMPLES x", "-ERR value is not an integer or out of range"),
        ("SAMPLES -1", "-ERR syntax error"),
        ("OTHER 5", "-ERR syntax error"),
        ("SAMPLES 0", "nil"),
    ] {
        assert_eq!(client.say(&format!("MEMORY USAGE none {words}")), reply);
    }
}

/// Looks, ten milliseconds apart, for what another node tells.
const LOOKS: usize = 6000;
const REFUSED: &str = "-OOM command not allowed when used memory > 'maxmemory'.";

#[test]
fn what_adds_something_is_refused_over_the_limit() {
    let memory = HeapMemory::new(4096, 64 << 20, 1);
    let server = serve(&open(&memory));
    let mut client = Client::new(server.local_addr());
    let conversation = "
        > SETRANGE long 100000 x
        < :100001
        > CONFIG GET maxmemory
        < [\"maxmemory\" \"0\"]
        > CONFIG SET maxmemory 1tb
        < -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
        > CONFIG SET maxmemory 10kb
        < +OK
        > CONFIG GET maxmemory
        < [\"maxmemory\" \"10240\"]
        > SET a b
        < REFUSED
        > LPUSH list a
        < REFUSED
        > GET a
        < nil
        > EXPIRE long 1000
        < :1
        > EVAL \"return redis.pcall('SET', KEYS[1], 'x').err\" 1 a
        < \"OOM command not allowed when used memory > 'maxmemory'.\"
        > EVAL \"#!lua\\nreturn redis.call('SET', KEYS[1], 'x')\" 1 a
        < REFUSED
        > EVAL \"#!lua flags=allow-oom\\nreturn redis.call('SET', KEYS[1], 'x')\" 1 a
        < +OK
        > FUNCTION LOAD \"#!lua name=l\\nredis.register_function('f', function() return 1 end)\"
        < REFUSED
        > MULTI
        < +OK
        > SET b c
        < REFUSED
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > DEL long
        < :1
        > SET a b
        < +OK
        > CONFIG SET maxmemory 0
        < +OK
        > SETRANGE long 100000 x
        < :100001
        > CONFIG SET maxmemory 10kb maxmemory-policy allkeys-random
        < +OK
        > EXISTS long
        < :0
        > CONFIG SET maxmemory 0 maxmemory-policy noeviction
        < +OK
        > SETRANGE long 100000 x
        < :100001
        ";
    converse(&mut client, &conversation.replace("REFUSED", REFUSED));
    let info = client.say("INFO memory");
    assert!(info.contains("maxmemory:0"), "{info}");
}

#[test]
fn who_listens_hears_of_keys_that_make_room() {
    let memory = HeapMemory::new(4096, 64 << 20, 1);
    let server = serve(&open(&memory));
    let mut client = Client::new(server.local_addr());
    let mut listener = Client::new(server.local_addr());
    client.say("SELECT 9");
    client.say("CONFIG SET notify-keyspace-events KEe maxmemory-policy allkeys-lru");
    listener.say("PSUBSCRIBE __key*@9__:*");
    client.say("SET foo bar");
    client.say("CONFIG SET maxmemory 1");
    let told = [
        "[\"pmessage\" \"__key*@9__:*\" \"__keyspace@9__:foo\" \"evicted\"]",
        "[\"pmessage\" \"__key*@9__:*\" \"__keyevent@9__:evicted\" \"foo\"]",
    ];
    assert_eq!([listener.reply(), listener.reply()], told);
    client.say("CONFIG SET maxmemory 0");
    // Where nobody wants to hear of them nothing is told.
    client.say("CONFIG SET notify-keyspace-events KE$");
    client.say("SET foo bar");
    client.say("CONFIG SET maxmemory 1");
    assert_eq!(client.say("EXISTS foo"), ":0");
    client.say("CONFIG SET maxmemory 0");
    client.say("SET other x");
    let heard = [(); 4].map(|()| listener.reply());
    assert!(
        heard.iter().all(|heard| !heard.contains("evicted")),
        "{heard:?}"
    );
    assert!(heard[3].contains("other"), "{heard:?}");
}

/// What two nodes write together stays within what the rack may keep, and fills it.
#[test]
fn a_rack_stays_under_its_limit() {
    const ROOM: usize = 8 << 20;
    let builder = Rack::builder(2).mode(Mode::Switch).fabric(Fabric::Inline);
    let rack = builder.memory(128 << 20).build().unwrap();
    let stores: Vec<_> = rack.nodes().iter().map(open).collect();
    let used = || stores.iter().map(Store::used_bytes).sum::<usize>();
    let servers: Vec<_> = stores.iter().map(serve).collect();
    let clients = servers
        .iter()
        .map(|server| Client::new(server.local_addr()));
    let mut clients: Vec<_> = clients.collect();
    let limit = used() + ROOM;
    let set = format!("CONFIG SET maxmemory {limit}");
    assert_eq!(clients[0].say(&set), "+OK");
    let policy = clients[1].say("CONFIG SET maxmemory-policy allkeys-random");
    assert_eq!(policy, "+OK");
    for client in &mut clients {
        // The other node learns both within a tick.
        let told = format!("[\"maxmemory-policy\" \"allkeys-random\" \"maxmemory\" \"{limit}\"]");
        let mut looks = 0;
        while client.say("CONFIG GET maxmemory maxmemory-policy") != told {
            looks += 1;
            assert!(looks < LOOKS, "it is not told");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let (value, mut most) = (vec![b'v'; 8 << 10], 0);
    for i in 0..5000 {
        let key = format!("key:{i}");
        let reply = clients[i % 2].call(&[b"SET", key.as_bytes(), &value]);
        assert_eq!(reply, "+OK");
        most = most.max(used());
    }
    assert!(most <= limit + limit / 20, "{most} of {limit}");
    let kept = number(&clients[0].say("DBSIZE")) * value.len();
    assert!(kept > ROOM / 2, "{kept} of {ROOM}");
    let evicted = clients[1].say("INFO stats");
    assert!(!evicted.contains("evicted_keys:0"), "{evicted}");
}

/// Twenty keys, and then two thousand others, for which there is not room, under each policy.
fn hot_among_cold(
    policies: [&str; 2],
    written: impl Fn(&mut Client, &str),
    between: impl Fn(&mut Client, usize),
    after: impl Fn(&mut Client, &str),
) {
    let memory = HeapMemory::new(4096, 64 << 20, 1);
    let server = serve(&open(&memory));
    let mut client = Client::new(server.local_addr());
    let value = vec![b'v'; 8 << 10];
    for policy in policies {
        let settings = format!("CONFIG SET maxmemory 4mb maxmemory-policy {policy}");
        assert_eq!(client.say(&settings), "+OK");
        // With five samples all are of the latest tenth, those read among them, once in 10^5 times:
        // one run of thirty would lose one. With twenty none will.
        assert_eq!(client.say("CONFIG SET maxmemory-samples 20"), "+OK");
        let set = |client: &mut Client, key: &str| {
            client.call(&[b"SET", key.as_bytes(), &value, b"EX", b"1000"])
        };
        for i in 0..20 {
            let key = format!("hot:{i}");
            assert_eq!(set(&mut client, &key), "+OK");
            written(&mut client, &key);
        }
        for i in 0..2000 {
            assert_eq!(set(&mut client, &format!("cold:{i}")), "+OK");
            between(&mut client, i);
        }
        after(&mut client, policy);
        let left = number(&client.say("DBSIZE"));
        assert!((100..600).contains(&left), "{left}");
        assert_eq!(client.say("FLUSHALL"), "+OK");
    }
}

#[test]
fn what_is_read_survives() {
    let read = |client: &mut Client, i: usize| {
        let hot = format!("GET hot:{}", i % 20);
        assert_ne!(client.say(&hot), "nil", "{hot}");
    };
    hot_among_cold(["allkeys-lru", "volatile-lru"], |_, _| {}, read, |_, _| {});
}

/// Under LFU what was used often stays, though all others were used later.
#[test]
fn what_is_used_often_survives() {
    let use_often = |client: &mut Client, key: &str| {
        for _ in 0..200 {
            client.say(&format!("STRLEN {key}"));
        }
        assert!(number(&client.say(&format!("OBJECT FREQ {key}"))) > 5);
    };
    let all_there = |client: &mut Client, policy: &str| {
        for i in 0..20 {
            assert_eq!(client.say(&format!("EXISTS hot:{i}")), ":1", "{policy} {i}");
        }
    };
    let policies = ["allkeys-lfu", "volatile-lfu"];
    hot_among_cold(policies, use_often, |_, _| {}, all_there);
}
