//! Both rounds of an operation carried out by the switch: every row of the tables in
//! `proto/src/switch/held.rs`. XDP leaves it to its process.

use super::scenarios::{QuorumPacket, at_once, case, round, tells};
use super::{Event, QuorumCase};
use rackmem_proto::abd::{Change, Config};
use rackmem_proto::wire::{Flags, Kind, NodeId};

/// What the file is about.
pub const ABOUT_HELD: &str = "Replicated memory in lines of 64 bytes: the switch carries out both rounds and holds the line between them";

/// The bytes of a line.
const LINE: usize = 64;
/// The life of the switch.
const LIFE: u32 = 4;

fn holds(members: NodeId, life: u32) -> Config {
    Config {
        holds_lines: true,
        ..at_once(members, life)
    }
}

fn write(seq: u64) -> QuorumPacket {
    QuorumPacket {
        copyset: 0,
        rest: LINE,
        ..QuorumPacket::new(Kind::AbdLineWrite, seq)
    }
}

fn read(seq: u64) -> QuorumPacket {
    QuorumPacket {
        rest: 0,
        ..QuorumPacket {
            kind: Kind::AbdLineRead,
            ..write(seq)
        }
    }
}

fn says(of: QuorumPacket, from: NodeId, stamp: u64) -> Event {
    of.answer(Kind::AbdStampAck, from, stamp).comes()
}

/// A line whose bytes are from `first` on.
fn brings(of: QuorumPacket, from: NodeId, (stamp, first): (u64, u8)) -> Event {
    QuorumPacket {
        flags: Flags::DATA,
        rest: LINE,
        first,
        ..of.answer(Kind::AbdReadAck, from, stamp)
    }
    .comes()
}

fn has(of: QuorumPacket, kind: Kind, from: NodeId, stamp: u64) -> Event {
    of.answer(kind, from, stamp).comes()
}

/// The stamp that the switch chooses for a write of round `number` of the usual requester.
fn chosen(number: u64) -> u64 {
    round(number) | 1 << 27 | 1 << 11 | 9 << 6 | 3
}

/// All cases.
pub fn held() -> Vec<QuorumCase> {
    let (stored, back) = (Kind::AbdWriteAck, Kind::AbdWriteBackAck);
    let w = write(1);
    let r = read(1);
    let mut rows: Vec<(&str, &str, Vec<Event>)> = vec![
        (
            "write",
            "A write asks for stamps, is stored under the next one, and answered when a quorum has it",
            vec![
                w.comes(),
                says(w, 0, round(3)),
                says(w, 1, round(6)),
                says(w, 2, round(9)),
                has(w, stored, 2, chosen(7)),
                has(w, stored, 2, chosen(7)),
                has(w, stored, 0, chosen(7)),
                has(w, stored, 1, chosen(7)),
            ],
        ),
        (
            "read-agreed",
            "A quorum agrees: the answer has the line, and later answers change nothing of it",
            vec![
                r.comes(),
                brings(r, 0, (round(3), 1)),
                brings(r, 0, (round(3), 1)),
                brings(r, 1, (round(3), 1)),
                brings(r, 2, (round(9), 5)),
            ],
        ),
        (
            "read-disagreed",
            "The higher line is stored at all before it is the answer",
            vec![
                r.comes(),
                brings(r, 0, (round(3), 1)),
                brings(r, 1, (round(6), 5)),
                brings(r, 2, (round(6), 5)),
                has(r, back, 0, round(6)),
                has(r, back, 1, round(3)),
                has(r, back, 2, round(6)),
                has(r, back, 1, round(6)),
            ],
        ),
        (
            "read-disagreed-higher-first",
            "The first line that comes is the higher one and stays",
            vec![
                r.comes(),
                brings(r, 1, (round(6), 5)),
                brings(r, 0, (round(3), 1)),
            ],
        ),
        (
            "read-of-what-nobody-has-written",
            "Zeros under no stamp are an answer as well",
            vec![r.comes(), brings(r, 0, (0, 0)), brings(r, 1, (0, 0))],
        ),
        (
            "read-answers-without-a-line",
            "They are not counted",
            vec![
                r.comes(),
                has(r, Kind::AbdReadAck, 0, round(3)),
                brings(r, 1, (round(3), 1)),
                has(r, Kind::AbdReadAck, 2, round(3)),
            ],
        ),
        (
            "a-copy-of-a-write",
            "In the first round it asks again; in the second it is stored under the same stamp",
            vec![
                w.comes(),
                says(w, 0, round(3)),
                w.comes(),
                says(w, 1, round(3)),
                says(w, 2, round(3)),
                has(w, stored, 0, chosen(4)),
                w.comes(),
                says(w, 0, round(9)),
                says(w, 1, round(9)),
                has(w, stored, 0, chosen(4)),
                has(w, stored, 1, chosen(4)),
                w.comes(),
            ],
        ),
        (
            "a-copy-of-a-read",
            "It begins anew: what an earlier copy has found is not counted",
            vec![
                r.comes(),
                brings(r, 0, (round(3), 1)),
                brings(r, 1, (round(4), 5)),
                r.comes(),
                has(r, back, 0, round(4)),
                has(r, back, 1, round(4)),
                brings(r, 1, (round(4), 5)),
                brings(r, 2, (round(6), 7)),
                has(r, back, 0, round(4)),
                has(r, back, 1, round(6)),
                has(r, back, 2, round(6)),
            ],
        ),
        (
            "the-next-operation",
            "It takes the row, and late packets of the one before are dropped",
            vec![
                w.comes(),
                says(w, 0, round(3)),
                read(3).comes(),
                w.comes(),
                says(w, 1, round(3)),
                brings(read(3), 1, (round(3), 1)),
                brings(read(3), 2, (round(3), 1)),
            ],
        ),
        (
            "no-line",
            "A write without a line, or with half of one, is dropped",
            vec![
                QuorumPacket { rest: 0, ..w }.comes(),
                QuorumPacket { rest: 32, ..w }.comes(),
            ],
        ),
        (
            "beside-counted-requests",
            "A requester's own rounds are counted as without it, and segments pass",
            {
                let ask = QuorumPacket::new(Kind::AbdStamp, 1);
                let segment = QuorumPacket::new(Kind::AbdRead, 2);
                vec![
                    ask.comes(),
                    says(ask, 0, round(3)),
                    says(ask, 1, round(3)),
                    segment.comes(),
                    brings(segment, 0, (round(3), 1)),
                    has(segment, Kind::AbdReadAck, 0, round(3)),
                    has(segment, Kind::AbdReadAck, 1, round(3)),
                ]
            },
        ),
        (
            "strangers",
            "What comes of who is no member is dropped, segments as well",
            {
                let (w, segment) = (write(3), QuorumPacket::new(Kind::AbdRead, 2));
                vec![
                    r.comes(),
                    brings(r, 7, (round(9), 5)),
                    brings(r, 0, (round(3), 1)),
                    brings(r, 1, (round(3), 1)),
                    w.comes(),
                    says(w, 7, round(9)),
                    has(w, stored, 7, chosen(4)),
                    segment.comes(),
                    brings(segment, 7, (round(9), 5)),
                    has(segment, Kind::AbdReadAck, 7, round(9)),
                    brings(segment, 0, (round(3), 1)),
                ]
            },
        ),
        (
            "no-more-incarnations",
            "A requester that has started too often is told that its write is not carried out",
            {
                let w = QuorumPacket {
                    life: 0x1_0000,
                    ..w
                };
                vec![w.comes(), says(w, 0, 0), says(w, 1, 0)]
            },
        ),
        (
            "the-next-config",
            "Requests of the one before are for the control plane; its answers count nothing",
            {
                let next = holds(3, LIFE).step(Change::Held(LIFE));
                let next = next.unwrap_or_else(|why| panic!("{why:?}"));
                let later = QuorumPacket { config: 2, ..w };
                vec![
                    w.comes(),
                    says(w, 0, round(3)),
                    tells(&next),
                    w.comes(),
                    says(w, 1, round(3)),
                    says(later, 1, round(3)),
                    says(later, 2, round(3)),
                    later.comes(),
                    says(later, 1, round(3)),
                    says(later, 2, round(3)),
                ]
            },
        ),
        (
            "another-life",
            "A config that names another life of the switch: nothing is carried out, nor refused",
            vec![tells(&holds(3, 3)), w.comes(), r.comes()],
        ),
        (
            "no-lines",
            "A config whose lines it does not hold",
            vec![tells(&at_once(3, LIFE)), w.comes(), r.comes()],
        ),
    ];
    for members in [5, 7] {
        let quorum = members / 2 + 1;
        let mut events = vec![tells(&holds(members, LIFE)), w.comes()];
        events.extend((0..quorum).map(|from| says(w, from, round(3))));
        events.extend((0..quorum).map(|from| has(w, stored, from, chosen(4))));
        let name = if members == 5 { "five" } else { "seven" };
        rows.push((name, "A majority of all", events));
    }
    let filling = holds(3, LIFE)
        .step(Change::Replace(
            2,
            rackmem_proto::abd::Member { node: 5, life: 1 },
        ))
        .unwrap_or_else(|why| panic!("{why:?}"));
    let w = QuorumPacket { config: 2, ..w };
    let mut events = vec![tells(&filling), w.comes()];
    events.extend([0, 5, 1].map(|from| says(w, from, round(3))));
    events.extend([5, 0, 1].map(|from| has(w, stored, from, chosen(4))));
    let about = "A member that fills is asked nothing, gets what is stored, and does not count";
    rows.push(("a-member-fills", about, events));
    let rows = rows.into_iter();
    rows.map(|(name, about, mut events)| {
        if !matches!(events.first(), Some(Event::Group(..))) {
            events.insert(0, tells(&holds(3, LIFE)));
        }
        case(name, about, events)
    })
    .collect()
}
