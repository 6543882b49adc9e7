//! The switch's process is killed and starts again, and a member is replaced, while others write
//! and read: packets of each config go through the program of each life, and the answers are
//! linearizable.

use crate::rig::{HOSTS, LONG, Rig, eventually};
use rackmem::membership;
use rackmem::{AccessError, GroupStatus, Node, RegionSpec, Replicated};
use rackmem_hosts::Place;
use rackmem_sim::history::{Call, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, OnceLock};
use std::time::Duration;

const LINES: usize = 3;
/// Operations of a client at most.
const MOST: usize = 20_000;
/// Who asks; hosts 0 to 2 keep copies at first, and host 4 is the spare.
const CLIENTS: [usize; 3] = [0, 1, 3];
const DIES: usize = 2;
const SPARE: u16 = 4;

#[derive(Default)]
struct Flags {
    dies: AtomicBool,
    stop: AtomicBool,
    /// Operations that have ended well.
    done: AtomicU64,
    /// Clients that ask for nothing any more.
    ended: AtomicUsize,
    /// Host 0's.
    node: OnceLock<Node>,
}

pub fn story(rig: &mut Rig) {
    let (flags, recorder) = (Flags::default(), Recorder::new(MOST));
    let made = Barrier::new(HOSTS + 1);
    let (hosts, config) = (rig.hosts.name().to_owned(), rig.config.clone());
    let hosts = rackmem_hosts::Hosts::open(&hosts).expect("they are there");
    let lives = |host: usize| {
        let rack = rackmem::Rack::join(&config, host).expect("a place");
        let node = rack.node(host);
        let spec = RegionSpec::new("history", 64 * LINES).copies(3).on(0);
        eventually("all are members", || {
            (0..HOSTS as u16).all(|n| node.is_member(n))
        });
        if host == 0 {
            node.create_region(&spec).expect("a region");
            let _ = flags.node.set(node.clone());
        }
        made.wait();
        match CLIENTS.iter().position(|client| *client == host) {
            Some(client) => {
                work(&node, &spec, (client as u32, &recorder), &flags);
                flags.ended.fetch_add(1, SeqCst);
            }
            None => eventually("it is to end", || {
                let dies = host == DIES && flags.dies.load(SeqCst);
                dies || flags.stop.load(SeqCst)
            }),
        }
        // What is under way needs a majority.
        if host != DIES {
            let ended = || flags.ended.load(SeqCst) == CLIENTS.len();
            eventually("no client asks any more", ended);
        }
    };
    let (lives, hosts) = (&lives, &hosts);
    std::thread::scope(|scope| {
        let thread = |host| scope.spawn(move || hosts.within(Place::Host(host), || lives(host)));
        let threads: Vec<_> = (0..HOSTS).map(thread).collect();
        made.wait();
        let group = || -> GroupStatus {
            let node = flags.node.get().expect("host 0 has made the region");
            node.groups().swap_remove(0)
        };
        let go_on = |more: u64| {
            let before = flags.done.load(SeqCst);
            eventually("they go on", || flags.done.load(SeqCst) >= before + more);
        };
        eventually("the switch chooses", || group().one_round);
        go_on(100);
        rig.kill_switch();
        go_on(50);
        eventually("it goes past the switch", || !group().through_switch);
        assert!(rig.start_switch(), "it served before");
        eventually("its next life chooses", || group().one_round);
        go_on(100);
        flags.dies.store(true, SeqCst);
        let members = (DIES as u16, SPARE);
        membership::replace(&*rig.store(), "history", members, LONG).expect("a change");
        go_on(50);
        eventually("the spare has filled, and counts", || {
            let group = group();
            let mut copies = group.copies.iter();
            copies.any(|copy| copy.node == SPARE && copy.counts) && group.one_round
        });
        go_on(100);
        flags.stop.store(true, SeqCst);
        for thread in threads {
            thread.join().expect("it ends").expect("a namespace");
        }
    });
    drop(flags);
    let history = recorder.into_history();
    match check(&history, Limits::default()) {
        Verdict::Linearizable(summary) => assert_eq!(summary.keys, LINES, "{}", rig.mode),
        verdict => panic!("{}: {verdict}", rig.mode),
    }
    let figures = rig.end_switch();
    assert!(figures.answers > 100, "{}: {figures:?}", rig.mode);
}

/// Reads and writes until it is to end. What is interrupted may have happened.
fn work(node: &Node, spec: &RegionSpec, (client, recorder): (u32, &Recorder), flags: &Flags) {
    let mut log = recorder.client(client);
    let region = node.open_region(spec).expect("the region");
    let lines: Vec<Replicated<u64>> = (0..LINES)
        .map(|line| region.replicated(line).expect("a line"))
        .collect();
    for number in 1..MOST as u64 {
        if flags.stop.load(SeqCst) {
            return;
        }
        // Not so fast that the record is full before all has happened.
        std::thread::sleep(Duration::from_millis(1));
        let at = (number as usize * 7 + client as usize) % LINES;
        let name = at.to_string();
        if number % 3 == 0 {
            let ticket = log.begin(&name, Call::Get).expect("room");
            let seen = match lines[at].read().expect("a majority") {
                0 => Reply::Nil,
                value => Reply::Text(value.to_string()),
            };
            log.ok(ticket, seen);
        } else {
            let fresh = u64::from(client + 1) << 32 | number;
            let value = fresh.to_string();
            let ticket = log.begin(&name, Call::Set { value }).expect("room");
            match lines[at].write(fresh) {
                Ok(()) => log.ok(ticket, Reply::Nil),
                Err(AccessError::Interrupted { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        flags.done.fetch_add(1, SeqCst);
    }
}
