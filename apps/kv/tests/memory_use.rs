//! What the memory of a store is used for, and what happens where it has a limit.

mod support;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;

fn serve(store: &Store<HeapMemory>) -> Server {
    let config = ServerConfig {
        addr: "127.0.0.1:0".parse().unwrap(),
        ..ServerConfig::default()
    };
    Server::bind(store.clone(), config).unwrap()
}

fn number(reply: &str) -> usize {
    reply.strip_prefix(':').unwrap().parse().unwrap()
}

/// A record in a page takes no memory of its own; all else that is given out for a key is counted.
#[test]
fn usage_is_what_the_memory_has_given_out() {
    const RECORD: usize = 128;
    let memory = HeapMemory::new(4096, 64 << 20, 1);
    let options = Options {
        buckets: 64,
        ..Options::default()
    };
    let store = Store::open(memory.clone(), options).unwrap();
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
