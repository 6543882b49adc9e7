//! Files into stores, and stores into files.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::rdb::{Body, Entry, Writer};
use rackmem_kv::snapshot::{self, LoadCause, LoadError, LoadInto, Loaded, Moment, SaveError};
use rackmem_kv::{Error, Options, Plan, Server, ServerConfig, Store};

use crate::redis::{Client, Redis};
use crate::restore::{Heap, serve, store};
use crate::{FILES, file, keys, shown, without_active, written};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("rackmem-snapshots-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn load(store: &Heap, bytes: &[u8], into: LoadInto) -> Result<Loaded, LoadError> {
    snapshot::load(store, bytes, into, |_| true)
}

fn save(store: &Heap, moment: Moment) -> Vec<u8> {
    let (bytes, saved) = snapshot::save(store, moment, Vec::new(), |_| true).unwrap();
    assert_eq!(saved.keys as usize, keys(&bytes).unwrap().len());
    bytes
}

fn all(name: &str) -> Vec<(u64, Entry)> {
    keys(&file(name)).unwrap()
}

#[test]
fn what_is_loaded_is_saved() {
    for name in FILES {
        let store = store();
        let original = all(name);
        let loaded = load(&store, &written(&original), LoadInto::Empty).unwrap();
        assert_eq!(loaded.keys as usize, original.len());
        assert_eq!(loaded.expired, 0);
        let want = without_active(&shown::all(original));
        for moment in [Moment::Each, Moment::All] {
            let saved = save(&store, moment);
            shown::assert_same(&shown::all(keys(&saved).unwrap()), &want, name);
        }
    }
}

#[test]
fn long_collections_are_loaded_part_by_part() {
    let count = 30_000;
    let element = |number: usize| format!("{number:060}").into_bytes();
    let mut list = Body::list(count);
    let mut hash = Body::hash(count);
    for number in 0..count {
        list.element(&element(number));
        hash.element(&element(number));
        hash.element(&element(count - number));
    }
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.key(0, b"list", None, &list).unwrap();
    writer.key(0, b"over", Some(1), &list).unwrap();
    writer
        .key(1, b"hash", Some(4_102_444_800_123), &hash)
        .unwrap();
    let bytes = writer.finish().unwrap();
    let store = store();
    let loaded = load(&store, &bytes, LoadInto::Empty).unwrap();
    assert_eq!((loaded.keys, loaded.expired), (2, 1));
    let original = keys(&bytes).unwrap();
    let saved = keys(&save(&store, Moment::Each)).unwrap();
    let live = original
        .into_iter()
        .filter(|(_, entry)| entry.key != b"over");
    shown::assert_same(&shown::all(saved), &shown::all(live.collect()), "parts");
}

#[test]
fn a_store_with_keys_is_refused_unless_told() {
    let store = store();
    store.db(7).unwrap().set(b"mine", b"kept").unwrap();
    store.set(b"both", b"mine").unwrap();
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer
        .key(0, b"both", None, &Body::string(b"theirs"))
        .unwrap();
    let bytes = writer.finish().unwrap();
    let error = load(&store, &bytes, LoadInto::Empty).unwrap_err();
    assert!(matches!(error.cause, LoadCause::NotEmpty(2)), "{error}");
    load(&store, &bytes, LoadInto::Any).unwrap();
    let mut value = Vec::new();
    assert!(store.get(b"both", &mut value).unwrap());
    assert_eq!(value, b"theirs");
    assert!(store.db(7).unwrap().get(b"mine", &mut value).unwrap());
}

#[test]
fn errors_name_the_place_and_the_key() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.key(0, b"first", None, &Body::string(b"x")).unwrap();
    let second = writer.written();
    writer
        .key(0, &[b'k'; 5000], None, &Body::string(b"y"))
        .unwrap();
    let bytes = writer.finish().unwrap();
    let error = load(&store(), &bytes, LoadInto::Empty).unwrap_err();
    assert_eq!(error.offset, second);
    assert!(matches!(error.cause, LoadCause::Store(_)));
    assert!(
        error.to_string().contains("key of 5000 bytes is too long"),
        "{error}"
    );

    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.key(16, b"far", None, &Body::string(b"x")).unwrap();
    let error = load(&store(), &writer.finish().unwrap(), LoadInto::Empty).unwrap_err();
    assert!(
        error.to_string().contains("key 'far': database 16"),
        "{error}"
    );

    let mut bytes = written(&all("redis-7"));
    bytes.truncate(bytes.len() / 2);
    let error = load(&store(), &bytes, LoadInto::Empty).unwrap_err();
    assert!(error.offset <= bytes.len() as u64 && error.offset > 0);
    assert!(error.to_string().contains("end too early"), "{error}");
}

/// A disk that is full after so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => self.0 = left,
            None => return Err(io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_snapshot_that_fails_leaves_the_old_one() {
    let store = store();
    store.set(b"a", &[7; 3000]).unwrap();
    let folder = Folder::new("fails");
    let path = folder.0.join("dump.rdb");
    snapshot::save_file(&store, Moment::Each, &path, |_| true).unwrap();
    let old = std::fs::read(&path).unwrap();
    store.set(b"b", b"more").unwrap();
    let stopped = snapshot::save_file(&store, Moment::Each, &path, |_| false);
    assert!(matches!(stopped, Err(SaveError::Stopped)));
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(folder.files(), 1);
    snapshot::save_file(&store, Moment::All, &path, |_| true).unwrap();
    assert_eq!(keys(&std::fs::read(&path).unwrap()).unwrap().len(), 2);
    assert_eq!(folder.files(), 1);

    let full = snapshot::save(&store, Moment::All, Full(1000), |_| true);
    assert!(matches!(full, Err(SaveError::Io(_))));
    let nowhere = folder.0.join("none/dump.rdb");
    let nowhere = snapshot::save_file(&store, Moment::Each, &nowhere, |_| true);
    assert!(matches!(nowhere, Err(SaveError::Io(_))));
    // The store goes on.
    store.set(b"c", b"x").unwrap();
}

/// One moment for all keys shows no half of a transaction; a moment for each shows every key that
/// stays, once.
#[test]
fn snapshots_while_others_write() {
    let store = store();
    let fixed: Vec<_> = (0..300)
        .map(|i| format!("fixed:{i}").into_bytes())
        .collect();
    for key in &fixed {
        store.set(key, b"x").unwrap();
    }
    let pair: [&[u8]; 2] = [b"one", b"two"];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0u64;
            while !over.load(Ordering::Relaxed) {
                number += 1;
                let text = number.to_string();
                let transaction = store.transaction(pair, Plan::default()).unwrap();
                let db = transaction.db(0).unwrap();
                db.set(pair[0], text.as_bytes()).unwrap();
                db.set(pair[1], text.as_bytes()).unwrap();
                drop(transaction);
                store
                    .set(format!("passing:{}", number % 50).as_bytes(), b"y")
                    .unwrap();
                let gone = format!("passing:{}", (number + 25) % 50);
                store.remove(gone.as_bytes()).unwrap();
            }
            number
        });
        for _ in 0..20 {
            let all = keys(&save(&store, Moment::All)).unwrap();
            let value = |key: &[u8]| {
                let found = all.iter().find(|(_, entry)| entry.key == key);
                found.map(|(_, entry)| entry.value.clone())
            };
            assert_eq!(value(pair[0]), value(pair[1]));
            let each = keys(&save(&store, Moment::Each)).unwrap();
            for key in &fixed {
                let times = each.iter().filter(|(_, entry)| entry.key == *key).count();
                assert_eq!(times, 1, "{}", key.escape_ascii());
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
    });
}

/// A file of one moment keeps writers out, not readers.
#[test]
fn saving_lets_others_read() {
    let memory = HeapMemory::new(4096, 16 << 20, 1);
    let open = || {
        let options = Options {
            buckets: 16,
            patience: Duration::from_millis(50),
            ..Options::default()
        };
        Store::open(memory.clone(), options).unwrap()
    };
    let (store, other) = (open(), open());
    store.set(b"key", b"value").unwrap();
    let (folder, mut looks) = (Folder::new("readers"), 0);
    let look = || {
        let mut value = Vec::new();
        assert!(other.get(b"key", &mut value).unwrap());
        assert!(matches!(other.set(b"key", b"x"), Err(Error::Busy(_))));
    };
    let go_on = |_: &snapshot::Saved| {
        looks += 1;
        std::thread::scope(|scope| scope.spawn(look).join().unwrap());
        true
    };
    snapshot::save_file(&store, Moment::All, &folder.0.join("x.rdb"), go_on).unwrap();
    assert_eq!(looks, 16);
    other.set(b"key", b"after").unwrap();
}

/// A bucket has the keys of all databases, which are saved as they are at one moment.
#[test]
fn a_key_that_moves_between_databases_is_saved_once() {
    let (store, over) = (store(), AtomicBool::new(false));
    store.db(3).unwrap().set(b"key", b"here").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut at = 3;
            while !over.load(Ordering::Relaxed) {
                let to = (at + 7) % 16;
                let moved = store.db(at).unwrap().move_to(b"key", to).unwrap();
                assert_eq!(moved, Some(true));
                at = to;
            }
        });
        for _ in 0..200 {
            let all = keys(&save(&store, Moment::Each)).unwrap();
            assert_eq!(all.len(), 1);
        }
        over.store(true, Ordering::Relaxed);
    });
}

fn info(client: &mut Client, field: &str) -> String {
    let text = client.ask(&["INFO", "persistence"]);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap().to_owned()
}

fn bind(store: &Heap, folder: &Folder) -> (Server, Client) {
    let config = ServerConfig {
        snapshot: Some(folder.0.join("kept.rdb")),
        ..ServerConfig::default()
    };
    let server = serve(store, config);
    let client = Client::connect(server.local_addr());
    (server, client)
}

#[test]
fn clients_save_and_redis_loads() {
    let (store, folder) = (store(), Folder::new("clients"));
    load(&store, &written(&all("redis-7")), LoadInto::Empty).unwrap();
    let (_server, mut client) = bind(&store, &folder);
    let path = folder.0.join("kept.rdb");
    assert_eq!(client.ask(&["SAVE"]), "OK");
    let saved = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        client.ask(&["BGSAVE", "SCHEDULE"]),
        "Background saving started"
    );
    while info(&mut client, "rdb_bgsave_in_progress") == "1" {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    assert_eq!(info(&mut client, "rdb_saves"), "2");
    assert_eq!(
        client.ask(&["LASTSAVE"]),
        info(&mut client, "rdb_last_save_time")
    );
    let again = std::fs::read(&path).unwrap();
    let text = shown::all(keys(&again).unwrap());
    shown::assert_same(&text, &shown::all(keys(&saved).unwrap()), "both");
    let Some(mut theirs) = Redis::start(&again) else {
        eprintln!("not loaded: there is no redis-server here");
        return;
    };
    let mut same = Redis::start(&written(&all("redis-7"))).unwrap();
    assert_eq!(
        theirs.ask(&["DEBUG", "DIGEST"]),
        same.ask(&["DEBUG", "DIGEST"])
    );
}

#[test]
fn snapshots_that_cannot_be_are_refused() {
    let (store, folder) = (store(), Folder::new("refused"));
    let server = serve(&store, ServerConfig::default());
    let mut client = Client::connect(server.local_addr());
    for command in ["SAVE", "BGSAVE"] {
        assert!(
            client
                .ask(&[command])
                .contains("without a file for snapshots")
        );
    }
    let (_server, mut client) = bind(&store, &folder);
    assert_eq!(client.ask(&["BGSAVE", "x"]), "ERR syntax error");
    assert_eq!(client.ask(&["MULTI"]), "OK");
    let refused = client.ask(&["SAVE"]);
    assert_eq!(refused, "ERR Command not allowed inside a transaction");
    assert_eq!(client.ask(&["DISCARD"]), "OK");
    std::fs::remove_dir_all(&folder.0).unwrap();
    assert!(client.ask(&["SAVE"]).starts_with("ERR "));
    assert_eq!(client.ask(&["BGSAVE"]), "Background saving started");
    while info(&mut client, "rdb_bgsave_in_progress") == "1" {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(client.ask(&["PING"]), "PONG");
}
