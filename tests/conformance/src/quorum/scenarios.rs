//! The cases: every row of the tables in `proto/src/switch/quorum.rs` and `stamps.rs`.

use super::{Event, QuorumCase, QuorumReference};
use crate::Reply;
use rackmem_proto::abd::{Change, Config, Member, Stamp, first_line, own};
use rackmem_proto::wire::{Copyset, Flags, Header, Kind, NodeId, RequesterId, Seq, Tag, encode};

/// What the file is about.
pub const ABOUT: &str = "Replicated memory: members' answers are counted, and stamps chosen";

/// A group of so many members, at nodes 0, 1, and so on.
pub(super) fn group(members: NodeId) -> Config {
    let member = |node| Member { node, life: 1 };
    let members: Vec<Member> = (0..members).map(member).collect();
    // One, three, five or seven different ones.
    Config::first(&members).unwrap_or_else(|why| panic!("{why:?}"))
}

/// A requester that is no member.
const WHO: RequesterId = RequesterId { node: 9, slot: 3 };
/// A stamp of this round.
pub(super) const fn round(round: u64) -> u64 {
    round << 28
}

/// A packet on its way: what differs from packet to packet.
#[derive(Clone, Copy)]
pub(super) struct QuorumPacket {
    pub kind: Kind,
    pub who: RequesterId,
    pub life: u32,
    pub seq: u64,
    pub line: u64,
    pub stamp: u64,
    pub config: u32,
    pub sender: NodeId,
    pub copyset: u32,
    pub offset: u32,
    pub flags: Flags,
    pub reply_port: u16,
    pub rest: usize,
    /// The first of these bytes; each is the next one of that before.
    pub first: u8,
}

impl QuorumPacket {
    /// A question or a write of [`WHO`]'s for three members, of config 1.
    pub fn new(kind: Kind, seq: u64) -> Self {
        QuorumPacket {
            kind,
            who: WHO,
            life: 1,
            seq,
            line: 0,
            stamp: 0,
            config: 1,
            sender: WHO.node,
            copyset: 7,
            offset: 0,
            flags: Flags::default(),
            reply_port: 40_000,
            rest: 0,
            first: 0,
        }
    }

    /// The answer of a member to it, under this stamp.
    pub fn answer(self, kind: Kind, from: NodeId, stamp: u64) -> Self {
        QuorumPacket {
            kind,
            sender: from,
            stamp,
            flags: Flags::default(),
            offset: 0,
            rest: 0,
            ..self
        }
    }

    /// What comes.
    pub fn comes(&self) -> Event {
        let tag = Tag(first_line(0).0 + 64 * self.line);
        let header = Header {
            incarnation: self.life,
            copyset: Copyset(self.copyset),
            sender: self.sender,
            offset: self.offset,
            flags: self.flags,
            reply_port: self.reply_port,
            ..Header::request(self.kind, 0, tag, self.who, Seq(self.seq))
        };
        let mut bytes = encode(&header, 16 + self.rest).to_vec();
        bytes.extend(own(Stamp(self.stamp), self.config).to_bytes());
        bytes.extend((0..self.rest).map(|nth| self.first.wrapping_add(nth as u8)));
        Event::Packet(bytes, Reply::ControlPlane)
    }
}

pub(super) fn tells(config: &Config) -> Event {
    Event::Group(0, Some(*config))
}

/// A config whose stamps this life of the switch chooses.
pub(super) fn at_once(members: NodeId, life: u32) -> Config {
    Config {
        chooser: life,
        through_switch: true,
        ..group(members)
    }
}

/// All cases.
pub fn all() -> Vec<QuorumCase> {
    let mut cases = counted();
    cases.extend(not_counted());
    cases.extend(chosen());
    cases.extend(not_chosen());
    cases
}

pub(super) fn case(name: &str, about: &str, events: Vec<Event>) -> QuorumCase {
    QuorumReference::case((name, about), (4, 4), &events)
}

fn counted() -> Vec<QuorumCase> {
    let mut cases = Vec::new();
    let kinds = [
        ("stamp", Kind::AbdStamp, Kind::AbdStampAck),
        ("read", Kind::AbdRead, Kind::AbdReadAck),
        ("write", Kind::AbdWrite, Kind::AbdWriteAck),
        ("write-back", Kind::AbdWriteBack, Kind::AbdWriteBackAck),
    ];
    for members in [3, 5, 7] {
        for (name, asks, answers) in kinds {
            let ask = QuorumPacket {
                copyset: (1 << members) - 1,
                stamp: if asks as u8 >= Kind::AbdWrite as u8 {
                    round(3)
                } else {
                    0
                },
                offset: if asks == Kind::AbdRead { 1 } else { 0 },
                rest: if asks as u8 >= Kind::AbdWrite as u8 {
                    64
                } else {
                    0
                },
                ..QuorumPacket::new(asks, 1)
            };
            let mut events = vec![tells(&group(members)), ask.comes()];
            for from in (0..members).rev() {
                // A copy counts once, and what comes after a quorum is not passed on.
                let answer = ask.answer(answers, from, round(3));
                events.extend([answer.comes(), answer.comes()]);
            }
            let about = "Members' answers: the one that completes a quorum leaves";
            cases.push(case(&format!("{name}-of-{members}"), about, events));
        }
    }
    let ask = QuorumPacket::new(Kind::AbdStamp, 1);
    let says = |from, stamp| ask.answer(Kind::AbdStampAck, from, stamp).comes();
    let rows: [(&str, &str, Vec<Event>); 6] = [
        (
            "exact-maximum",
            "Stamps that differ in one half only: the higher one, and who has it",
            vec![
                ask.comes(),
                says(0, 4 << 32 | 0xffff_ffff),
                says(2, 5 << 32 | 7),
            ],
        ),
        (
            "exact-maximum-low",
            "The same in the other half, the higher one first",
            vec![ask.comes(), says(1, 5 << 32 | 8), says(0, 5 << 32 | 7)],
        ),
        (
            "agree",
            "Two say the same stamp: they agree",
            vec![ask.comes(), says(2, round(9)), says(1, round(9))],
        ),
        (
            "asked-again",
            "A question that comes again empties its row, and all are counted anew",
            vec![
                ask.comes(),
                says(0, round(9)),
                ask.comes(),
                says(0, round(2)),
                says(0, round(2)),
                says(1, round(1)),
                ask.comes(),
                says(2, round(1)),
                says(1, round(1)),
            ],
        ),
        (
            "answer-for-the-node",
            "A requester whose thread does not listen: its node's agents get the answer",
            vec![
                QuorumPacket {
                    reply_port: 0,
                    ..ask
                }
                .comes(),
                QuorumPacket {
                    reply_port: 0,
                    ..ask
                }
                .answer(Kind::AbdStampAck, 0, 0)
                .comes(),
                QuorumPacket {
                    reply_port: 0,
                    ..ask
                }
                .answer(Kind::AbdStampAck, 1, 0)
                .comes(),
            ],
        ),
        (
            "asked-of-one",
            "A request names whom it asks: one, none, and a provider that is not among them",
            vec![
                QuorumPacket {
                    copyset: 2,
                    ..QuorumPacket::new(Kind::AbdRead, 1)
                }
                .comes(),
                QuorumPacket {
                    copyset: 0,
                    ..QuorumPacket::new(Kind::AbdRead, 3)
                }
                .comes(),
                QuorumPacket {
                    offset: 5,
                    ..QuorumPacket::new(Kind::AbdRead, 5)
                }
                .comes(),
                QuorumPacket {
                    offset: 0x1_0002,
                    ..QuorumPacket::new(Kind::AbdRead, 7)
                }
                .comes(),
                QuorumPacket {
                    copyset: 2,
                    offset: 1,
                    ..QuorumPacket::new(Kind::AbdRead, 9)
                }
                .comes(),
            ],
        ),
    ];
    for (name, about, mut events) in rows {
        events.insert(0, tells(&group(3)));
        cases.push(case(name, about, events));
    }
    cases
}

fn not_counted() -> Vec<QuorumCase> {
    let ask = QuorumPacket::new(Kind::AbdStamp, 5);
    let read = QuorumPacket::new(Kind::AbdRead, 5);
    let back = QuorumPacket {
        stamp: round(2),
        rest: 64,
        ..QuorumPacket::new(Kind::AbdWriteBack, 5)
    };
    let data = QuorumPacket {
        flags: Flags::DATA,
        rest: 64,
        ..read.answer(Kind::AbdReadAck, 0, round(2))
    };
    let says = |of: QuorumPacket, from| of.answer(Kind::AbdStampAck, from, round(2)).comes();
    let three = group(3);
    let filling = Config {
        counting: 3,
        ..group(3)
    };
    let later = Config { number: 2, ..three };
    // The home that the group keeps, where it keeps one: its blocks are no lines.
    let of_home = QuorumPacket {
        line: 32 << 42,
        ..ask
    };
    let rows: [(&str, &str, Vec<Event>); 10] = [
        (
            "home",
            "An address of a home that a group keeps is none of the group's lines: the control plane's",
            vec![
                tells(&three),
                of_home.comes(),
                ask.comes(),
                says(of_home, 0),
                says(of_home, 1),
                says(ask, 2),
            ],
        ),
        (
            "late-number",
            "A request of an earlier number of the same parity is dropped, its answers count nothing",
            vec![
                tells(&three),
                ask.comes(),
                QuorumPacket { seq: 3, ..ask }.comes(),
                says(QuorumPacket { seq: 3, ..ask }, 0),
                says(QuorumPacket { seq: 3, ..ask }, 1),
                QuorumPacket { seq: 6, ..ask }.comes(),
                says(ask, 0),
                says(ask, 2),
            ],
        ),
        (
            "late-phase",
            "A question that comes after the write of the same number is dropped",
            vec![
                tells(&three),
                read.comes(),
                back.comes(),
                read.comes(),
                read.answer(Kind::AbdReadAck, 0, round(2)).comes(),
                read.answer(Kind::AbdReadAck, 1, round(2)).comes(),
                back.answer(Kind::AbdWriteBackAck, 0, round(2)).comes(),
                back.answer(Kind::AbdWriteBackAck, 2, round(2)).comes(),
            ],
        ),
        (
            "life",
            "Numbers of a requester that has restarted begin anew, and its last life is late",
            vec![
                tells(&three),
                ask.comes(),
                QuorumPacket {
                    seq: 1,
                    life: 2,
                    ..ask
                }
                .comes(),
                ask.comes(),
                says(ask, 0),
                says(
                    QuorumPacket {
                        seq: 1,
                        life: 2,
                        ..ask
                    },
                    0,
                ),
                says(ask, 1),
                says(
                    QuorumPacket {
                        seq: 1,
                        life: 2,
                        ..ask
                    },
                    1,
                ),
            ],
        ),
        (
            "wrap",
            "Numbers are compared modulo 2^32",
            vec![
                tells(&three),
                QuorumPacket {
                    seq: 0xffff_ffff,
                    ..ask
                }
                .comes(),
                QuorumPacket {
                    seq: 0x1_0000_0001,
                    ..ask
                }
                .comes(),
                QuorumPacket {
                    seq: 0xffff_ffff,
                    ..ask
                }
                .comes(),
            ],
        ),
        (
            "strangers",
            "Who has no place in the group counts nothing",
            vec![
                tells(&three),
                ask.comes(),
                says(ask, 8),
                says(ask, 9),
                says(ask, 0xffff),
            ],
        ),
        (
            "filling",
            "A member that fills is noted and completes no quorum",
            vec![
                tells(&filling),
                ask.comes(),
                says(ask, 2),
                says(ask, 0),
                says(ask, 1),
            ],
        ),
        (
            "segments",
            "Segments of a line pass, and count nothing",
            vec![
                tells(&three),
                read.comes(),
                data.comes(),
                QuorumPacket { sender: 1, ..data }.comes(),
                QuorumPacket {
                    sender: 8,
                    reply_port: 0,
                    ..data
                }
                .comes(),
                read.answer(Kind::AbdReadAck, 0, round(2)).comes(),
                read.answer(Kind::AbdReadAck, 1, round(2)).comes(),
            ],
        ),
        (
            "configs",
            "What is of another config than the one that was told is for the control plane, and counts nothing when it is told",
            vec![
                ask.comes(),
                tells(&three),
                ask.comes(),
                says(ask, 0),
                tells(&later),
                says(ask, 1),
                says(QuorumPacket { config: 2, ..ask }, 1),
                says(QuorumPacket { config: 2, ..ask }, 2),
                QuorumPacket { config: 2, ..ask }.comes(),
                says(QuorumPacket { config: 2, ..ask }, 1),
                says(QuorumPacket { config: 2, ..ask }, 2),
                Event::Group(0, None),
                QuorumPacket { config: 2, ..ask }.comes(),
                QuorumPacket { config: 0, ..ask }.comes(),
            ],
        ),
        (
            "kinds",
            "What members and requesters send each other directly is not counted",
            [
                Kind::AbdFetch,
                Kind::AbdAsk,
                Kind::AbdTold,
                Kind::AbdFill,
                Kind::AbdFillAck,
                Kind::AbdConfig,
            ]
            .into_iter()
            .map(|kind| QuorumPacket { kind, ..ask }.comes())
            .fold(vec![tells(&three)], |mut events, event| {
                events.push(event);
                events
            }),
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, about, events)| case(name, about, events))
        .collect()
}

/// A question for a line's stamps, and the answers by which it is known: that of round 6.
fn learned(line: u64, seq: u64) -> Vec<Event> {
    let ask = QuorumPacket {
        line,
        ..QuorumPacket::new(Kind::AbdStamp, seq)
    };
    let says = |from, stamp| ask.answer(Kind::AbdStampAck, from, stamp).comes();
    vec![ask.comes(), says(0, round(6)), says(1, round(5))]
}

fn write(seq: u64) -> QuorumPacket {
    QuorumPacket {
        rest: 64,
        ..QuorumPacket::new(Kind::AbdWrite, seq)
    }
}

fn chosen() -> Vec<QuorumCase> {
    let ack = |of: QuorumPacket, from, stamp| of.answer(Kind::AbdWriteAck, from, stamp).comes();
    let mut rows: Vec<(&str, &str, Vec<Event>)> = Vec::new();
    let mut events = learned(0, 1);
    events.extend([
        write(2).comes(),
        // The stamp of round 7 of this writer's.
        ack(write(2), 0, round(7) | 1 << 27 | 1 << 11 | 9 << 6 | 3),
        ack(write(2), 1, round(7) | 1 << 27 | 1 << 11 | 9 << 6 | 3),
        write(2).comes(),
        write(4).comes(),
    ]);
    let about = "A write without a stamp gets the next one; a copy the same, another the one after";
    rows.push(("choose", about, events));
    let mut events = learned(0, 1);
    events.extend([
        QuorumPacket {
            stamp: round(20),
            seq: 4,
            ..write(4)
        }
        .comes(),
        write(6).comes(),
        QuorumPacket {
            who: RequesterId { node: 1, slot: 0 },
            ..QuorumPacket::new(Kind::AbdWriteBackAck, 1)
        }
        .answer(Kind::AbdWriteBackAck, 8, round(40))
        .comes(),
        write(8).comes(),
        QuorumPacket {
            flags: Flags::DATA,
            rest: 64,
            ..QuorumPacket::new(Kind::AbdReadAck, 1)
        }
        .answer(Kind::AbdReadAck, 1, round(50))
        .comes(),
        QuorumPacket {
            flags: Flags::DATA,
            stamp: round(60),
            sender: 1,
            ..QuorumPacket::new(Kind::AbdReadAck, 1)
        }
        .comes(),
        write(10).comes(),
        QuorumPacket {
            sender: 2,
            stamp: round(70),
            ..QuorumPacket::new(Kind::AbdWriteAck, 99)
        }
        .comes(),
        write(12).comes(),
    ]);
    let about =
        "Every stamp that passes raises the highest: of writes, answers, segments and late ones";
    rows.push(("raise", about, events));
    let mut events = learned(0, 1);
    let segment = |offset| {
        QuorumPacket {
            flags: Flags::DATA,
            offset,
            ..write(2)
        }
        .comes()
    };
    events.extend([segment(0), segment(64), segment(128), segment(0)]);
    rows.push((
        "segments-of-one-choice",
        "All segments of a write have one stamp",
        events,
    ));
    let mut events = learned(0, 1);
    let slot = |slot| QuorumPacket {
        who: RequesterId { node: 31, slot },
        life: 0xffff,
        ..write(2)
    };
    events.extend([slot(63).comes(), slot(0).comes()]);
    let about = "A stamp names its writer: the highest node, slot and incarnation";
    rows.push(("writers", about, events));
    let mut events = learned(0, 1);
    events.extend([
        write(2).comes(),
        QuorumPacket {
            life: 2,
            ..write(2)
        }
        .comes(),
    ]);
    let about =
        "A requester that has restarted gets no stamp of its last life under the same number";
    rows.push(("choose-for-another-life", about, events));
    let ask = |seq| QuorumPacket::new(Kind::AbdStamp, seq);
    let says = |seq, from| ask(seq).answer(Kind::AbdStampAck, from, round(6)).comes();
    let mut events = vec![ask(1).comes()];
    // The first question is never answered.
    for nth in 0..66 {
        let seq = 2 * nth + 2;
        events.extend([ask(seq).comes(), says(seq, 0), says(seq, 1)]);
    }
    events.push(write(3).comes());
    let about = "After 64 others, another question learns in the place of one that is not answered";
    rows.push(("patience", about, events));
    with_chooser(rows)
}

fn not_chosen() -> Vec<QuorumCase> {
    let ask = QuorumPacket::new(Kind::AbdStamp, 1);
    let says = |from| ask.answer(Kind::AbdStampAck, from, round(6)).comes();
    let mut rows: Vec<(&str, &str, Vec<Event>)> = vec![
        (
            "unknown",
            "A line that nobody has asked about, one whose question no quorum has answered yet, and then one has",
            {
                let ask = QuorumPacket::new(Kind::AbdStamp, 3);
                let says = |from| ask.answer(Kind::AbdStampAck, from, round(6)).comes();
                vec![
                    write(1).comes(),
                    ask.comes(),
                    says(0),
                    write(2).comes(),
                    says(2),
                    write(4).comes(),
                    write(2).comes(),
                ]
            },
        ),
        (
            "learned-by-questions-only",
            "Writes that pass teach nothing, nor do reads",
            vec![
                QuorumPacket {
                    stamp: round(3),
                    ..write(1)
                }
                .comes(),
                QuorumPacket {
                    stamp: round(3),
                    ..write(1)
                }
                .answer(Kind::AbdWriteAck, 0, round(3))
                .comes(),
                QuorumPacket {
                    stamp: round(3),
                    ..write(1)
                }
                .answer(Kind::AbdWriteAck, 1, round(3))
                .comes(),
                QuorumPacket::new(Kind::AbdRead, 3).comes(),
                QuorumPacket::new(Kind::AbdRead, 3)
                    .answer(Kind::AbdReadAck, 0, round(3))
                    .comes(),
                QuorumPacket::new(Kind::AbdRead, 3)
                    .answer(Kind::AbdReadAck, 1, round(3))
                    .comes(),
                write(5).comes(),
            ],
        ),
        (
            "first-copy-learns",
            "The answers to a question's first copy teach nothing that its second copy asks",
            {
                let other = QuorumPacket {
                    who: RequesterId { node: 1, slot: 0 },
                    ..QuorumPacket::new(Kind::AbdStamp, 1)
                };
                // Another line, in the same place.
                let taken = (1..).find(|line| same_place(*line)).unwrap_or(1);
                vec![
                    ask.comes(),
                    QuorumPacket {
                        line: taken,
                        ..other
                    }
                    .comes(),
                    ask.comes(),
                    says(0),
                    says(1),
                    write(2).comes(),
                ]
            },
        ),
        (
            "another-life",
            "A config that names another life of the switch: a write without a stamp is not even refused",
            vec![
                tells(&at_once(3, 3)),
                ask.comes(),
                says(0),
                says(1),
                write(2).comes(),
            ],
        ),
        (
            "no-more-incarnations",
            "A requester that has started too often gets no stamp",
            {
                let mut events = learned(0, 1);
                events.push(
                    QuorumPacket {
                        life: 0x1_0000,
                        ..write(2)
                    }
                    .comes(),
                );
                events
            },
        ),
        ("no-more-rounds", "A line whose rounds are used up", {
            let last = ask.answer(Kind::AbdStampAck, 1, u64::MAX).comes();
            vec![ask.comes(), says(0), last, write(2).comes()]
        }),
        (
            "forgotten-with-the-config",
            "What was learned in one config says nothing in the next; a copy of an earlier choice neither",
            {
                let mut events = learned(0, 1);
                let next = at_once(3, 4).step(Change::AtOnce(4));
                let next = next.unwrap_or_else(|why| panic!("{why:?}"));
                events.extend([
                    write(2).comes(),
                    tells(&next),
                    write(2).comes(),
                    QuorumPacket {
                        config: 2,
                        ..write(2)
                    }
                    .comes(),
                ]);
                events
            },
        ),
    ];
    let mut events = learned(0, 1);
    events.push(Event::Group(5, Some(group(5))));
    events.push(write(2).comes());
    let about = "A config of another group is told: all lines are forgotten";
    rows.push(("forgotten-with-another-group", about, events));
    with_chooser(rows)
}

fn same_place(line: u64) -> bool {
    let place = |line| rackmem_proto::switch::crc32(first_line(0).0 + 64 * line) % 4;
    place(line) == place(0)
}

/// These, in a config whose stamps the switch chooses.
fn with_chooser(rows: Vec<(&str, &str, Vec<Event>)>) -> Vec<QuorumCase> {
    let rows = rows.into_iter();
    rows.map(|(name, about, mut events)| {
        events.insert(0, tells(&at_once(3, 4)));
        case(name, about, events)
    })
    .collect()
}
