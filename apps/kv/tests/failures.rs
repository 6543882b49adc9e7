//! Nodes of a real rack over UDP die and come back under a store: whatever it answers is right,
//! or says what is lost.

mod support;

use rackmem::membership::{self, Role};
use rackmem::{Config, GroupStatus, Rack};
use rackmem_kv::{Clock, ExpireIf, Keys, Options, Plan, Server, ServerConfig, Store, Sweep};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::Client;

type NodeStore = Store<rackmem::Node>;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);
/// Longer than a keeper can be kept from its processor: no process is late for its lease, and an
/// operator says who is dead.
const LEASE: Duration = Duration::from_secs(16);
const BUCKETS: usize = 64;

struct Cluster {
    config: Config,
    folder: PathBuf,
}

impl Cluster {
    fn new(name: &str) -> Cluster {
        Cluster::with(name, "")
    }

    fn with(name: &str, further: &str) -> Cluster {
        let folder = std::env::temp_dir().join(format!("rackmem-kv-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses: Vec<String> = rackmem_hosts::addresses(3)
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let text = format!(
            "nodes = [{}]\nmembership = \"dir:{}\"\nlease_ms = {}\nmemory = {}\ncache = {}\npatience_ms = {}\n{further}",
            addresses.join(", "),
            folder.display(),
            LEASE.as_millis(),
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

    /// Says that a node is dead, as `rackmem members remove` does.
    fn bury(&self, id: u16) {
        let settings = &self.config.membership;
        let store = settings.source.open(&settings.name).unwrap().unwrap();
        membership::remove(&*store, Role::Node(id), LONG).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn open(rack: &Rack, id: usize) -> NodeStore {
    let options = Options {
        buckets: BUCKETS,
        most_buckets: BUCKETS,
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
        Err(error) => panic!("{key}: {error:?}"),
    }
}

/// Keys of every bucket, by its number: where a key lies depends on a seed that is another one in
/// every run, so that a test that counts on chance fails by chance.
fn keys_by_bucket(store: &NodeStore) -> BTreeMap<usize, Vec<String>> {
    let mut names = (0..).map(|n| format!("key:{n}"));
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    while found.len() < BUCKETS || found.values().any(|keys| keys.len() < PER_BUCKET) {
        names.by_ref().take(BUCKETS).for_each(|name| {
            store.set(name.as_bytes(), b"here").unwrap();
        });
        let mut cursor = 0;
        loop {
            let mut keys = Keys::default();
            cursor = store.first().scan(cursor, 1, &mut keys).unwrap();
            // A scan for one key ends with the first bucket that has any.
            let turned = |n: usize| n.reverse_bits() >> (usize::BITS - BUCKETS.ilog2());
            let bucket = turned((turned(cursor as usize) + BUCKETS - 1) % BUCKETS);
            let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
            if !keys.is_empty() {
                found.insert(bucket, keys.iter().map(text).collect());
            }
            if cursor == 0 {
                break;
            }
        }
    }
    store.first().flush().unwrap();
    found
        .values_mut()
        .for_each(|keys| keys.truncate(PER_BUCKET));
    found
}

/// The first key of a bucket has a short value, which lies in the bucket's page; the second one a
/// long value, in an extent of its own; the third one is what a transaction works on.
const PER_BUCKET: usize = 3;

fn value(key: usize, round: u8) -> Vec<u8> {
    vec![b'a' + round; [20, 6000, 20][key % PER_BUCKET]]
}

/// What a bucket goes through before node 2 dies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Node 2 has written to it, and no other node has looked since.
    Written,
    /// Node 2 is inside of it.
    Held,
    /// Other nodes have written to it and read from it.
    Elsewhere,
}

fn last(bucket: usize) -> Last {
    match bucket % 4 {
        0 => Last::Written,
        1 => Last::Held,
        _ => Last::Elsewhere,
    }
}

/// Three nodes, and a store at each.
fn three(cluster: &Cluster) -> (Vec<Option<Rack>>, Vec<NodeStore>) {
    let racks: Vec<Rack> = (0..3).map(|id| cluster.join(id)).collect();
    let stores = racks.iter().enumerate().map(|(id, rack)| open(rack, id));
    let stores = stores.collect();
    (racks.into_iter().map(Some).collect(), stores)
}

/// Where nodes keep copies of the names, they keep the store's superblock, too: it outlives node 0,
/// with what is at the others, and each of them in turn.
#[test]
fn a_store_outlives_any_node_where_names_have_copies() {
    let cluster = Cluster::with("any", "copies = 3");
    let (mut racks, mut stores) = three(&cluster);
    let buckets = keys_by_bucket(&stores[1]);
    for dies in 0..3 {
        // Who is back makes its copies anew from the others'.
        eventually("all copies are there", || {
            let groups = racks[1].as_ref().unwrap().node(1).groups();
            let whole = |group: &GroupStatus| {
                let mut copies = group.copies.iter();
                group.copies.len() == 3
                    && copies.all(|copy| copy.live && copy.counts && copy.filling.is_none())
            };
            groups.len() == 2 && groups.iter().all(whole)
        });
        let stay: Vec<usize> = (0..3).filter(|id| *id != dies).collect();
        for keys in buckets.values() {
            stores[stay[0]].set(keys[0].as_bytes(), b"here").unwrap();
            assert_eq!(
                ask(&stores[stay[1]], &keys[0]),
                Told::Value(b"here".to_vec())
            );
        }
        // The lock of those who flush was there last.
        stores[dies].db(1).unwrap().flush().unwrap();
        // What their users may do is read while all are there.
        let servers: Vec<Server> = stay.iter().map(|id| serve(&stores[*id])).collect();
        let dead = stores.remove(dies);
        drop(racks[dies].take());
        cluster.bury(dies as u16);
        for id in &stay {
            let node = racks[*id].as_ref().unwrap().node(*id);
            eventually("it is gone", || !node.is_member(dies as u16));
        }
        drop(dead);
        for store in &stores {
            // What it has of a lock that has died is given up when the next epoch begins.
            eventually("a part is away, and the rest is there", || {
                let told: Vec<Told> = buckets.values().map(|keys| ask(store, &keys[0])).collect();
                let count = |of: &Told| told.iter().filter(|told| *told == of).count();
                let there = count(&Told::Value(b"here".to_vec()));
                assert_eq!(count(&Told::Absent), 0);
                (BUCKETS / 2..BUCKETS).contains(&there)
            });
            let other = store.db(1).unwrap();
            let key = buckets
                .values()
                .map(|keys| keys[0].as_bytes())
                .find(|key| other.set(key, b"x").is_ok());
            other.flush().unwrap();
            let mut value = Vec::new();
            assert!(!other.get(key.unwrap(), &mut value).unwrap());
        }
        let mut subscriber = Client::new(servers[0].local_addr());
        subscriber.stream.set_read_timeout(Some(LONG)).unwrap();
        assert_eq!(
            subscriber.say("SUBSCRIBE news"),
            "[\"subscribe\" \"news\" :1]"
        );
        let mut publisher = Client::new(servers[1].local_addr());
        assert_eq!(publisher.say("PUBLISH news it"), ":1");
        assert_eq!(subscriber.reply(), "[\"message\" \"news\" \"it\"]");
        drop(servers);
        racks[dies] = Some(cluster.join(dies));
        stores.insert(dies, open(racks[dies].as_ref().unwrap(), dies));
        for keys in buckets.values() {
            assert_ne!(ask(&stores[dies], &keys[0]), Told::Away);
        }
    }
}

#[test]
fn a_dead_nodes_keys_say_so_and_are_absent_when_it_is_back() {
    let cluster = Cluster::new("death");
    let (mut racks, stores) = three(&cluster);
    let buckets = keys_by_bucket(&stores[0]);
    // The third key of a bucket is there only after node 2's death.
    let keys = |of: fn(Last) -> bool| {
        let buckets = buckets.iter().filter(move |(bucket, _)| of(last(**bucket)));
        buckets.flat_map(|(_, keys)| keys.iter().take(2).enumerate())
    };
    for (which, key) in keys(|_| true) {
        // A long value of node 2 would be away after its death, or, freed and used again,
        // one of node 1.
        let writers: &[usize] = if which == 0 { &[2, 1] } else { &[1] };
        for &writer in writers {
            let value = value(which, writer as u8);
            stores[writer].set(key.as_bytes(), &value).unwrap();
            assert_eq!(ask(&stores[0], key), Told::Value(value));
        }
    }
    assert_eq!(stores[1].first().len().unwrap(), 2 * BUCKETS);
    // Only the node that is going to die knows of these.
    for (which, key) in keys(|last| last == Last::Written) {
        stores[2].set(key.as_bytes(), &value(which, 9)).unwrap();
    }
    // It dies while it holds the buckets of these, and the right to flush.
    let of_transaction = |keys: &Vec<String>| keys[PER_BUCKET - 1].clone();
    let held = buckets
        .iter()
        .filter(|(bucket, _)| last(**bucket) == Last::Held);
    let held: Vec<(usize, String)> = held.map(|(n, keys)| (*n, of_transaction(keys))).collect();
    let names = held.iter().map(|(_, key)| key.as_bytes());
    let plan = Plan {
        flush: true,
        ..Plan::default()
    };
    std::mem::forget(stores[2].transaction(names, plan).unwrap());
    drop(racks[2].take());
    cluster.bury(2);
    let view = |racks: &[Option<Rack>]| racks[0].as_ref().unwrap().view().unwrap();
    for id in [0, 1] {
        let node = racks[id].as_ref().unwrap().node(id);
        eventually("node 2 is gone", || !node.is_member(2));
    }

    // Buckets whose home has died say so, all of their keys; what node 2 had last is gone;
    // all else is as it was written.
    let mut told = BTreeMap::new();
    let mut away = 0;
    for (bucket, keys) in &buckets {
        let of_bucket = keys.iter().take(2).map(|key| ask(&stores[bucket % 2], key));
        let of_bucket: Vec<Told> = of_bucket.collect();
        let home_died = of_bucket.contains(&Told::Away);
        away += usize::from(home_died);
        for (which, answer) in of_bucket.into_iter().enumerate() {
            let expected = match last(*bucket) {
                _ if home_died => Told::Away,
                Last::Written | Last::Held => Told::Absent,
                Last::Elsewhere => Told::Value(value(which, 1)),
            };
            assert_eq!(answer, expected, "bucket {bucket}, key {which}");
            told.insert(keys[which].clone(), answer);
        }
    }
    assert!(away > 0 && away < BUCKETS, "node 2 is the home of {away}");
    assert_eq!(stores[0].buckets_away(), away);
    let mut mended = 0;
    for (_, key) in &held {
        match stores[0].increment(key.as_bytes(), 1) {
            Ok(sum) => mended += sum as usize,
            Err(error) => assert_eq!(error.code(), "NODELOST", "{key}: {error}"),
        }
    }
    assert!(
        mended > 0 && mended < held.len(),
        "homes of held buckets: {mended} of {} are there",
        held.len()
    );
    let there = |told: &&Told| matches!(told, Told::Value(_));
    let present = told.values().filter(there).count() + mended;
    assert_eq!(stores[1].first().len().unwrap(), present);

    racks[2] = Some(cluster.join(2));
    let back = open(racks[2].as_ref().unwrap(), 2);
    eventually("node 2 is back", || view(&racks).live.contains(2));
    for (key, before) in &told {
        let now = [&stores[0], &stores[1], &back].map(|store| ask(store, key));
        let expected = match before {
            Told::Away => Told::Absent,
            other => other.clone(),
        };
        assert_eq!(now, [(); 3].map(|()| expected.clone()), "{key}");
    }
    assert_eq!(stores[0].buckets_away(), 0);
    for (nth, (which, key)) in keys(|_| true).enumerate() {
        let writer = [&stores[0], &stores[1], &back][nth % 3];
        writer.set(key.as_bytes(), &value(which, 3)).unwrap();
        assert_eq!(ask(&stores[1], key), Told::Value(value(which, 3)));
    }
    let losses = stores[0].losses().unwrap();
    assert!(losses.buckets > 0, "{losses:?}");
    assert_eq!(back.first().len().unwrap(), 2 * BUCKETS + mended);
    // The right to flush died with its holder, too.
    stores[1].first().flush_all().unwrap();
    let (key, _) = told.first_key_value().unwrap();
    assert_eq!(ask(&back, key), Told::Absent);
    assert_eq!(stores[0].first().len().unwrap(), 0);
}

/// Who has read a long value has it in its cache, and goes on reading it there after the node that
/// wrote it has died. Once another node has found out that it is lost it is lost for all.
#[test]
fn what_a_death_took_is_gone_for_all_once_one_has_found_out() {
    let cluster = Cluster::new("found-out");
    let (mut racks, stores) = three(&cluster);
    let buckets = keys_by_bucket(&stores[0]);
    let keys: Vec<&String> = buckets.values().map(|keys| &keys[1]).collect();
    let long = value(1, 2);
    for key in &keys {
        stores[2].set(key.as_bytes(), &long).unwrap();
        assert_eq!(ask(&stores[0], key), Told::Value(long.clone()));
    }
    drop(racks[2].take());
    cluster.bury(2);
    for id in [0, 1] {
        let node = racks[id].as_ref().unwrap().node(id);
        eventually("node 2 is gone", || !node.is_member(2));
    }
    racks[2] = Some(cluster.join(2));
    let back = open(racks[2].as_ref().unwrap(), 2);
    let view = |racks: &[Option<Rack>]| racks[0].as_ref().unwrap().view().unwrap();
    eventually("node 2 is back", || view(&racks).live.contains(2));
    let mut kept = 0;
    for key in &keys {
        let cached = ask(&stores[0], key);
        kept += usize::from(cached == Told::Value(long.clone()));
        let found = ask(&stores[1], key);
        assert_eq!(found, Told::Absent, "{key}: all of it was at node 2");
        assert_eq!(
            ask(&stores[0], key),
            Told::Absent,
            "{key}: {cached:?} before"
        );
        assert_eq!(ask(&back, key), Told::Absent, "{key}");
    }
    println!("node 0 had {kept} of {} in its cache", keys.len());
}

/// A node dies under a store with keys that expire. Sweeping goes on until there is nothing that it
/// can clean, and then hardly costs anything, whatever has died.
#[test]
fn sweeping_ends_after_a_death() {
    const TICK: u64 = 100;
    const MINUTE: u64 = 60_000;
    let cluster = Cluster::new("sweep");
    let mut racks: Vec<Option<Rack>> = (0..3).map(|id| Some(cluster.join(id))).collect();
    let time = Arc::new(AtomicU64::new(1_000_000));
    let open = |(id, rack): (usize, &Option<Rack>)| {
        let options = Options {
            buckets: BUCKETS,
            most_buckets: BUCKETS,
            clock: Clock::manual(time.clone()),
            ..Options::default()
        };
        Store::open(rack.as_ref().unwrap().node(id), options).unwrap()
    };
    let stores: Vec<NodeStore> = racks.iter().enumerate().map(open).collect();
    let expires_at = time.load(SeqCst) + 60 * MINUTE;
    for key in 0..200 {
        let name = format!("key:{key}");
        let db = stores[key % 3].first();
        db.set(name.as_bytes(), &value(key, 0)).unwrap();
        if key % 2 == 0 {
            let expires = db.expire(name.as_bytes(), expires_at, ExpireIf::default());
            assert!(expires.unwrap());
        }
    }
    drop(racks[2].take());
    cluster.bury(2);
    let nodes = [0, 1].map(|id: usize| racks[id].as_ref().unwrap().node(id));
    for node in &nodes {
        eventually("node 2 is gone", || !node.is_member(2));
    }
    let mut sweeps = [(); 2].map(|()| Sweep::default());
    // Buckets that were looked at and cleaned, and packets that this has taken.
    let mut sweep_for = |minutes: u64| {
        let sent = || -> u64 { nodes.iter().map(|node| node.metrics().sent.total()).sum() };
        let (mut looked, mut cleaned, before) = (0, 0, sent());
        for _ in 0..minutes * MINUTE / TICK {
            time.fetch_add(TICK, SeqCst);
            for (store, sweep) in stores.iter().zip(&mut sweeps) {
                // What fails because of the death is tried again.
                let Ok(swept) = store.sweep(sweep, BUCKETS) else {
                    looked += 1;
                    continue;
                };
                (looked, cleaned) = (looked + swept.looked, cleaned + swept.cleaned);
            }
        }
        (looked, cleaned, sent() - before)
    };
    // Two or three rounds of both nodes, and one for each ten minutes.
    let (looked, cleaned, _) = sweep_for(30);
    assert!(looked < 12 * BUCKETS && cleaned == 0, "{looked}, {cleaned}");
    let (looked, cleaned, packets) = sweep_for(20);
    assert!(looked <= 3 * BUCKETS && cleaned == 0, "{looked}, {cleaned}");
    assert!(packets < 2_000, "{packets}");
    // Keys expire: those that are there go at once, and what is away costs as little as before.
    let (_, cleaned, _) = sweep_for(12);
    assert!(cleaned > 0);
    sweep_for(30);
    let (looked, _, packets) = sweep_for(30);
    assert!(
        looked <= 6 * BUCKETS && packets < 2_000,
        "{looked}, {packets}"
    );
}

fn serve(store: &NodeStore) -> Server {
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    Server::bind(store.clone(), config).unwrap()
}

#[test]
fn who_waits_is_woken_after_a_death_and_subscribers_are_told_that_they_may_have_missed_some() {
    const WAITING: usize = 6;
    let cluster = Cluster::new("bus");
    let (mut racks, stores) = three(&cluster);
    let servers: Vec<Server> = stores.iter().map(serve).collect();
    let client = |node: usize| {
        let client = Client::new(servers[node].local_addr());
        client.stream.set_read_timeout(Some(LONG)).unwrap();
        client
    };
    let mut subscriber = client(0);
    assert_eq!(
        subscriber.say("SUBSCRIBE news"),
        "[\"subscribe\" \"news\" :1]"
    );
    assert_eq!(client(2).say("PUBLISH news first"), ":1");
    assert_eq!(subscriber.reply(), "[\"message\" \"news\" \"first\"]");
    let mut waiting: Vec<Client> = (0..WAITING)
        .map(|key| {
            let mut waits = client(0);
            waits.send(&[b"BLPOP", format!("queue:{key}").as_bytes(), b"0"]);
            waits
        })
        .collect();
    let mut other = client(1);
    eventually("all wait", || {
        let info = client(0).say("INFO clients");
        info.contains(&format!("blocked_clients:{WAITING}"))
    });
    drop(racks[2].take());
    cluster.bury(2);
    for id in [0, 1] {
        let node = racks[id].as_ref().unwrap().node(id);
        eventually("node 2 is gone", || !node.is_member(2));
    }
    assert!(subscriber.ended(), "it may have missed a message");
    let mut woken = 0;
    for (key, waits) in waiting.iter_mut().enumerate() {
        let pushed = other.say(&format!("RPUSH queue:{key} element"));
        if pushed == ":1" {
            woken += 1;
            assert_eq!(waits.reply(), format!("[\"queue:{key}\" \"element\"]"));
        } else {
            // Its bucket was at node 2.
            assert!(pushed.contains("NODELOST"), "{pushed}");
        }
    }
    assert!(woken > 0, "none of {WAITING} keys is at a node that lives");
    let mut again = client(0);
    again.say("SUBSCRIBE news");
    assert_eq!(other.say("PUBLISH news second"), ":1");
    assert_eq!(again.reply(), "[\"message\" \"news\" \"second\"]");
}
