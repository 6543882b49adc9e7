//! Copies of a node's cache that the kernel gives to readers, and sends home where they are dirty:
//! beside the rule (`rackmem_proto::flowcc::in_kernel`), with chosen orders, random and forged
//! ones, and differences that are planted. What is sent leaves by the node's cable, at whose other
//! ends a reader and a home listen.
#![cfg(feature = "xdp")]

#[allow(
    dead_code,
    reason = "these programs send what no frame comes back with"
)]
#[path = "../support/mod.rs"]
mod support;

mod rig;

use crate::rig::{BLOCK, DIRTY, Entry, ME, REPLY, Rig, TAG, UNHEARD, order, who};
use crate::support::{Dice, planted, whole};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_wire::{Contract, Flags, GlobalStatus, HEADER_LEN, Header, Kind, Reason, Seq, encode};

type Case = (&'static str, Option<Entry>, u64, Header);

fn cases() -> Vec<Case> {
    let good = order(GlobalStatus::Modified);
    let clean = order(GlobalStatus::Shared);
    let with = |change: fn(&mut Header)| {
        let mut header = good;
        change(&mut header);
        header
    };
    let entry = |change: fn(&mut Entry)| {
        let mut entry = DIRTY;
        change(&mut entry);
        Some(entry)
    };
    let shared = entry(|e| e.status = LocalStatus::Shared);
    let dirty = Some(DIRTY);
    let switch = |h: &mut Header| h.flags = h.flags.and(Flags::IN_SWITCH);
    vec![
        ("a dirty copy", dirty, 0, good),
        ("a clean copy", shared, 75, clean),
        ("one that was dirty a moment ago", shared, 0, good),
        (
            "one that was written before",
            entry(|e| (e.status, e.written) = (LocalStatus::Shared, true)),
            0,
            clean,
        ),
        ("of the switch", dirty, 0, with(switch)),
        ("in another way", entry(|e| e.way = 0), 0, good),
        ("in the last way", entry(|e| e.way = 7), 0, good),
        ("a dirty copy that is clean", dirty, 0, clean),
        ("another block", entry(|e| e.tag.0 += 0x1000), 0, good),
        ("no copy", None, 0, good),
        ("a store under way", entry(|e| e.locked = true), 0, good),
        (
            "an empty entry",
            entry(|e| e.status = LocalStatus::Invalid),
            0,
            good,
        ),
        ("for the second time", dirty, 77, good),
        ("of an event that has ended", dirty, 79, good),
        ("of an epoch that is over", dirty, 0, with(|h| h.epoch -= 1)),
        ("of an earlier life", dirty, 0, with(|h| h.incarnation -= 1)),
        (
            "not the provider",
            dirty,
            0,
            with(|h| h.flags = Flags::GRANTED),
        ),
        (
            "gathered",
            dirty,
            0,
            with(|h| h.flags = h.flags.and(Flags::GATHER)),
        ),
        ("not granted", dirty, 0, with(|h| h.flags = Flags::PROVIDER)),
        (
            "an unshared entry",
            dirty,
            0,
            with(|h| h.status = GlobalStatus::Unshared),
        ),
        ("a reason", dirty, 0, with(|h| h.reason = Reason::Locked)),
        ("a write", dirty, 0, with(|h| h.kind = Kind::WriteMiss)),
        ("nobody to answer", dirty, 0, with(|h| h.reply_port = 0)),
        (
            "a node not heard of",
            dirty,
            0,
            with(|h| h.requester = who(UNHEARD)),
        ),
        ("the node itself", dirty, 0, with(|h| h.requester = who(ME))),
        (
            "a home not heard of",
            entry(|e| e.tag.0 += 2 << 48),
            0,
            with(|h| h.tag.0 += 2 << 48),
        ),
        (
            "the node's own home",
            entry(|e| e.tag.0 += 1 << 48),
            0,
            with(|h| h.tag.0 += 1 << 48),
        ),
        (
            "a home that a group keeps",
            entry(|e| e.tag.0 += 40 << 48),
            0,
            with(|h| h.tag.0 += 40 << 48),
        ),
        (
            "memory of objects",
            dirty,
            0,
            with(|h| h.tag = h.tag.under(Contract::Object)),
        ),
    ]
}

fn chosen(rig: &Rig) -> Result<(), String> {
    for (name, entry, executed, header) in cases() {
        let played = rig.play(entry, executed, &header);
        played.map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

#[test]
fn chosen_orders_are_answered_by_the_rule() {
    for block in [256, 1024, 4096, 8192] {
        Rig::with("copies in the kernel", block, None, |rig| {
            chosen(rig).unwrap_or_else(|why| panic!("{block}: {why}"));
            let counts = rig.counts();
            // None had no memory.
            assert!(counts[..8].iter().all(|count| *count > 0), "{counts:?}");
            assert_eq!(counts[8], 0);
            rig.gives(0);
            assert!(rig.passes(&order(GlobalStatus::Modified)));
            assert_eq!(rig.counts(), counts);
        });
    }
}

#[test]
fn random_orders_are_answered_by_the_rule() {
    Rig::with("random copies in the kernel", BLOCK, None, |rig| {
        let (cases, mut dice) = (cases(), Dice(88_172_645_463_325_252));
        for round in 0..10_000 {
            let mut pick = || cases[dice.below(cases.len() as u64) as usize];
            let (a, b) = (pick(), pick());
            let mut header = a.3;
            if dice.below(8) == 0 {
                header.flags = b.3.flags;
            }
            header.seq = Seq(1 + dice.below(4) + 70 * dice.below(2));
            header.copyset.0 = dice.next() as u32;
            header.requester.slot = dice.below(64) as u16;
            let entry = match dice.below(4) {
                0 => b.1,
                _ => a.1,
            };
            let executed = dice.below(80);
            let played = rig.play(entry, executed, &header);
            played.unwrap_or_else(|why| panic!("{round}: {why}: {header:?} {entry:?} {executed}"));
        }
        assert!(rig.counts()[0] > 1_000, "{:?}", rig.counts());
    });
}

/// Whatever a byte of a header is, it is answered by the rule, or passes as it came.
#[test]
fn forged_packets_are_answered_by_the_rule() {
    Rig::with("forged copies in the kernel", BLOCK, None, |rig| {
        let good = encode(&order(GlobalStatus::Modified), 0);
        for at in 0..HEADER_LEN {
            // A port where nobody listens hears nothing.
            let port = good.windows(2).position(|two| two == REPLY.to_be_bytes());
            let port = port.expect("it is there");
            if at == port || at == port + 1 {
                continue;
            }
            for value in 0..=255 {
                let mut forged = good.to_vec();
                forged[at] = value;
                let played = rig.play_packet(Some(DIRTY), 0, &forged);
                played.unwrap_or_else(|why| panic!("byte {at} = {value}: {why}"));
            }
        }
    });
}

/// The same rule where it is attached, by the cable.
#[test]
fn what_comes_by_the_cable_is_answered_by_it() {
    Rig::with("copies in the kernel over a cable", 4096, None, |rig| {
        rig.attach();
        rig.put(Some(DIRTY));
        let (reader, home) = rig.ask(&order(GlobalStatus::Modified), 4);
        assert_eq!((reader.len(), home.len()), (4, 4));
        assert_eq!(whole(&reader, ME), whole(&home, ME));
        assert_eq!(whole(&reader, ME), Some(rig.bytes(TAG)));
        assert_eq!(rig.counts()[0], 1);
    });
}

#[test]
fn planted_differences_are_noticed() {
    for number in [11, 15, 16, 37, 40].into_iter().chain(50..=57) {
        let object = planted(number);
        let test = "planted differences of copies";
        // The last segment of the others is as long as they are.
        let block = if number == 40 { 4096 } else { 2048 };
        Rig::with(test, block, Some(&object), |rig| {
            assert!(chosen(rig).is_err(), "plant {number} is not found");
        });
    }
}
