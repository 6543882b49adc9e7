//! Cached copies that the kernel of a sharer's host takes away and gives to readers: while the
//! sharer reads and writes, while it is stopped, over an epoch, and until it is killed.
//!
//! The sharer is a process of its own, which is told what to do by lines; the home, the writer and
//! a member that goes are nodes of the test, each in a namespace of its own.

use crate::player::{self, Player, attached};
use crate::rig::{eventually, say};
use rackmem::locked::BlockLock;
use rackmem::{Config, Node, Rack};
use rackmem_hosts::{Hosts, Place, address};
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const HOSTS: usize = 4;
const SHARER: usize = 0;
const WRITER: usize = 1;
const HOME: usize = 2;
const GUEST: usize = 3;
const PORT: u16 = 7400;
/// Upgrades over a sharer.
const ROUNDS: u64 = 200;
/// Blocks that are given while the sharer is stopped.
const GIVEN: usize = 100;
/// Values that a reader sees of a thread that writes on.
const NEWS: u64 = 300;
/// Writes beside a thread that reads on.
const BESIDE: u64 = 3_000;

/// What the sharer's process is told to play, and whether the rack has a switch.
pub const PARTS: [(&str, bool); 2] = [("play-sharer", false), ("play-switched-sharer", true)];

fn config(folder: &Path, switched: bool, reads: Option<&str>) -> Config {
    let kernel = reads.map_or_else(String::new, |reads| {
        format!("kernel_reads = \"{reads}\"\nobject_memory = \"64K\"\nkernel_cache = true\n")
    });
    let more = match switched {
        false => format!("mode = \"home-only\"\nlease = '15s'\n{kernel}"),
        true => format!(
            "switch = \"{}:{PORT}\"\nlease = '15s'\n{kernel}\
             [migration]\nperiod = '20ms'\npatience = 100000\n",
            address(Place::Switch),
        ),
    };
    player::config((HOSTS, PORT), folder, &more)
}

/// The sharer's part: one line in, one line out.
pub fn play_sharer(part: &str, reads: &str, folder: &Path) {
    let switched = part == PARTS[1].0;
    let config = config(folder, switched, Some(reads));
    let Some(rack) = player::joined(&config, SHARER) else {
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
            // Until another line comes: one value after the other. The last one.
            ["count-up", addr, from] => {
                let (addr, from, ends) = (number(addr), number(from), AtomicBool::new(false));
                let last = std::thread::scope(|scope| {
                    let counter = scope.spawn(|| count_up(&node, (addr, from), &ends));
                    lines.next();
                    ends.store(true, Relaxed);
                    counter.join().expect("each is written")
                });
                say(format_args!("{last}"));
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
            // It has joined before the others.
            ["wait"] => {
                eventually("all have come", || {
                    let there = |other: usize| node.is_member(other as u16);
                    there(WRITER) && there(HOME)
                });
                say(format_args!("together"));
            }
            ["given"] => {
                let given = node.metrics().kernel_copies.expect("a program");
                say(format_args!(
                    "{} {} {given:?}",
                    given.answered,
                    given.passed()
                ));
            }
            _ => {
                let metrics = node.metrics();
                let kernel = metrics.kernel_cache.expect("a program");
                let (answered, passed) = (kernel.answered, kernel.passed());
                let rest = metrics.invalidated - answered;
                let asks = kernel.asks;
                say(format_args!("{answered} {passed} {rest} {asks} {kernel:?}"));
            }
        }
    }
}

fn count_up(node: &Node, (addr, from): (u64, u64), ends: &AtomicBool) -> u64 {
    node.store(addr, from).expect("a copy");
    say(format_args!("counting"));
    let mut last = from;
    while !ends.load(Relaxed) {
        last += 1;
        node.store(addr, last).expect("a copy");
        std::thread::yield_now();
    }
    last
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

/// Blocks that its kernel has given to readers, and misses that passed.
fn given(sharer: &mut Player) -> (u64, String) {
    let said = sharer.tell("given");
    let answered = said.split(' ').next().and_then(|word| word.parse().ok());
    (
        answered.unwrap_or_else(|| panic!("no figures: {said}")),
        said,
    )
}

pub fn in_mode(mode: &str) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, SHARER);
    let started = Player::start((&hosts, SHARER), (PARTS[0].0, mode), &folder);
    let Some((mut sharer, _)) = started else {
        return false;
    };
    assert!(attached(&hosts, SHARER));
    let config = config(&folder, false, None);
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
            let told = story(mode, &hosts, &config, (&writer, addrs), &mut sharer);
            let killed =
                what_it_has_given_outlives_it(mode, &hosts, (&writer, addrs[0]), &mut sharer);
            let home = home.node(HOME);
            let has = hosts.within(Place::Host(HOME), || home.load(addrs[0]));
            assert_eq!(has.expect("a namespace"), Ok(killed), "{mode}");
            told
        })
    });
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
    assert_eq!(sharer.tell("wait"), "together");
    // Both have a copy, and their events on it have long ended when the sharer is stopped.
    assert_eq!((read(sharer, other), writer.load(other)), (0, Ok(0)));
    let upgraded = upgrades_over_a_sharer(mode, writer, sharer, addr);
    while_it_is_stopped(mode, writer, sharer, other);
    what_was_written_there_goes_as_well(mode, writer, sharer, addr);
    let gave = gives_while_it_is_stopped(mode, writer, sharer, addr);
    let beside = beside_a_reader(writer, sharer, addr);
    let seen = gives_beside_a_writer(mode, writer, sharer, addr);
    over_an_epoch(mode, hosts, config, writer, sharer, addr);
    format!("{upgraded}; {gave}; {beside}; {seen}")
}

/// The sharer has written this, and its event is over.
fn dirty(writer: &Node, sharer: &mut Player, addr: u64, value: u64) {
    assert_eq!(sharer.tell(&format!("write {addr} {value}")), "done");
    let lock = BlockLock::attach(writer, addr).expect("a lock");
    drop(lock.write().expect("the lock"));
}

/// Nobody there can answer: what is dirty there a reader gets and then writes, and home has it
/// meanwhile, since the reader's copy may leave.
fn gives_while_it_is_stopped(mode: &str, writer: &Node, sharer: &mut Player, addr: u64) -> String {
    let mut value = 6_000;
    eventually("the kernel gives", || {
        value += 1;
        dirty(writer, sharer, addr, value);
        assert_eq!(writer.load(addr), Ok(value), "{mode}");
        given(sharer).0 > 0
    });
    let before = given(sharer);
    let mut took = Vec::new();
    for value in (7_000..).step_by(10).take(GIVEN) {
        dirty(writer, sharer, addr, value);
        sharer.signal(libc::SIGSTOP);
        let began = Instant::now();
        let read = writer.load(addr);
        took.push(began.elapsed());
        let left = writer.evict(addr);
        let again = writer.load(addr);
        let written = writer.store(addr, value + 1);
        sharer.signal(libc::SIGCONT);
        assert_eq!((read, again), (Ok(value), Ok(value)), "{mode}");
        assert_eq!((left, written), (Ok(true), Ok(())), "{mode}: {value}");
        assert_eq!(self::read(sharer, addr), value + 1, "{mode}");
    }
    let now = given(sharer);
    // Of what is clean as well: home has it, and asks who has a copy.
    assert!(
        now.0 >= before.0 + GIVEN as u64,
        "{mode}: {before:?}, {now:?}"
    );
    took.sort();
    let p50 = took[GIVEN / 2];
    format!(
        "{} given, p50 {p50:?} while it was stopped",
        now.0 - before.0
    )
}

/// A thread there writes on: a reader sees its values in order, whoever gives them.
fn gives_beside_a_writer(mode: &str, reader: &Node, sharer: &mut Player, addr: u64) -> String {
    let before = given(sharer);
    assert_eq!(sharer.tell(&format!("count-up {addr} 14000")), "counting");
    let mut last = reader.load(addr).expect("a value");
    let mut news = 0;
    while news < NEWS {
        let now = reader.load(addr).expect("a value");
        assert!(now >= last, "{mode}: {last} and then {now}");
        news += u64::from(now > last);
        last = now;
    }
    let written: u64 = sharer.tell("stop").parse().expect("a value");
    assert_eq!(reader.load(addr), Ok(written), "{mode}");
    let now = given(sharer);
    format!("beside a writer {} given", now.0 - before.0)
}

/// It dies when its kernel has given what was dirty there. What home has to have then.
fn what_it_has_given_outlives_it(
    mode: &str,
    hosts: &Hosts,
    (writer, addr): (&Node, u64),
    sharer: &mut Player,
) -> u64 {
    const LAST: u64 = 30_000;
    dirty(writer, sharer, addr, LAST);
    let before = writer.report().epoch;
    sharer.signal(libc::SIGSTOP);
    assert_eq!(writer.load(addr), Ok(LAST), "{mode}");
    sharer.kill();
    assert!(!attached(hosts, SHARER), "{mode}: left behind");
    eventually("an epoch begins", || writer.report().epoch > before);
    // The copy is not what keeps it.
    eventually("it may leave", || writer.evict(addr).is_ok());
    LAST
}

/// The same where the switch has the entry: what the node counts of it are copies that go, so that
/// the kernel gives and takes nothing away.
pub fn behind_a_switch(mode: &str) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, SHARER);
    let config = config(&folder, true, None);
    let within = |host, act: &mut (dyn FnMut() -> Rack + Send)| {
        let made = hosts.within(host, act);
        made.expect("a namespace")
    };
    let switch = hosts.within(Place::Switch, || Rack::serve_switch(&config));
    let switch = switch.expect("a namespace").expect("a place");
    let started = Player::start((&hosts, SHARER), (PARTS[1].0, mode), &folder);
    let Some((mut sharer, _)) = started else {
        return false;
    };
    let home = within(Place::Host(HOME), &mut || {
        Rack::join(&config, HOME).expect("a place")
    });
    let addr = hosts.within(Place::Host(HOME), || {
        home.node(HOME).alloc_isolated(0u64).expect("memory").addr()
    });
    let addr = addr.expect("a namespace");
    let told = hosts.within(Place::Host(WRITER), || {
        let writer = Rack::join(&config, WRITER).expect("a place");
        assert_eq!(sharer.tell("wait"), "together");
        gives_what_the_switch_has(mode, &writer.node(WRITER), &mut sharer, addr)
    });
    let told = told.expect("a namespace");
    assert!(sharer.end(), "{mode}");
    drop((sharer, home, switch));
    hosts.tear_down().expect("nothing is left");
    say(format_args!("behind a switch {told}"));
    true
}

/// Upgrades until the switch has granted one, of a copy at the sharer.
fn until_the_switch_has_it(writer: &Node, sharer: &mut Player, addr: u64, value: &mut u64) {
    let asks = |sharer: &mut Player| sharer.counts::<4>()[3];
    let before = asks(sharer);
    eventually("the switch has the entry", || {
        *value += 1;
        upgrade(writer, sharer, addr, *value);
        asks(sharer) > before
    });
}

fn gives_what_the_switch_has(mode: &str, writer: &Node, sharer: &mut Player, addr: u64) -> String {
    let mut value = 0;
    until_the_switch_has_it(writer, sharer, addr, &mut value);
    let before = given(sharer);
    for _ in 0..GIVEN {
        value += 1;
        dirty(writer, sharer, addr, value);
        sharer.signal(libc::SIGSTOP);
        let read = writer.load(addr);
        let left = writer.evict(addr);
        sharer.signal(libc::SIGCONT);
        assert_eq!((read, left), (Ok(value), Ok(true)), "{mode}");
    }
    let now = given(sharer);
    assert!(
        now.0 >= before.0 + GIVEN as u64,
        "{mode}: {before:?}, {now:?}"
    );
    // It has had it all the time: nothing takes it home again so soon.
    until_the_switch_has_it(writer, sharer, addr, &mut value);
    format!("{} given", now.0 - before.0)
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
    assert!((10_000..=last).contains(&seen) || seen == 7_991, "{seen}");
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
    let before = given(sharer).0;
    eventually("the kernel gives in it", || {
        value += 1;
        dirty(writer, sharer, addr, value);
        assert_eq!(writer.load(addr), Ok(value), "{mode}");
        given(sharer).0 > before
    });
}
