//! A store whose copies are durable: all nodes end, and the next rack on the same folder has every
//! key as it was.

use rackmem::{Durability, Fabric, KvCopies, Rack};
use rackmem_kv::memory::CopiedMemory;
use rackmem_kv::{Options, Store};
use std::path::{Path, PathBuf};
use std::time::Duration;

const BUCKETS: usize = 64;
const KEYS: usize = 300;
/// Each life sets one key of so many.
const SET: usize = 3;
const LIVES: usize = 4;

/// Removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = format!("rackmem-kv-durable-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rack(fabric: Fabric, folder: &Path) -> Rack {
    let rack = Rack::builder(3).fabric(fabric).memory(64 << 20);
    rack.cache(8 << 20).store(folder).build().unwrap()
}

fn open(rack: &Rack, id: usize, durability: Durability) -> Store<CopiedMemory> {
    let copies = KvCopies {
        count: 3,
        durability,
    };
    let options = Options {
        buckets: BUCKETS,
        patience: Duration::from_secs(60),
        ..Options::default()
    };
    let memory = CopiedMemory::open(&rack.node(id), "store", 32 << 20, copies).unwrap();
    Store::open(memory, options).unwrap()
}

/// Of all lengths: in a page, in a chain of pages, in memory of their own.
fn value(key: usize, life: usize) -> Vec<u8> {
    let len = [3, 200, 1_000, 9_000][key % 4];
    (0..len).map(|at| (key + life + at) as u8).collect()
}

/// Which life has set a key last, before this one.
fn set_by(key: usize, life: usize) -> Option<usize> {
    (0..life)
        .rev()
        .find(|life| (key + life).is_multiple_of(SET))
}

#[test]
fn every_key_is_there_when_the_rack_starts_again() {
    for fabric in [Fabric::Inline, Fabric::Udp] {
        for durability in [Durability::File, Durability::Sync] {
            let folder = Folder::new(&format!("{fabric:?}-{durability}"));
            for life in 0..LIVES {
                let rack = rack(fabric, &folder.0);
                let stores = [0, 1, 2].map(|id| open(&rack, id, durability));
                let mut found = Vec::new();
                for key in 0..KEYS {
                    let name = format!("key:{key}");
                    let store = &stores[(key + life) % 3];
                    let there = store.get(name.as_bytes(), &mut found).unwrap();
                    let expected = set_by(key, life).map(|life| value(key, life));
                    let got = there.then_some(&found);
                    assert!(
                        got == expected.as_ref(),
                        "{fabric:?} {durability} {life}: {name}"
                    );
                    if (key + life).is_multiple_of(SET) {
                        store.set(name.as_bytes(), &value(key, life)).unwrap();
                    }
                }
            }
        }
    }
}
