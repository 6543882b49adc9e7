//! Cached copies that the kernel of a sharer's host takes away: while the sharer reads, while it is
//! stopped, and over an epoch.
//!
//! The sharer is a process of its own, which is told what to do by lines; the home, the writer and
//! a member that goes are nodes of the test, each in a namespace of its own.

use crate::player::{self, Player, attached};
use crate::rig::{eventually, say};
use rackmem::locked::BlockLock;
use rackmem::{Config, Node, Rack};
use rackmem_hosts::{Hosts, Place};
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const HOSTS: usize = 4;
const SHARER: usize = 0;
const WRITER: usize = 1;
const HOME: usize = 2;
const GUEST: usize = 3;
const PORT: u16 = 7400;
/// Upgrades over a sharer.
const ROUNDS: u64 = 200;
/// Writes beside a thread that reads on.
const BESIDE: u64 = 3_000;

fn config(folder: &Path, reads: Option<&str>) -> Config {
    let kernel = reads.map_or_else(String::new, |reads| {
        format!("kernel_reads = \"{reads}\"\nobject_memory = \"64K\"\nkernel_cache = true\n")
    });
    let more = format!("mode = \"home-only\"\nlease = '15s'\n{kernel}");
    player::config((HOSTS, PORT), folder, &more)
}

/// The sharer's part: one line in, one line out.
pub fn play_sharer(reads: &str, folder: &Path) {
    let Some(rack) = player::joined(&config(folder, Some(reads)), SHARER) else {
        return;
    };
    let node = rack.node(SHARER);
    say(format_args!("ready"));
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        match words[..] {
            ["read", addr] => say(format_args!(
                "{}",
                node.load(number(addr)).expect("a value")
            )),
            ["write", addr, value] => {
                node.store(number(addr), number(value)).expect("a copy");
                say(format_args!("done"));
            }
            // Until another line comes: what is read never goes back.
            ["watch", addr] => {
                let (addr, ends) = (number(addr), AtomicBool::new(false));
                let last = std::thread::scope(|scope| {
                    let watcher = scope.spawn(|| watch(&node, addr, &ends));
                    lines.next();
                    ends.store(true, Relaxed);
                    watcher.join().expect("it never goes back")
                });
                say(format_args!("{last}"));
            }
            _ => {
                let metrics = node.metrics();
                let kernel = metrics.kernel_cache.expect("a program");
                let (answered, passed) = (kernel.answered, kernel.passed());
                let rest = metrics.invalidated - answered;
                say(format_args!("{answered} {passed} {rest} {kernel:?}"));
            }
        }
    }
}

fn watch(node: &Node, addr: u64, ends: &AtomicBool) -> u64 {
    let mut last = node.load(addr).expect("a value");
    say(format_args!("watching"));
    while !ends.load(Relaxed) {
        let now = node.load(addr).expect("a value");
        assert!(now >= last, "{last} and then {now}");
        last = now;
        std::thread::yield_now();
    }
    last
}

/// What the sharer has at an address.
fn read(sharer: &mut Player, addr: u64) -> u64 {
    let said = sharer.tell(&format!("read {addr}"));
    said.parse().unwrap_or_else(|_| panic!("no value: {said}"))
}

/// Copies that its kernel has taken, orders that passed, and copies that its agent has taken.
fn counts(sharer: &mut Player) -> [u64; 3] {
    sharer.counts()
}

pub fn in_mode(mode: &str) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, SHARER);
    let started = Player::start((&hosts, SHARER), ("play-sharer", mode), &folder);
    let Some((mut sharer, _)) = started else {
        return false;
    };
    assert!(attached(&hosts, SHARER));
    let config = config(&folder, None);
    let at = |host, story: &mut (dyn FnMut() -> String + Send)| {
        let told = hosts.within(Place::Host(host), story);
        told.expect("a namespace")
    };
    let told = at(HOME, &mut || {
        // A thread's sockets are of the namespace that it is in.
        let home = Rack::join(&config, HOME).expect("a place");
        let make = || home.node(HOME).alloc_isolated(0u64).expect("memory").addr();
        let addrs = [make(), make()];
        at(WRITER, &mut || {
            let writer = Rack::join(&config, WRITER).expect("a place");
            let writer = writer.node(WRITER);
            story(mode, &hosts, &config, (&writer, addrs), &mut sharer)
        })
    });
    assert!(sharer.end(), "{mode}");
    assert!(!attached(&hosts, SHARER), "{mode}: left behind");
    drop(sharer);
    hosts.tear_down().expect("nothing is left");
    say(format_args!("{told}"));
    true
}

fn story(
    mode: &str,
    hosts: &Hosts,
    config: &Config,
    (writer, [addr, other]): (&Node, [u64; 2]),
    sharer: &mut Player,
) -> String {
    // Both have a copy, and their events on it have long ended when the sharer is stopped.
    assert_eq!((read(sharer, other), writer.load(other)), (0, Ok(0)));
    let upgraded = upgrades_over_a_sharer(mode, writer, sharer, addr);
    while_it_is_stopped(mode, writer, sharer, other);
    what_was_written_there_goes_as_well(mode, writer, sharer, addr);
    let beside = beside_a_reader(writer, sharer, addr);
    over_an_epoch(mode, hosts, config, writer, sharer, addr);
    format!("{upgraded}; {beside}")
}

/// One upgrade: both have a copy, then the writer's value is the only one.
fn upgrade(writer: &Node, sharer: &mut Player, addr: u64, value: u64) {
    writer.load(addr).expect("a copy");
    let before = writer.load(addr).expect("a copy");
    assert_eq!(read(sharer, addr), before);
    writer.store(addr, value).expect("the right to write");
}

/// As soon as the kernel has heard from the writer's node, it answers all.
fn upgrades_over_a_sharer(mode: &str, writer: &Node, sharer: &mut Player, addr: u64) -> String {
    let mut value = 0;
    let mut next = || {
        value += 1;
        value
    };
    eventually("the kernel answers", || {
        upgrade(writer, sharer, addr, next());
        counts(sharer)[0] > 0
    });
    let before = counts(sharer);
    for _ in 0..ROUNDS {
        let value = next();
        upgrade(writer, sharer, addr, value);
        assert_eq!(read(sharer, addr), value, "{mode}");
    }
    let now = counts(sharer);
    let (by_kernel, by_agent) = (now[0] - before[0], now[2] - before[2]);
    // Where the machine is loaded an order may come while a thread is at the entry.
    assert!(by_kernel >= ROUNDS / 2, "{mode}: {before:?}, {now:?}");
    format!("{by_kernel} copies taken by the kernel, {by_agent} by the agent")
}

/// What the sharer has written and the writer has read is clean there, and home has it. Each value
/// is taken away by the kernel, also while nobody there can take an order.
fn what_was_written_there_goes_as_well(mode: &str, writer: &Node, sharer: &mut Player, addr: u64) {
    let before = counts(sharer);
    for value in (4_000..=5_000).step_by(10) {
        assert_eq!(sharer.tell(&format!("write {addr} {value}")), "done");
        assert_eq!(writer.load(addr), Ok(value));
        let stopped = value == 5_000;
        if stopped {
            // The reader's event has ended, for which the block is home.
            let lock = BlockLock::attach(writer, addr).expect("a lock");
            drop(lock.write().expect("the lock"));
            sharer.signal(libc::SIGSTOP);
        }
        let written = writer.store(addr, value + 1);
        if stopped {
            sharer.signal(libc::SIGCONT);
        }
        assert_eq!(written, Ok(()), "{mode}: {value}");
        assert_eq!(read(sharer, addr), value + 1, "{mode}");
    }
    let now = counts(sharer);
    assert!(now[0] >= before[0] + 50, "{mode}: {before:?}, {now:?}");
}

/// Nobody there can take an order, and it is acknowledged.
fn while_it_is_stopped(mode: &str, writer: &Node, sharer: &mut Player, addr: u64) {
    assert_eq!(read(sharer, addr), 0);
    let before = counts(sharer);
    sharer.signal(libc::SIGSTOP);
    let written = writer.store(addr, 7);
    sharer.signal(libc::SIGCONT);
    assert_eq!(written, Ok(()), "{mode}");
    assert_eq!(read(sharer, addr), 7, "{mode}");
    let now = counts(sharer);
    assert_eq!(now[0], before[0] + 1, "{mode}: {before:?}, {now:?}");
}

/// A thread that reads on sees each value that it sees in order, and the last one.
fn beside_a_reader(writer: &Node, sharer: &mut Player, addr: u64) -> String {
    let before = counts(sharer);
    assert_eq!(sharer.tell(&format!("watch {addr}")), "watching");
    let last = 10_000 + BESIDE;
    for value in 10_000..=last {
        writer.store(addr, value).expect("the right to write");
        // What is not taken away in between is written at once.
        if value % 16 == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    let seen: u64 = sharer.tell("stop").parse().expect("a value");
    assert!((10_000..=last).contains(&seen) || seen == 5001, "{seen}");
    assert_eq!(read(sharer, addr), last);
    let now = counts(sharer);
    let (by_kernel, by_agent) = (now[0] - before[0], now[2] - before[2]);
    format!("beside a reader {by_kernel} by the kernel, {by_agent} by the agent")
}

/// A member dies: the kernel answers in the epoch that begins.
fn over_an_epoch(
    mode: &str,
    hosts: &Hosts,
    config: &Config,
    writer: &Node,
    sharer: &mut Player,
    addr: u64,
) {
    let epoch = || writer.report().epoch;
    let guest = hosts.within(Place::Host(GUEST), || {
        let guest = Rack::join(config, GUEST).expect("a place");
        eventually("it is a member", || guest.node(GUEST).load(addr).is_ok());
        epoch()
        // Without a word, as a crash does.
    });
    let before = guest.expect("a namespace");
    eventually("an epoch begins", || epoch() > before);
    let mut value = 20_000;
    let answered = counts(sharer)[0];
    eventually("the kernel answers in it", || {
        value += 1;
        upgrade(writer, sharer, addr, value);
        assert_eq!(read(sharer, addr), value, "{mode}");
        counts(sharer)[0] > answered
    });
}
