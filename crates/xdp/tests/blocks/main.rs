//! Blocks of a home given in the kernel: what the Rust rule says becomes of each packet, chosen,
//! random and forged; a writer beside, sums that a device makes, and differences that are planted.
#![cfg(feature = "xdp")]

#[allow(
    dead_code,
    reason = "these programs send what no frame comes back with"
)]
#[path = "../support/mod.rs"]
mod support;

mod host;

use crate::host::{Became, Blocks, Host};
use crate::support::{Dice, beside, planted_in, whole, words_of};
use rackmem_proto::flowcc::twin::{FRONT, TWIN_BLOCK, TwinPassed, Twins};
use rackmem_proto::words::Words;
use rackmem_wire::{
    Flags, GlobalStatus, HEADER_LEN, Header, HomeId, Kind, NodeId, RequesterId, Seq, Tag, encode,
};
use rackmem_xdp::Error;

const SLABS: u32 = 3;
const ME: NodeId = 3;
const READER: NodeId = 1;
const EPOCH: u32 = 7;
const LIFE: u32 = 2;
/// What packets carry on these cables, and the least that a rack's file may say.
const MTUS: [usize; 2] = [1500, 1280];

fn value(block: u32, word: u64) -> impl Iterator<Item = u64> {
    (0..u64::from(block) / 8).map(move |nth| word << 16 | nth)
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
    (header.incarnation, header.reply_port) = (LIFE, host::REPLY);
    header.flags = Flags::GRANTED.and(Flags::IN_SWITCH);
    header.sender = NodeId::MAX;
    header
}

fn encoded(header: &Header, room: usize) -> Vec<u8> {
    let mut packet = encode(header, room).to_vec();
    packet.resize(HEADER_LEN + room, 0);
    packet
}

const SIZES_OF_BLOCKS: [u32; 5] = [256, 1024, 2048, 4096, TWIN_BLOCK];

#[test]
fn blocks_of_every_size_are_given_as_by_the_agent() {
    for (block, mtu) in SIZES_OF_BLOCKS.into_iter().zip(MTUS.into_iter().cycle()) {
        Host::with("blocks in the kernel", (block, mtu), None, |host| {
            sizes(host, block);
        });
    }
}

fn sizes(host: &mut Host<'_>, block: u32) {
    for at in [0, 1, 70, 4095] {
        let tag = nth(block, at);
        assert_eq!(host.agree(&granted(tag, 0)), Became::Passed, "{at}");
        host.blocks.show(tag, at);
        for kind in [Kind::ReadMiss, Kind::WriteMiss] {
            let asked = Header {
                kind,
                ..header(tag)
            };
            let Became::Answered(packets) = host.agree(&encoded(&asked, 0)) else {
                panic!("no answer");
            };
            let bytes: Vec<u8> = value(block, at).flat_map(u64::to_ne_bytes).collect();
            assert_eq!(whole(&packets, ME), Some(bytes));
            assert_eq!(packets.len() > 1, block > 1024, "{block}");
            // What has a body is nothing that the switch sends.
            assert_eq!(host.agree(&encoded(&asked, 8)), Became::Passed);
        }
        host.blocks.write(tag, 1000 + at);
        assert!(host.agree(&granted(tag, 0)).is_answer());
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
            assert_eq!(host.agree(&encoded(&other, 0)), Became::Passed);
        }
        // A node that was not heard of, this one, and a thread that does not listen.
        let mut strange = [2, ME].map(|node| {
            let mut asked = header(tag);
            (asked.requester.node, asked.incarnation) = (node, 1);
            asked
        });
        for asked in &mut strange {
            assert_eq!(host.agree(&encoded(asked, 0)), Became::Passed);
        }
        let deaf = Header {
            reply_port: 0,
            ..header(tag)
        };
        assert_eq!(host.agree(&encoded(&deaf, 0)), Became::Passed);
        host.blocks.hide(tag);
        assert_eq!(host.agree(&granted(tag, 0)), Became::Passed);
    }
    let counts = host.counts();
    assert_eq!((counts.locked, counts.torn, counts.no_room), (0, 0, 0));
    assert_eq!((counts.answered, counts.elsewhere), (4 * 3, 4 * 2));
    assert_eq!((counts.not_of_now, counts.no_way), (4 * 2, 4 * 3));
    host.blocks.show(nth(block, 5), 1);
    host.blocks.twins.close(&mut host.blocks.words);
    assert_eq!(host.agree(&granted(nth(block, 5), 0)), Became::Passed);
}

/// Random packets beside a home whose entries go and come, and whose blocks are written.
fn random(host: &mut Host<'_>, (seed, packets): (u64, u32), mut see: impl FnMut(&Host<'_>, &[u8])) {
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
        let room = [0, 0, 0, 0, 0, 8, 1400][dice.below(7) as usize];
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
        let test = "random reads of blocks in the kernel";
        Host::with(test, (block, 1500), None, |host| {
            let (mut answered, mut passed) = (0, 0);
            let chosen = (88_172_645_463_325_252, 10_000);
            random(host, chosen, |host, packet| match host.agree(packet) {
                Became::Answered(_) => answered += 1,
                _ => passed += 1,
            });
            // Of the longest there is room for few.
            let least = if block > 2048 { 100 } else { 1_000 };
            assert!(answered > least && passed > 1_500, "{answered} {passed}");
        });
    }
}

/// Everything that a byte of a header can be, one byte at a time, and packets that are cut.
#[test]
fn forged_packets_become_what_the_rule_says() {
    for block in [256, 4096] {
        let test = "forged reads of blocks in the kernel";
        Host::with(test, (block, 1500), None, |host| {
            host.blocks.show(nth(block, 2), 4);
            let good = granted(nth(block, 2), 0);
            assert!(host.agree(&good).is_answer());
            for at in 0..HEADER_LEN {
                for value in 0..=255 {
                    let mut forged = good.clone();
                    forged[at] = value;
                    host.agree(&forged);
                }
            }
            for len in 0..good.len() {
                assert_eq!(host.agree(&good[..len]), Became::Passed, "{len} bytes");
            }
            host.reads.stop().expect("its map");
            assert_eq!(host.became(&good, 0), Became::Passed);
        });
    }
}

/// Reads beside a home that writes and whose entries move: how many were answered, and how many
/// became anything but a block of one write, or a packet that passes as it came.
fn beside_a_home(host: &mut Host<'_>, reads: u32) -> (u32, u32) {
    let block = host.blocks.block;
    let packet = granted(nth(block, 2), 0);
    let is_right = |packets: &[Vec<u8>]| {
        whole(packets, ME).is_some_and(|bytes| {
            let mut writes = words_of(&bytes).map(|word| word >> 16);
            let first = writes.next().expect("a block has words");
            first != 0 && bytes.len() == block as usize && writes.all(|other| other == first)
        })
    };
    let (reader, blocks) = host.split();
    let look = || {
        let (mut answers, mut wrong) = (0, 0);
        // Who writes beside may be kept from its processor.
        for run in 0..100 * reads {
            if run >= reads && answers > 0 {
                break;
            }
            match reader.became(&packet, reader.segments) {
                Became::Answered(packets) => {
                    answers += 1;
                    wrong += u32::from(!is_right(&packets));
                }
                Became::Passed => {}
                Became::Wrong(_) => wrong += 1,
            }
        }
        (answers, wrong)
    };
    beside(blocks, written_and_moved, look)
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
    for block in [1024, 4096] {
        let test = "blocks in the kernel beside a writer";
        Host::with(test, (block, 1500), None, |host| {
            let (answered, wrong) = beside_a_home(host, 30_000);
            assert!(answered > 0 && wrong == 0, "{wrong} of {answered}");
        });
    }
}

/// Requests that come over the cable, to the program where it is attached, from a host whose device
/// adds sums and from one that has added them.
#[test]
fn what_comes_by_the_cable_is_answered_by_it() {
    let test = "blocks in the kernel over a cable";
    Host::with(test, (4096, 1500), None, |host| {
        host.blocks.show(nth(4096, 2), 4);
        let strange = host.reads.attach("none0");
        assert!(matches!(strange, Err(Error::NoInterface(_))), "{strange:?}");
        host.attach();
        let bytes: Vec<u8> = value(4096, 4).flat_map(u64::to_ne_bytes).collect();
        for adds in [true, false] {
            host.device_adds_sums(adds);
            let packets = host.ask(&granted(nth(4096, 2), 0), 4);
            assert_eq!(whole(&packets, ME), Some(bytes.clone()), "{adds}");
        }
        assert_eq!(host.counts().answered, 2);
    });
    // The device's sum is of nothing.
    let object = planted_in(SOURCE, 41);
    Host::with(test, (4096, 1500), Some(&object), |host| {
        host.blocks.show(nth(4096, 2), 4);
        host.attach();
        host.device_adds_sums(true);
        assert_eq!(
            host.ask(&granted(nth(4096, 2), 0), 0),
            Vec::<Vec<u8>>::new()
        );
        assert_eq!(host.counts().answered, 1);
    });
}

const SOURCE: &str = "blocks.bpf.c";

#[test]
fn planted_differences_are_noticed() {
    const TEST: &str = "planted differences of blocks";
    let plant = |number, block, look: &mut (dyn FnMut(&mut Host<'_>) + Send)| {
        Host::with(TEST, (block, 1500), Some(&planted_in(SOURCE, number)), look);
    };
    // Not granted by the switch; of any epoch; of any life.
    for number in [30, 33, 34] {
        plant(number, 256, &mut |host| {
            let mut found = 0;
            random(host, (7, 3_000), |host, packet| {
                let (became, ruled) = host.both(packet);
                found += u32::from(became != ruled);
            });
            assert!(found > 0, "plant {number} is not found");
        });
    }
    // Of any status.
    plant(31, 256, &mut |host| {
        host.blocks.show(nth(256, 2), 4);
        let mut asked = header(nth(256, 2));
        asked.status = GlobalStatus::Shared;
        let asked = encoded(&asked, 0);
        assert!(host.became(&asked, 1).is_answer());
        assert_eq!(host.ruled(&asked), Err(None));
    });
    // A block that is being written.
    plant(32, 256, &mut |host| {
        host.blocks.show(nth(256, 2), 4);
        let mut words = 0..Twins::words(SLABS as usize);
        let name = words.find(|at| host.blocks.words.load(*at) == nth(256, 2).0 | 1);
        host.blocks.words.store(name.expect("its place") - 1, 1);
        let asked = granted(nth(256, 2), 0);
        assert!(host.became(&asked, 1).is_answer());
        assert_eq!(host.ruled(&asked), Err(Some(TwinPassed::Locked)));
    });
    // The node's own threads.
    plant(35, 256, &mut |host| {
        host.blocks.show(nth(256, 2), 4);
        let [.., macs, _] = FRONT;
        host.blocks.words.store(macs + usize::from(ME), 5);
        let mut asked = header(nth(256, 2));
        (asked.requester.node, asked.incarnation) = (ME, 1);
        let asked = encoded(&asked, 0);
        assert_ne!(host.became(&asked, 1), Became::Passed);
        assert_eq!(host.ruled(&asked), Err(Some(TwinPassed::NoWay)));
    });
    // Where in the block a packet's bytes are; how many of them are the block's.
    for number in [37, 40] {
        plant(number, 4096, &mut |host| {
            host.blocks.show(nth(4096, 2), 4);
            let (became, ruled) = host.both(&granted(nth(4096, 2), 0));
            assert_ne!(became, ruled, "plant {number} is not found");
        });
    }
    // No second look; a copy after it; packets that are sent before it: a writer beside tells,
    // however long that takes.
    for number in [36, 38, 39] {
        plant(number, 4096, &mut |host| {
            let found = (0..200).any(|_| beside_a_home(host, 20_000).1 > 0);
            assert!(found, "4 million reads, and plant {number} is not found");
        });
    }
}
