//! Lines of replicated memory that the kernels of their members' hosts answer: with two of three
//! members stopped, over a change of members, and in no config that is over.
//!
//! Two members are processes of their own, which are told what to do by lines; the third one and a
//! reader that has no copy are the test.

use crate::player::{self, Player};
use crate::rig::{LONG, eventually, say};
use rackmem::membership::{self, Role};
use rackmem::{Config, Node, Rack, RegionSpec, Replicated};
use rackmem_hosts::{Place, address};
use rackmem_proto::abd::{Stamp, first_line, own};
use rackmem_proto::wire::{
    Flags, HEADER_LEN, Header, Kind, OWN_LEN, RequesterId, Seq, Tag, decode, encode,
};
use std::io::BufRead;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// What a member's process is told to play.
pub const PART: [&str; 2] = ["play-lines-first", "play-lines-second"];
const HOSTS: usize = 4;
/// Those that are stopped, the one that is not, and who has no copy: copies are at the maker and
/// the two after it, and this reader asks these two first.
const MEMBERS: [usize; 2] = [0, 3];
const MAKER: usize = 2;
const READER: usize = 1;
const PORT: u16 = 7400;
const LINES: usize = 100;
/// A line: one that takes some lines of a processor's cache.
type Line = [u64; 32];

fn config(folder: &Path, reads: Option<&str>) -> Config {
    let kernel = reads.map_or_else(String::new, |reads| {
        format!("kernel_reads = \"{reads}\"\nobject_memory = \"64K\"\nreplicated_memory = \"1M\"\n")
    });
    let more = format!("lease = '60s'\nreplace_after = '200ms'\n{kernel}");
    player::config((HOSTS, PORT), folder, &more)
}

fn spec() -> RegionSpec {
    let line = size_of::<Line>();
    let spec = RegionSpec::new("lines", LINES * line).line(line as u32);
    spec.copies(3)
}

fn lines(node: &Node) -> Vec<Replicated<Line>> {
    let region = node.open_region(&spec()).expect("the region");
    let line = |nth| region.replicated(nth).expect("a line");
    (0..LINES).map(line).collect()
}

/// The number of the write that all words are of.
fn number_of(line: &Line) -> u64 {
    assert!(line.iter().all(|word| *word == line[0]), "{line:?}");
    line[0]
}

/// A member's part: one line in, one line out.
pub fn play_member(part: &str, reads: &str, folder: &Path) {
    let host = PART.iter().position(|known| *known == part);
    let host = MEMBERS[host.expect("a part")];
    let Some(rack) = player::joined(&config(folder, Some(reads)), host) else {
        return;
    };
    say(format_args!("ready"));
    let node = rack.node(host);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            // All of one line's writes have one number more.
            ["write", nth, writes] => {
                let lines = lines(&node);
                let nth: usize = nth.parse().expect("a number");
                for number in 1..=writes.parse().expect("a number") {
                    lines[nth].write([1000 + number; 32]).expect("a majority");
                }
                say(format_args!("done"));
            }
            _ => {
                let counts = node.metrics().copies.in_kernel.expect("a program");
                say(format_args!(
                    "{} {} {} {}",
                    counts.groups,
                    counts.answered,
                    counts.stamps,
                    counts.passed()
                ));
            }
        }
    }
}

/// What a member's program has: groups, lines that it has sent, stamps that it has told, and
/// packets that it has passed.
type Counts = [u64; 4];

pub fn in_mode(mode: &str) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, MEMBERS[0]);
    player::polls(&hosts, MEMBERS[1]);
    let start = |nth: usize| Player::start((&hosts, MEMBERS[nth]), (PART[nth], mode), &folder);
    let Some((first, _)) = start(0) else {
        return false;
    };
    let (second, _) = start(1).expect("as the first");
    let mut members = [first, second];
    let config = config(&folder, None);
    let told = std::thread::scope(|scope| {
        let (made, is_made) = channel();
        let (ends, ended) = channel::<()>();
        let (hosts, config) = (&hosts, &config);
        scope.spawn(move || {
            let within = hosts.within(Place::Host(MAKER), move || make(config, &made, &ended));
            within.expect("a namespace");
        });
        let members = &mut members;
        let told = hosts.within(Place::Host(READER), move || {
            let rack = Rack::join(config, READER).expect("a place");
            is_made.recv().expect("a region");
            story(mode, config, &rack, members)
        });
        drop(ends);
        told.expect("a namespace")
    });
    drop(members);
    hosts.tear_down().expect("nothing is left");
    say(format_args!("{told}"));
    true
}

/// The part of the member that is not stopped: it makes the region, and writes each line.
fn make(
    config: &Config,
    made: &std::sync::mpsc::Sender<()>,
    ended: &std::sync::mpsc::Receiver<()>,
) {
    let rack = Rack::join(config, MAKER).expect("a place");
    let node = rack.node(MAKER);
    eventually("all are members", || {
        (0..HOSTS as u16).all(|n| node.is_member(n))
    });
    node.create_region(&spec()).expect("a region");
    for (nth, line) in lines(&node).iter().enumerate() {
        line.write([nth as u64 + 1; 32]).expect("a majority");
    }
    made.send(()).expect("the reader waits");
    let _ = ended.recv();
}

fn story(mode: &str, config: &Config, rack: &Rack, members: &mut [Player; 2]) -> String {
    let node = rack.node(READER);
    let lines = lines(&node);
    let group = || {
        let groups = node.groups();
        let of_region = |group: &&rackmem::GroupStatus| group.name == "lines";
        groups
            .iter()
            .find(of_region)
            .cloned()
            .expect("the region's")
    };
    let mut copies: Vec<u16> = group().copies.iter().map(|copy| copy.node).collect();
    copies.sort_unstable();
    assert_eq!(copies, [0, 2, 3], "{mode}: who has copies");
    let read = |nth: usize| lines[nth].read().map(|line| number_of(&line));
    // The first answers tell whose kernels answer.
    for nth in 0..10 {
        assert_eq!(read(nth), Ok(nth as u64 + 1), "{mode}");
    }
    let before: [Counts; 2] = members.each_mut().map(|member| member.counts());
    for nth in 10..30 {
        assert_eq!(read(nth), Ok(nth as u64 + 1), "{mode}");
    }
    let now: [Counts; 2] = members.each_mut().map(|member| member.counts());
    let told = format!("{mode}: {before:?} {now:?}");
    let sum = |counts: &[Counts; 2], at: usize| counts[0][at] + counts[1][at];
    assert_eq!((now[0][0], now[1][0]), (1, 1), "{told}");
    // Who is asked for the line is who was not late before; but of two that are asked one is here.
    let answers = [1, 2].map(|at| sum(&now, at) - sum(&before, at));
    assert!(answers[0] + answers[1] >= 20, "{answers:?}: {told}");
    // Two of three do not run: nothing could be read without their kernels.
    members
        .iter()
        .for_each(|member| member.signal(libc::SIGSTOP));
    let before = node.metrics().copies;
    let stopped: Result<Vec<u64>, _> = (0..LINES).map(read).collect();
    let again: Result<Vec<u64>, _> = (0..LINES).map(read).collect();
    let now = node.metrics().copies;
    members
        .iter()
        .for_each(|member| member.signal(libc::SIGCONT));
    let expected: Vec<u64> = (1..=LINES as u64).collect();
    assert_eq!(
        (stopped, again),
        (Ok(expected.clone()), Ok(expected)),
        "{mode}"
    );
    let by_kernel = now.by_kernel - before.by_kernel;
    assert!(by_kernel >= 2 * LINES as u64, "{mode}: {before:?} {now:?}");
    // What is written then is read, beside the writes as well, and never something older.
    let line = &lines[7];
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| members[1].tell("write 7 300"));
        let mut last = 0;
        while !writes.is_finished() {
            let number = number_of(&line.read().expect("a majority"));
            assert!(number >= last, "{mode}: {last} and then {number}");
            last = number;
        }
        assert_eq!(writes.join().expect("it writes"), "done");
    });
    assert_eq!(read(7), Ok(1300), "{mode}");
    let old = group().config;
    let asked = |config| raw(Tag(first_line(group().number).0), config);
    let flags = asked(old).expect("an answer");
    assert!(
        flags.has(Flags::BY_KERNEL) && flags.has(Flags::DATA),
        "{mode}"
    );
    // One dies, and there is another in its place: what was asked before is not answered.
    let [first, second] = members;
    second.kill();
    let settings = &config.membership;
    let store = settings.source.open(&settings.name).expect("a store");
    let store = store.expect("members can change");
    membership::remove(&*store, Role::Node(MEMBERS[1] as u16), LONG).expect("a member");
    eventually("another has its place, and all of it", || {
        let group = group();
        let counts = group.copies.iter().filter(|copy| copy.counts && copy.live);
        group.config > old && counts.count() == 3
    });
    eventually("the kernel answers in the next config", || {
        let flags = asked(group().config);
        flags.is_some_and(|flags| flags.has(Flags::BY_KERNEL))
    });
    for config in [0, old, group().config + 1, u32::MAX] {
        let flags = asked(config).unwrap_or_default();
        assert!(!flags.has(Flags::BY_KERNEL), "{mode}: config {config}");
    }
    assert_eq!((read(7), read(8)), (Ok(1300), Ok(9)), "{mode}");
    let [groups, answered, stamps, passed]: Counts = first.counts();
    assert_eq!(groups, 1, "{mode}");
    format!(
        "lines {answered}, stamps {stamps}, passed {passed}; {by_kernel} answers for {} reads \
         while two of three were stopped",
        2 * LINES
    )
}

/// What the first member's host says to a request for a line in this config, if it answers.
fn raw(tag: Tag, config: u32) -> Option<Flags> {
    let socket = UdpSocket::bind((address(Place::Host(READER)), 0)).expect("a port");
    let who = RequesterId {
        node: READER as u16,
        slot: 63,
    };
    let mut header = Header::request(Kind::AbdRead, 0, tag, who, Seq(1));
    header.reply_port = socket.local_addr().expect("bound").port();
    header.flags = Flags::PROVIDER;
    let room = size_of::<Line>() + 64;
    let mut packet = encode(&header, OWN_LEN + room).to_vec();
    packet.extend(own(Stamp(0), config).to_bytes());
    packet.resize(HEADER_LEN + OWN_LEN + room, 0);
    let patience = Duration::from_millis(300);
    socket.set_read_timeout(Some(patience)).expect("a socket");
    let mut buffer = [0; 2048];
    // One that was lost does not tell anything.
    for _ in 0..3 {
        let agent = (address(Place::Host(MEMBERS[0])), PORT);
        socket.send_to(&packet, agent).expect("the network");
        if let Ok((len, _)) = socket.recv_from(&mut buffer) {
            let (header, _) = decode(&buffer[..len]).expect("a packet");
            return Some(header.flags);
        }
    }
    None
}
