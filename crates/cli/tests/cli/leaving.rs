//! A process of a store that is told to end: its keys are at the others.

use crate::process::Running;
use crate::racks::rack_file_with;
use crate::resp::{Answer, Client};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Longer than a keeper is kept from its processor.
const LEASE_MS: u64 = 16_000;
const KEYS: usize = 300;

fn text(of: &str) -> Answer {
    Answer::Text(of.into())
}

fn value(number: usize) -> String {
    format!("{number:05}").repeat([4, 300, 4000][number % 3])
}

/// A node of a rack, which serves.
fn member(file: &str, node: usize, further: &[&str]) -> Running {
    let node = node.to_string();
    let rack = ["kv", "--rack", file, "--node", &node];
    let serve = ["--listen", "127.0.0.1:0", "--buckets", "64"];
    Running::start(&[&rack[..], &serve[..], further].concat())
}

/// Adds to a counter and writes keys of its own until told to stop, or until its node has gone; how
/// often, and what the last value of each key is.
fn load(addr: SocketAddr, me: usize, stop: &AtomicBool) -> usize {
    let mut client = Client::connect(addr);
    let mut rounds = 0;
    while !stop.load(SeqCst) {
        let key = format!("load:{me}:{}", rounds % 50);
        let Ok(set) = client.try_call(&["SET", &key, &value(rounds)]) else {
            break;
        };
        assert_eq!(set, text("OK"), "{rounds}");
        match client.try_call(&["RPUSH", &format!("list:{me}"), &rounds.to_string()]) {
            Ok(Answer::Int(len)) => assert_eq!(len, rounds as i64 + 1),
            Ok(other) => panic!("{other:?}"),
            Err(_) => break,
        }
        rounds += 1;
    }
    rounds
}

#[test]
fn nothing_is_lost_when_a_node_is_told_to_end() {
    leaves(1, "");
}

/// With copies of the names, and so of the store's superblock, any node leaves.
#[test]
fn nothing_is_lost_when_node_0_is_told_to_end() {
    leaves(0, "copies = 3\n");
}

fn leaves(leaver: usize, further: &str) {
    let folder = format!("rackmem-leaving-{leaver}-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let further = format!(
        "membership = \"dir:{}\"\nlease_ms = {LEASE_MS}\n{further}",
        folder.display()
    );
    let file = rack_file_with(3, false, &further);
    let start = |node| member(file.path(), node, &[]);
    let mut members: Vec<Running> = (0..3).map(start).collect();
    let addrs: Vec<SocketAddr> = members.iter_mut().flat_map(Running::listening).collect();
    let mut clients: Vec<Client> = addrs.iter().map(|addr| Client::connect(*addr)).collect();
    for number in 0..KEYS {
        let key = format!("key:{number}");
        let set = clients[number % 3].call(&["SET", &key, &value(number)]);
        assert_eq!(set, text("OK"));
        let field = number.to_string();
        let put = clients[number / 2 % 3].call(&["HSET", "hash", &field, &value(number)]);
        assert_eq!(put, Answer::Int(1));
    }
    let stop = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let loads: Vec<_> = (0..3)
            .map(|me| {
                let (addr, stop) = (addrs[me], &stop);
                scope.spawn(move || load(addr, me, stop))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        members[leaver].send("TERM");
        assert_eq!(members[leaver].ended(), Some(130));
        stop.store(true, SeqCst);
        let rounds: Vec<usize> = loads.into_iter().map(|load| load.join().unwrap()).collect();
        rounds
    });
    let stay = (0..3).filter(|node| *node != leaver);
    for node in stay.clone() {
        let client = &mut clients[node];
        for number in 0..KEYS {
            let got = client.call(&["GET", &format!("key:{number}")]);
            assert!(got == text(&value(number)), "key {number} at node {node}");
            let got = client.call(&["HGET", "hash", &number.to_string()]);
            assert!(got == text(&value(number)), "field {number} at node {node}");
        }
        for (me, rounds) in rounds.iter().enumerate() {
            let len = client.call(&["LLEN", &format!("list:{me}")]);
            // The last command of a client whose node ended may have taken effect.
            let least = *rounds as i64;
            let fits =
                matches!(len, Answer::Int(len) if len == least || me == leaver && len == least + 1);
            assert!(fits, "{len:?} of {rounds} at node {node}");
        }
        let info = client.call(&["INFO", "rackmem"]);
        let Answer::Text(info) = info else {
            panic!("{info:?}");
        };
        for nothing in [
            "rack_buckets_unavailable:0",
            "rack_buckets_lost:0",
            "rack_values_lost:0",
        ] {
            assert!(info.contains(nothing), "node {node}: {info}");
        }
    }
    let counted = clients[2].call(&["DBSIZE"]);
    let loaded: usize = rounds
        .iter()
        .map(|rounds| 50.min(*rounds) + usize::from(*rounds > 0))
        .sum();
    let fits = matches!(counted, Answer::Int(keys) if (0..=2).contains(&(keys - (KEYS + 1 + loaded) as i64)));
    assert!(fits, "{counted:?}: {rounds:?}");
    // It may come back, and is one of them.
    members[leaver] = start(leaver);
    let mut back = Client::connect(members[leaver].listening()[0]);
    assert_eq!(back.call(&["GET", "key:7"]), text(&value(7)));
    assert_eq!(back.call(&["SET", "key:7", "new"]), text("OK"));
    assert_eq!(clients[2].call(&["GET", "key:7"]), text("new"));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn members_of_a_store_end_together() {
    end_together(&[]);
}

#[test]
fn members_of_a_store_with_copies_end_together() {
    end_together(&["--copies", "3"]);
}

/// Nobody waits for one that has gone: each would, for longer than a test waits.
fn end_together(copies: &[&str]) {
    const ROUNDS: usize = 3;
    for _ in 0..ROUNDS {
        let folder = format!("rackmem-together-{}-{}", copies.len(), std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let folder_name = folder.display();
        let further = format!(
            "membership = \"dir:{folder_name}\"\nlease_ms = {LEASE_MS}\npatience = \"1000s\"\ncopies = 3\n"
        );
        let file = rack_file_with(3, false, &further);
        let start = |node| member(file.path(), node, copies);
        let mut members: Vec<Running> = (0..3).map(start).collect();
        let addrs: Vec<SocketAddr> = members.iter_mut().flat_map(Running::listening).collect();
        let mut clients: Vec<Client> = addrs.iter().map(|addr| Client::connect(*addr)).collect();
        for number in 0..KEYS {
            let key = format!("key:{number}");
            let set = clients[number % 3].call(&["SET", &key, &value(number)]);
            assert_eq!(set, text("OK"));
            let got = clients[(number + 1) % 3].call(&["GET", &key]);
            assert!(got == text(&value(number)), "key {number}");
        }
        members.iter().for_each(|member| member.send("TERM"));
        for member in &mut members {
            assert_eq!(member.ended(), Some(130));
        }
        let _ = std::fs::remove_dir_all(folder);
    }
}
