//! Lines of replicated memory read in the kernel, by test runs: what the Rust rule says becomes of
//! each packet, chosen, random and forged; a writer beside, and differences that are planted.
#![cfg(feature = "xdp")]

#[path = "../support/mod.rs"]
mod support;

use crate::support::{
    AGENT, BODY_LEN_AT, Dice, REPLY, Shared, answered, at, became, beside, frame, load, planted,
    tally, words_of,
};
use rackmem_fabric::shm::Lent;
use rackmem_proto::abd::mirror::{MIRROR_LINE, Mirror, MirrorPassed, answer, concerns};
use rackmem_proto::abd::{
    Change, Config, GROUPS, Layout, Member, Replica, ReplicatedMemory, Stamp, first_line, own,
};
use rackmem_proto::call::Parcel;
use rackmem_proto::words::Words;
use rackmem_wire::{
    Dest, Flags, HEADER_LEN, Header, Kind, NodeId, OWN_LEN, Own, RequesterId, Seq, Tag, decode,
    encode,
};
use rackmem_xdp::{LineReadCounts, ObjectReads, Served, Sizes};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

const SLABS: u32 = 6;
const SIZES: Sizes = Sizes {
    slabs: 1,
    sets: 1,
    cached: 0,
    items: 0,
    lines: SLABS,
};
const ME: NodeId = 3;
const LIFE: u64 = 9;

/// What the process of a member has.
struct Lines {
    memory: ReplicatedMemory,
    mirror: Mirror,
    words: Shared,
    seq: u64,
    stamp: u64,
}

struct Host {
    reads: ObjectReads,
    lines: Lines,
}

fn members() -> [Member; 3] {
    [1, ME, 2].map(|node| Member {
        node,
        life: if node == ME { LIFE } else { 1 },
    })
}

impl Lines {
    /// Lives by a config.
    fn adopt(&mut self, group: u16, layout: Layout, config: &Config) {
        let (_, effects) = self.memory.section((0, &[]), |abd, fx| {
            abd.end_removed(group, config, fx);
            if !config.is_removed() && abd.replica(group).is_none() {
                abd.keep(group, LIFE, Replica::new(false));
            }
            fx.lines.lay_out(group, layout);
            abd.learn(group, layout, config, fx);
        });
        self.mirror.follow(&self.memory, &effects, &mut self.words);
    }

    /// A group with lines of so many bytes, or the next region that has its number.
    fn make(&mut self, group: u16, line: u32, lines: u64) {
        let layout = Layout::new(line, lines * u64::from(line)).expect("a layout");
        let config = match self.memory.abd.config(group) {
            None => Config::first(&members()),
            Some(removed) => removed.again(&members()),
        };
        self.adopt(group, layout, &config.expect("three"));
    }

    fn step(&mut self, group: u16, change: Change) {
        let config = self.memory.abd.config(group).expect("it is known");
        let next = config.step(change).expect("a step");
        let layout = self.memory.lines.layout(group).expect("it is known");
        self.adopt(group, layout, &next);
    }

    fn config(&self, group: u16) -> u32 {
        self.memory.abd.config(group).map_or(0, |it| it.number)
    }

    /// The next stamp's value.
    fn write(&mut self, tag: Tag, value: &[u8]) {
        (self.seq, self.stamp) = (self.seq + 1, self.stamp + 1);
        let who = RequesterId { node: 2, slot: 0 };
        let mut header = Header::request(Kind::AbdWrite, 0, tag, who, Seq(self.seq));
        header.flags = Flags::DATA;
        let own = own(Stamp(self.stamp), self.config(tag.home().0));
        let parcel = Parcel::new(Dest::Agent(ME), header, own, value);
        let effects = self.memory.packet(&parcel);
        self.mirror.follow(&self.memory, &effects, &mut self.words);
    }
}

impl Host {
    /// None: the kernel takes no program from this process, which is said.
    fn new(test: &str, object: Option<&[u8]>) -> Option<Host> {
        let mut reads = load(test, object, SIZES)?;
        let words = Mirror::words(SLABS as usize);
        let lent = Lent::map(reads.lines().expect("its memory"), words).expect("it is mapped");
        let served = Served {
            agent: at(AGENT),
            node: ME,
            epoch: 7,
            base: 5 << 20,
        };
        reads.serve(&served).expect("its map");
        let room = OWN_LEN + MIRROR_LINE as usize;
        let lines = Lines {
            memory: ReplicatedMemory::new((ME, LIFE as u32), room),
            mirror: Mirror::new(SLABS as usize),
            words: Shared(lent),
            seq: 0,
            stamp: 0,
        };
        Some(Host { reads, lines })
    }

    /// What the rule says becomes of a packet.
    fn ruled(&self, packet: &[u8]) -> Result<Vec<u8>, Option<MirrorPassed>> {
        let (header, body) = decode(packet).map_err(|_| None)?;
        if !concerns(&header) {
            return Err(None);
        }
        let (own, _) = Own::split(body).ok_or(None)?;
        let said = answer(&self.lines.words, ME, &header, &own).map_err(Some)?;
        let (header, own, rest) = said;
        let mut payload = encode(&header, OWN_LEN + rest.len()).to_vec();
        payload.extend(own.to_bytes());
        payload.extend(rest);
        Ok(payload)
    }

    /// Whether both say the same, and what.
    fn agree(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let (became, ruled) = (became(&self.reads, packet), self.ruled(packet));
        assert_eq!(became, ruled.clone().ok(), "{ruled:?} of {packet:x?}");
        became
    }

    fn counts(&self) -> LineReadCounts {
        self.reads.line_counts().expect("counters")
    }
}

fn line(group: u16, offset: u64) -> Tag {
    Tag(first_line(group).0 + offset)
}

/// With so many bytes behind what its kind has of its own.
fn packet(kind: Kind, flags: Flags, tag: Tag, config: u32, room: usize) -> Vec<u8> {
    let requester = RequesterId { node: 1, slot: 9 };
    let mut header = Header::request(kind, 0, tag, requester, Seq(77));
    (header.incarnation, header.reply_port, header.flags) = (2, REPLY, flags);
    let mut packet = encode(&header, OWN_LEN + room).to_vec();
    packet.extend(own(Stamp(0), config).to_bytes());
    packet.resize(HEADER_LEN + OWN_LEN + room, 0);
    packet
}

/// For a line.
fn provide(tag: Tag, config: u32, room: usize) -> Vec<u8> {
    packet(Kind::AbdRead, Flags::PROVIDER, tag, config, room)
}

fn value(bytes: u32, seed: u32) -> Vec<u8> {
    let byte = |nth: u32| nth.wrapping_mul(7).wrapping_add(seed) as u8 | 1;
    (0..bytes).map(byte).collect()
}

/// As long as a line's answer.
fn room(bytes: u32) -> usize {
    (OWN_LEN + bytes as usize).next_multiple_of(64) - OWN_LEN
}

#[test]
fn lines_of_every_size_are_answered_as_by_the_agent() {
    let Some(mut host) = Host::new("lines in the kernel", None) else {
        return;
    };
    let sizes = [64, 128, 256, 512, MIRROR_LINE];
    for (group, bytes) in sizes.into_iter().enumerate() {
        let group = [0, 1, 7, 30, GROUPS as u16 - 1][group];
        host.lines.make(group, bytes, 50);
        for nth in [0, 1, 31, 49] {
            let tag = line(group, nth * u64::from(bytes));
            host.lines.write(tag, &value(bytes, nth as u32));
            for room in [0, room(bytes)] {
                let asked = provide(tag, 1, room);
                let answer = host.agree(&asked).expect("an answer");
                let (header, body) = decode(&answer).expect("a packet");
                let (own, rest) = Own::split(body).expect("what it has of its own");
                assert_eq!((own.a, header.kind), (host.lines.stamp, Kind::AbdReadAck));
                assert_eq!(rest, value(bytes, nth as u32));
                // As long as it is, no frame grows.
                let ran = host.reads.run(&frame(&asked), 1).expect("it runs");
                assert_eq!(ran.frame.len() > frame(&asked).len(), room == 0);
            }
            for kind in [Kind::AbdRead, Kind::AbdStamp] {
                let told = host.agree(&packet(kind, Flags::default(), tag, 1, 0));
                assert_eq!(told.expect("an answer").len(), HEADER_LEN + OWN_LEN);
            }
        }
        // What nobody has written is zeros.
        let zeros = host.agree(&provide(line(group, 2 * u64::from(bytes)), 1, 0));
        let zeros = zeros.expect("an answer");
        assert!(zeros[HEADER_LEN + OWN_LEN..].iter().all(|byte| *byte == 0));
        assert_eq!(zeros.len(), HEADER_LEN + OWN_LEN + bytes as usize);
        for (offset, config) in [(50 * u64::from(bytes), 1), (8, 1), (0, 0), (0, 2)] {
            let asked = provide(line(group, offset), config, 0);
            assert_eq!(host.agree(&asked), None, "{offset} {config}");
        }
        host.lines.step(group, Change::Fence);
        assert_eq!(host.agree(&provide(line(group, 0), 1, 0)), None);
        assert!(host.agree(&provide(line(group, 0), 2, 0)).is_some());
        host.lines.step(group, Change::Remove);
        assert_eq!(host.agree(&provide(line(group, 0), 2, 0)), None);
        assert_eq!(host.agree(&provide(line(group, 0), 3, 0)), None);
    }
    let counts = host.counts();
    assert_eq!((counts.locked, counts.torn, counts.no_room), (0, 0, 0));
    assert_eq!((counts.answered, counts.stamps), (5 * (4 * 4 + 2), 5 * 8));
    assert_eq!(counts.elsewhere, 5 * 7);
}

/// Random packets beside a member that stores, and whose groups come, change and go.
fn random(host: &mut Host, (seed, packets): (u64, u32), mut see: impl FnMut(&Host, &[u8])) {
    let sizes = [64, 256, 512, 1024];
    let mut dice = Dice(seed);
    for (group, bytes) in sizes.into_iter().enumerate() {
        host.lines.make(group as u16, bytes, 70);
    }
    for nth in 0..packets {
        let group = dice.below(sizes.len() as u64) as u16;
        let bytes = sizes[usize::from(group)];
        let lines = &mut host.lines;
        let removed = lines
            .memory
            .abd
            .config(group)
            .is_some_and(Config::is_removed);
        match dice.below(60) {
            _ if removed => lines.make(group, bytes, 70),
            0 => lines.step(group, Change::Fence),
            1 => lines.step(group, Change::ThroughSwitch(dice.below(2) == 0)),
            2 if dice.below(4) == 0 => lines.step(group, Change::Remove),
            _ => {}
        }
        let few = dice.below(6) * u64::from(bytes);
        if dice.below(3) == 0
            && !lines
                .memory
                .abd
                .config(group)
                .is_some_and(Config::is_removed)
        {
            lines.write(line(group, few), &value(bytes, nth));
        }
        let number = lines.config(group);
        let of = match dice.below(8) {
            0 => number.wrapping_sub(1),
            1 => number + 1,
            2 => dice.next() as u32,
            _ => number,
        };
        let offset = match dice.below(8) {
            0 => dice.next(),
            1 => dice.below(72) * u64::from(bytes),
            2 => dice.below(70 * u64::from(bytes)),
            _ => few,
        };
        let tag = match dice.below(10) {
            0 => Tag(line(group, few).0 ^ 1 << dice.below(64)),
            _ => line(group, offset % Tag::SPACE),
        };
        let room = [0, 8, room(bytes), room(MIRROR_LINE)][dice.below(4) as usize];
        let mut came = match dice.below(4) {
            0 => packet(Kind::AbdStamp, Flags::default(), tag, of, room),
            1 => packet(Kind::AbdRead, Flags::default(), tag, of, room),
            _ => provide(tag, of, room),
        };
        if dice.below(8) == 0 {
            let at = dice.below(came.len() as u64) as usize;
            came[at] = dice.next() as u8;
        }
        see(host, &came);
    }
}

#[test]
fn random_packets_become_what_the_rule_says() {
    let Some(mut host) = Host::new("random reads of lines in the kernel", None) else {
        return;
    };
    let (mut answered, mut passed) = (0, 0);
    let chosen = (88_172_645_463_325_252, 20_000);
    random(&mut host, chosen, |host, packet| match host.agree(packet) {
        Some(_) => answered += 1,
        None => passed += 1,
    });
    assert!(answered > 3_000 && passed > 3_000, "{answered} {passed}");
}

/// Everything that a byte of a packet can be, one byte at a time, and packets that are cut.
#[test]
fn forged_packets_become_what_the_rule_says() {
    let Some(mut host) = Host::new("forged reads of lines in the kernel", None) else {
        return;
    };
    host.lines.make(2, 64, 5);
    let tag = line(2, 128);
    host.lines.write(tag, &value(64, 1));
    let stamp = packet(Kind::AbdStamp, Flags::default(), tag, 1, 0);
    for good in [provide(tag, 1, 0), stamp] {
        assert!(host.agree(&good).is_some());
        for at in 0..good.len() {
            for value in 0..=255 {
                let mut forged = good.clone();
                forged[at] = value;
                host.agree(&forged);
            }
        }
        for len in 0..good.len() {
            assert_eq!(host.agree(&good[..len]), None, "{len} bytes");
        }
        let mut long = good.clone();
        long[BODY_LEN_AT] = 255;
        assert_eq!(host.agree(&long), None);
    }
    host.reads.stop().expect("its map");
    assert_eq!(became(&host.reads, &provide(tag, 1, 0)), None);
}

/// Reads beside a thread that writes one line again and again: how many were answered, and how many
/// of these were of no moment.
fn beside_a_writer(host: &mut Host, reads: u32) -> (u32, u32) {
    if host.lines.config(0) == 0 {
        host.lines.make(0, MIRROR_LINE, 3);
    }
    let tag = line(0, MIRROR_LINE.into());
    let packet = frame(&provide(tag, 1, room(MIRROR_LINE)));
    let write = |lines: &mut Lines, _| {
        let number = lines.stamp + 1;
        lines.write(tag, &number.to_ne_bytes().repeat(MIRROR_LINE as usize / 8));
    };
    let is_right = |body: &[u8]| {
        let (own, rest) = Own::split(body).expect("what it has of its own");
        words_of(&rest[..MIRROR_LINE as usize]).all(|word| word == own.a)
    };
    let look = || tally((&host.reads, &packet), reads, is_right);
    beside(&mut host.lines, write, look)
}

#[test]
fn no_answer_is_of_two_moments() {
    let Some(mut host) = Host::new("lines in the kernel beside a writer", None) else {
        return;
    };
    let (answered, wrong) = beside_a_writer(&mut host, 50_000);
    assert!(answered > 0 && wrong == 0, "{wrong} of {answered}");
}

#[test]
fn planted_differences_are_noticed() {
    const TEST: &str = "planted differences of lines";
    // Of any config; behind the last line; in the middle of one.
    for number in [20, 21, 22] {
        let Some(mut host) = Host::new(TEST, Some(&planted(number))) else {
            return;
        };
        let mut found = 0;
        random(&mut host, (7, 3_000), |host, packet| {
            found += u32::from(became(&host.reads, packet) != host.ruled(packet).ok());
        });
        assert!(found > 0, "plant {number} is not found");
    }
    // A line that is being written.
    let mut host = Host::new(TEST, Some(&planted(24))).expect("as before");
    host.lines.make(0, 64, 1);
    host.lines.words.store(Mirror::words(0), 1);
    let asked = provide(line(0, 0), 1, 0);
    assert!(became(&host.reads, &asked).is_some());
    assert_eq!(host.ruled(&asked), Err(Some(MirrorPassed::Locked)));
    // No second look; the stamp before the first one. A writer beside tells, however long that
    // takes.
    for number in [23, 25] {
        let mut host = Host::new(TEST, Some(&planted(number))).expect("as before");
        let found = (0..200).any(|_| beside_a_writer(&mut host, 20_000).1 > 0);
        assert!(found, "4 million reads, and plant {number} is not found");
    }
    // The config is not looked at again: a region that goes and comes beside tells.
    let mut host = Host::new(TEST, Some(&planted(26))).expect("as before");
    let found = (0..200).any(|_| beside_changes(&mut host, 20_000) > 0);
    assert!(found, "4 million reads, and plant 26 is not found");
    let mut host = Host::new(TEST, None).expect("as before");
    assert_eq!(beside_changes(&mut host, 50_000), 0);
}

/// Reads of a config beside a thread that ends it and stores in the next one: how many have told
/// what was stored there.
fn beside_changes(host: &mut Host, reads: u32) -> u32 {
    if host.lines.config(0) == 0 {
        host.lines.make(0, 64, 1);
    }
    let config = AtomicU32::new(host.lines.config(0));
    let change = |lines: &mut Lines, nth: u64| {
        // For about as long as a read takes: half of them are of a config that there still is.
        for _ in 0..nth % 256 {
            std::hint::spin_loop();
        }
        lines.step(0, Change::Fence);
        let number = lines.config(0);
        config.store(number, Release);
        lines.write(line(0, 0), &u64::from(number).to_ne_bytes().repeat(8));
    };
    let is_later = || {
        let number = config.load(Acquire);
        let packet = frame(&provide(line(0, 0), number, room(64)));
        let told = answered(&host.reads, &packet)?;
        let told = words_of(&told[OWN_LEN..][..8]).next()?;
        Some(told > u64::from(number))
    };
    let look = || (0..reads).flat_map(|_| is_later()).map(u32::from).sum();
    beside(&mut host.lines, change, look)
}
