//! What test runs of the program for reads have in common: who asks whom, frames, what becomes of
//! one, and programs with a difference that is planted.

use rackmem_fabric::shm::Lent;
use rackmem_proto::words::Words;
use rackmem_wire::{HEADER_LEN, NodeId, decode};
use rackmem_xdp::carrier::{CARRIER_LEN, Frame};
use rackmem_xdp::{Error, ObjectReads, Sizes, Verdict};
use std::io::Write;
use std::net::SocketAddrV4;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::channel;

pub const AGENT: &str = "10.0.0.3:7400";
pub const READER: &str = "10.0.0.1:50123";
/// Where the reader listens.
pub const REPLY: u16 = 50_123;
/// Where a packet says how long its body is.
#[allow(dead_code, reason = "not every test forges lengths")]
pub const BODY_LEN_AT: usize = 44;

pub fn at(text: &str) -> SocketAddrV4 {
    text.parse().expect("an address")
}

/// The program, or another one in its place. None: the kernel takes no program from this process,
/// which is said.
pub fn load(test: &str, object: Option<&[u8]>, sizes: Sizes) -> Option<ObjectReads> {
    let loaded = match object {
        None => ObjectReads::load_sized(sizes),
        Some(object) => ObjectReads::load_object(object, sizes),
    };
    or_skipped(test, loaded)
}

/// A program that was loaded. None: the kernel takes none from this process, which is said.
pub fn or_skipped<T>(test: &str, loaded: Result<T, Error>) -> Option<T> {
    match loaded {
        Ok(program) => Some(program),
        Err(error @ (Error::Permission | Error::Rack(_))) => {
            skipped(test, &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn skipped(test: &str, why: &dyn std::fmt::Display) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "skipped: {test}: {why}");
}

/// The block that came in these packets of a node, if they are one.
#[allow(dead_code, reason = "not every test hears what is sent")]
pub fn whole(packets: &[Vec<u8>], sender: NodeId) -> Option<Vec<u8>> {
    let mut block = Vec::new();
    for packet in packets {
        let (header, body) = decode(packet).expect("a packet");
        if header.offset as usize != block.len() || header.sender != sender {
            return None;
        }
        block.extend(body);
    }
    Some(block)
}

/// A packet on its way from the reader to the agent.
pub fn frame(packet: &[u8]) -> Vec<u8> {
    Frame {
        macs: [[2, 0, 0, 0, 0, 3], [2, 0, 0, 0, 0, 1]],
        from: at(READER),
        to: at(AGENT),
        payload: packet.to_vec(),
    }
    .to_bytes()
}

/// What becomes of a packet in the program: an answer, or nothing, and then it passes as it came.
#[allow(dead_code, reason = "not every test compares whole answers")]
pub fn became(reads: &ObjectReads, packet: &[u8]) -> Option<Vec<u8>> {
    let frame = frame(packet);
    let ran = reads.run(&frame, 1).expect("it runs");
    match ran.verdict {
        Verdict::Pass => {
            assert_eq!(ran.frame, frame, "it passes another frame");
            None
        }
        Verdict::Redirect => {
            let lengths = [ran.frame[16], ran.frame[17]];
            let end = 14 + usize::from(u16::from_be_bytes(lengths));
            let answer = Frame::parse(&ran.frame[..end]).expect("a datagram with right sums");
            let port = decode(packet).expect("a packet").0.reply_port;
            let to = SocketAddrV4::new(*at(READER).ip(), port);
            assert_eq!((answer.from, answer.to), (at(AGENT), to));
            assert_eq!(answer.macs, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 3]]);
            Some(answer.payload)
        }
        other => panic!("{other:?}"),
    }
}

/// The program with a difference, compiled by the arguments of the build.
pub fn planted(number: u32) -> Vec<u8> {
    planted_in("objects.bpf.c", number)
}

/// The same of any program.
pub fn planted_in(source: &str, number: u32) -> Vec<u8> {
    let out = std::path::Path::new(env!("OUT_DIR"));
    let arguments = std::fs::read_to_string(out.join("clang.txt")).expect("the build's");
    let name = format!("rackmem-planted-{number}-{}.o", std::process::id());
    let object = std::env::temp_dir().join(name);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../switch/xdp/");
    let mut clang = Command::new("clang");
    clang
        .args(arguments.lines())
        .arg(format!("-DPLANT={number}"));
    let ran = clang
        .arg(format!("{sources}{source}"))
        .arg("-o")
        .arg(&object)
        .output();
    let ran = ran.expect("clang");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let bytes = std::fs::read(&object).expect("what it has made");
    let _ = std::fs::remove_file(&object);
    bytes
}

#[allow(dead_code, reason = "not every test throws dice")]
pub struct Dice(pub u64);

#[allow(dead_code, reason = "not every test throws dice")]
impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Memory that a process shares with the program, as rules have it.
#[allow(dead_code, reason = "objects have none")]
pub struct Shared(pub Lent);

impl Words for Shared {
    fn load(&self, word: usize) -> u64 {
        let word = self.0.words().get(word);
        word.map_or(0, |word| word.load(Acquire))
    }

    fn store(&mut self, word: usize, value: u64) {
        self.0.words()[word].store(value, Release);
    }
}

/// `look`, while another thread does this again and again, and is told how often. It has done it
/// once before.
#[allow(dead_code, reason = "not every test has a writer beside")]
pub fn beside<S: Send, R>(
    state: &mut S,
    act: impl Fn(&mut S, u64) + Sync,
    look: impl FnOnce() -> R,
) -> R {
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let ends = AtomicBool::new(false);
    let (begins, begun) = channel();
    std::thread::scope(|scope| {
        // Also when what is seen is wrong.
        let _end = End(&ends);
        let (act, ends) = (&act, &ends);
        scope.spawn(move || {
            for number in 1.. {
                act(state, number);
                if number == 1 {
                    let _ = begins.send(());
                }
                for _ in 0..number % 64 {
                    std::hint::spin_loop();
                }
                if ends.load(Relaxed) {
                    return;
                }
            }
        });
        begun.recv().expect("it begins");
        look()
    })
}

/// The body of what a frame is answered by.
#[allow(dead_code, reason = "not every test has a writer beside")]
pub fn answered(reads: &ObjectReads, frame: &[u8]) -> Option<Vec<u8>> {
    let ran = reads.run(frame, 1).expect("it runs");
    let is_answer = ran.verdict == Verdict::Redirect;
    is_answer.then(|| ran.frame[CARRIER_LEN + HEADER_LEN..].to_vec())
}

/// So many runs of one frame, and up to a hundred times as many until one is answered, where who
/// writes beside may be kept from its processor: how many were answered, and how many of these
/// wrongly.
#[allow(dead_code, reason = "not every test has a writer beside")]
pub fn tally(
    (reads, frame): (&ObjectReads, &[u8]),
    runs: u32,
    is_right: impl Fn(&[u8]) -> bool,
) -> (u32, u32) {
    let (mut answers, mut wrong) = (0, 0);
    for run in 0..100 * runs {
        if run >= runs && answers > 0 {
            break;
        }
        if let Some(body) = answered(reads, frame) {
            answers += 1;
            wrong += u32::from(!is_right(&body));
        }
    }
    (answers, wrong)
}

/// The words of some bytes.
#[allow(dead_code, reason = "not every test has a writer beside")]
pub fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks(8);
    words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
}
