//! DUMP and RESTORE of a store and of a server of Redis: each takes what the other gives.

use std::net::SocketAddr;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::rdb::{Body, Entry, dump};
use rackmem_kv::{Options, Server, ServerConfig, Store};

use crate::redis::{Client, Redis};
use crate::{file, keys, shown, value};

/// A store in this process.
pub type Heap = Store<HeapMemory>;

pub fn store() -> Heap {
    let options = Options {
        buckets: 64,
        ..Options::default()
    };
    Store::open(HeapMemory::new(1024, 64 << 20, 1), options).unwrap()
}

pub fn serve(store: &Heap, config: ServerConfig) -> Server {
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::bind(store.clone(), ServerConfig { addr, ..config }).unwrap()
}

#[test]
fn values_go_both_ways() {
    let server = serve(&store(), ServerConfig::default());
    let mut ours = Client::connect(server.local_addr());
    let mut theirs = Redis::start(b"REDIS0010\xff\0\0\0\0\0\0\0\0");
    if theirs.is_none() {
        eprintln!("one way only: there is no redis-server here");
    }
    for (_, entry) in keys(&file("redis-7")).unwrap() {
        let Entry {
            key,
            value: original,
            ..
        } = entry;
        let mut payload = dump::payload(Body::from(&original));
        if let Some(theirs) = &mut theirs {
            let ok = theirs.ask_bytes(&[b"RESTORE", &key, b"0", &payload]);
            assert_eq!(ok.as_deref(), Some(&b"OK"[..]));
            payload = theirs.ask_bytes(&[b"DUMP", &key]).unwrap();
        }
        let ok = ours.ask_bytes(&[b"RESTORE", &key, b"0", &payload]);
        assert_eq!(ok.as_deref(), Some(&b"OK"[..]), "{:?}", key.escape_ascii());
        let payload = ours.ask_bytes(&[b"DUMP", &key]).unwrap();
        let name = key.escape_ascii().to_string();
        shown::assert_same(&shown::of(&value(&payload)), &shown::of(&original), &name);
        if let Some(theirs) = &mut theirs {
            let ok = theirs.ask_bytes(&[b"RESTORE", &key, b"0", &payload, b"REPLACE"]);
            assert_eq!(ok.as_deref(), Some(&b"OK"[..]));
        }
    }
}

#[test]
fn restore_answers_as_redis_does() {
    let Some(mut theirs) = Redis::start(b"REDIS0010\xff\0\0\0\0\0\0\0\0") else {
        eprintln!("skipped: there is no redis-server here");
        return;
    };
    let server = serve(&store(), ServerConfig::default());
    let mut ours = Client::connect(server.local_addr());
    let one = dump::payload(Body::string(b"one"));
    let list = {
        let mut body = Body::list(1);
        body.element(b"x");
        dump::payload(body)
    };
    let empty = dump::payload(Body::list(0));
    let short = dump::payload(Body::list(2));
    let mut damaged = one.clone();
    damaged[2] ^= 1;
    let commands: &[&[&[u8]]] = &[
        &[b"DUMP", b"nothing"],
        &[b"RESTORE", b"k", b"0", &one],
        &[b"GET", b"k"],
        &[b"RESTORE", b"k", b"0", &one],
        &[b"RESTORE", b"k", b"nonsense", &damaged],
        &[b"RESTORE", b"k", b"nonsense", &damaged, b"REPLACE"],
        &[b"RESTORE", b"k", b"-1", &one, b"REPLACE"],
        &[b"RESTORE", b"k", b"0", &damaged, b"REPLACE"],
        &[b"RESTORE", b"k", b"0", b"", b"REPLACE"],
        &[b"RESTORE", b"k", b"0", &empty, b"REPLACE"],
        &[b"RESTORE", b"k", b"0", &short, b"REPLACE"],
        &[b"GET", b"k"],
        &[b"RESTORE", b"k", b"0", &list, b"REPLACE"],
        &[b"TYPE", b"k"],
        &[b"PTTL", b"k"],
        &[
            b"RESTORE",
            b"k",
            b"4102444800123",
            &list,
            b"ABSTTL",
            b"replace",
        ],
        &[b"PEXPIRETIME", b"k"],
        &[b"RESTORE", b"k", b"1", &list, b"ABSTTL", b"REPLACE"],
        &[b"EXISTS", b"k"],
        &[b"RESTORE", b"k", b"1", &one, b"ABSTTL"],
        &[b"EXISTS", b"k"],
        &[b"RESTORE", b"k", b"0", &one, b"IDLETIME", b"10"],
        &[b"RESTORE", b"l", b"0", &one, b"FREQ", b"255"],
        &[b"RESTORE", b"m", b"0", &one, b"FREQ", b"256"],
        &[b"RESTORE", b"m", b"0", &one, b"FREQ", b"x"],
        &[b"RESTORE", b"m", b"0", &one, b"IDLETIME", b"-1"],
        &[b"RESTORE", b"m", b"0", &one, b"IDLETIME"],
        &[
            b"RESTORE",
            b"m",
            b"0",
            &one,
            b"IDLETIME",
            b"1",
            b"FREQ",
            b"1",
        ],
        &[b"RESTORE", b"m", b"0", &one, b"NONSENSE"],
        &[b"RESTORE", b"m", b"0"],
        &[b"DBSIZE"],
    ];
    for command in commands {
        let (have, want) = (ours.ask_bytes(command), theirs.ask_bytes(command));
        let shown =
            |answer: &Option<Vec<u8>>| answer.as_ref().map(|a| a.escape_ascii().to_string());
        let words: Vec<_> = command
            .iter()
            .map(|w| w.escape_ascii().to_string())
            .collect();
        assert_eq!(shown(&have), shown(&want), "{words:?}");
    }
}
