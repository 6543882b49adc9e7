//! A home moves its keys to other nodes while commands go to it.

use super::*;
use rackmem_kv::Moved;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// What ends when a test does, however.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Adds to a key until told to stop; how often.
fn add(client: &mut Client, key: &str, stop: &AtomicBool) -> u64 {
    let (mut rounds, mut last) = (0, 0);
    while !stop.load(SeqCst) {
        let now = number(&client.say(&format!("INCR {key}")));
        assert!(now > last, "{now} after {last}");
        (rounds, last) = (rounds + 1, now);
    }
    rounds
}

#[test]
fn nothing_is_lost_or_in_doubt_when_a_home_leaves() {
    const LEAVER: usize = 1;
    let mut world = world(3);
    let mut clients = world.clients();
    let key = key_at(&mut clients, LEAVER);
    let before = number(&clients[0].say(&format!("INCR {key}")));
    let stop = AtomicBool::new(false);
    let mut loads: Vec<Client> = [0, 2, 0, 2].iter().map(|n| world.client(*n)).collect();
    let rounds: u64 = std::thread::scope(|scope| {
        let ends = Ends(&stop);
        let (key, stop) = (&key, &stop);
        let loads: Vec<_> = (loads.iter_mut())
            .map(|client| scope.spawn(move || add(client, key, stop)))
            .collect();
        // All of them send.
        for node in [0, 2] {
            let start = sent(&mut clients[node]);
            while sent(&mut clients[node]) < start + 50 {
                clients[LEAVER].say(&format!("INCR {key}"));
            }
        }
        let began = Instant::now();
        let go_on = &mut |_: &Moved| began.elapsed() < LONG;
        let moved = world.stores[LEAVER].leave(go_on).unwrap();
        assert!(moved.buckets > 0 && moved.skipped == 0, "{moved:?}");
        drop(world.servers[LEAVER].take());
        world.stores[LEAVER].finish_leaving(go_on).unwrap();
        // And go on, wherever the key is now.
        for node in [0, 2] {
            for _ in 0..ROUNDS {
                clients[node].say("PING");
            }
        }
        drop(ends);
        loads.into_iter().map(|load| load.join().unwrap()).sum()
    });
    let total = clients[2].say(&format!("GET {key}"));
    let total: u64 = total.trim_matches('"').parse().unwrap();
    assert!(total >= before + rounds, "{total}: {before} and {rounds}");
    for node in [0, 2] {
        assert_eq!(count(&mut clients[node], "shipped_unknown"), 0);
        assert_eq!(count(&mut clients[node], "total_error_replies"), 0);
    }
}
