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
//! | WritingHeld, ReadingHeld | the switch, which carries out both rounds, answers | done |
//! | Asking, Reading, Fetching | another config | begins anew |
//! | Storing, WritingBack | another config | the same stamp and bytes to the members of that, counted anew |
//!
//! A question (Asking, Reading) may go to as many members as make a quorum first,
//! and to all when it is asked again: each member that answers takes a turn of a processor from
//! those whose answers are needed. What is stored goes to all: a quorum that is chosen before takes
//! longer than the first one.
//!
//! When the members that have the highest stamp are a quorum by themselves, the second phase of a
//! read (CNVMM §II-B) would change nothing, and is left out: one round, the common case. Only
//! the *provider* sends the line; the others say its stamp.

use super::config::{Config, MEMBERS};
use super::effects::{Body, Defect, Effects};
use super::quorum::Quorum;
use super::replica::{config_of, own};
use super::{Command, Layout, Outcome, Stamp, Why, Writer};
use crate::call::Assembly;
use crate::switch::SWITCH;
use crate::wire::{Copyset, Dest, Flags, Header, Kind, NodeId, Own, Reason, RequesterId, Seq, Tag};

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
    /// A write is stored under a stamp that the switch chooses.
    StoringAtOnce,
    /// A write that the switch carries out.
    WritingHeld,
    /// A read that the switch carries out.
    ReadingHeld,
    /// A switch may have chosen its stamp, and the config has changed: members are asked whether it
    /// has come to them.
    AskingFate,
}

/// A phase, what it sends, and what it is answered.
const PHASES: [(Phase, Kind, Kind); 9] = [
    (Phase::Asking, Kind::AbdStamp, Kind::AbdStampAck),
    (Phase::Reading, Kind::AbdRead, Kind::AbdReadAck),
    (Phase::Fetching, Kind::AbdFetch, Kind::AbdReadAck),
    (Phase::Storing, Kind::AbdWrite, Kind::AbdWriteAck),
    (
        Phase::WritingBack,
        Kind::AbdWriteBack,
        Kind::AbdWriteBackAck,
    ),
    (Phase::StoringAtOnce, Kind::AbdWrite, Kind::AbdWriteAck),
    (Phase::WritingHeld, Kind::AbdLineWrite, Kind::AbdWriteAck),
    (Phase::ReadingHeld, Kind::AbdLineRead, Kind::AbdReadAck),
    (Phase::AskingFate, Kind::AbdAsk, Kind::AbdTold),
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

    /// Whether a switch chooses the stamp of what it writes.
    const fn is_at_once(self) -> bool {
        matches!(self, Phase::StoringAtOnce | Phase::WritingHeld)
    }

    /// Whether a switch carries out its rounds.
    pub const fn is_held(self) -> bool {
        matches!(self, Phase::WritingHeld | Phase::ReadingHeld)
    }

    /// How a read begins.
    const fn of_read(config: &Config, fenced: bool) -> Self {
        match config.holds_lines && !fenced {
            true => Phase::ReadingHeld,
            false => Phase::Reading,
        }
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
    /// The last number that it has used.
    pub last: &'a mut Seq,
    /// Whether a switch may have chosen a stamp for a write of this requester that has not been
    /// completed: it makes no more writes of one round, since another life or entry of the
    /// switch could choose the same one.
    pub doubtful: &'a mut bool,
    /// Where epochs fence the group.
    pub term: Option<Term<'a>>,
    /// Where a quorum is asked first: which members are slow, and asked after others.
    pub slow: Option<Copyset>,
}

/// The one writer of a group that epochs fence, in an epoch.
pub struct Term<'a> {
    /// The epoch that the node is in.
    pub epoch: u32,
    /// The highest count of a stamp that the node has used in it.
    pub last: &'a mut u32,
}

/// How often members are asked for the fate of a write before that is given up: one may be gone,
/// and what it knew with it.
const FATE_ATTEMPTS: u8 = 8;

fn next_number(asking: &mut Asking<'_>) -> Seq {
    *asking.last = asking.last.next();
    *asking.last
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    line: Tag,
    /// What is read is written again.
    takes: bool,
    seq: Seq,
    /// The epoch that it was begun in, where epochs fence the group: it is of no other, however
    /// often it is sent again.
    epoch: u32,
    phase: Phase,
    /// The config that it counts in.
    config: u32,
    quorum: Quorum,
    /// What it stores has this stamp.
    stamp: Stamp,
    /// Segments of the line that is read, all of one stamp.
    gathered: Stamp,
    received: Assembly,
    /// How often another provider was chosen, or members were asked for a write's fate.
    attempt: u8,
    /// The config in which a write of one round was begun.
    began: u32,
    /// Who cannot say whether it has come.
    unsure: u8,
    /// The only members that this phase has asked, by places. 0: it has asked all.
    few: u8,
    rounds: u8,
}

impl Operation {
    /// Begins what a thread asks for.
    pub fn begin(command: Command, asking: &mut Asking<'_>, fx: &mut impl Effects) -> Self {
        // A switch knows nothing of the epochs of stamps.
        let at_once = asking.config.chooser != 0 && !*asking.doubtful && asking.term.is_none();
        let mut operation = Operation {
            line: command.line(),
            takes: matches!(command, Command::Take(_)),
            seq: next_number(asking),
            epoch: asking.term.as_ref().map_or(0, |term| term.epoch),
            phase: match (command, at_once) {
                (Command::Write(_), true) if asking.config.holds_lines => Phase::WritingHeld,
                (Command::Write(_), true) => Phase::StoringAtOnce,
                (Command::Write(_), false) => Phase::Asking,
                (Command::Read(_), _) => Phase::of_read(asking.config, asking.term.is_some()),
                (Command::Take(_), _) => Phase::Reading,
            },
            config: 0,
            quorum: Quorum::default(),
            stamp: Stamp::NONE,
            gathered: Stamp::NONE,
            received: Assembly::default(),
            attempt: 0,
            began: asking.config.number,
            unsure: 0,
            few: 0,
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

    /// The members that have answered its phase, by places.
    pub fn answered(&self) -> u8 {
        self.quorum.answered
    }

    /// The members that it has asked and that have not answered, if it has asked no others in this
    /// phase.
    pub fn few(&self) -> Option<u8> {
        (self.few != 0).then_some(self.few & !self.quorum.answered)
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
        self.few = match phase {
            Phase::Asking | Phase::Reading => self.quorum_first(asking),
            _ => 0,
        };
        self.send(asking, fx);
    }

    /// As many of those that count as make a quorum: the provider, which sends the line, this node,
    /// whose copy costs no packet, and who is slow only where others are not enough.
    fn quorum_first(&self, asking: &Asking<'_>) -> u8 {
        let (config, Some(slow)) = (asking.config, asking.slow) else {
            return 0;
        };
        let bit = |node| config.place(node).map_or(0, |place| 1u8 << place);
        let provider = match self.phase {
            Phase::Reading => self.provider(asking).map_or(0, bit),
            _ => 0,
        };
        let slow = slow.iter().map(bit).fold(0, |slow, bit| slow | bit);
        let from = usize::from(asking.requester.node);
        let mut asked = 0u8;
        for rank in [provider, bit(asking.requester.node), !slow, u8::MAX] {
            let rank = rank & config.counting;
            for bit in (0..MEMBERS).map(|nth| 1 << ((from + nth) % MEMBERS)) {
                if rank & bit != 0 && asked.count_ones() < config.quorum() {
                    asked |= bit;
                }
            }
        }
        if asked == config.counting { 0 } else { asked }
    }

    /// Whom it asks: those that have not answered, where asking again changes nothing for them.
    fn asked(&self, config: &Config, defect: Option<Defect>) -> u8 {
        let members = config.members();
        let answered = if config.through_switch {
            0
        } else {
            self.quorum.answered
        };
        match self.phase {
            _ if defect == Some(Defect::FillingCounts) => members,
            Phase::Asking | Phase::Reading if self.few != 0 => self.few,
            Phase::Asking => config.counting & !answered,
            // A member that fills takes writes as well.
            Phase::AskingFate if defect == Some(Defect::AskCountingOnly) => config.counting,
            Phase::AskingFate => members & !self.quorum.answered,
            Phase::Reading | Phase::Fetching => config.counting,
            Phase::Storing | Phase::WritingBack | Phase::StoringAtOnce => members & !answered,
            // The switch knows whom.
            Phase::WritingHeld | Phase::ReadingHeld => 0,
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
        let counting = places.filter(|place| config.counting >> place & 1 == 1);
        let mut nodes = counting.filter_map(|place| config.node(place));
        // One that is not slow may be dead: when it is asked again, each has its turn.
        let slow = asking.slow.filter(|_| self.attempt == 0);
        let slow = slow.unwrap_or(Copyset::EMPTY);
        let quick = nodes.clone().find(|node| !slow.contains(*node));
        quick.or_else(|| nodes.next())
    }

    fn send(&self, asking: &Asking<'_>, fx: &mut impl Effects) {
        let config = asking.config;
        let mut header = Header::request(
            self.phase.asks(),
            self.epoch,
            self.line,
            asking.requester,
            self.seq,
        );
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
        let to = match config.through_switch && self.phase != Phase::AskingFate {
            true => {
                header.offset = provider.map_or(0, u32::from);
                Dest::Switch
            }
            false => Dest::Agents { nodes, provider },
        };
        let body = match self.phase.stores() || self.phase.is_at_once() {
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

    /// Whether a stamp that a switch has chosen for it may be anywhere.
    pub fn is_in_doubt(&self) -> bool {
        self.phase.is_at_once()
            || self.phase == Phase::AskingFate
            || self.phase == Phase::Storing && self.stamp.is_chosen()
    }

    fn interrupted(asking: &mut Asking<'_>) -> Outcome {
        *asking.doubtful = true;
        Outcome::Interrupted
    }

    /// The round trip is over and the answers are not here.
    pub fn retry(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) -> Option<Outcome> {
        if fx.defect() != Some(Defect::AskFewAgain) {
            self.few = 0;
        }
        match self.phase {
            Phase::AskingFate if self.attempt >= FATE_ATTEMPTS => {
                return Some(Self::interrupted(asking));
            }
            Phase::Fetching => {
                self.attempt = self.attempt.wrapping_add(1);
                self.anew(asking, fx);
                return None;
            }
            Phase::Reading | Phase::AskingFate => self.attempt = self.attempt.wrapping_add(1),
            Phase::Storing if fx.defect() == Some(Defect::RestampRetransmission) => {
                self.stamp = self.next_stamp(asking, fx.defect()).unwrap_or(self.stamp);
            }
            _ => {}
        }
        self.send(asking, fx);
        None
    }

    /// The group has another config.
    pub fn reconfigure(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        if matches!(
            self.phase,
            Phase::Reading | Phase::Fetching | Phase::ReadingHeld
        ) && !self.takes
        {
            let next = Phase::of_read(asking.config, asking.term.is_some());
            return self.read_anew(next, asking, fx);
        }
        if self.phase.is_at_once() {
            self.attempt = 0;
            // A member has said which stamp it has, or all are asked.
            self.phase = match self.stamp {
                Stamp::NONE => Phase::AskingFate,
                _ => Phase::Storing,
            };
        }
        if !self.phase.stores() && self.phase != Phase::AskingFate {
            return self.anew(asking, fx);
        }
        (self.quorum, self.unsure) = (Quorum::default(), 0);
        self.enter(self.phase, asking, fx);
    }

    /// Begins a read anew, under another number if a switch carries it out now or did before: its
    /// row is of one or the other.
    fn read_anew(&mut self, phase: Phase, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        if phase.is_held() != self.phase.is_held() {
            self.seq = next_number(asking);
        }
        self.phase = phase;
        self.anew(asking, fx);
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
        if self.phase == Phase::ReadingHeld && !header.flags.has(Flags::DATA) {
            if header.sender == SWITCH {
                self.read_anew(Phase::Reading, asking, fx);
            }
            return None;
        }
        // What a switch passes on that has a later config says nothing of the others.
        if self.phase == Phase::ReadingHeld && header.sender != SWITCH {
            return None;
        }
        if self.phase.is_at_once() {
            return self.at_once(asking, header, stamp, fx);
        }
        if self.phase == Phase::AskingFate {
            return self.fate(asking, header, stamp, fx);
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

    /// An answer to a write of one round: the switch has chosen a stamp, and each answer says it;
    /// or it knows none, and two rounds follow under another number. A late copy of this request
    /// finds the row of this number, and no other stamp.
    fn at_once(
        &mut self,
        asking: &mut Asking<'_>,
        header: &Header,
        stamp: Stamp,
        fx: &mut impl Effects,
    ) -> Option<Outcome> {
        if stamp == Stamp::NONE {
            if header.sender == SWITCH && self.stamp == Stamp::NONE {
                self.in_two_rounds(asking, fx);
            }
            return None;
        }
        if self.stamp != Stamp::NONE && self.stamp != stamp {
            return None;
        }
        self.count(asking, header, stamp, fx.defect())?;
        self.stamp = stamp;
        *asking.last_round = stamp.round().max(*asking.last_round);
        let done = Self::is_quorum(asking.config, self.quorum.answered, fx.defect());
        done.then_some(Outcome::Written {
            stamp,
            rounds: self.rounds,
        })
    }

    fn in_two_rounds(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) {
        self.seq = next_number(asking);
        (self.phase, self.stamp) = (Phase::Asking, Stamp::NONE);
        self.anew(asking, fx);
    }

    /// A member says under which stamp an interrupted write has come to it. If it has come to one,
    /// it is stored under that. When it has come to none of the members, which have been the same
    /// since it began and forget nothing, it never will: the config that it was sent in is over.
    fn fate(
        &mut self,
        asking: &mut Asking<'_>,
        header: &Header,
        stamp: Stamp,
        fx: &mut impl Effects,
    ) -> Option<Outcome> {
        let bit = 1 << asking.config.place(header.sender)?;
        if stamp != Stamp::NONE && fx.defect() != Some(Defect::ForgetFate) {
            *asking.last_round = stamp.round().max(*asking.last_round);
            self.stamp = stamp;
            self.quorum = Quorum::default();
            self.enter(Phase::Storing, asking, fx);
            return None;
        }
        self.quorum.answered |= bit;
        if header.reason != Reason::None {
            self.unsure |= bit;
        }
        let asked = match fx.defect() {
            Some(Defect::AskCountingOnly) => asking.config.counting,
            _ => asking.config.members(),
        };
        if self.quorum.answered & asked != asked {
            return None;
        }
        if self.unsure & asked != 0 || asking.config.since > self.began {
            return Some(Self::interrupted(asking));
        }
        self.in_two_rounds(asking, fx);
        None
    }

    fn conclude(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) -> Option<Outcome> {
        let defect = fx.defect();
        let enough = |members| Self::is_quorum(asking.config, members, defect);
        if !enough(self.quorum.answered) {
            return None;
        }
        match self.phase {
            Phase::Asking => self.store(asking, fx),
            Phase::Storing => Some(Outcome::Written {
                stamp: self.stamp,
                rounds: self.rounds,
            }),
            Phase::WritingBack => Some(self.read()),
            Phase::StoringAtOnce | Phase::WritingHeld | Phase::AskingFate => None,
            Phase::Reading | Phase::Fetching | Phase::ReadingHeld => {
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
                if self.takes && defect != Some(Defect::TakeUnwritten) {
                    return self.store(asking, fx);
                }
                self.stamp = self.quorum.max;
                // A switch that carries out both rounds has stored what it answers.
                let held = self.phase.is_held();
                if held || enough(self.quorum.agree) || defect == Some(Defect::ElideAlways) {
                    return Some(self.read());
                }
                self.write_back(asking, fx);
                None
            }
        }
    }

    /// Stores what this slot has under the next stamp.
    fn store(&mut self, asking: &mut Asking<'_>, fx: &mut impl Effects) -> Option<Outcome> {
        let Some(stamp) = self.next_stamp(asking, fx.defect()) else {
            return Some(Outcome::Refused(Why::Stamps));
        };
        self.stamp = stamp;
        self.quorum = Quorum::default();
        self.enter(Phase::Storing, asking, fx);
        None
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
        if let Some(term) = &mut asking.term {
            return self.next_of_epoch(term);
        }
        let reuse = defect == Some(Defect::ReuseOwnStamp);
        let incarnation = if reuse { 1 } else { asking.incarnation };
        let writer = Writer::new(asking.requester, incarnation)?;
        let stamp = writer.stamp(self.quorum.max.round().max(*asking.last_round) + 1)?;
        *asking.last_round = stamp.round();
        Some(stamp)
    }

    /// None: the rack is beyond the epoch of this operation, or counts are used up.
    fn next_of_epoch(&self, term: &mut Term<'_>) -> Option<Stamp> {
        let highest = match self.quorum.max.epoch_and_count() {
            (epoch, _) if epoch > self.epoch => return None,
            (epoch, count) if epoch == self.epoch => count,
            _ => 0,
        };
        let stamp = Stamp::of_epoch(self.epoch, highest.max(*term.last).checked_add(1)?)?;
        *term.last = stamp.epoch_and_count().1;
        Some(stamp)
    }
}
