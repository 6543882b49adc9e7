//! An operation: the paper's user process (CNVMM §II-B). One a slot.
//!
//! | phase | leaves when | to |
//! |---|---|---|
//! | Asking | a quorum has said its stamps | Storing, under a stamp of the next round: above the quorum's, and above all of this requester |
//! | Reading | a quorum has said its stamps, and the whole line of some stamp is here | that is the highest, and a quorum agrees on it: done; agrees not: WritingBack; it is not: Fetching |
//! | Fetching | the whole line of the highest stamp or a later one is here | as Reading |
//! | Storing, WritingBack | a quorum has it | done |
//! | Fetching | timeout | Reading, anew: the only member that had it may be gone |
//! | any other | timeout | the same packets again: the same number, stamp and bytes |
//! | Asking, Reading, Fetching | another config | begins anew |
//! | Storing, WritingBack | another config | the same stamp and bytes to the members of that, counted anew |
//!
//! When the members that have the highest stamp are a quorum by themselves, the second phase of a
//! read (CNVMM §II-B) would change nothing, and is left out: one round, the common case. Only
//! the *provider* sends the line; the others say its stamp.

use super::config::{Config, MEMBERS};
use super::effects::{Body, Defect, Effects};
use super::quorum::Quorum;
use super::replica::{config_of, own};
use super::{Layout, Outcome, Stamp, Why, Writer};
use crate::call::Assembly;
use crate::switch::SWITCH;
use crate::wire::{Dest, Flags, Header, Kind, NodeId, Own, RequesterId, Seq, Tag};

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// A write asks for stamps.
    Asking,
    /// A read asks for stamps, and the provider for the line.
    Reading,
    /// It asks a member for a line that is newer than the provider's.
    Fetching,
    /// A write is stored.
    Storing,
    /// What was read is stored.
    WritingBack,
}

/// A phase, what it sends, and what it is answered.
const PHASES: [(Phase, Kind, Kind); 5] = [
    (Phase::Asking, Kind::AbdStamp, Kind::AbdStampAck),
    (Phase::Reading, Kind::AbdRead, Kind::AbdReadAck),
    (Phase::Fetching, Kind::AbdFetch, Kind::AbdReadAck),
    (Phase::Storing, Kind::AbdWrite, Kind::AbdWriteAck),
    (
        Phase::WritingBack,
        Kind::AbdWriteBack,
        Kind::AbdWriteBackAck,
    ),
];

impl Phase {
    /// What it sends.
    pub const fn asks(self) -> Kind {
        PHASES[self as usize].1
    }

    /// What it is answered.
    pub const fn awaits(self) -> Kind {
        PHASES[self as usize].2
    }

    const fn stores(self) -> bool {
        matches!(self, Phase::Storing | Phase::WritingBack)
    }
}

/// Who asks, and of whom.
pub struct Asking<'a> {
    /// The requester.
    pub requester: RequesterId,
    /// The incarnation of its node.
    pub incarnation: u32,
    /// The group's config.
    pub config: &'a Config,
    /// The group's lines.
    pub layout: Layout,
    /// The highest round that this requester has used.
    pub last_round: &'a mut u64,
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    line: Tag,
    seq: Seq,
    phase: Phase,
    /// The config that it counts in.
    config: u32,
    quorum: Quorum,
    /// What it stores has this stamp.
    stamp: Stamp,
    /// Segments of the line that is read, all of one stamp.
    gathered: Stamp,
    received: Assembly,
    /// How often another provider was chosen.
    attempt: u8,
    rounds: u8,
}

impl Operation {
    /// A read or a write of a line.
    pub fn begin(
        (line, writes): (Tag, bool),
        seq: Seq,
        asking: &mut Asking<'_>,
        fx: &mut impl Effects,
    ) -> Self {
        let mut operation = Operation {
            line,
            seq,
            phase: if writes {
                Phase::Asking
            } else {
                Phase::Reading
            },
            config: 0,
            quorum: Quorum::default(),
            stamp: Stamp::NONE,
            gathered: Stamp::NONE,
            received: Assembly::default(),
            attempt: 0,
            rounds: 0,
        };
        operation.anew(asking, fx);
        operation
    }

    /// The line that it is about.
    pub fn line(&self) -> Tag {
        self.line
    }

    /// Its number.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Begins a phase that may be repeated: nothing that was counted or read of it counts.
    fn anew(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        if self.phase == Phase::Fetching {
            self.phase = Phase::Reading;
        }
        self.quorum = Quorum::default();
        (self.gathered, self.received) = (Stamp::NONE, Assembly::default());
        self.enter(self.phase, asking, fx);
    }

    fn enter(&mut self, phase: Phase, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        self.phase = phase;
        self.config = asking.config.number;
        self.rounds = self.rounds.saturating_add(1);
        self.send(asking, fx);
    }

    /// Whom it asks: those that have not answered, where asking again changes nothing for them.
    fn asked(&self, config: &Config, defect: Option<Defect>) -> u8 {
        let members = (0..MEMBERS).filter(|place| config.members[*place].is_some());
        let members = members.fold(0u8, |set, place| set | 1 << place);
        let answered = if config.through_switch {
            0
        } else {
            self.quorum.answered
        };
        match self.phase {
            _ if defect == Some(Defect::FillingCounts) => members,
            Phase::Asking => config.counting & !answered,
            Phase::Reading | Phase::Fetching => config.counting,
            Phase::Storing | Phase::WritingBack => members & !answered,
        }
    }

    /// Who sends the line: this node, if it has a copy that counts,
    /// and otherwise another member each time.
    fn provider(&self, asking: &Asking<'_>) -> Option<NodeId> {
        let config = asking.config;
        let me = config.place(asking.requester.node);
        if let Some(place) =
            me.filter(|place| self.attempt == 0 && config.counting >> place & 1 == 1)
        {
            return config.node(place);
        }
        let from = usize::from(asking.requester.node) + usize::from(self.attempt);
        let places = (0..MEMBERS).map(|nth| (from + nth) % MEMBERS);
        let mut counting = places.filter(|place| config.counting >> place & 1 == 1);
        config.node(counting.next()?)
    }

    fn send(&self, asking: &Asking<'_>, fx: &mut impl Effects) {
        let config = asking.config;
        let mut header =
            Header::request(self.phase.asks(), 0, self.line, asking.requester, self.seq);
        header.incarnation = asking.incarnation;
        let own = own(self.stamp, config.number);
        if self.phase == Phase::Fetching {
            return self.fetch(header, asking, fx);
        }
        let nodes = config.nodes(self.asked(config, fx.defect()));
        let mut provider = None;
        if self.phase == Phase::Reading {
            provider = self.provider(asking);
        }
        header.copyset = nodes;
        let to = match config.through_switch {
            true => {
                header.offset = provider.map_or(0, u32::from);
                Dest::Switch
            }
            false => Dest::Agents { nodes, provider },
        };
        let body = match self.phase.stores() {
            true => Body::Value(asking.requester.slot as u8),
            false => Body::Nothing,
        };
        fx.send(to, &header, own, body);
    }

    /// Asks one of those that have the highest stamp for the line.
    fn fetch(&self, header: Header, asking: &Asking<'_>, fx: &mut impl Effects) {
        let newest = asking.config.nodes(self.quorum.agree);
        if let Some(node) = newest.first_from(asking.requester.node) {
            let own = own(self.quorum.max, asking.config.number);
            fx.send(Dest::Agent(node), &header, own, Body::Nothing);
        }
    }

    /// The round trip is over and the answers are not here.
    pub fn retry(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        match self.phase {
            Phase::Fetching => {
                self.attempt = self.attempt.wrapping_add(1);
                return self.anew(asking, fx);
            }
            Phase::Reading => self.attempt = self.attempt.wrapping_add(1),
            Phase::Storing if fx.defect() == Some(Defect::RestampRetransmission) => {
                self.stamp = self.next_stamp(asking, fx.defect()).unwrap_or(self.stamp);
            }
            _ => {}
        }
        self.send(asking, fx);
    }

    /// The group has another config.
    pub fn reconfigure(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        if !self.phase.stores() {
            return self.anew(asking, fx);
        }
        self.quorum = Quorum::default();
        self.enter(self.phase, asking, fx);
    }

    /// An answer of a member, or of the switch for several. `len`: bytes of the segment behind it.
    pub fn answer(
        &mut self,
        asking: &mut Asking<'_>,
        (header, own, len): (&Header, &Own, u32),
        fx: &mut impl Effects,
    ) -> Option<Outcome> {
        let stamp = Stamp(own.a);
        let late = header.seq != self.seq && fx.defect() != Some(Defect::LateStampCounts);
        let other = header.kind != self.phase.awaits() || config_of(own) != self.config;
        // An acknowledgement names what it is of: a stamp that was given up is no longer asked for.
        if late || other || self.phase.stores() && stamp != self.stamp {
            return None;
        }
        self.count(asking, header, stamp, fx.defect())?;
        if header.flags.has(Flags::DATA) && header.kind == Kind::AbdReadAck {
            self.gather(asking, (header, stamp, len), fx);
        }
        self.conclude(asking, fx)
    }

    /// None: it is nobody's who is asked.
    fn count(
        &mut self,
        asking: &Asking<'_>,
        header: &Header,
        stamp: Stamp,
        defect: Option<Defect>,
    ) -> Option<()> {
        let config = asking.config;
        if header.sender == SWITCH {
            let told = Quorum::from_copyset(header.copyset.0, stamp)?;
            if config.through_switch {
                self.quorum.add(told.answered, told.agree, stamp);
            }
            return Some(());
        }
        let mut bit = 1 << config.place(header.sender)?;
        if defect == Some(Defect::CountCopiesTwice) && self.quorum.answered & bit != 0 {
            bit = config.counting & !self.quorum.answered;
            bit &= bit.wrapping_neg();
        }
        self.quorum.add(bit, bit, stamp);
        if defect == Some(Defect::AgreeOnOlder) {
            self.quorum.agree = self.quorum.answered;
        }
        Some(())
    }

    /// Puts a segment to the others of its stamp, and begins anew with a higher one:
    /// bytes of two stamps never meet.
    fn gather(
        &mut self,
        asking: &Asking<'_>,
        (header, stamp, len): (&Header, Stamp, u32),
        fx: &mut impl Effects,
    ) {
        if stamp < self.gathered {
            return;
        }
        if stamp > self.gathered {
            self.gathered = stamp;
            if fx.defect() != Some(Defect::MixTwoReads) {
                self.received = Assembly::default();
            }
        }
        if self.received.add(header.offset, len, asking.layout.line) == Some(true) {
            fx.gather(asking.requester.slot as u8);
        }
    }

    fn is_quorum(config: &Config, members: u8, defect: Option<Defect>) -> bool {
        match defect {
            Some(Defect::QuorumOfHalf) => {
                (members & config.counting).count_ones() >= u32::from(config.size) / 2
            }
            Some(Defect::FillingCounts) => members.count_ones() >= config.quorum(),
            _ => config.is_quorum(members),
        }
    }

    fn conclude(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) -> Option<Outcome> {
        let defect = fx.defect();
        let enough = |members| Self::is_quorum(asking.config, members, defect);
        if !enough(self.quorum.answered) {
            return None;
        }
        match self.phase {
            Phase::Asking => {
                let Some(stamp) = self.next_stamp(asking, defect) else {
                    return Some(Outcome::Refused(Why::Stamps));
                };
                self.stamp = stamp;
                self.quorum = Quorum::default();
                self.enter(Phase::Storing, asking, fx);
                None
            }
            Phase::Storing => Some(Outcome::Written {
                stamp: self.stamp,
                rounds: self.rounds,
            }),
            Phase::WritingBack => Some(self.read()),
            Phase::Reading | Phase::Fetching => {
                if !self.received.complete() {
                    return None;
                }
                let whole = self.gathered == self.quorum.max;
                if !whole && defect != Some(Defect::BytesOfOneStampOfAnother) {
                    if self.phase == Phase::Reading {
                        self.enter(Phase::Fetching, asking, fx);
                    }
                    return None;
                }
                self.stamp = self.quorum.max;
                if enough(self.quorum.agree) || defect == Some(Defect::ElideAlways) {
                    return Some(self.read());
                }
                self.write_back(asking, fx);
                None
            }
        }
    }

    /// Stores what was read at those that do not have it yet: who has answered with its stamp in
    /// this config has it.
    fn write_back(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        let has = self.quorum.agree;
        self.quorum = Quorum::default();
        if !asking.config.through_switch {
            self.quorum.add(has, has, self.stamp);
        }
        self.enter(Phase::WritingBack, asking, fx);
    }

    fn read(&self) -> Outcome {
        Outcome::Read {
            stamp: self.stamp,
            rounds: self.rounds,
        }
    }

    fn next_stamp(&self, asking: &mut Asking<'_>, defect: Option<Defect>) -> Option<Stamp> {
        let reuse = defect == Some(Defect::ReuseOwnStamp);
        let incarnation = if reuse { 1 } else { asking.incarnation };
        let writer = Writer::new(asking.requester, incarnation)?;
        let stamp = writer.stamp(self.quorum.max.round().max(*asking.last_round) + 1)?;
        *asking.last_round = stamp.round();
        Some(stamp)
    }
}
