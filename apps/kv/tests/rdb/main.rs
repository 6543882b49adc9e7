//! Files that servers of Redis have saved, and files that they are to load.

mod redis;
mod restore;
mod shown;
mod snapshots;

use std::path::PathBuf;

use rackmem_kv::rdb::dump::{self, Payload};
use rackmem_kv::rdb::{Body, Cause, Entry, Error, Item, Reader, Value, Writer, checksum};

const FILES: [&str; 4] = ["oldest", "redis-6", "redis-7", "valkey"];

fn here(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/rdb")
        .join(name)
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(here(&format!("{name}.rdb"))).unwrap()
}

/// The keys of a file with their databases, values whole.
fn keys(bytes: &[u8]) -> Result<Vec<(u64, Entry)>, Error> {
    let mut reader = Reader::new(bytes)?;
    let (mut keys, mut database) = (Vec::<(u64, Entry)>::new(), 0);
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Database(number) => database = number,
            Item::Key(entry) => keys.push((database, entry)),
            Item::Part { value, .. } => keys.last_mut().unwrap().1.value.extend(value),
            _ => {}
        }
    }
    Ok(keys)
}

/// The keys written to a new file.
fn written(keys: &[(u64, Entry)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for (database, entry) in keys {
        let body = Body::from(&entry.value);
        let expiry = entry.expiry;
        writer.key(*database, &entry.key, expiry, &body).unwrap();
    }
    writer.finish().unwrap()
}

/// The text beside each file is what a server answers that has loaded it.
#[test]
fn files_are_read_as_servers_read_them() {
    for name in FILES {
        let want = std::fs::read_to_string(here(&format!("{name}.txt"))).unwrap();
        shown::assert_same(&shown::all(keys(&file(name)).unwrap()), &want, name);
    }
}

#[test]
fn what_else_is_in_a_file_is_told() {
    let bytes = file("redis-7");
    let mut reader = Reader::new(bytes.as_slice()).unwrap();
    assert_eq!(reader.version(), 10);
    let mut seen = (false, false, false);
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::About { name, value } if name == b"redis-ver" => seen.0 = value == b"7.0.15",
            Item::Sizes { keys: 1, expiring } => seen.1 = expiring == 1,
            Item::Function(code) => seen.2 = code.starts_with(b"#!lua name=l"),
            _ => {}
        }
    }
    assert_eq!(seen, (true, true, true));
    assert_eq!(reader.offset(), bytes.len() as u64);
}

#[test]
fn what_is_written_is_read() {
    for name in FILES {
        let original = keys(&file(name)).unwrap();
        let again = keys(&written(&original)).unwrap();
        let want = without_active(&shown::all(original));
        shown::assert_same(&shown::all(again), &want, name);
    }
}

/// When a consumer got something last is in no file of version 10.
fn without_active(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("    consumer ") {
        Some(rest) => format!("    consumer {} -\n", rest.rsplit_once(' ').unwrap().0),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A list of many parts is the same whole.
#[test]
fn long_collections_come_in_parts() {
    let count = 40_000;
    let mut body = Body::list(count);
    let element = |number: usize| format!("{number:050}").into_bytes();
    (0..count).for_each(|number| body.element(&element(number)));
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.key(0, b"list", None, &body).unwrap();
    writer.key(0, b"next", None, &Body::string(b"one")).unwrap();
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(bytes.as_slice()).unwrap();
    let (mut parts, mut all) = (0, Vec::new());
    while let Some(item) = reader.next_item().unwrap() {
        if let Item::Part { value, .. } | Item::Key(Entry { value, .. }) = item
            && let Value::List(part) = value
        {
            assert!(part.len() < count / 3);
            parts += 1;
            all.extend(part);
        }
    }
    assert!(parts > 3);
    assert_eq!(all, (0..count).map(element).collect::<Vec<_>>());
    assert_eq!(keys(&bytes).unwrap()[1].1.key, b"next");

    let payload = dump::payload(body);
    let mut reader = Payload::new(&payload).unwrap();
    let mut count = 0;
    while let Some(part) = reader.next_part().unwrap() {
        count += part.len();
    }
    assert_eq!(count, all.len());
}

#[test]
fn damage_is_found() {
    for name in FILES {
        let bytes = file(name);
        for at in (0..bytes.len()).step_by(bytes.len() / 300) {
            let cut = keys(&bytes[..at]).unwrap_err();
            assert!(cut.offset <= at as u64, "{name} cut at {at}: {cut}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(keys(&damaged).is_err(), "{name} damaged at {at}");
        }
        let last = bytes.len() - 1;
        let mut damaged = bytes.clone();
        damaged[last] ^= 1;
        let error = keys(&damaged).unwrap_err();
        assert!(matches!(error.cause, Cause::Checksum { .. }), "{error}");
        assert_eq!(error.offset, bytes.len() as u64 - 8);
    }
}

#[test]
fn other_files_are_refused() {
    let cause = |bytes: &[u8]| Reader::new(bytes).unwrap_err().cause;
    assert!(matches!(cause(b""), Cause::NotRdb));
    assert!(matches!(cause(b"GIF89a and more"), Cause::NotRdb));
    assert!(matches!(cause(b"REDIS00"), Cause::Truncated));
    assert!(matches!(cause(b"REDIS0012"), Cause::Version(12)));
    assert!(matches!(cause(b"REDIS0000"), Cause::Version(0)));
    assert!(matches!(cause(b"REDIS+010"), Cause::NotRdb));
    let cause = |bytes: &[u8]| keys(bytes).unwrap_err().cause;
    assert!(matches!(cause(b"REDIS0010\x08\x01a"), Cause::Type(8)));
    assert!(matches!(cause(b"REDIS0010\x63\x01a"), Cause::Type(0x63)));
    assert!(matches!(cause(b"REDIS0010\x06\x01a"), Cause::OldModule));
}

#[test]
fn modules_are_skipped_and_told() {
    // A key of type "ReJSON-RL" with a number and a string, then the module's own data.
    let id = b"\x81\x45\xe2\x52\x38\xf8\x91\x00\x00";
    let mut bytes = b"REDIS0010\x07\x01k".to_vec();
    bytes.extend_from_slice(id);
    bytes.extend_from_slice(b"\x02\x07\x05\x02hi\x00\xf7");
    bytes.extend_from_slice(id);
    bytes.extend_from_slice(b"\x02\x01\x04\0\0\0\0\0\0\0\0\x00\x00\x01a\x01b\xff");
    bytes.extend(checksum(0, &bytes).to_le_bytes());
    let mut reader = Reader::new(bytes.as_slice()).unwrap();
    let Some(Item::ModuleKey { key, module }) = reader.next_item().unwrap() else {
        panic!("no module's key");
    };
    assert_eq!((&key[..], module.len()), (&b"k"[..], 9));
    assert_eq!(reader.next_item().unwrap(), Some(Item::Module(module)));
    assert!(matches!(reader.next_item().unwrap(), Some(Item::Key(_))));
    assert_eq!(reader.next_item().unwrap(), None);
}

/// A server loads what is written and has the same.
#[test]
fn redis_loads_what_is_written() {
    for name in FILES {
        let keys = keys(&file(name)).unwrap();
        let original = redis::Redis::start(&file(if name == "valkey" { "redis-7" } else { name }));
        let Some(mut ours) = redis::Redis::start(&written(&keys)) else {
            eprintln!("skipped: there is no redis-server here");
            return;
        };
        for (database, entry) in &keys {
            ours.ask(&["SELECT", &database.to_string()]);
            // What it dumps of our value reads as the value.
            let dumped = ours.ask_bytes(&[b"DUMP", &entry.key]).unwrap();
            let (here, there) = (value(&dumped), entry.value.clone());
            let both = [here, there].map(|value| {
                let entry = Entry {
                    value,
                    ..entry.clone()
                };
                without_active(&shown::all(vec![(*database, entry)]))
            });
            shown::assert_same(&both[0], &both[1], name);
        }
        if let Some(mut original) = original.filter(|_| name != "valkey") {
            assert_eq!(
                ours.ask(&["DEBUG", "DIGEST"]),
                original.ask(&["DEBUG", "DIGEST"]),
                "{name}"
            );
        }
    }
}

/// A server restores what `dump` makes of values.
#[test]
fn redis_restores_payloads() {
    let Some(mut server) = redis::Redis::start(&written(&[])) else {
        eprintln!("skipped: there is no redis-server here");
        return;
    };
    for (_, entry) in keys(&file("redis-7")).unwrap() {
        let payload = dump::payload(Body::from(&entry.value));
        assert_eq!(shown::of(&value(&payload)), shown::of(&entry.value));
        let restored = server.ask_bytes(&[b"RESTORE", &entry.key, b"0", &payload]);
        assert_eq!(restored.as_deref(), Some(&b"OK"[..]), "{:?}", entry.key);
    }
}

fn value(payload: &[u8]) -> Value {
    let mut payload = Payload::new(payload).unwrap();
    let mut value = payload.next_part().unwrap().unwrap();
    while let Some(part) = payload.next_part().unwrap() {
        value.extend(part);
    }
    value
}

#[test]
fn payloads_that_are_not_right_are_refused() {
    let good = dump::payload(Body::string(b"text"));
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 1;
        assert!(Payload::new(&damaged).is_err(), "{at}");
        assert!(Payload::new(&good[..at]).is_err(), "{at}");
    }
    // More than a value, with the right checksum.
    let mut longer = good[..good.len() - 10].to_vec();
    longer.extend_from_slice(b"more\x0a\0");
    longer.extend(checksum(0, &longer).to_le_bytes());
    let error = Payload::new(&longer).unwrap().next_part().unwrap_err();
    assert!(matches!(error.cause, Cause::Malformed(_)), "{error}");
}
