//! All tests, as the usual harness would run them: some at a time, each a process.

use crate::rig::{self, say};
use crate::{blocks, cache, changes, copies, homes, items, lines, reads};
use rackmem_hosts::Hosts;
use std::process::Command;
use std::sync::Mutex;

/// What a process is told that is to be one test.
pub const PART: &str = "test";
const MODES: [&str; 2] = ["skb", "native"];
/// Most of its time a test waits, for a member's lease above all.
const AT_A_TIME: usize = 4;

/// Whether it passed: else this machine cannot run it, which was said.
type Test = fn(&'static str) -> bool;

const TESTS: [(&str, Test); 11] = [
    ("copies", |mode| rig::tell(mode, copies::story)),
    ("homes", |mode| rig::tell(mode, homes::story)),
    ("changes", |mode| rig::tell(mode, changes::story)),
    ("reads", |mode| reads::in_mode(mode)),
    ("items", |mode| items::in_mode(mode)),
    ("lines", |mode| lines::in_mode(mode)),
    ("blocks", |mode| {
        blocks::in_mode(mode, blocks::PARTS[0], false)
    }),
    ("blocks_behind_the_kernel", |mode| {
        blocks::in_mode(mode, blocks::PARTS[0], true)
    }),
    ("blocks_of_a_packet", |mode| {
        blocks::in_mode(mode, blocks::PARTS[1], false)
    }),
    ("cache", |mode| cache::in_mode(mode)),
    ("cache_behind_a_switch", |mode| cache::behind_a_switch(mode)),
];

/// One of them, in this process.
pub fn play(name: &str, mode: &str) {
    let test = TESTS.iter().find(|test| test.0 == name);
    let mode = MODES.into_iter().find(|known| *known == mode);
    let (Some((_, test)), Some(mode)) = (test, mode) else {
        panic!("no test {name} {mode:?}");
    };
    if test(mode) {
        say(format_args!("test {name}_{mode} ... ok"));
    }
}

/// What became of them.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
}

/// Runs those whose names have all these words, as with the usual harness.
pub fn run(words: &[String]) {
    if let Err(error) = Hosts::probe() {
        say(format_args!("skipped: what runs in the kernel: {error}"));
        return tell(&Tally::default());
    }
    let all = TESTS
        .iter()
        .flat_map(|test| MODES.map(|mode| (test.0, mode)));
    let chosen = |(name, mode): &(&str, &str)| {
        let test = format!("{name}_{mode}");
        let mut words = words.iter().filter(|word| !word.starts_with('-'));
        words.all(|word| test.contains(&word[..]))
    };
    let left = Mutex::new(all.filter(chosen));
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let next = || left.lock().expect("nobody panics").next();
                while let Some((name, mode)) = next() {
                    one(name, mode, &tally);
                }
            });
        }
    });
    tell(&tally.into_inner().expect("nobody panics"));
}

fn one(name: &str, mode: &str, tally: &Mutex<Tally>) {
    let own = std::env::current_exe().expect("this program");
    let done = Command::new(own).args([PART, name, mode]).output();
    let done = done.expect("a process");
    let said = String::from_utf8_lossy(&done.stdout);
    let mut tally = tally.lock().expect("nobody panics");
    say(format_args!("{}", said.trim_end()));
    if !done.status.success() {
        say(format_args!("test {name}_{mode} ... FAILED"));
        let why = String::from_utf8_lossy(&done.stderr);
        say(format_args!("---- {name}_{mode} ----\n{}", why.trim_end()));
        tally.failed.push(format!("{name}_{mode}"));
    } else if said.contains("... ok") {
        tally.passed += 1;
    }
}

/// As the usual harness says it.
fn tell(Tally { passed, failed }: &Tally) {
    let ok = if failed.is_empty() { "ok" } else { "FAILED" };
    say(format_args!(
        "test result: {ok}. {} passed; {} failed; 0 ignored",
        passed.max(&usize::from(failed.is_empty())),
        failed.len()
    ));
    if !failed.is_empty() {
        std::process::exit(101);
    }
}
