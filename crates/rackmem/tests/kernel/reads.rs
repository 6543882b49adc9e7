//! Objects of a home that the kernel of its host reads: beside writers, while the home is stopped,
//! freed and reused, over an epoch, and to the home's death.
//!
//! The home is a process of its own, which is told what to do by lines, in a namespace of its own;
//! readers are threads of the test.

use crate::player::{self, Player, attached};
use crate::rig::{eventually, say};
use rackmem::object::{Object, ObjectRef};
use rackmem::{AccessError, Config, Contract, Node, Rack, RackError, RegionSpec};
use rackmem_hosts::{Hosts, Place, address};
use rackmem_proto::sabre::own;
use rackmem_proto::wire::{
    Flags, HEADER_LEN, Header, Kind, OWN_LEN, Own, Reason, RequesterId, Seq, Tag, decode, encode,
};
use std::io::BufRead;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

pub const HOSTS: usize = 3;
/// The home, a reader, and a member that goes: an epoch begins.
pub const HOME: usize = 0;
pub const READER: usize = 1;
const GUEST: usize = 2;
const PORT: u16 = 7400;
/// Bytes of objects: one line, one granule, several, and as many as there can be.
const LENGTHS: [usize; 6] = [8, 128, 1024, 1032, 8192, 65_520];
/// Reads beside writers, of each object.
const READS: usize = 3_000;

pub fn config(folder: &Path, reads: Option<&str>) -> Config {
    let kernel = reads.map_or_else(String::new, |reads| {
        format!("kernel_reads = \"{reads}\"\nobject_memory = \"4M\"\n")
    });
    player::config((HOSTS, PORT), folder, &format!("lease = '15s'\n{kernel}"))
}

/// Each word of an object is the number of its write.
fn content(number: u64, len: usize) -> Vec<u8> {
    number.to_ne_bytes().repeat(len / 8)
}

/// The write that all words are of.
fn number_of(bytes: &[u8]) -> u64 {
    let words: Vec<u64> = bytes
        .chunks(8)
        .map(|word| u64::from_ne_bytes(word.try_into().expect("whole words")))
        .collect();
    let torn = words.iter().position(|word| *word != words[0]);
    assert_eq!(
        torn,
        None,
        "{} and {:?}",
        words[0],
        torn.map(|at| words[at])
    );
    words[0]
}

/// The home's part: one line in, one line out.
pub fn play_home(reads: &str, folder: &Path) {
    let Some(rack) = player::joined(&config(folder, Some(reads)), HOME) else {
        return;
    };
    let node = rack.node(HOME);
    let spec = RegionSpec::new("objects", 2 << 20).contract(Contract::Object);
    let region = node.create_region(&spec).expect("a region");
    let make = |len| region.alloc_bytes(&content(1, len), len).expect("room");
    let mut objects: Vec<Object<[u8]>> = LENGTHS.map(make).into();
    let told = |object: &Object<[u8]>| format!("{}:{}", object.addr(), object.at().generation());
    let all: Vec<String> = objects.iter().map(told).collect();
    say(format_args!("ready {}", all.join(" ")));
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            // Until another line comes.
            ["write"] => {
                let ends = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    for object in &objects {
                        let ends = &ends;
                        scope.spawn(move || write_on(object, ends));
                    }
                    say(format_args!("writing"));
                    lines.next();
                    ends.store(true, Relaxed);
                });
                say(format_args!("quiet"));
            }
            ["replace", nth] => {
                let nth: usize = nth.parse().expect("a number");
                objects.remove(nth).free().expect("it was there");
                objects.insert(
                    nth,
                    region
                        .alloc_bytes(&content(7, LENGTHS[nth]), 0)
                        .expect("room"),
                );
                say(format_args!("{}", told(&objects[nth])));
            }
            ["shrink", nth, len] => {
                let (nth, len): (usize, usize) = (
                    nth.parse().expect("a number"),
                    len.parse().expect("a number"),
                );
                objects[nth].write(&content(9, len)).expect("it is there");
                say(format_args!("done"));
            }
            _ => {
                let counts = rack.metrics().nodes[0]
                    .objects
                    .in_kernel
                    .expect("a program");
                let passed = counts.passed();
                say(format_args!(
                    "{} {passed} {}",
                    counts.answered, counts.not_modified
                ));
            }
        }
    }
}

fn write_on(object: &Object<[u8]>, ends: &AtomicBool) {
    let len = object.read().expect("its own").len();
    let mut number = 1;
    while !ends.load(Relaxed) {
        number += 1;
        object.write(&content(number, len)).expect("its own");
        for _ in 0..number % 1024 {
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
}

/// What the home's kernel has answered, passed, and said to be known.
type Counts = [u64; 3];

pub fn in_mode(mode: &str) -> bool {
    let (hosts, folder) = player::hosts(HOSTS, HOME);
    let start = || Player::start((&hosts, HOME), ("play-home", mode), &folder);
    let Some((mut home, refs)) = start() else {
        return false;
    };
    assert!(attached(&hosts, HOME));
    let refs: Vec<ObjectRef> = refs.split(' ').map(reference).collect();
    let config = config(&folder, None);
    let told = hosts.within(Place::Host(READER), || {
        story(mode, &hosts, &config, &mut home, &refs)
    });
    let told = told.expect("a namespace");
    // However it ends.
    let (mut again, _) = start().expect("it was loaded before");
    assert!(attached(&hosts, HOME), "{mode}");
    assert!(again.end());
    assert!(!attached(&hosts, HOME), "{mode}: left behind");
    drop((home, again));
    hosts.tear_down().expect("nothing is left");
    say(format_args!("{told}"));
    true
}

fn reference(text: &str) -> ObjectRef {
    let (addr, generation) = text.split_once(':').expect("an address and a generation");
    let generation = generation.parse().expect("a number");
    ObjectRef::new(addr.parse().expect("a number"), generation)
}

fn story(
    mode: &str,
    hosts: &Hosts,
    config: &Config,
    home: &mut Player,
    refs: &[ObjectRef],
) -> String {
    let rack = Rack::join(config, READER).expect("a place");
    let node = rack.node(READER);
    let attach = |at: ObjectRef| node.attach_object::<[u8]>(at).expect("an object's address");
    let objects: Vec<Object<[u8]>> = refs.iter().map(|at| attach(*at)).collect();
    answers_without_the_agent(mode, &node, home, &objects);
    let beside = beside_writers(home, &objects);
    let (awake, stopped) = while_it_is_stopped(mode, &node, home, &objects);
    is_gone_and_replaced(home, &node, &objects);
    becomes_shorter(home, &objects[4]);
    let epochs = over_an_epoch(mode, hosts, config, &rack, home, &objects[2]);
    // It dies.
    home.kill();
    assert!(!attached(hosts, HOME), "{mode}: left behind");
    let mut last = None;
    eventually("a read of a dead home ends", || {
        last = objects[2].read().err();
        last.is_some()
    });
    let typed = matches!(
        last,
        Some(AccessError::Rack(
            RackError::NodeLost { .. } | RackError::Timeout { .. }
        ))
    );
    assert!(typed, "{mode}: {last:?}");
    format!("{beside}; p50 awake {awake:?}, stopped {stopped:?}; {epochs}")
}

/// The first answer tells that the kernel answers, and from then on it does, all of it.
fn answers_without_the_agent(mode: &str, node: &Node, home: &mut Player, objects: &[Object<[u8]>]) {
    for (object, len) in objects.iter().zip(LENGTHS) {
        assert_eq!(object.read().expect("it is there"), content(1, len));
    }
    let (before, answered): (_, Counts) = (node.metrics().objects, home.counts());
    for (object, len) in objects.iter().zip(LENGTHS) {
        for _ in 0..20 {
            let (version, bytes) = object.read_versioned().expect("it is there");
            assert_eq!(bytes, content(1, len));
            assert_eq!(object.read_if_newer(version), Ok(None));
        }
    }
    let (now, answers): (_, Counts) = (node.metrics().objects, home.counts());
    let granules: usize = LENGTHS.iter().map(|len| len.div_ceil(1024)).sum();
    let by = (
        now.by_kernel - before.by_kernel,
        now.by_agent - before.by_agent,
    );
    let told = format!("{mode}: {by:?}, {answered:?}, {answers:?}");
    // Where the machine is loaded packets may be lost, and asked for again.
    assert_eq!(by, (20 * LENGTHS.len() as u64, 0), "{told}");
    assert!(answers[0] - answered[0] >= 20 * granules as u64, "{told}");
    assert!(
        answers[2] - answered[2] >= 20 * LENGTHS.len() as u64,
        "{told}"
    );
    let together: Vec<&Object<[u8]>> = objects[..4].iter().collect();
    for (read, len) in node.read_many(&together).into_iter().zip(LENGTHS) {
        assert_eq!(read.expect("it is there").1, content(1, len));
    }
}

/// Nothing that is read is of two writes, and nothing older comes after something newer.
fn beside_writers(home: &mut Player, objects: &[Object<[u8]>]) -> String {
    let before: Counts = home.counts();
    assert_eq!(home.tell("write"), "writing");
    for (object, len) in objects.iter().zip(LENGTHS) {
        let mut last = (0, 0);
        // Those of 64 granules are as many packets each.
        let reads = if len > 8192 { READS / 20 } else { READS };
        for _ in 0..reads {
            let (version, bytes) = object.read_versioned().expect("it is there");
            assert_eq!(bytes.len(), len);
            let now = (version, number_of(&bytes));
            assert!(now >= last && now.0 % 2 == 0, "{last:?} and then {now:?}");
            assert_eq!(
                now.0 == last.0,
                now.1 == last.1,
                "{last:?} and then {now:?}"
            );
            last = now;
        }
    }
    assert_eq!(home.tell("stop"), "quiet");
    let now: Counts = home.counts();
    let (answered, passed) = (now[0] - before[0], now[1] - before[1]);
    assert!(answered > 0, "of {passed}");
    format!("{answered} answered, {passed} passed beside writers")
}

/// A process that does not run answers nothing; the kernel does, as before.
fn while_it_is_stopped(
    mode: &str,
    node: &Node,
    home: &mut Player,
    objects: &[Object<[u8]>],
) -> (Duration, Duration) {
    let timed = |objects: &[Object<[u8]>]| {
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..200 {
            let began = Instant::now();
            number_of(&objects[1].read().expect("it is there"));
            times.push(began.elapsed());
        }
        times.sort();
        times[times.len() / 2]
    };
    let awake = timed(objects);
    let before = node.metrics().objects;
    home.signal(libc::SIGSTOP);
    let stopped = timed(objects);
    let numbers = objects
        .iter()
        .map(|object| object.read().map(|bytes| number_of(&bytes)));
    let read: Result<Vec<u64>, AccessError> = numbers.collect();
    home.signal(libc::SIGCONT);
    assert!(read.is_ok(), "{mode}: {read:?}");
    let now = node.metrics().objects;
    let by = (
        now.by_kernel - before.by_kernel,
        now.by_agent - before.by_agent,
    );
    assert_eq!(by, (200 + objects.len() as u64, 0), "{mode}");
    (awake, stopped)
}

fn is_gone_and_replaced(home: &mut Player, node: &Node, objects: &[Object<[u8]>]) {
    let fresh = reference(&home.tell("replace 1"));
    let addr = objects[1].addr();
    for _ in 0..20 {
        assert_eq!(objects[1].read(), Err(AccessError::Gone { addr }));
    }
    assert_eq!(fresh.addr(), addr, "its place is used again");
    let fresh = node
        .attach_object::<[u8]>(fresh)
        .expect("an object's address");
    assert_eq!(fresh.read().map(|bytes| number_of(&bytes)), Ok(7));
    assert_eq!(objects[1].read(), Err(AccessError::Gone { addr }));
}

/// A reader that expects more granules than there are gets what there is.
fn becomes_shorter(home: &mut Player, object: &Object<[u8]>) {
    assert_eq!(home.tell("shrink 4 2048"), "done");
    assert_eq!(object.read(), Ok(content(9, 2048)));
    assert_eq!(home.tell("shrink 4 8192"), "done");
    assert_eq!(object.read(), Ok(content(9, 8192)));
}

/// A member dies: the kernel answers in the epoch that begins, and in no other.
fn over_an_epoch(
    mode: &str,
    hosts: &Hosts,
    config: &Config,
    rack: &Rack,
    home: &mut Player,
    object: &Object<[u8]>,
) -> String {
    let epoch = || rack.view().expect("a place").epoch;
    let before = epoch();
    assert_eq!(
        raw(object, before).expect("an answer").0,
        Reason::None,
        "{mode}"
    );
    let guest = hosts.within(Place::Host(GUEST), || {
        // Without a word, as a crash does.
        drop(Rack::join(config, GUEST).expect("a place"));
    });
    guest.expect("a namespace");
    let node = rack.node(READER);
    eventually("an epoch begins", || epoch() > before);
    let served = |home: &mut Player| {
        let [answered] = home.counts();
        number_of(&object.read().expect("it is there"));
        home.counts::<1>() > [answered]
    };
    eventually("the kernel answers in it", || served(home));
    for epoch in [0, before, epoch() + 1, u32::MAX] {
        assert_eq!(raw(object, epoch), None, "{mode}: epoch {epoch}");
    }
    let (reason, flags) = raw(object, epoch()).expect("an answer");
    assert!(
        reason == Reason::None && flags.has(Flags::BY_KERNEL),
        "{mode}"
    );
    assert!(node.metrics().objects.by_kernel > 0);
    format!("epochs {before} and {}", epoch())
}

/// What a request of this epoch is answered, if it is.
fn raw(object: &Object<[u8]>, epoch: u32) -> Option<(Reason, Flags)> {
    let socket = UdpSocket::bind((address(Place::Host(READER)), 0)).expect("a port");
    let who = RequesterId {
        node: READER as u16,
        slot: 63,
    };
    let mut header = Header::request(Kind::ObjRead, epoch, Tag(object.addr()), who, Seq(1));
    header.reply_port = socket.local_addr().expect("bound").port();
    let mut packet = encode(&header, OWN_LEN + 1072).to_vec();
    let own: Own = own(0, object.at().generation(), 0);
    packet.extend(own.to_bytes());
    packet.resize(HEADER_LEN + OWN_LEN + 1072, 0);
    let patience = Duration::from_millis(300);
    socket.set_read_timeout(Some(patience)).expect("a socket");
    let mut buffer = [0; 2048];
    // One that was lost does not tell anything.
    for _ in 0..3 {
        let agent = (address(Place::Host(HOME)), PORT);
        socket.send_to(&packet, agent).expect("the network");
        if let Ok((len, _)) = socket.recv_from(&mut buffer) {
            let (header, _) = decode(&buffer[..len]).expect("a packet");
            return Some((header.reason, header.flags));
        }
    }
    None
}
