//! Nodes of a real rack over UDP die and come back under a store: whatever it answers is right, or says what is lost.

use rackmem::{Config, Rack};
use rackmem_kv::{Options, Plan, Store};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::{Duration, Instant};

type NodeStore = Store<rackmem::Node>;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(40);
const KEYS: usize = 120;

struct Cluster {
    config: Config,
    folder: PathBuf,
}

impl Cluster {
    fn new(name: &str) -> Cluster {
        let folder = std::env::temp_dir().join(format!("rackmem-kv-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let sockets: Vec<UdpSocket> = (0..3)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let addresses: Vec<String> = sockets
            .iter()
            .map(|socket| format!("\"{}\"", socket.local_addr().unwrap()))
            .collect();
        let text = format!(
            "nodes = [{}]\nmembership = \"dir:{}\"\nlease_ms = 1500\nmemory = {}\ncache = {}\npatience_ms = {}",
            addresses.join(", "),
            folder.display(),
            128 << 20,
            8 << 20,
            LONG.as_millis(),
        );
        Cluster {
            config: Config::parse(&text).unwrap(),
            folder,
        }
    }

    fn join(&self, id: usize) -> Rack {
        Rack::join(&self.config, id).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn open(rack: &Rack, id: usize) -> NodeStore {
    let options = Options {
        buckets: 64,
        ..Options::default()
    };
    Store::open(rack.node(id), options).unwrap()
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Value(Vec<u8>),
    Absent,
    Away,
}

fn ask(store: &NodeStore, key: &str) -> Told {
    let mut value = Vec::new();
    match store.get(key.as_bytes(), &mut value) {
        Ok(true) => Told::Value(value),
        Ok(false) => Told::Absent,
        Err(error) if error.code() == "NODELOST" => Told::Away,
        Err(error) => panic!("{key}: {error}"),
    }
}

/// Short values lie in their page, long ones in an extent of their own.
fn value(key: usize, round: u8) -> Vec<u8> {
    let len = if key.is_multiple_of(5) { 6000 } else { 20 };
    vec![b'a' + round + (key % 7) as u8; len]
}

#[test]
fn a_dead_nodes_keys_say_so_and_are_absent_when_it_is_back() {
    let cluster = Cluster::new("death");
    let mut racks: Vec<Option<Rack>> = (0..3).map(|id| Some(cluster.join(id))).collect();
    let stores: Vec<NodeStore> = racks
        .iter()
        .enumerate()
        .map(|(id, rack)| open(rack.as_ref().unwrap(), id))
        .collect();
    let name = |key: usize| format!("key:{key}");
    for key in 0..KEYS {
        let writer = &stores[key % 3];
        writer.set(name(key).as_bytes(), &value(key, 0)).unwrap();
        assert_eq!(ask(&stores[0], &name(key)), Told::Value(value(key, 0)));
    }
    assert_eq!(stores[1].first().len().unwrap(), KEYS);
    // Only the node that is going to die knows of these.
    for key in (0..KEYS).filter(|key| key.is_multiple_of(4)) {
        stores[2].set(name(key).as_bytes(), &value(key, 9)).unwrap();
    }
    // It dies while it holds the buckets of these, and the right to flush.
    let held: Vec<String> = (0..8).map(|n| format!("held:{n}")).collect();
    let keys = held.iter().map(|key| key.as_bytes());
    let plan = Plan {
        flush: true,
        ..Plan::default()
    };
    std::mem::forget(stores[2].transaction(keys, plan).unwrap());
    drop(racks[2].take());
    let view = |racks: &[Option<Rack>]| racks[0].as_ref().unwrap().view().unwrap();
    eventually("node 2 is gone", || !view(&racks).live.contains(2));

    let mut told = BTreeMap::new();
    for key in 0..KEYS {
        let answer = ask(&stores[key % 2], &name(key));
        if let Told::Value(found) = &answer {
            let last = if key.is_multiple_of(4) { 9 } else { 0 };
            assert_eq!(
                found,
                &value(key, last),
                "{key} is not what was last written"
            );
        }
        told.insert(key, answer);
    }
    let count = |told: &BTreeMap<usize, Told>, want: fn(&Told) -> bool| {
        told.values().filter(|told| want(told)).count()
    };
    let away = |told: &Told| *told == Told::Away;
    let there = |told: &Told| matches!(told, Told::Value(_));
    assert!(count(&told, away) > KEYS / 5, "{told:?}");
    assert!(count(&told, there) > KEYS / 5, "{told:?}");
    let mut mended = 0;
    for key in &held {
        match stores[0].increment(key.as_bytes(), 1) {
            Ok(sum) => mended += sum,
            Err(error) => assert_eq!(error.code(), "NODELOST", "{key}: {error}"),
        }
    }
    assert!(
        mended > 0,
        "all held buckets were in the dead node's memory"
    );
    // A key counts as long as its bucket is there, though its value may be away.
    let known = |key: &usize| matches!(stores[1].first().meta(name(*key).as_bytes()), Ok(Some(_)));
    let present = (0..KEYS).filter(known).count() + mended as usize;
    assert_eq!(stores[1].first().len().unwrap(), present);

    racks[2] = Some(cluster.join(2));
    let back = open(racks[2].as_ref().unwrap(), 2);
    eventually("node 2 is back", || view(&racks).live.contains(2));
    for (key, before) in &told {
        let now = [&stores[0], &stores[1], &back].map(|store| ask(store, &name(*key)));
        let expected = match before {
            Told::Away => Told::Absent,
            other => other.clone(),
        };
        assert_eq!(now, [(); 3].map(|()| expected.clone()), "{key}");
    }
    for key in 0..KEYS {
        let writer = [&stores[0], &stores[1], &back][key % 3];
        writer.set(name(key).as_bytes(), &value(key, 3)).unwrap();
        assert_eq!(ask(&stores[1], &name(key)), Told::Value(value(key, 3)));
    }
    let losses = stores[0].losses().unwrap();
    assert!(losses.buckets > 0, "{losses:?}");
    let kept = held
        .iter()
        .filter(|key| matches!(ask(&back, key), Told::Value(_)));
    assert_eq!(back.first().len().unwrap(), KEYS + kept.count());
    // The right to flush died with its holder, too.
    stores[1].first().flush_all().unwrap();
    assert_eq!(ask(&back, "key:1"), Told::Absent);
    assert_eq!(stores[0].first().len().unwrap(), 0);
}
