//! The switch counts: it multiplies the requests of replicated memory, and of the answers passes
//! the one that completes a quorum (CNVMM §III-B, Fig. 2).
//!
//! The state is of requests in flight and soft: a switch that has lost it counts no answer, and
//! requesters ask again. The paper's four quorum registers (for the timestamps and the copies of a
//! write, the values and the write-back of a read) are one row with a phase, since a requester is
//! in one phase at a time. A stamp has 64 bits, the unit of a stage has 32: packets pass the stages
//! in order, so two registers compare one after the other and are exact.
//!
//! | stage | array | on a request | on an answer |
//! |---|---|---|---|
//! | 0 | ABD-LIFE: the requester's incarnation | of an earlier one: dropped; else set | of another: not counted |
//! | 1 | ABD-OP: number, config and phase | of the same life and an earlier one: dropped; else set | of another: not counted |
//! | 2 | ABD-MAX-HI | 0 | the higher; says greater, equal or less |
//! | 3 | ABD-MAX-LO | 0 | by that: replaced, the higher, as it is |
//! | 4 | ABD-ANSWERED, ABD-AGREE | 0 | the bit set; alone when greater, added when equal |
//!
//! Configs stay when a requester restarts, and its numbers begin anew: so a row has a life.
//!
//! A row has the config of its request: a group's table may change between a request and its
//! answers, and places then mean other members.
//!
//! Where the group's config says so, it also chooses stamps, so that a write takes one round: see
//! [`super::stamps`].
//!
//! Where the config says that it holds lines, it carries out both rounds: see [`super::held`].
//!
//! A request that comes again empties its row, and all are asked again. Segments of a line always
//! pass and are never counted: who sends them answers once without. What is of another config than
//! the table's is passed on as it is, and the requester counts.

use super::held::{Carries, HeldLines};
use super::numbers;
use super::rmt::{Array, Pass, Pipeline, Violation};
use super::stamps::Stamps;
use crate::abd::{Config, Defect, GROUPS, HELD_LINE, MEMBERS, Quorum, Stamp, Writer, config_of};
use crate::wire::{
    Copyset, Dest, Flags, Header, Kind, MAX_NODES, MAX_REQUESTERS, NodeId, Own, RequesterId,
};
use core::cmp::Ordering;

/// Lines whose stamps it knows at a time.
pub const LINES: usize = 1 << 16;

/// A group, as the control plane says it to the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Counted {
    config: u32,
    counting: u8,
    quorum: u32,
    nodes: [Option<NodeId>; MEMBERS],
    /// The life of the switch that chooses stamps.
    chooser: u32,
    /// Whether it holds lines.
    holds_lines: bool,
}

impl Counted {
    /// By its config.
    pub fn new(config: &Config) -> Self {
        Counted {
            config: config.number,
            counting: config.counting,
            quorum: config.quorum(),
            nodes: core::array::from_fn(|place| config.node(place)),
            chooser: config.chooser,
            holds_lines: config.holds_lines,
        }
    }

    /// The number of the config.
    pub const fn config(&self) -> u32 {
        self.config
    }

    /// The places of the members that count, and how many of these are a quorum.
    pub const fn counting(&self) -> (u8, u8) {
        (self.counting, self.quorum as u8)
    }

    /// Members' nodes, by place.
    pub const fn nodes(&self) -> [Option<NodeId>; MEMBERS] {
        self.nodes
    }

    /// The life of the switch that chooses stamps; 0: none.
    pub const fn chooser(&self) -> u32 {
        self.chooser
    }

    /// Whether the switch holds lines between the rounds of an operation.
    pub const fn holds_lines(&self) -> bool {
        self.holds_lines
    }

    /// Whether these members are a quorum.
    pub(super) const fn reached(&self, set: u8) -> bool {
        (set & self.counting).count_ones() >= self.quorum
    }

    /// The nodes at these places.
    pub(super) fn at(&self, places: u8) -> Copyset {
        let of = |set: Copyset, (place, node): (usize, &Option<NodeId>)| match node {
            Some(node) if places >> place & 1 == 1 => set.with(*node),
            _ => set,
        };
        self.nodes.iter().enumerate().fold(Copyset::EMPTY, of)
    }

    /// The nodes of the members that count.
    pub(super) fn counting_nodes(&self) -> Copyset {
        self.at(self.counting)
    }
}

/// See the module.
#[derive(Clone)]
pub struct QuorumProgram {
    pipeline: Pipeline,
    pub(super) life: Array<u32>,
    pub(super) operation: Array<u64>,
    pub(super) max_high: Array<u32>,
    pub(super) max_low: Array<u32>,
    pub(super) answered: Array<u8>,
    pub(super) agree: Array<u8>,
    pub(super) stamps: Stamps,
    pub(super) held: HeldLines,
    groups: [Option<Counted>; GROUPS],
    /// Requesters of each node that have rows, two each, by the parity of their numbers.
    slots: usize,
    /// Which life of the switch this is. It chooses stamps in configs that name it.
    own_life: u32,
    /// A rule that is broken, to see that checkers notice.
    broken: Option<Defect>,
}

/// Bits of a row's config.
const CONFIG: u64 = (1 << 30) - 1;

/// The phase of an operation whose rounds the switch carries out: before the others, since a write
/// whose fate is known is stored by its requester, under the same number.
pub(super) const HELD: u64 = 0;

/// What ABD-OP keeps: `number:32 | config:30 | phase:2`.
pub(super) const fn operation(header: &Header, config: u32, phase: u64) -> u64 {
    (header.seq.low() as u64) << 32 | (config as u64 & CONFIG) << 2 | phase
}

/// The phase that a kind belongs to, and whether it answers.
const fn phase(kind: Kind) -> Option<(u64, bool)> {
    Some(match kind {
        Kind::AbdStamp | Kind::AbdRead => (1, false),
        Kind::AbdStampAck | Kind::AbdReadAck => (1, true),
        Kind::AbdWrite | Kind::AbdWriteBack => (2, false),
        Kind::AbdWriteAck | Kind::AbdWriteBackAck => (2, true),
        Kind::AbdLineRead | Kind::AbdLineWrite => (HELD, false),
        _ => return None,
    })
}

impl Default for QuorumProgram {
    fn default() -> Self {
        Self::new(MAX_REQUESTERS, LINES)
    }
}

impl QuorumProgram {
    /// With rows for so many requesters of each node: for one that has none it does not count.
    pub fn new(slots: usize, lines: usize) -> Self {
        let rows = MAX_NODES * slots * 2;
        QuorumProgram {
            pipeline: Pipeline::default(),
            life: Array::new(0, rows),
            operation: Array::new(1, rows),
            max_high: Array::new(2, rows),
            max_low: Array::new(3, rows),
            answered: Array::new(4, rows),
            agree: Array::new(4, rows),
            groups: [None; GROUPS],
            slots,
            own_life: 0,
            broken: None,
            stamps: Stamps::new(5, rows, lines),
            held: HeldLines::new(8, rows),
        }
    }

    /// The same in this life of the switch, which no other one has.
    #[must_use]
    pub fn of_life(mut self, life: u32) -> Self {
        self.lives(life);
        self
    }

    /// This is its life from here on: it has chosen nothing in it yet.
    pub fn lives(&mut self, life: u32) {
        self.own_life = life;
    }

    /// The same with a rule broken on purpose.
    #[must_use]
    pub fn breaking(mut self, defect: Option<Defect>) -> Self {
        self.broken = defect;
        self
    }

    pub(super) fn has(&self, defect: Defect) -> bool {
        self.broken == Some(defect)
    }

    /// The control plane: counts for this group from here on, or not any more.
    pub fn count(&mut self, group: u16, counted: Option<Counted>) {
        let Some(place) = self.groups.get_mut(usize::from(group)) else {
            return;
        };
        // What was learned in another config says nothing in this one.
        if *place != counted {
            *place = counted;
            self.stamps.clear();
        }
    }

    /// The config of a group by which it counts.
    pub fn config(&self, group: u16) -> Option<u32> {
        let row = self.groups.get(usize::from(group))?.as_ref();
        row.map(|row| row.config)
    }

    /// What the program keeps, array by array: name, stage, rows, bytes a row.
    pub fn arrays(&self) -> [(&'static str, u8, usize, usize); 9] {
        fn of<T>(name: &'static str, array: &Array<T>) -> (&'static str, u8, usize, usize) {
            (name, array.stage(), array.len(), array.item_bytes())
        }
        [
            of("ABD-LIFE", &self.life),
            of("ABD-OP", &self.operation),
            of("ABD-MAX-HI", &self.max_high),
            of("ABD-MAX-LO", &self.max_low),
            of("ABD-ANSWERED", &self.answered),
            of("ABD-AGREE", &self.agree),
            of("ABD-LINE", &self.stamps.lines),
            of("ABD-STAMP", &self.stamps.max),
            of("ABD-CHOSEN", &self.stamps.chosen),
        ]
    }

    /// Everything that decides what it will do.
    pub fn state(&self) -> impl core::hash::Hash + use<> {
        let used = (0..self.operation.len()).filter(|at| self.operation.items()[*at] != 0);
        let rows = used.map(|at| {
            let max = (self.max_high.items()[at], self.max_low.items()[at]);
            let counts = (self.answered.items()[at], self.agree.items()[at]);
            let operation = (self.life.items()[at], self.operation.items()[at]);
            (at, operation, max, counts)
        });
        let rows = rows.collect::<alloc::vec::Vec<_>>();
        (rows, self.groups, self.stamps.state(), self.held.state())
    }

    /// Whether packets of this kind are counted, or make members count.
    pub const fn takes(kind: Kind) -> bool {
        phase(kind).is_some()
    }

    /// A packet of ABD's comes with this body: what leaves, to whom, and with which body.
    pub fn handle(
        &mut self,
        header: &Header,
        own: &Own,
        body: &[u8],
    ) -> Option<(Dest, Header, Own, Carries)> {
        // A rule of the pipeline that does not hold is a defect of this program;
        // the packet is dropped.
        self.pass(header, own, body).unwrap_or(None)
    }

    fn pass(&mut self, header: &Header, own: &Own, body: &[u8]) -> Result<Leaves, Violation> {
        let Some((phase, answers)) = phase(header.kind) else {
            return Ok(None);
        };
        let group = usize::from(header.tag.home().0);
        let group = self.groups.get(group).copied().flatten();
        let RequesterId { node, slot } = header.requester;
        let (node, slot) = (usize::from(node), usize::from(slot));
        let at = (node * self.slots + slot) * 2 + header.seq.parity();
        let config = config_of(own);
        let known = group.filter(|group| group.config == config);
        let counted = known.filter(|_| slot < self.slots && at < self.operation.len());
        let chooses = known.is_some_and(|group| self.chooses(&group));
        let asks = header.kind == Kind::AbdWrite && own.a == 0;
        if asks && counted.is_none() && chooses {
            return Ok(Some(missed(header, own)));
        }
        if phase == HELD {
            let holds = known.filter(|group| chooses && group.holds_lines);
            return match (holds, counted) {
                (Some(_), None) => Ok(Some(missed(header, own))),
                (Some(group), Some(_)) => self.hold(at, (header, own, body), &group),
                // Another life may have carried it out. So it is not told that this one cannot.
                (None, _) => Ok(None),
            };
        }
        let pass = self.pipeline.enter();
        match (answers, counted) {
            (false, None) => Ok(Some(multiplied(header, own))),
            (false, Some(group)) => {
                let operation = (header.incarnation, operation(header, config, phase));
                let Some(again) = self.request(&pass, at, operation)? else {
                    return Ok(None);
                };
                let chooses = self.chooses(&group);
                self.stamped(&pass, (at, again, chooses), header, own)
            }
            (true, None) => Ok(Some(passed(header, own))),
            (true, Some(group)) if header.flags.has(Flags::DATA) && !group.holds_lines => {
                self.stamps.raise(&pass, header.tag, Stamp(own.a), false)?;
                Ok(Some(passed(header, own)))
            }
            (true, Some(group)) => self.answer(&pass, (at, phase), (header, own, body), &group),
        }
    }

    /// A request of an operation whose rounds the switch carries out.
    fn hold(
        &mut self,
        at: usize,
        (header, own, body): (&Header, &Own, &[u8]),
        group: &Counted,
    ) -> Result<Leaves, Violation> {
        if header.kind == Kind::AbdLineWrite && body.len() != HELD_LINE {
            return Ok(None);
        }
        let pass = self.pipeline.enter();
        let operation = (header.incarnation, operation(header, group.config, HELD));
        match self.request(&pass, at, operation)? {
            None => Ok(None),
            Some(again) => self.begin_held(&pass, (at, again), (header, own, body), group),
        }
    }

    fn chooses(&self, group: &Counted) -> bool {
        let last = self.has(Defect::ChooseInLastLife);
        group.chooser != 0 && (group.chooser == self.own_life || last)
    }

    /// What a line's stamps have to do with a request: one without chooses one or is told that it
    /// cannot, one with a stamp raises the highest, and a question for stamps begins to learn.
    fn stamped(
        &mut self,
        pass: &Pass,
        (at, again, chooses): (usize, bool, bool),
        header: &Header,
        own: &Own,
    ) -> Result<Leaves, Violation> {
        let line = header.tag;
        match header.kind {
            // Another life may have chosen for it. So it is not told that it has none.
            Kind::AbdWrite if own.a == 0 && !chooses => Ok(None),
            Kind::AbdWrite if own.a == 0 => {
                let writer = Writer::new(header.requester, header.incarnation);
                let chosen = self.stamps.choose(pass, (at, again), line, writer)?;
                let own = Own {
                    a: chosen.0,
                    ..*own
                };
                Ok(Some(match chosen {
                    Stamp::NONE => missed(header, &own),
                    _ => multiplied(header, &own),
                }))
            }
            Kind::AbdWrite | Kind::AbdWriteBack => {
                let learns = self.has(Defect::LearnStampFromWrite);
                self.stamps.raise(pass, line, Stamp(own.a), learns)?;
                Ok(Some(multiplied(header, own)))
            }
            kind => {
                // Answers to the first copy of a question may be older than an entry that a later
                // copy makes, and what has completed between them unknown to both.
                if kind == Kind::AbdStamp && !again {
                    self.stamps.learn(pass, line, at, header.seq)?;
                }
                Ok(Some(multiplied(header, own)))
            }
        }
    }

    /// A request takes its row, unless that is of a later one: then nothing. Says whether the row
    /// was its own before.
    fn request(
        &mut self,
        pass: &Pass,
        at: usize,
        (life, operation): (u32, u64),
    ) -> Result<Option<bool>, Violation> {
        let of_life = self.life.access(pass, at, |row| {
            let order = life.cmp(row);
            *row = life.max(*row);
            order
        })?;
        let blind = self.has(Defect::ChooseForLastLife);
        let (newer, again) = self.operation.access(pass, at, |row| {
            let (number, phase) = ((*row >> 32) as u32, *row & 3);
            let seq = crate::wire::Seq(operation >> 32);
            let late = match (of_life, numbers::order(seq, number)) {
                (Ordering::Greater, _) => false,
                (Ordering::Less, _) | (_, Ordering::Less) => true,
                (_, Ordering::Equal) => (operation & 3) < phase,
                (_, Ordering::Greater) => false,
            };
            let again = *row == operation && (of_life.is_eq() || blind);
            if !late {
                *row = operation;
            }
            (!late, again)
        })?;
        if newer && !self.has(Defect::CountOn) {
            self.max_high.access(pass, at, |max| *max = 0)?;
            self.max_low.access(pass, at, |max| *max = 0)?;
            self.answered.access(pass, at, |set| *set = 0)?;
            self.agree.access(pass, at, |set| *set = 0)?;
        }
        Ok(newer.then_some(again))
    }

    fn answer(
        &mut self,
        pass: &Pass,
        (at, phase): (usize, u64),
        (header, own, body): (&Header, &Own, &[u8]),
        group: &Counted,
    ) -> Result<Leaves, Violation> {
        let place = (group.nodes.iter()).position(|node| *node == Some(header.sender));
        let Some(place) = place else {
            return Ok(None);
        };
        let of_life = self
            .life
            .access(pass, at, |row| *row == header.incarnation)?;
        let row = self.operation.access(pass, at, |row| *row)?;
        let (stamp, bit) = (Stamp(own.a), 1u8 << place);
        if of_life && row == operation(header, group.config, HELD) {
            return self.answer_held(pass, (at, bit), (header, own, body), group);
        }
        if header.flags.has(Flags::DATA) {
            self.stamps.raise(pass, header.tag, stamp, false)?;
            return Ok(Some(passed(header, own)));
        }
        if !of_life || row != operation(header, group.config, phase) {
            self.stamps.raise(pass, header.tag, stamp, false)?;
            return Ok(None);
        }
        let tally = self.tally(pass, at, stamp, bit)?;
        if group.reached(tally.before) || !group.reached(tally.told.answered) {
            self.stamps.raise(pass, header.tag, stamp, false)?;
            return Ok(None);
        }
        let told = tally.told;
        let learned = header.kind == Kind::AbdStampAck;
        let by = learned.then_some((at, header.seq));
        self.stamps.completed(pass, header.tag, told.max, by)?;
        Ok(Some(completed(header, own, told, Carries::Nothing)))
    }

    /// Counts an answer in its row.
    pub(super) fn tally(
        &mut self,
        pass: &Pass,
        at: usize,
        stamp: Stamp,
        bit: u8,
    ) -> Result<Tally, Violation> {
        let (high, low) = ((stamp.0 >> 32) as u32, stamp.0 as u32);
        let (of_high, max_high) = self.max_high.access(pass, at, |max| {
            let order = high.cmp(max);
            *max = high.max(*max);
            (order, *max)
        })?;
        let (order, max_low) = self.max_low.access(pass, at, |max| {
            let order = of_high.then(low.cmp(max));
            if order.is_gt() {
                *max = low;
            }
            (order, *max)
        })?;
        let (before, answered) = self.answered.access(pass, at, |set| {
            let before = *set;
            *set |= bit;
            (before, *set)
        })?;
        let agree = self.agree.access(pass, at, |set| {
            *set = match order {
                Ordering::Greater => bit,
                Ordering::Equal => *set | bit,
                Ordering::Less => *set,
            };
            *set
        })?;
        let max = Stamp(u64::from(max_high) << 32 | u64::from(max_low));
        let told = Quorum {
            answered,
            agree,
            max,
        };
        Ok(Tally {
            before,
            order,
            told,
        })
    }
}

/// What leaves, and to whom.
pub(super) type Leaves = Option<(Dest, Header, Own, Carries)>;

/// A row that has counted an answer.
pub(super) struct Tally {
    /// Who had answered before.
    pub before: u8,
    /// How the answer's stamp stands to the highest before it.
    pub order: Ordering,
    /// What has been said so far.
    pub told: Quorum,
}

/// The answer that completes a quorum.
pub(super) fn completed(
    header: &Header,
    own: &Own,
    told: Quorum,
    carries: Carries,
) -> (Dest, Header, Own, Carries) {
    let mut header = *header;
    header.sender = super::SWITCH;
    header.copyset = Copyset(told.to_copyset());
    let own = Own {
        a: told.max.0,
        b: own.b,
    };
    (Dest::Agent(header.requester.node), header, own, carries)
}

/// A request, to the members that it names; the provider's copy says so.
fn multiplied(header: &Header, own: &Own) -> (Dest, Header, Own, Carries) {
    let provider = (header.kind == Kind::AbdRead).then_some(header.offset as NodeId);
    let nodes = header.copyset;
    (
        Dest::Agents { nodes, provider },
        *header,
        *own,
        Carries::WhatCame,
    )
}

/// The answer to a request without a stamp that the switch does not carry out, nor will.
pub(super) fn missed(header: &Header, own: &Own) -> (Dest, Header, Own, Carries) {
    let kind = match header.kind {
        Kind::AbdLineRead => Kind::AbdReadAck,
        _ => Kind::AbdWriteAck,
    };
    let mut header = header.answer(kind, super::SWITCH);
    header.copyset = Copyset::EMPTY;
    header.flags = Flags::default();
    header.offset = 0;
    (
        Dest::Agent(header.requester.node),
        header,
        *own,
        Carries::Nothing,
    )
}

fn passed(header: &Header, own: &Own) -> (Dest, Header, Own, Carries) {
    (
        Dest::Agent(header.requester.node),
        *header,
        *own,
        Carries::WhatCame,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abd::{Member, first_line, own};
    use crate::wire::{Seq, Tag};

    const WHO: RequesterId = RequesterId { node: 9, slot: 3 };

    fn program(members: NodeId) -> (QuorumProgram, Config) {
        let member = |node| Member { node, life: 1 };
        let members: alloc::vec::Vec<Member> = (0..members).map(member).collect();
        let config = Config::first(&members).unwrap();
        let mut program = QuorumProgram::default();
        program.count(0, Some(Counted::new(&config)));
        (program, config)
    }

    fn packet(kind: Kind, seq: u64) -> Header {
        let mut header = Header::request(kind, 0, first_line(0), WHO, Seq(seq));
        header.copyset = Copyset(7);
        header
    }

    /// The answer of a member, and what the program makes of it.
    fn answer(
        program: &mut QuorumProgram,
        header: &Header,
        (from, stamp, config): (NodeId, u64, u32),
    ) -> Option<(Header, Own)> {
        let answer = header.answer(header.kind, from);
        let left = program.handle(&answer, &own(Stamp(stamp), config), &[]);
        left.map(|(to, header, own, _)| {
            assert_eq!(to, Dest::Agent(WHO.node));
            (header, own)
        })
    }

    #[test]
    fn the_answer_that_completes_a_quorum_says_who_and_the_exact_maximum() {
        for (members, quorum) in [(3, 2), (5, 3), (7, 4)] {
            let (mut program, config) = program(members);
            let ask = program.handle(
                &packet(Kind::AbdStamp, 1),
                &own(Stamp::NONE, config.number),
                &[],
            );
            assert!(matches!(ask, Some((Dest::Agents { .. }, ..))));
            let ack = packet(Kind::AbdStampAck, 1);
            let (high, low) = (5 << 32 | 7, 4 << 32 | u64::from(u32::MAX));
            for from in 0..quorum - 1 {
                let stamp = if from == 0 { high } else { low };
                // A copy counts once.
                for _ in 0..2 {
                    assert_eq!(answer(&mut program, &ack, (from, stamp, 1)), None);
                }
            }
            let last = (quorum - 1, high, 1);
            let (header, own) = answer(&mut program, &ack, last).unwrap();
            let told = Quorum::from_copyset(header.copyset.0, Stamp(own.a)).unwrap();
            assert_eq!(header.sender, super::super::SWITCH);
            assert_eq!((told.answered, own.a), ((1 << quorum) - 1, high));
            assert_eq!(told.agree, 1 | 1 << (quorum - 1));
            // Late ones are not passed on, until all are asked again.
            assert_eq!(answer(&mut program, &ack, (quorum, high, 1)), None);
            program.handle(
                &packet(Kind::AbdStamp, 1),
                &crate::abd::own(Stamp::NONE, 1),
                &[],
            );
            assert_eq!(answer(&mut program, &ack, (0, high, 1)), None);
        }
    }

    #[test]
    fn answers_of_another_operation_phase_or_config_complete_nothing() {
        let (mut program, config) = program(3);
        let mut late = config;
        late.number = 2;
        program.handle(&packet(Kind::AbdRead, 1), &own(Stamp::NONE, 1), &[]);
        let ack = packet(Kind::AbdReadAck, 1);
        assert_eq!(answer(&mut program, &ack, (0, 5, 1)), None);
        // An operation of the other parity has a row of its own, a later one of the same takes it.
        program.handle(&packet(Kind::AbdRead, 2), &own(Stamp::NONE, 1), &[]);
        assert_eq!(
            answer(&mut program, &packet(Kind::AbdReadAck, 2), (1, 5, 1)),
            None
        );
        program.handle(&packet(Kind::AbdWriteBack, 1), &own(Stamp(5), 1), &[]);
        assert_eq!(answer(&mut program, &ack, (1, 5, 1)), None);
        assert_eq!(
            program.handle(&packet(Kind::AbdRead, 1), &own(Stamp::NONE, 1), &[]),
            None
        );
        // The table changes: answers to what was asked before are passed on, one by one,
        // and count nothing here.
        program.count(0, Some(Counted::new(&late)));
        let back = packet(Kind::AbdWriteBackAck, 1);
        assert_eq!(answer(&mut program, &back, (0, 5, 1)).unwrap().0.sender, 0);
        // Nor do answers of the new config to what was asked before the table had it.
        assert_eq!(answer(&mut program, &back, (0, 5, 2)), None);
        assert_eq!(answer(&mut program, &back, (1, 5, 2)), None);
        assert_eq!(answer(&mut program, &back, (2, 5, 2)), None);
    }

    /// A late copy of what a requester asked before takes no row, and takes nothing from one.
    #[test]
    fn a_late_question_leaves_the_answers_to_the_next_one() {
        let (mut program, _) = program(3);
        let mut ask = |seq| program.handle(&packet(Kind::AbdRead, seq), &own(Stamp::NONE, 1), &[]);
        assert!(ask(1).is_some() && ask(3).is_some());
        let ack = packet(Kind::AbdReadAck, 3);
        assert_eq!(answer(&mut program, &ack, (0, 5, 1)), None);
        let late = packet(Kind::AbdRead, 1);
        assert_eq!(program.handle(&late, &own(Stamp::NONE, 1), &[]), None);
        assert!(answer(&mut program, &ack, (1, 5, 1)).is_some());
    }

    #[test]
    fn strangers_count_nothing_and_segments_pass() {
        let (mut program, _) = program(3);
        let ask = program.handle(&packet(Kind::AbdRead, 1), &own(Stamp::NONE, 1), &[]);
        assert!(ask.is_some_and(|(_, header, ..)| header.kind == Kind::AbdRead));
        let mut segment = packet(Kind::AbdReadAck, 1);
        assert_eq!(answer(&mut program, &segment, (8, 5, 1)), None);
        segment.flags = Flags::DATA;
        assert_eq!(
            answer(&mut program, &segment, (0, 5, 1)).unwrap().0.sender,
            0
        );
        segment.flags = Flags::default();
        assert_eq!(answer(&mut program, &segment, (1, 5, 1)), None);
        assert!(answer(&mut program, &segment, (2, 5, 1)).is_some());
        // A group that is not counted for is passed on in both directions.
        let mut other = packet(Kind::AbdRead, 3);
        other.tag = Tag(first_line(1).0);
        assert!(program.handle(&other, &own(Stamp::NONE, 1), &[]).is_some());
        assert!(answer(&mut program, &other.answer(Kind::AbdReadAck, 1), (1, 5, 1)).is_some());
    }

    #[test]
    fn answers_to_the_first_copy_of_a_question_teach_nothing_that_a_later_copy_asks() {
        let member = Member { node: 0, life: 1 };
        let mut config = Config::first(&[member]).unwrap();
        config.chooser = 1;
        let mut program = QuorumProgram::new(MAX_REQUESTERS, 1).of_life(1);
        program.count(0, Some(Counted::new(&config)));
        let of = |kind, slot, line: u64| {
            let mut header = packet(kind, 1);
            (header.requester.slot, header.tag) = (slot, Tag(first_line(0).0 + 64 * line));
            header.sender = 0;
            header
        };
        let mut pass = |kind, slot, line, stamp: u64| {
            let left = program.handle(&of(kind, slot, line), &own(Stamp(stamp), 1), &[]);
            left.map(|(_, header, own, _)| (header.kind, own.a))
        };
        pass(Kind::AbdStamp, 3, 0, 0);
        // Another line takes the entry, and a write of the first one completes meanwhile.
        pass(Kind::AbdStamp, 4, 1, 0);
        pass(Kind::AbdWrite, 5, 0, 5 << 28);
        pass(Kind::AbdWriteAck, 5, 0, 5 << 28);
        // The question comes again, and the answer to its first copy, older than the write.
        pass(Kind::AbdStamp, 3, 0, 0);
        assert_eq!(
            pass(Kind::AbdStampAck, 3, 0, 0),
            Some((Kind::AbdStampAck, 0))
        );
        let missed = Some((Kind::AbdWriteAck, 0));
        assert_eq!(pass(Kind::AbdWrite, 6, 0, 0), missed);
    }

    #[test]
    fn its_arrays_are_small_and_in_order() {
        let arrays = QuorumProgram::default().arrays();
        let bytes: usize = arrays.iter().map(|(_, _, rows, bytes)| rows * bytes).sum();
        assert_eq!(bytes, MAX_NODES * MAX_REQUESTERS * 2 * 30 + LINES * 32);
        assert!(arrays.windows(2).all(|two| two[0].1 <= two[1].1));
    }
}
