//! A member of a group: the paper's server process, a memory of its Fig. 2 (CNVMM §II-B).
//!
//! | gets | if | does | answers |
//! |---|---|---|---|
//! | anything | its config is not the member's | | of an older one: `AbdConfig` |
//! | | the member fills, and it is no write | | – |
//! | Stamp | | | StampAck with the line's stamp |
//! | Read | | | ReadAck likewise; the provider with the line |
//! | Fetch | the line's stamp is not below the one asked for | | ReadAck with the line |
//! | Write, WriteBack | its row is newer | | – |
//! | | a segment, others are missing | stages it | – |
//! | | all are here, and the line's stamp is lower | line := staged, stamp := its, in one step; durable first | Ack |
//! | | all are here, and it is not | | Ack: stored and superseded are the same promise |
//! | | it was stored before | | Ack again |
//! | Ask | | | Told: the stamp under which a write of this number has come, if one has |
//! | Fill | | | FillAck: lines with their stamps, from an address on |

use super::effects::{Body, Defect, Effects, Staging};
use super::rows::{Progress, Rows};
use super::{Layout, Stamp};
use crate::wire::{Dest, Flags, Header, Kind, NodeId, Own, Reason, Record, Seq, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Lines that one `FillAck` names at most.
pub const LISTED: usize = 64;

/// The stamps of a group's lines at one member. Their bytes are the host's.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replica {
    /// Lines that have been written, by their tags.
    stamps: BTreeMap<Tag, Stamp>,
    /// A line is stored when it is durable.
    durable: bool,
    /// The highest config that the member has lived by: it answers in no earlier one, also when it
    /// has restarted and hears of an earlier one first.
    config: u32,
}

/// Where an answer of a member goes, and what all answers have in common.
#[derive(Clone, Copy)]
pub struct Answering {
    /// The member.
    pub me: NodeId,
    /// The config that it lives by.
    pub config: u32,
    /// Whether answers go to a switch, which counts.
    pub through_switch: bool,
}

impl Answering {
    /// Answers a packet.
    pub fn answer(
        &self,
        header: &Header,
        kind: Kind,
        stamp: Stamp,
        body: Body<'_>,
        fx: &mut impl Effects,
    ) {
        let own = own(stamp, self.config);
        let mut answer = header.answer(kind, self.me);
        answer.flags = Flags::default();
        answer.offset = 0;
        // What no operation waits for is for the node's own part, and no switch counts it.
        let direct = header.seq == FILLING || matches!(kind, Kind::AbdConfig | Kind::AbdTold);
        let counted = self.through_switch && !direct;
        let to = match counted {
            true => Dest::Switch,
            false => Dest::Agent(header.requester.node),
        };
        fx.send(to, &answer, own, body);
    }
}

/// The number of packets of a member that fills: no operation has it.
pub const FILLING: Seq = Seq(0);

/// What an ABD packet has of its own.
pub const fn own(stamp: Stamp, config: u32) -> Own {
    Own {
        a: stamp.0,
        b: (config as u64) << 32,
    }
}

/// The config that a packet is of.
pub const fn config_of(own: &Own) -> u32 {
    (own.b >> 32) as u32
}

/// What a write is acknowledged by.
const fn ack_of(kind: Kind) -> Kind {
    match kind {
        Kind::AbdWrite => Kind::AbdWriteAck,
        _ => Kind::AbdWriteBackAck,
    }
}

impl Replica {
    /// One without a line.
    pub fn new(durable: bool) -> Self {
        Replica {
            stamps: BTreeMap::new(),
            durable,
            config: 0,
        }
    }

    /// The stamp of a line.
    #[inline]
    pub fn stamp(&self, line: Tag) -> Stamp {
        self.stamps.get(&line).copied().unwrap_or_default()
    }

    /// The lines of a group that have been written, from an address on, with their stamps.
    pub fn lines(&self, from: Tag) -> impl Iterator<Item = (Tag, Stamp)> {
        let lines = self.stamps.range(from..);
        let of_group = lines.take_while(move |(tag, _)| tag.home() == from.home());
        of_group.map(|(tag, stamp)| (*tag, *stamp))
    }

    /// A line has this stamp: a store says so when it is opened.
    pub fn restore(&mut self, line: Tag, stamp: Stamp) {
        self.stamps.insert(line, stamp);
    }

    /// Whether a line is stored when it is durable.
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    /// The member lives by this config, or a later one.
    pub fn lives_by(&mut self, config: u32) {
        self.config = self.config.max(config);
    }

    /// The highest config that the member has lived by.
    pub fn config(&self) -> u32 {
        self.config
    }

    /// A packet of the member's config, for a line of its group. `len`:
    /// bytes of the segment behind it.
    pub fn packet(
        &mut self,
        answering: &Answering,
        (header, own, len): (&Header, &Own, u32),
        (layout, rows): (&Layout, &mut Rows),
        fx: &mut impl Effects,
    ) {
        let stamp = self.stamp(header.tag);
        match header.kind {
            Kind::AbdStamp => {
                answering.answer(header, Kind::AbdStampAck, stamp, Body::Nothing, fx);
            }
            Kind::AbdRead => {
                let provides = header.flags.has(Flags::PROVIDER);
                // A switch passes segments and counts what has none, unless it holds lines.
                let held = header.flags.has(Flags::HELD);
                if !provides || answering.through_switch && !held {
                    answering.answer(header, Kind::AbdReadAck, stamp, Body::Nothing, fx);
                }
                if provides {
                    answering.answer(header, Kind::AbdReadAck, stamp, Body::Line, fx);
                }
            }
            Kind::AbdFetch if stamp.0 >= own.a => {
                answering.answer(header, Kind::AbdReadAck, stamp, Body::Line, fx);
            }
            Kind::AbdAsk => {
                let stamp = rows.stamp_of(header);
                // A durable member's rows are gone when it restarts, and it is the same member.
                let unsure = self.durable && stamp == Stamp::NONE;
                let mut asked = *header;
                asked.reason = if unsure {
                    Reason::Refused
                } else {
                    Reason::None
                };
                answering.answer(&asked, Kind::AbdTold, stamp, Body::Nothing, fx);
            }
            Kind::AbdWrite | Kind::AbdWriteBack => {
                self.write(answering, (header, Stamp(own.a), len), (layout, rows), fx);
            }
            _ => {}
        }
    }

    fn write(
        &mut self,
        answering: &Answering,
        (header, stamp, len): (&Header, Stamp, u32),
        (layout, rows): (&Layout, &mut Rows),
        fx: &mut impl Effects,
    ) {
        // No requester writes under the stamp of what nobody has written.
        if stamp == Stamp::NONE || header.seq == FILLING {
            return;
        }
        let mix = fx.defect() == Some(Defect::MixTwoWrites);
        let at = Staging::Of(
            header.tag.home().0,
            header.requester,
            header.seq.parity() as u8,
        );
        let Some(row) = rows.enter(header, stamp, mix) else {
            return;
        };
        if row.progress == Progress::Staging {
            match row.received.add(header.offset, len, layout.line) {
                // Neither a line nor a segment of one.
                None => return,
                Some(true) => fx.stage(at),
                Some(false) => {}
            }
            if !row.received.complete() && fx.defect() != Some(Defect::AckHalfLine) {
                return;
            }
            if self.durable && stamp > self.stamp(header.tag) {
                row.progress = Progress::Syncing;
                fx.sync(at, header, own(stamp, answering.config));
            } else {
                row.progress = Progress::Stored;
                self.store(at, header.tag, stamp, fx);
            }
        }
        let early = fx.defect() == Some(Defect::AckBeforeDurable);
        if row.progress == Progress::Stored || early {
            answering.answer(header, ack_of(header.kind), stamp, Body::Nothing, fx);
        }
    }

    /// What was staged is durable. `header` is of any of its segments. With `answering`,
    /// its config is still the member's.
    pub fn synced(
        &mut self,
        answering: Option<&Answering>,
        (header, stamp): (&Header, Stamp),
        rows: &mut Rows,
        fx: &mut impl Effects,
    ) {
        let at = Staging::Of(
            header.tag.home().0,
            header.requester,
            header.seq.parity() as u8,
        );
        let Some(row) = rows.enter(header, stamp, false) else {
            return;
        };
        if row.progress != Progress::Syncing {
            return;
        }
        row.progress = Progress::Stored;
        self.store(at, header.tag, stamp, fx);
        if let Some(answering) = answering {
            answering.answer(header, ack_of(header.kind), stamp, Body::Nothing, fx);
        }
    }

    /// Makes a staged line the line, unless that has a higher stamp.
    pub fn store(&mut self, at: Staging, line: Tag, stamp: Stamp, fx: &mut impl Effects) {
        if stamp > self.stamp(line) || fx.defect() == Some(Defect::StoreLowerStamp) {
            self.stamps.insert(line, stamp);
            fx.commit(at, line, stamp);
        }
    }

    /// Answers a member that fills: the lines of this group from an address on,
    /// and whether there are more.
    pub fn list(&self, answering: &Answering, header: &Header, fx: &mut impl Effects) {
        let mut records: Vec<Record> = self
            .lines(header.tag)
            .take(LISTED + 1)
            .map(|(tag, stamp)| Record { tag, word: stamp.0 })
            .collect();
        let more = records.len() > LISTED;
        records.truncate(LISTED);
        let own = own(Stamp(u64::from(more)), answering.config);
        let mut answer = header.answer(Kind::AbdFillAck, answering.me);
        answer.flags = Flags::default();
        let to = Dest::Agent(header.requester.node);
        fx.send(to, &answer, own, Body::Records(&records));
    }
}
