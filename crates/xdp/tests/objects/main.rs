//! Objects read in the kernel, by test runs: what is answered and what passes, forged packets, a
//! writer beside, and differences that are planted.
#![cfg(feature = "xdp")]

mod golden;
#[path = "../support/mod.rs"]
mod support;

use crate::support::{AGENT, BODY_LEN_AT, READER, REPLY, at, frame, load, planted};

use rackmem_fabric::shm::Lent;
use rackmem_proto::sabre::{
    GRANULE, Meta, SLAB, class_bytes, class_of, generation_of, len_of, own,
};
use rackmem_wire::{
    Contract, Flags, HEADER_LEN, Header, HomeId, Kind, OWN_LEN, Own, Reason, RequesterId, Seq, Tag,
    decode, encode,
};
use rackmem_xdp::carrier::Frame;
use rackmem_xdp::{Error, MOST_SLABS, ObjectReads, ReadCounts, Served, Sizes, Verdict};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

/// Where a packet says from which byte on.
const OFFSET_AT: usize = 36;

const SLABS: u32 = 4;
const SIZES: Sizes = Sizes {
    slabs: SLABS,
    sets: 1,
    cached: 0,
    items: 0,
    lines: 0,
};
const SLAB_WORDS: usize = SLAB as usize / 8;
const HOME: u16 = 3;
const EPOCH: u32 = 7;
const BASE: u64 = 5 * SLAB;
/// What the program's answers say.
const BY_KERNEL: Flags = Flags(Flags::BY_KERNEL.0 | Flags::BY_GRANULES.0);

/// A home with a slab of each of some classes, and the program that reads it.
struct Home {
    reads: ObjectReads,
    lent: Lent,
}

fn tag(slab: u64, within: u64) -> Tag {
    let start = Tag(HomeId::of(HOME).start().0).under(Contract::Object);
    Tag(start.0 | (BASE + slab * SLAB + within))
}

fn served(epoch: u32) -> Served {
    Served {
        agent: at(AGENT),
        node: HOME,
        epoch,
        base: BASE,
    }
}

impl Home {
    /// None: the kernel takes no program from this process, which is said.
    fn new(test: &str, object: Option<&[u8]>) -> Option<Home> {
        let mut reads = load(test, object, SIZES)?;
        let words = (SLABS as usize + 1) * SLAB_WORDS;
        let lent = Lent::map(reads.memory().expect("its memory"), words).expect("it is mapped");
        reads.serve(&served(EPOCH)).expect("its map");
        Some(Home { reads, lent })
    }

    fn words(&self, slab: usize, within: usize) -> &[AtomicU64] {
        &self.lent.words()[(slab + 1) * SLAB_WORDS + within / 8..]
    }

    /// An object with these bytes in a slab of its own.
    fn make(&self, slab: usize, within: usize, version: u64, generation: u32, bytes: &[u8]) {
        let class = class_of(bytes.len() as u32).expect("it fits");
        self.lent.words()[512 + slab].store(class.into(), Relaxed);
        let words = self.words(slab, within);
        let meta = Meta {
            generation,
            class,
            live: true,
            len: bytes.len() as u16,
        };
        words[1].store(meta.to_word(), Relaxed);
        for (nth, eight) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            words[2 + nth].store(u64::from_ne_bytes(word), Relaxed);
        }
        words[0].store(version, Release);
    }

    fn ask(&self, packet: &[u8]) -> (Verdict, Vec<u8>) {
        let ran = self.reads.run(&frame(packet), 1).expect("it runs");
        (ran.verdict, ran.frame)
    }

    fn counts(&self) -> ReadCounts {
        self.reads.counts().expect("counters")
    }
}

fn request(tag: Tag, own: Own) -> Vec<u8> {
    let requester = RequesterId { node: 1, slot: 9 };
    let mut header = Header::request(Kind::ObjRead, EPOCH, tag, requester, Seq(77));
    (header.incarnation, header.reply_port) = (2, REPLY);
    let mut packet = encode(&header, OWN_LEN).to_vec();
    packet.extend(own.to_bytes());
    packet
}

/// The same from this byte on.
fn part(tag: Tag, offset: u32, own: Own) -> Vec<u8> {
    let mut packet = request(tag, own);
    packet[OFFSET_AT..OFFSET_AT + 4].copy_from_slice(&offset.to_be_bytes());
    packet
}

/// The same as long as its answer with so many bytes of an object.
fn roomy(mut packet: Vec<u8>, bytes: usize) -> Vec<u8> {
    let body = (OWN_LEN + bytes).next_multiple_of(64);
    packet.resize(HEADER_LEN + body, 0);
    packet[BODY_LEN_AT..BODY_LEN_AT + 2].copy_from_slice(&(body as u16).to_be_bytes());
    packet
}

/// What an answer says, and what of an object it brings.
fn answer_of(frame: &[u8]) -> (Header, Own, Vec<u8>) {
    let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let answer = Frame::parse(&frame[..end]).expect("a datagram with right sums");
    let (header, body) = decode(&answer.payload).expect("a packet");
    let (said, content) = Own::split(body).expect("what it has of its own");
    (header, said, content.to_vec())
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|nth| (nth as u8).wrapping_mul(7) ^ seed)
        .collect()
}

#[test]
fn whole_objects_are_answered_as_by_the_agent() {
    let Some(home) = Home::new("objects in the kernel", None) else {
        return;
    };
    for (nth, len) in [0, 1, 8, 47, 48, 49, 112, 624, 1008, 1009, GRANULE as usize]
        .into_iter()
        .enumerate()
    {
        // The last object of its slab, too.
        let class = class_bytes(class_of(len as u32).unwrap()).unwrap() as usize;
        for within in [0, SLAB as usize / class * class - class] {
            let (content, version) = (bytes(len, nth as u8), 2 * nth as u64 + 2);
            home.make(1, within, version, 4, &content);
            let asked = tag(1, within as u64);
            let (verdict, frame) = home.ask(&request(asked, own(0, 4, 0)));
            assert_eq!(verdict, Verdict::Redirect, "{len} bytes at {within}");
            // As the network stack does: what is behind the datagram is cut.
            let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            let answer = Frame::parse(&frame[..end]).expect("a datagram with right sums");
            assert_eq!((answer.from, answer.to), (at(AGENT), at(READER)));
            assert_eq!(answer.macs, [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 3]]);
            let (header, body) = decode(&answer.payload).expect("a packet");
            let (said, content_of) = Own::split(body).expect("what it has of its own");
            let sent = decode(&request(asked, own(0, 4, 0))).unwrap().0;
            let mut expected = sent.answer(Kind::ObjData, HOME);
            expected.flags = BY_KERNEL.and(Flags::DATA);
            assert_eq!(header, expected);
            assert_eq!(
                (said.a, generation_of(&said), len_of(&said)),
                (version, 4, len as u32)
            );
            assert_eq!(content_of, &content[..]);
        }
    }
    assert_eq!(home.counts().answered, 22);
}

/// As the requester asks: a packet a granule, each as long as its answer, so that no frame grows.
#[test]
fn long_objects_are_answered_by_granules() {
    let Some(home) = Home::new("granules in the kernel", None) else {
        return;
    };
    for len in [1025, 2048, 8192, 9000, 65_520] {
        let class = class_bytes(class_of(len as u32).unwrap()).unwrap() as usize;
        for within in [0, SLAB as usize / class * class - class] {
            let content = bytes(len, len as u8);
            home.make(1, within, 6, 4, &content);
            for (nth, expected) in content.chunks(GRANULE as usize).enumerate() {
                let offset = nth as u32 * GRANULE;
                for wanted in [1, expected.len() as u32, GRANULE] {
                    let packet = part(tag(1, within as u64), offset, own(0, 4, wanted));
                    let packet = roomy(packet, expected.len());
                    let (verdict, answer) = home.ask(&packet);
                    assert_eq!(verdict, Verdict::Redirect, "{len}: {nth}");
                    assert_eq!(answer.len(), frame(&packet).len());
                    let (header, said, got) = answer_of(&answer);
                    assert_eq!(
                        (header.offset, header.flags),
                        (offset, BY_KERNEL.and(Flags::DATA))
                    );
                    assert_eq!((said.a, len_of(&said)), (6, len as u32));
                    assert!(got == expected, "{len}: {nth}");
                }
            }
        }
    }
}

/// A conditional read is answered by one small packet, as the agent does.
#[test]
fn what_a_reader_has_is_not_sent_again() {
    let Some(home) = Home::new("conditional reads in the kernel", None) else {
        return;
    };
    home.make(0, 0, 8, 4, &bytes(5000, 1));
    for packet in [
        request(tag(0, 0), own(8, 4, 0)),
        roomy(part(tag(0, 0), 1024, own(8, 4, 1024)), 1024),
    ] {
        let asked = decode(&packet).unwrap().0;
        let (verdict, answer) = home.ask(&packet);
        assert_eq!(verdict, Verdict::Redirect);
        assert_eq!(answer.len(), 42 + HEADER_LEN + OWN_LEN);
        let (header, said, got) = answer_of(&answer);
        let expected = asked.refuse(Kind::ObjData, HOME, Reason::NotModified);
        assert_eq!(
            header,
            Header {
                flags: BY_KERNEL,
                ..expected
            }
        );
        assert_eq!((said, got.len()), (Own::default(), 0));
    }
    assert_eq!((home.counts().known, home.counts().answered), (2, 0));
    // Of a version that the object had, a reader has nothing.
    assert_eq!(home.ask(&request(tag(0, 0), own(8, 3, 0))).0, Verdict::Pass);
    let (_, answer) = home.ask(&roomy(request(tag(0, 0), own(6, 4, 1)), 1024));
    assert_eq!(answer_of(&answer).2.len(), GRANULE as usize);
}

#[test]
fn what_it_cannot_answer_passes_unchanged() {
    let Some(home) = Home::new("objects in the kernel that pass", None) else {
        return;
    };
    home.make(0, 128, 8, 4, &bytes(100, 1));
    home.make(1, 0, 9, 1, &bytes(100, 2));
    home.make(2, 0, 2, 1, &bytes(GRANULE as usize + 1, 3));
    let good = || request(tag(0, 128), own(0, 4, 0));
    assert_eq!(home.ask(&good()).0, Verdict::Redirect);
    type Case = (&'static str, Vec<u8>, fn(&ReadCounts) -> u64);
    let cases: [Case; 12] = [
        ("a writer is in", request(tag(1, 0), own(0, 1, 0)), |c| {
            c.locked
        }),
        (
            "an older generation",
            request(tag(0, 128), own(0, 3, 0)),
            |c| c.gone,
        ),
        ("a later one", request(tag(0, 128), own(0, 5, 0)), |c| {
            c.gone
        }),
        ("none is there", request(tag(0, 0), own(0, 4, 0)), |c| {
            c.gone
        }),
        ("all of a long one", request(tag(2, 0), own(0, 1, 0)), |c| {
            c.long
        }),
        ("two granules", request(tag(2, 0), own(0, 1, 1025)), |c| {
            c.long
        }),
        (
            "from within a granule",
            part(tag(2, 0), 512, own(0, 1, 512)),
            |c| c.long,
        ),
        (
            "from behind its end",
            part(tag(2, 0), 2048, own(0, 1, 512)),
            |c| c.long,
        ),
        ("between objects", request(tag(0, 64), own(0, 4, 0)), |c| {
            c.elsewhere
        }),
        (
            "a slab without a class",
            request(tag(3, 0), own(0, 4, 0)),
            |c| c.elsewhere,
        ),
        (
            "behind the last slab",
            request(tag(u64::from(SLABS), 0), own(0, 4, 0)),
            |c| c.elsewhere,
        ),
        (
            "of an earlier life",
            request(Tag(tag(0, 0).0 - SLAB), own(0, 4, 0)),
            |c| c.elsewhere,
        ),
    ];
    for (what, packet, counted) in cases {
        let before = counted(&home.counts());
        let (verdict, left) = home.ask(&packet);
        assert_eq!(
            (verdict, left == frame(&packet)),
            (Verdict::Pass, true),
            "{what}"
        );
        assert_eq!(counted(&home.counts()), before + 1, "{what}");
    }
}

/// Everything that a byte of the packet can be, one byte at a time: what is answered is the object,
/// and what else passes as it came.
#[test]
fn forged_packets_are_the_agents() {
    let Some(home) = Home::new("forged packets for objects in the kernel", None) else {
        return;
    };
    let content = bytes(200, 9);
    home.make(0, 0, 8, 4, &content);
    let good = request(tag(0, 0), own(0, 4, 0));
    let answered = |packet: &[u8]| {
        let (verdict, left) = home.ask(packet);
        match verdict {
            Verdict::Redirect => {
                let (header, _, body) = answer_of(&left);
                match header.reason {
                    Reason::NotModified => assert_eq!(packet[48..56], 8u64.to_be_bytes()),
                    _ => assert_eq!(body, content, "{packet:x?}"),
                }
                true
            }
            Verdict::Pass => {
                assert_eq!(left, frame(packet), "{packet:x?}");
                false
            }
            other => panic!("{other:?} for {packet:x?}"),
        }
    };
    assert!(answered(&good));
    // Who asks, which of its requests it is, and which version and length it names, is its own
    // affair. All else is either what it must be, or the agent's.
    let own_affair = |at: usize| matches!(at, 16..=32 | 33..=35 | 46..=47 | 48..=55 | 60..=63);
    for at in 0..good.len() {
        for value in 0..=255u8 {
            let mut forged = good.clone();
            forged[at] = value;
            let changed = value != good[at];
            let answers = answered(&forged);
            assert!(
                !answers || !changed || own_affair(at),
                "byte {at} = {value}"
            );
            // What `decode` refuses, the program does not answer.
            assert!(!answers || decode(&forged).is_ok(), "byte {at} = {value}");
        }
    }
    for len in 0..good.len() {
        assert!(!answered(&good[..len]), "{len} bytes");
    }
    for epoch in [0, EPOCH - 1, EPOCH + 1, u32::MAX] {
        let mut forged = good.clone();
        forged[4..8].copy_from_slice(&epoch.to_be_bytes());
        assert!(!answered(&forged), "epoch {epoch}");
    }
    // Any address: those of the object alone are answered.
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..20_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let forged = request(Tag(random >> (random & 31)), own(0, 4, 0));
        assert!(!answered(&forged), "{random:x}");
    }
}

/// Writes all of an object, again and again: each of its words is its version.
fn write_on(words: &[AtomicU64], count: usize, ends: &AtomicBool) {
    let mut version = words[0].load(Relaxed);
    while !ends.load(Relaxed) {
        words[0].store(version + 1, Relaxed);
        fence(Release);
        for word in &words[2..2 + count] {
            word.store(version + 2, Relaxed);
        }
        version += 2;
        words[0].store(version, Release);
        for _ in 0..version % 64 {
            std::hint::spin_loop();
        }
    }
}

/// How many reads were answered, torn and passed, beside a writer of all the object's words.
fn beside_a_writer(home: &Home, reads: u32) -> (u32, u32, ReadCounts) {
    const WORDS: usize = GRANULE as usize / 8;
    home.make(0, 0, 2, 1, &bytes(0, 0));
    let content: Vec<u8> = [2u64; WORDS]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    home.make(0, 0, 2, 1, &content);
    let ends = AtomicBool::new(false);
    let (mut answered, mut torn) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| write_on(home.words(0, 0), WORDS, &ends));
        let packet = request(tag(0, 0), own(0, 1, 0));
        for _ in 0..reads {
            let (verdict, frame) = home.ask(&packet);
            if verdict != Verdict::Redirect {
                continue;
            }
            answered += 1;
            let body = &frame[42 + HEADER_LEN..];
            let (said, _) = Own::split(body).expect("what it has of its own");
            let words = body[OWN_LEN..][..8 * WORDS].chunks(8);
            let whole = words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
            torn += u32::from(whole.into_iter().any(|word| word != said.a));
        }
        ends.store(true, Relaxed);
    });
    let _ = home.words(0, 0)[0].load(Acquire);
    (answered, torn, home.counts())
}

#[test]
fn no_answer_is_of_two_writes() {
    let Some(home) = Home::new("objects in the kernel beside a writer", None) else {
        return;
    };
    let (answered, torn, counts) = beside_a_writer(&home, 100_000);
    assert_eq!(torn, 0, "of {answered}: {counts:?}");
    assert!(answered > 0, "{counts:?}");
    // Whether the two meet is the machine's affair: the planted differences show that they do.
}

#[test]
fn planted_differences_are_noticed() {
    let own_of = |home: &Home| {
        home.make(0, 0, 8, 4, &bytes(100, 1));
        home.make(1, 0, 9, 1, &bytes(100, 2));
    };
    // An object of another generation is answered; one that a writer is in.
    for (number, packet) in [
        (2, request(tag(0, 0), own(0, 3, 0))),
        (3, request(tag(1, 0), own(0, 1, 0))),
    ] {
        let Some(home) = Home::new("planted differences of objects", Some(&planted(number))) else {
            return;
        };
        own_of(&home);
        assert_eq!(home.ask(&packet).0, Verdict::Redirect, "{number}");
    }
    // The second look is left out: a writer beside is noticed, however long that takes.
    let home = Home::new("planted differences of objects", Some(&planted(1))).expect("as before");
    for _ in 0..200 {
        if beside_a_writer(&home, 20_000).1 > 0 {
            return;
        }
    }
    panic!("4 million reads without a second look, and none was torn");
}

#[test]
fn bounds_have_names() {
    for slabs in [0, MOST_SLABS + 1] {
        match ObjectReads::load(slabs) {
            Err(Error::Rack(why)) => assert!(why.contains("slabs") || why.contains("x86"), "{why}"),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{slabs} slabs"),
        }
    }
}
