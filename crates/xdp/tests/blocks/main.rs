//! Blocks of a home read in the kernel, by test runs: what the Rust rule says becomes of each
//! packet, chosen, random and forged; a writer beside, and differences that are planted.
#![cfg(feature = "xdp")]

#[path = "../support/mod.rs"]
mod support;

use crate::support::{
    AGENT, Dice, REPLY, Shared, at, became, beside, frame, load, planted, tally, words_of,
};
use rackmem_fabric::shm::Lent;
use rackmem_proto::flowcc::twin::{FRONT, TWIN_BLOCK, TwinPassed, Twins, answer, concerns, room};
use rackmem_proto::words::Words;
use rackmem_wire::{
    Flags, HEADER_LEN, Header, HomeId, Kind, NodeId, RequesterId, Seq, Tag, decode, encode,
};
use rackmem_xdp::{BlockReadCounts, ObjectReads, Served, Sizes, Verdict};
use std::net::Ipv4Addr;

const SLABS: u32 = 3;
const SIZES: Sizes = Sizes {
    slabs: 1,
    sets: 1,
    items: 0,
    lines: 0,
    blocks: SLABS,
};
const ME: NodeId = 3;
const READER: NodeId = 1;
const EPOCH: u32 = 7;
const LIFE: u32 = 2;

/// What the process of a home has.
struct Blocks {
    block: u32,
    twins: Twins,
    words: Shared,
}

struct Host {
    reads: ObjectReads,
    blocks: Blocks,
}

impl Blocks {
    fn show(&mut self, tag: Tag, word: u64) {
        let block = value(self.block, word);
        self.twins.show(tag, block, &mut self.words);
    }

    fn write(&mut self, tag: Tag, word: u64) {
        let block = value(self.block, word);
        self.twins.write(tag, block, &mut self.words);
    }

    fn hide(&mut self, tag: Tag) {
        self.twins.hide(tag, &mut self.words);
    }
}

impl Host {
    /// With blocks of so many bytes. None: the kernel takes no program from this process, which is
    /// said.
    fn new(test: &str, block: u32, object: Option<&[u8]>) -> Option<Host> {
        let mut reads = load(test, object, SIZES)?;
        let words = Twins::words(SLABS as usize);
        let lent = Lent::map(reads.blocks().expect("its memory"), words).expect("it is mapped");
        let served = Served {
            agent: at(AGENT),
            node: ME,
            epoch: EPOCH,
            base: 0,
        };
        reads.serve(&served).expect("its map");
        let (twins, mut words) = (Twins::new(block, SLABS as usize), Shared(lent));
        let address = |nth| u32::from_ne_bytes(Ipv4Addr::new(10, 0, 0, nth).octets()).into();
        twins.begin(ME, (0..5).map(address), &mut words);
        twins.open(EPOCH, &[1, LIFE, 1, 1, 1], &mut words);
        let blocks = Blocks {
            block,
            twins,
            words,
        };
        let host = Host { reads, blocks };
        host.hear();
        Some(host)
    }

    /// A packet without a body, which says where the reader is reached and is for nobody.
    fn hear(&self) {
        let who = RequesterId {
            node: READER,
            slot: 0,
        };
        let ping = Header::request(Kind::Ping, EPOCH, nth(64, 0), who, Seq(1));
        let ran = self.reads.run(&frame(&encode(&ping, 0)), 1);
        assert_eq!(ran.expect("it runs").verdict, Verdict::Pass);
    }

    /// What the rule says becomes of a packet.
    fn ruled(&self, packet: &[u8]) -> Result<Vec<u8>, Option<TwinPassed>> {
        let (header, _) = decode(packet).map_err(|_| None)?;
        if !concerns(&header) {
            return Err(None);
        }
        let (header, bytes) = answer(&self.blocks.words, &header).map_err(Some)?;
        let mut payload = encode(&header, bytes.len()).to_vec();
        payload.extend(bytes);
        Ok(payload)
    }

    /// Whether both say the same, and what.
    fn agree(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let (became, ruled) = (became(&self.reads, packet), self.ruled(packet));
        assert_eq!(became, ruled.clone().ok(), "{ruled:?} of {packet:x?}");
        became
    }

    fn counts(&self) -> BlockReadCounts {
        self.reads.block_counts().expect("counters")
    }
}

fn value(block: u32, word: u64) -> impl Iterator<Item = u64> {
    (0..u64::from(block) / 8).map(move |nth| word << 8 | nth)
}

fn nth(block: u32, at: u64) -> Tag {
    Tag(HomeId::of(ME).start().0 + at * u64::from(block))
}

/// What the switch has granted, with so many bytes behind it.
fn granted(tag: Tag, room: usize) -> Vec<u8> {
    encoded(&header(tag), room)
}

fn header(tag: Tag) -> Header {
    let requester = RequesterId {
        node: READER,
        slot: 9,
    };
    let mut header = Header::request(Kind::ReadMiss, EPOCH, tag, requester, Seq(77));
    (header.incarnation, header.reply_port) = (LIFE, REPLY);
    header.flags = Flags::GRANTED.and(Flags::IN_SWITCH);
    header.sender = NodeId::MAX;
    header
}

fn encoded(header: &Header, room: usize) -> Vec<u8> {
    let mut packet = encode(header, room).to_vec();
    packet.resize(HEADER_LEN + room, 0);
    packet
}

const SIZES_OF_BLOCKS: [u32; 3] = [256, 512, TWIN_BLOCK];

#[test]
fn blocks_of_every_size_are_answered_as_by_the_agent() {
    for block in SIZES_OF_BLOCKS {
        let Some(mut host) = Host::new("blocks in the kernel", block, None) else {
            return;
        };
        for at in [0, 1, 70, 4095] {
            let tag = nth(block, at);
            assert_eq!(host.agree(&granted(tag, 0)), None, "{at}");
            host.blocks.show(tag, at);
            for kind in [Kind::ReadMiss, Kind::WriteMiss] {
                for room in [0, room(block)] {
                    let asked = Header {
                        kind,
                        ..header(tag)
                    };
                    let asked = encoded(&asked, room);
                    let answer = host.agree(&asked).expect("an answer");
                    let (header, body) = decode(&answer).expect("a packet");
                    assert_eq!((header.kind, header.sender), (Kind::Ack, ME));
                    let bytes: Vec<u8> = value(block, at).flat_map(u64::to_ne_bytes).collect();
                    assert_eq!(body, bytes);
                    // As long as it is, no frame grows.
                    let ran = host.reads.run(&frame(&asked), 1).expect("it runs");
                    assert_eq!(ran.frame.len() > frame(&asked).len(), room == 0);
                }
            }
            host.blocks.write(tag, 1000 + at);
            assert!(host.agree(&granted(tag, 0)).is_some());
            for other in [
                Header {
                    epoch: EPOCH + 1,
                    ..header(tag)
                },
                Header {
                    incarnation: LIFE - 1,
                    ..header(tag)
                },
            ] {
                assert_eq!(host.agree(&encoded(&other, 0)), None);
            }
            // A node that was not heard of, this one, and a thread that does not listen.
            let mut strange = [2, ME].map(|node| {
                let mut asked = header(tag);
                (asked.requester.node, asked.incarnation) = (node, 1);
                asked
            });
            for asked in &mut strange {
                assert_eq!(host.agree(&encoded(asked, 0)), None);
            }
            let deaf = Header {
                reply_port: 0,
                ..header(tag)
            };
            assert_eq!(host.agree(&encoded(&deaf, 0)), None);
            host.blocks.hide(tag);
            assert_eq!(host.agree(&granted(tag, 0)), None);
        }
        let counts = host.counts();
        assert_eq!((counts.locked, counts.torn, counts.no_room), (0, 0, 0));
        // Twice each that is answered, where its length is looked at.
        assert_eq!((counts.answered, counts.elsewhere), (4 * 9, 4 * 2));
        assert_eq!((counts.not_of_now, counts.no_way), (4 * 2, 4 * 3));
        host.blocks.show(nth(block, 5), 1);
        host.blocks.twins.close(&mut host.blocks.words);
        assert_eq!(host.agree(&granted(nth(block, 5), 0)), None);
    }
}

/// Random packets beside a home whose entries go and come, and whose blocks are written.
fn random(host: &mut Host, (seed, packets): (u64, u32), mut see: impl FnMut(&Host, &[u8])) {
    let block = host.blocks.block;
    let mut dice = Dice(seed);
    for word in 0..packets {
        let tag = nth(block, dice.below(200));
        match dice.below(6) {
            0 => host.blocks.show(tag, word.into()),
            1 => host.blocks.write(tag, word.into()),
            2 => host.blocks.hide(tag),
            _ => {}
        }
        let mut asked = header(match dice.below(12) {
            0 => Tag(tag.0 ^ 1 << dice.below(64)),
            _ => tag,
        });
        match dice.below(20) {
            0 => asked.epoch = dice.next() as u32,
            1 => asked.incarnation = dice.next() as u32,
            2 => asked.reply_port = 0,
            3 => asked.requester.node = dice.below(32) as u16,
            4 => asked.flags = Flags(dice.next() as u8 & Flags::KNOWN),
            5 => asked.kind = Kind::WriteMiss,
            6 => asked.kind = Kind::WriteShared,
            7 => asked.offset = dice.next() as u32,
            _ => {}
        }
        let room = [0, 8, room(block), 1400][dice.below(4) as usize];
        let mut came = encoded(&asked, room);
        if dice.below(8) == 0 {
            let at = dice.below(HEADER_LEN as u64) as usize;
            came[at] = dice.next() as u8;
        }
        see(host, &came);
    }
}

#[test]
fn random_packets_become_what_the_rule_says() {
    for block in SIZES_OF_BLOCKS {
        let Some(mut host) = Host::new("random reads of blocks in the kernel", block, None) else {
            return;
        };
        let (mut answered, mut passed) = (0, 0);
        let chosen = (88_172_645_463_325_252, 10_000);
        random(&mut host, chosen, |host, packet| match host.agree(packet) {
            Some(_) => answered += 1,
            None => passed += 1,
        });
        assert!(answered > 1_500 && passed > 1_500, "{answered} {passed}");
    }
}

/// Everything that a byte of a header can be, one byte at a time, and packets that are cut.
#[test]
fn forged_packets_become_what_the_rule_says() {
    let Some(mut host) = Host::new("forged reads of blocks in the kernel", 256, None) else {
        return;
    };
    host.blocks.show(nth(256, 2), 4);
    for good in [granted(nth(256, 2), 0), granted(nth(256, 2), 256)] {
        assert!(host.agree(&good).is_some());
        for at in 0..HEADER_LEN {
            for value in 0..=255 {
                let mut forged = good.clone();
                forged[at] = value;
                host.agree(&forged);
            }
        }
        for len in 0..good.len() {
            assert_eq!(host.agree(&good[..len]), None, "{len} bytes");
        }
    }
    host.reads.stop().expect("its map");
    assert_eq!(became(&host.reads, &granted(nth(256, 2), 0)), None);
}

/// Reads beside a home that writes and whose entries move: how many were answered, and how many of
/// these with words of two writes.
fn beside_a_home(host: &mut Host, reads: u32) -> (u32, u32) {
    let block = host.blocks.block;
    let packet = frame(&granted(nth(block, 2), room(block)));
    let is_right = |body: &[u8]| {
        let mut writes = words_of(&body[..block as usize]).map(|word| word >> 8);
        let first = writes.next().expect("a block has words");
        first != 0 && writes.all(|other| other == first)
    };
    let look = || tally((&host.reads, &packet), reads, is_right);
    beside(&mut host.blocks, written_and_moved, look)
}

/// One block is written, and its place is given to others, whose words are zeros.
fn written_and_moved(blocks: &mut Blocks, number: u64) {
    let tag = nth(blocks.block, 2);
    blocks.show(tag, number);
    blocks.write(tag, number);
    if number.is_multiple_of(7) {
        blocks.hide(tag);
        let others: Vec<Tag> = (100..140).map(|at| nth(blocks.block, at)).collect();
        others.iter().for_each(|other| blocks.show(*other, 0));
        others.iter().for_each(|other| blocks.hide(*other));
    }
}

#[test]
fn no_answer_is_of_two_moments() {
    let test = "blocks in the kernel beside a writer";
    let Some(mut host) = Host::new(test, TWIN_BLOCK, None) else {
        return;
    };
    let (answered, wrong) = beside_a_home(&mut host, 50_000);
    assert!(answered > 0 && wrong == 0, "{wrong} of {answered}");
}

#[test]
fn planted_differences_are_noticed() {
    const TEST: &str = "planted differences of blocks";
    // Not granted by the switch; of any status; of any epoch; of any life.
    for number in [30, 33, 34] {
        let Some(mut host) = Host::new(TEST, 256, Some(&planted(number))) else {
            return;
        };
        let mut found = 0;
        random(&mut host, (7, 3_000), |host, packet| {
            found += u32::from(became(&host.reads, packet) != host.ruled(packet).ok());
        });
        assert!(found > 0, "plant {number} is not found");
    }
    let with = |number, change: &dyn Fn(&mut Header)| {
        let mut host = Host::new(TEST, 256, Some(&planted(number))).expect("as before");
        host.blocks.show(nth(256, 2), 4);
        let mut asked = header(nth(256, 2));
        change(&mut asked);
        let asked = encoded(&asked, 0);
        (became(&host.reads, &asked).is_some(), host.ruled(&asked))
    };
    let shared = |asked: &mut Header| asked.status = rackmem_wire::GlobalStatus::Shared;
    assert_eq!(with(31, &shared), (true, Err(None)));
    // A block that is being written.
    let mut host = Host::new(TEST, 256, Some(&planted(32))).expect("as before");
    host.blocks.show(nth(256, 2), 4);
    let words = 0..Twins::words(SLABS as usize);
    let name = words
        .clone()
        .find(|at| host.blocks.words.load(*at) == nth(256, 2).0 | 1);
    host.blocks.words.store(name.expect("its place") - 1, 1);
    let asked = granted(nth(256, 2), 0);
    assert!(became(&host.reads, &asked).is_some());
    assert_eq!(host.ruled(&asked), Err(Some(TwinPassed::Locked)));
    // The node's own threads.
    let mut host = Host::new(TEST, 256, Some(&planted(35))).expect("as before");
    host.blocks.show(nth(256, 2), 4);
    let [.., macs, _] = FRONT;
    host.blocks.words.store(macs + usize::from(ME), 5);
    let mut asked = header(nth(256, 2));
    (asked.requester.node, asked.incarnation) = (ME, 1);
    let asked = encoded(&asked, 0);
    let ran = host.reads.run(&frame(&asked), 1).expect("it runs");
    assert_eq!(ran.verdict, Verdict::Redirect);
    assert_eq!(host.ruled(&asked), Err(Some(TwinPassed::NoWay)));
    // No second look: a writer beside tells, however long that takes.
    let mut host = Host::new(TEST, TWIN_BLOCK, Some(&planted(36))).expect("as before");
    let found = (0..200).any(|_| beside_a_home(&mut host, 20_000).1 > 0);
    assert!(found, "4 million reads, and plant 36 is not found");
}
