//! Items of bounded memory that the kernel of their home's host answers: while the home writes,
//! while it is stopped for longer than the bound, and to its death.
//!
//! The home is a process of its own, which is told what to do by lines, in a namespace of its own;
//! the reader is the test.

use crate::player::{self, Player};
use crate::reads::{HOME, HOSTS, READER, config};
use crate::rig::{eventually, say};
use rackmem::bounded::Domain;
use rackmem::diagnostics::BoundedCounts;
use rackmem::{AccessError, Config, Contract, Rack, RackError, RegionSpec};
use rackmem_hosts::Place;
use std::io::BufRead;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a home's process is told to play.
pub const PART: &str = "play-items-home";
const ITEMS: usize = 200;
/// How old what is read may be.
const BOUND: Duration = Duration::from_millis(300);
/// Bytes of an item: of several lines.
type Item = [u64; 32];

fn spec() -> RegionSpec {
    let line = size_of::<Item>();
    let spec = RegionSpec::new("items", ITEMS * line).line(line as u32);
    spec.contract(Contract::Bounded)
}

/// What an item is by a write of this number.
fn item(number: u64) -> Item {
    [number; 32]
}

/// The number of the write that all words are of.
fn number_of(item: &Item) -> u64 {
    assert!(item.iter().all(|word| *word == item[0]), "{item:?}");
    item[0]
}

/// The home's part: one line in, one line out.
pub fn play_home(reads: &str, folder: &Path) {
    let Some(rack) = player::joined(&config(folder, Some(reads)), HOME) else {
        return;
    };
    let region = rack.node(HOME).create_region(&spec()).expect("a region");
    let items: Domain<Item> = Domain::of(&region, BOUND).expect("its items");
    for nth in 0..ITEMS / 2 {
        items.set(nth, &item(nth as u64 + 1)).expect("its own");
    }
    say(format_args!("ready"));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["set", nth, number] => {
                let nth = nth.parse().expect("a number");
                let number = number.parse().expect("a number");
                items.set(nth, &item(number)).expect("its own");
                say(format_args!("done"));
            }
            // All of one item's writes have one number more.
            ["write", writes] => {
                for number in 1..=writes.parse().expect("a number") {
                    items.set(0, &item(1000 + number)).expect("its own");
                }
                say(format_args!("done"));
            }
            _ => {
                let counts = rack.metrics().nodes[0].bounded.in_kernel;
                let counts = counts.expect("a program");
                say(format_args!(
                    "{} {} {} {}",
                    counts.regions,
                    counts.answered,
                    counts.unchanged,
                    counts.passed()
                ));
            }
        }
    }
}

/// What the home's program has: regions, items that it has sent, questions that it has answered,
/// and packets that it has passed.
fn counts(home: &mut Player) -> [u64; 4] {
    home.counts()
}

pub fn in_mode(mode: &str) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, HOME);
    let started = Player::start((&hosts, HOME), (PART, mode), &folder);
    let Some((mut home, _)) = started else {
        return false;
    };
    let config = config(&folder, None);
    let told = hosts.within(Place::Host(READER), || story(mode, &config, &mut home));
    let told = told.expect("a namespace");
    drop(home);
    hosts.tear_down().expect("nothing is left");
    say(format_args!("{told}"));
    true
}

fn story(mode: &str, config: &Config, home: &mut Player) -> String {
    let rack = Rack::join(config, READER).expect("a place");
    let node = rack.node(READER);
    let region = node.open_region(&spec()).expect("the home's region");
    let items: Domain<Item> = Domain::of(&region, BOUND).expect("its items");
    let read = |nth: usize| items.read(nth).map(|item| number_of(&item));
    let figures = || node.metrics().bounded;
    let expected = |nth: usize| if nth < ITEMS / 2 { nth as u64 + 1 } else { 0 };
    // The first answers tell that the kernel answers; items that nobody has written are zeros.
    for nth in [0, 1, ITEMS - 1] {
        assert_eq!(read(nth), Ok(expected(nth)), "{mode}");
    }
    let (before, missed) = (counts(home), figures().misses);
    assert_eq!(before[0], 1, "{mode}: its region is there");
    for nth in 2..20 {
        assert_eq!(read(nth), Ok(expected(nth)), "{mode}");
    }
    let (now, missed) = (counts(home), figures().misses - missed);
    // What the first news had room for was not asked for.
    assert!(
        missed > 4 && now[1] - before[1] >= missed,
        "{mode}: {missed}, {before:?} {now:?}"
    );
    while_it_is_stopped(mode, home, (&items, &figures));
    // What it writes then is told by its agent, and read.
    let before = figures();
    assert_eq!(home.tell("set 7 500"), "done");
    items.quiesce().expect("it answers");
    assert_eq!(read(7), Ok(500), "{mode}");
    let now = figures();
    assert!(now.by_agent > before.by_agent, "{mode}: {now:?}");
    assert_eq!(home.tell("set 7 501"), "done");
    assert_eq!(home.tell("write 300"), "done");
    items.quiesce().expect("it answers");
    assert_eq!((read(7), read(0)), (Ok(501), Ok(1300)), "{mode}");
    // Whatever comes in between.
    let told = counts(home);
    home.kill();
    let mut last = None;
    eventually("a read of a dead home ends", || {
        last = items.read(100).err();
        last.is_some()
    });
    let typed = matches!(
        last,
        Some(
            AccessError::Stale { .. }
                | AccessError::Rack(RackError::NodeLost { .. } | RackError::Timeout { .. })
        )
    );
    assert!(typed, "{mode}: {last:?}");
    format!(
        "items {}, nothing modified {}, passed {}",
        told[1], told[2], told[3]
    )
}

/// A process that does not run answers nothing; the kernel does, also that nothing was modified, so
/// reads go on within the bound for as long as one likes.
fn while_it_is_stopped(
    mode: &str,
    home: &Player,
    (items, figures): (&Domain<Item>, &dyn Fn() -> BoundedCounts),
) {
    items.quiesce().expect("it answers");
    home.signal(libc::SIGSTOP);
    let before = figures();
    let read = || -> Result<(), AccessError> {
        let began = Instant::now();
        let mut nth = 20;
        // Items that were never read, and those that were, for some times the bound.
        while nth < 90 || began.elapsed() < 4 * BOUND {
            let at = 20 + nth % 70;
            assert_eq!(number_of(&items.read(at)?), at as u64 + 1, "{mode}");
            nth += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        items.quiesce()
    };
    let done = read();
    home.signal(libc::SIGCONT);
    assert_eq!(done, Ok(()), "{mode}");
    let now = figures();
    let told = format!("{mode}: {before:?} {now:?}");
    assert_eq!(now.by_agent, before.by_agent, "{told}");
    assert!(now.misses - before.misses >= 70, "{told}");
    // The items, and a question within each bound at least.
    assert!(now.by_kernel - before.by_kernel >= 70 + 4, "{told}");
    assert!(now.news - before.news >= 4, "{told}");
}
