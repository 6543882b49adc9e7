//! Random packets, as a small rack and its network send them, and others that contradict them.

use super::scenarios::{QuorumPacket, group};
use super::{Event, QuorumCase, QuorumReference};
use rackmem_proto::abd::Config;
use rackmem_proto::wire::{Flags, Kind, RequesterId};

const KINDS: [Kind; 9] = [
    Kind::AbdStamp,
    Kind::AbdStampAck,
    Kind::AbdRead,
    Kind::AbdReadAck,
    Kind::AbdWrite,
    Kind::AbdWriteAck,
    Kind::AbdWriteBack,
    Kind::AbdWriteBackAck,
    Kind::AbdFetch,
];

/// So many packets. Numbers, stamps and configs are few, so that they meet.
pub fn sequence(seed: u64, packets: usize) -> QuorumCase {
    let mut rng = fastrand::Rng::with_seed(seed);
    let life = 4;
    let config = |rng: &mut fastrand::Rng| Config {
        number: rng.u32(1..3),
        counting: *rng.choice(&[7, 7, 7, 3, 5]).unwrap_or(&7),
        chooser: *rng.choice(&[0, life, life, life, 3]).unwrap_or(&0),
        ..group(3)
    };
    let mut events = Vec::new();
    let mut last = QuorumPacket::new(Kind::AbdStamp, 1);
    for nth in 0..packets {
        if nth % 200 == 0 {
            let counted = (rng.u8(..8) != 0).then(|| config(&mut rng));
            events.push(Event::Group(0, counted));
        }
        let kind = *rng.choice(&KINDS).unwrap_or(&Kind::AbdStamp);
        // Half of the packets answer the one before, or come again.
        last = match rng.u8(..6) {
            0 => last,
            1..4 => {
                let kind = Kind::from_byte(last.kind as u8 | 1).unwrap_or(last.kind);
                let stamp = match rng.bool() {
                    true => last.stamp,
                    false => rng.u64(..4) << 28 | rng.u64(..2) << 40,
                };
                last.answer(kind, rng.u16(..4), stamp)
            }
            _ => QuorumPacket {
                who: RequesterId {
                    node: rng.u16(..2),
                    slot: rng.u16(..2),
                },
                life: rng.u32(1..3),
                seq: (nth as u64 / 40).saturating_sub(rng.u64(..3)),
                line: rng.u64(..6),
                stamp: if rng.bool() { 0 } else { rng.u64(..9) << 28 },
                config: rng.u32(1..3),
                copyset: rng.u32(..16),
                offset: rng.u32(..4),
                flags: if rng.u8(..6) == 0 {
                    Flags::DATA
                } else {
                    Flags::default()
                },
                reply_port: if rng.u8(..4) == 0 { 0 } else { 40_000 },
                rest: rng.usize(..3) * 64,
                ..QuorumPacket::new(kind, 0)
            },
        };
        events.push(last.comes());
    }
    let name = format!("random-{seed}");
    QuorumReference::case((&name, "Random packets"), (life, 4), &events)
}
