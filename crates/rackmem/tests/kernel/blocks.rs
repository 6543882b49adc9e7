//! Blocks that the kernel of their home's host gives whom the switch has granted them: while the
//! home is stopped, beside a node that writes and evicts, and over an epoch. They are of the usual
//! size, which is several packets, and of one packet; the switch is a process, or in the kernel.
//!
//! The home is a process of its own, which is told what to do by lines; the switch, two nodes that
//! read and write, and a member that goes are of the test, each in a namespace of its own.

use crate::player::{self, Player, attached};
use crate::rig::{eventually, say};
use rackmem::{Config, Node, Rack};
use rackmem_hosts::{Hosts, Place, UPLINK, address};
use rackmem_xdp::BlockReads;
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What the home's process is told to play, with blocks of so many bytes.
pub const PARTS: [(&str, usize); 2] = [("play-blocks-home", 4096), ("play-packets-home", 1024)];
const HOSTS: usize = 4;
const HOME: usize = 0;
const WRITER: usize = 1;
const READER: usize = 2;
const GUEST: usize = 3;
const PORT: u16 = 7400;
const BLOCKS: usize = 100;
/// Writes beside a thread that reads on.
const BESIDE: u64 = 300;

fn config(folder: &Path, block: usize, reads: Option<&str>) -> Config {
    Config::parse(&text(folder, block, reads)).expect("a configuration")
}

fn text(folder: &Path, block: usize, reads: Option<&str>) -> String {
    let kernel = reads.map_or_else(String::new, |reads| {
        format!(
            "kernel_reads = \"{reads}\"\nobject_memory = \"64K\"\nbounded_memory = \"0\"\n\
             replicated_memory = \"0\"\n"
        )
    });
    let more = format!(
        "switch = \"{}:{PORT}\"\nblock_size = {block}\nlease = '15s'\n{kernel}\
         [migration]\nperiod = '20ms'\npatience = 100000\n",
        address(Place::Switch),
    );
    player::text((HOSTS, PORT), folder, &more)
}

/// The home's part: one line in, one line out.
pub fn play_home(part: &str, reads: &str, folder: &Path) {
    let known = PARTS.into_iter().find(|known| known.0 == part);
    let (_, block) = known.expect("a part");
    let Some(rack) = player::joined(&config(folder, block, Some(reads)), HOME) else {
        return;
    };
    let node = rack.node(HOME);
    let place = rack.kernel_reads().expect("a program");
    assert_eq!(place.no_blocks, None);
    let base = node.alloc_bytes(BLOCKS * block).expect("memory");
    for nth in 0..BLOCKS as u64 {
        let addr = base + nth * block as u64;
        node.store(addr, nth + 1).expect("its own memory");
        node.evict(addr).expect("its own memory");
    }
    say(format_args!("ready {base}"));
    for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
        let metrics = node.metrics();
        let kernel = metrics.kernel_blocks.expect("a program");
        say(format_args!(
            "{} {} {} {kernel:?} {:?}",
            kernel.blocks,
            kernel.answered,
            kernel.passed(),
            metrics.home
        ));
    }
}

/// A node of the test, in its own namespace: a thread's sockets are of the one that it is in.
struct Site<'a> {
    hosts: &'a Hosts,
    rack: Rack,
    host: usize,
}

impl Site<'_> {
    fn join<'a>(hosts: &'a Hosts, config: &Config, host: usize) -> Site<'a> {
        let join = || Rack::join(config, host).expect("a place");
        let rack = hosts.within(Place::Host(host), join);
        let rack = rack.expect("a namespace");
        Site { hosts, rack, host }
    }

    fn at<R: Send>(&self, act: impl FnOnce(&Node) -> R + Send) -> R {
        let node = self.rack.node(self.host);
        let done = self.hosts.within(Place::Host(self.host), || act(&node));
        done.expect("a namespace")
    }

    fn read(&self, addrs: &[u64]) -> Vec<u64> {
        self.at(|node| {
            let values = addrs.iter().map(|addr| node.load(*addr).expect("a value"));
            values.collect()
        })
    }

    /// The same, and how long half of these took at most.
    fn timed(&self, addrs: &[u64]) -> (Vec<u64>, Duration) {
        self.at(|node| {
            let timed = |addr: &u64| {
                let began = Instant::now();
                (node.load(*addr).expect("a value"), began.elapsed())
            };
            let (values, mut took): (Vec<u64>, Vec<Duration>) = addrs.iter().map(timed).unzip();
            took.sort_unstable();
            (values, took[took.len() / 2])
        })
    }

    /// Has no copy any more, so that home is asked if nobody else has one.
    fn evict(&self, addrs: &[u64]) {
        self.at(|node| {
            for addr in addrs {
                node.evict(*addr).expect("it may leave");
            }
        });
    }

    fn write(&self, addrs: &[u64], first: u64) {
        self.at(|node| {
            for (addr, value) in addrs.iter().zip(first..) {
                node.store(*addr, value).expect("the right to write");
            }
        });
    }
}

/// Blocks that the home's program has, that it has sent, and requests that it has passed.
fn counts(home: &mut Player) -> [u64; 3] {
    home.counts()
}

/// Whether a program that gives blocks is attached at the home's host.
fn gives(hosts: &Hosts) -> bool {
    let there = hosts.within(Place::Host(HOME), || BlockReads::at(UPLINK));
    there.expect("a namespace").expect("an interface") > 0
}

/// With a home that plays this part, and the switch in the kernel or not.
pub fn in_mode(mode: &str, (part, block): (&str, usize), in_kernel: bool) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, HOME);
    let config = config(&folder, block, None);
    // Its sockets are of the namespace that this thread is in.
    let as_process = || Rack::serve_switch(&config).expect("a place");
    let in_process = (!in_kernel).then(|| {
        let switch = hosts.within(Place::Switch, as_process);
        switch.expect("a namespace")
    });
    let file = hosts.folder().join("rack.toml");
    std::fs::write(&file, text(&folder, block, None)).expect("a file");
    let switch = in_kernel.then(|| Player::switch(&hosts, mode, &file));
    if matches!(switch, Some(None)) {
        return false;
    }
    let Some((mut home, base)) = Player::start((&hosts, HOME), (part, mode), &folder) else {
        return false;
    };
    assert!(attached(&hosts, HOME) && gives(&hosts));
    let base: u64 = base.parse().expect("an address");
    let addrs: Vec<u64> = (0..BLOCKS as u64)
        .map(|nth| base + nth * block as u64)
        .collect();
    let sites = [WRITER, READER].map(|host| Site::join(&hosts, &config, host));
    eventually("all are members", || {
        let knows = |site: &Site<'_>| (0..3).all(|n| site.rack.node(site.host).is_member(n));
        sites.iter().all(knows)
    });
    let told = story(mode, (&hosts, &config), &sites, &addrs, &mut home);
    drop(sites);
    match in_kernel {
        true => home.kill(),
        false => assert!(home.end(), "{mode}"),
    }
    let left = attached(&hosts, HOME) || gives(&hosts);
    assert!(!left, "{mode}: left behind");
    drop((home, in_process));
    if let Some(mut switch) = switch.flatten() {
        assert!(switch.end(), "{mode}");
    }
    hosts.tear_down().expect("nothing is left");
    let place = if in_kernel {
        ", behind a switch in the kernel"
    } else {
        ""
    };
    say(format_args!("{block} bytes{place}: {told}"));
    true
}

/// What both read is asked of the other's cache, and so its entry goes to the switch.
fn until_the_switch_has_all([writer, reader]: &[Site<'_>; 2], addrs: &[u64], home: &mut Player) {
    eventually("the switch has all", || {
        writer.read(addrs);
        reader.evict(addrs);
        reader.read(addrs);
        counts(home)[0] == BLOCKS as u64
    });
    writer.evict(addrs);
    reader.evict(addrs);
}

fn story(
    mode: &str,
    rack: (&Hosts, &Config),
    sites: &[Site<'_>; 2],
    addrs: &[u64],
    home: &mut Player,
) -> String {
    let [writer, reader] = sites;
    let first: Vec<u64> = (1..=BLOCKS as u64).collect();
    assert_eq!(writer.read(addrs), first, "{mode}");
    until_the_switch_has_all(sites, addrs, home);
    let before = counts(home);
    // Nobody there can answer, three times over; nor give a block to who writes it.
    home.signal(libc::SIGSTOP);
    let stopped = [0; 3].map(|_| {
        let read = reader.timed(addrs);
        reader.evict(addrs);
        read
    });
    writer.write(addrs, 1000);
    home.signal(libc::SIGCONT);
    assert!(stopped.iter().all(|read| read.0 == first), "{mode}");
    let now = counts(home);
    let answered = now[1] - before[1];
    assert!(answered >= 4 * BLOCKS as u64, "{mode}: {before:?} {now:?}");
    // What comes home then is what the kernel gives.
    let before = now;
    writer.evict(addrs);
    let second: Vec<u64> = (1000..).take(BLOCKS).collect();
    assert_eq!(reader.read(addrs), second, "{mode}");
    let now = counts(home);
    assert!(
        now[1] >= before[1] + BLOCKS as u64,
        "{mode}: {before:?} {now:?}"
    );
    let beside = beside_a_writer(mode, sites, addrs[7], home);
    over_an_epoch(mode, rack, sites, addrs, home);
    let [_, _, passed] = counts(home);
    let p50 = stopped.map(|read| read.1)[2];
    format!(
        "blocks {answered}, p50 {p50:?} while their home was stopped; {beside}; passed {passed}"
    )
}

/// A block that comes home again and again, and what a thread that reads on gets of it.
fn beside_a_writer(
    mode: &str,
    [writer, reader]: &[Site<'_>; 2],
    addr: u64,
    home: &mut Player,
) -> String {
    let before = counts(home);
    let ends = AtomicBool::new(false);
    let reads = |node: &Node| {
        let mut last = node.load(addr).expect("a value");
        while !ends.load(Relaxed) {
            node.evict(addr).expect("it may leave");
            let now = node.load(addr).expect("a value");
            assert!(now >= last, "{mode}: {last} and then {now}");
            last = now;
        }
        last
    };
    let seen = std::thread::scope(|scope| {
        let reads = scope.spawn(|| reader.at(reads));
        writer.at(|node| {
            for value in 5000..=5000 + BESIDE {
                // What it has sent home is what it gets.
                let before = node.load(addr).expect("a value");
                assert!(value == 5000 || before == value - 1, "{mode}: {before}");
                node.store(addr, value).expect("the right to write");
                node.evict(addr).expect("it may leave");
            }
        });
        ends.store(true, Relaxed);
        reads.join().expect("it never goes back")
    });
    assert!(seen <= 5000 + BESIDE, "{mode}: {seen}");
    assert_eq!(reader.read(&[addr]), [5000 + BESIDE], "{mode}");
    let now = counts(home);
    format!("beside a writer {}", now[1] - before[1])
}

/// A member dies: nothing of the epoch before is given, and the kernel answers in the next one.
fn over_an_epoch(
    mode: &str,
    (hosts, config): (&Hosts, &Config),
    sites: &[Site<'_>; 2],
    addrs: &[u64],
    home: &mut Player,
) {
    let [writer, reader] = sites;
    let epoch = || writer.rack.node(WRITER).report().epoch;
    let guest = Site::join(hosts, config, GUEST);
    eventually("it is a member", || {
        guest.at(|node| node.load(addrs[0]).is_ok())
    });
    let before = epoch();
    // Without a word, as a crash does.
    drop(guest);
    eventually("an epoch begins", || epoch() > before);
    writer.write(addrs, 9000);
    until_the_switch_has_all(sites, addrs, home);
    let before = counts(home);
    let third: Vec<u64> = (9000..).take(BLOCKS).collect();
    assert_eq!(reader.read(addrs), third, "{mode}");
    let now = counts(home);
    assert!(
        now[1] >= before[1] + BLOCKS as u64,
        "{mode}: {before:?} {now:?}"
    );
}
