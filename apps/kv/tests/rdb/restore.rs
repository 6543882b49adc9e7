//! DUMP and RESTORE of a store and of a server of Redis: each takes what the other gives.

use std::net::SocketAddr;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::rdb::{Body, Entry, dump};
use rackmem_kv::snapshot::{self, LoadInto, Moment};
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

const ONE: &[u8] = b"#!lua name=one\nredis.register_function('f', function() return 1 end)";
const TWO: &[u8] = b"#!lua name=two\nredis.register_function('f', function() return 2 end)";

#[test]
fn libraries_go_both_ways() {
    let server = serve(&store(), ServerConfig::default());
    let mut ours = Client::connect(server.local_addr());
    let Some(mut theirs) = Redis::start(b"REDIS0010\xff\0\0\0\0\0\0\0\0") else {
        eprintln!("not compared: there is no redis-server here");
        return;
    };
    let dump: &[&[u8]] = &[b"FUNCTION", b"DUMP"];
    let none = ours.ask_bytes(dump).unwrap();
    theirs.ask_bytes(&[b"FUNCTION", b"LOAD", ONE]);
    ours.ask_bytes(&[b"FUNCTION", b"LOAD", TWO]);
    ours.ask(&["SET", "key", "value"]);
    let one = theirs.ask_bytes(dump).unwrap();
    let two = ours.ask_bytes(dump).unwrap();
    let key = ours.ask_bytes(&[b"DUMP", b"key"]).unwrap();
    let restore = |payload: &[u8], policy: &[&[u8]]| {
        let command: [&[u8]; 3] = [b"FUNCTION", b"RESTORE", payload];
        let words = command.iter().chain(policy);
        words.map(|word| word.to_vec()).collect::<Vec<_>>()
    };
    let call = vec![b"FCALL".to_vec(), b"f".to_vec(), b"0".to_vec()];
    for command in [
        restore(&one, &[b"FLUSH"]),
        call.clone(),
        restore(&one, &[]),
        restore(&one, &[b"replace"]),
        restore(&two, &[]),
        restore(&two, &[b"REPLACE"]),
        restore(&two, &[b"FLUSH"]),
        call,
        restore(&none, &[b"APPEND"]),
        restore(&one, &[b"NONSENSE"]),
        restore(b"", &[]),
        restore(&one[1..], &[]),
        restore(&key, &[]),
        restore(&none, &[b"FLUSH"]),
    ] {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let (have, want) = (ours.ask_bytes(&words), theirs.ask_bytes(&words));
        assert_eq!(
            have,
            want,
            "{:?}",
            words[2..].concat().escape_ascii().to_string()
        );
    }
}

#[test]
fn who_waits_for_a_key_is_served_by_what_is_restored_or_loaded() {
    let store = store();
    let server = serve(&store, ServerConfig::default());
    let mut other = Client::connect(server.local_addr());
    other.ask(&["RPUSH", "list", "element"]);
    let payload = other.ask_bytes(&[b"DUMP", b"list"]).unwrap();
    other.ask(&["DEL", "list"]);
    let (file, _) = snapshot::save(&filled(), Moment::Each, Vec::new(), |_| true).unwrap();
    let restore: &dyn Fn() = &|| {
        let mut client = Client::connect(server.local_addr());
        let restored = client.ask_bytes(&[b"RESTORE", b"list", b"0", &payload]);
        assert_eq!(restored.unwrap(), b"OK");
    };
    let load: &dyn Fn() = &|| {
        snapshot::load(&store, &file[..], LoadInto::Any, |_| true).unwrap();
    };
    for bring in [restore, load] {
        std::thread::scope(|scope| {
            let addr = server.local_addr();
            let waits = scope.spawn(move || Client::connect(addr).ask(&["BLPOP", "list", "0"]));
            while !other
                .ask(&["INFO", "clients"])
                .contains("blocked_clients:1")
            {
                std::thread::yield_now();
            }
            bring();
            assert_eq!(waits.join().unwrap(), "2");
        });
        assert_eq!(other.ask(&["EXISTS", "list"]), "0");
    }
}

/// A store with the list that somebody waits for.
fn filled() -> Heap {
    let store = store();
    let server = serve(&store, ServerConfig::default());
    Client::connect(server.local_addr()).ask(&["RPUSH", "list", "element"]);
    store
}

#[test]
fn a_payload_says_how_its_key_was_used() {
    let server = serve(&store(), ServerConfig::default());
    let mut client = Client::connect(server.local_addr());
    client.ask(&["SET", "a", "v"]);
    let payload = client.ask_bytes(&[b"DUMP", b"a"]).unwrap();
    let restore = |client: &mut Client, how: &[u8], number: &[u8]| {
        let ok = client.ask_bytes(&[b"RESTORE", b"a", b"0", &payload, b"REPLACE", how, number]);
        assert_eq!(ok.unwrap(), b"OK");
    };
    let policy = |client: &mut Client, policy| {
        assert_eq!(
            client.ask(&["CONFIG", "SET", "maxmemory-policy", policy]),
            "OK"
        );
    };
    assert!(
        client
            .ask(&["OBJECT", "FREQ", "a"])
            .starts_with("ERR An LFU")
    );
    policy(&mut client, "allkeys-lru");
    restore(&mut client, b"IDLETIME", b"1000");
    let idle = |client: &mut Client| client.ask(&["OBJECT", "IDLETIME", "a"]).parse::<u64>();
    assert!((1000..2000).contains(&idle(&mut client).unwrap()));
    client.ask(&["GET", "a"]);
    assert!(idle(&mut client).unwrap() < 1000);
    policy(&mut client, "volatile-lfu");
    assert!(
        client
            .ask(&["OBJECT", "IDLETIME", "a"])
            .starts_with("ERR An LFU")
    );
    restore(&mut client, b"FREQ", b"100");
    assert_eq!(client.ask(&["OBJECT", "FREQ", "a"]), "100");
}
