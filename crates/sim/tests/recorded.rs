//! Histories recorded from real threads: of a store that works, and of one with a stale cache.

use std::collections::HashMap;
use std::sync::Mutex;

use rackmem_sim::history::{self, Call, ClientLog, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};

type Store = Mutex<HashMap<String, String>>;

const CLIENTS: u32 = 4;
const OPERATIONS: u64 = 2_000;

/// Lets clients read and write a few keys; `read` may be less careful than it should.
fn record(read: impl Fn(&Store, u32, &str) -> Option<String> + Sync) -> Vec<Operation> {
    let recorder = Recorder::new(OPERATIONS as usize);
    let store = Store::default();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (recorder, store, read) = (&recorder, &store, &read);
            scope.spawn(move || {
                let mut log = recorder.client(client);
                for number in 0..OPERATIONS {
                    let key = format!("key-{}", number % 3);
                    match number % 2 {
                        0 => set(&mut log, store, &key, format!("{client}-{number}")),
                        _ => {
                            let ticket = log.begin(&key, Call::Get).unwrap();
                            let seen = read(store, client, &key);
                            log.ok(ticket, seen.map_or(Reply::Nil, Reply::Text));
                        }
                    }
                }
            });
        }
    });
    recorder.into_history()
}

fn set(log: &mut ClientLog<'_>, store: &Store, key: &str, value: String) {
    let call = Call::Set {
        value: value.clone(),
    };
    let ticket = log.begin(key, call).unwrap();
    store.lock().unwrap().insert(key.to_owned(), value);
    log.ok(ticket, Reply::Nil);
}

#[test]
fn a_store_under_a_lock_is_linearizable_also_when_read_back_from_text() {
    let history = record(|store, _, key| store.lock().unwrap().get(key).cloned());
    assert_eq!(history.len() as u64, u64::from(CLIENTS) * OPERATIONS);
    let mut text = Vec::new();
    history::write(&mut text, &history).unwrap();
    let again = history::read(text.as_slice()).unwrap();
    assert_eq!(again, history);
    let verdict = check(&again, Limits::default());
    let Verdict::Linearizable(summary) = verdict else {
        panic!("{verdict}");
    };
    assert_eq!((summary.keys, summary.operations), (3, history.len()));
}

#[test]
fn a_stale_cache_is_not() {
    // One client keeps what it read of a key for its next ten reads.
    let cache: Mutex<HashMap<String, (u32, Option<String>)>> = Mutex::default();
    let history = record(|store, client, key| {
        let mut cache = cache.lock().unwrap();
        if client != 0 {
            return store.lock().unwrap().get(key).cloned();
        }
        let entry = cache.entry(key.to_owned()).or_default();
        if entry.0 == 0 {
            *entry = (10, store.lock().unwrap().get(key).cloned());
        }
        entry.0 -= 1;
        entry.1.clone()
    });
    let verdict = check(&history, Limits::default());
    let Verdict::Violation(shown) = verdict else {
        panic!("{verdict}");
    };
    assert!(shown.operations.len() < 20, "{shown}");
}
