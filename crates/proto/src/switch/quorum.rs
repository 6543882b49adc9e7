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
//! | 0 | ABD-OP: number, config and phase | of an earlier one: dropped; else set | of another: passed by, not counted |
//! | 1 | ABD-MAX-HI | 0 | the higher; says greater, equal or less |
//! | 2 | ABD-MAX-LO | 0 | by that: replaced, the higher, as it is |
//! | 3 | ABD-ANSWERED, ABD-AGREE | 0 | the bit set; alone when greater, added when equal |
//!
//! A row has the config of its request: a group's table may change between a request and its
//! answers, and places then mean other members.
//!
//! A request that comes again empties its row, and all are asked again. Segments of a line always
//! pass and are never counted: who sends them answers once without. What is of another config than
//! the table's is passed on as it is, and the requester counts.

use super::numbers;
use super::rmt::{Array, Pass, Pipeline, Violation};
use crate::abd::{Config, GROUPS, MEMBERS, Quorum, config_of};
use crate::wire::{
    Copyset, Dest, Flags, Header, Kind, MAX_NODES, MAX_REQUESTERS, NodeId, Own, RequesterId,
};
use core::cmp::Ordering;

/// A group, as the control plane says it to the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Counted {
    config: u32,
    counting: u8,
    quorum: u32,
    nodes: [Option<NodeId>; MEMBERS],
}

impl Counted {
    /// By its config.
    pub fn new(config: &Config) -> Self {
        Counted {
            config: config.number,
            counting: config.counting,
            quorum: config.quorum(),
            nodes: core::array::from_fn(|place| config.node(place)),
        }
    }
}

/// See the module.
#[derive(Clone)]
pub struct QuorumProgram {
    pipeline: Pipeline,
    operation: Array<u64>,
    max_high: Array<u32>,
    max_low: Array<u32>,
    answered: Array<u8>,
    agree: Array<u8>,
    groups: [Option<Counted>; GROUPS],
    /// Requesters of each node that have rows, two each, by the parity of their numbers.
    slots: usize,
    /// A rule that is broken, to see that checkers notice: rows go on counting.
    counts_on: bool,
}

/// Bits of a row's config.
const CONFIG: u64 = (1 << 30) - 1;

/// What ABD-OP keeps: `number:32 | config:30 | phase:2`.
const fn operation(header: &Header, config: u32, phase: u64) -> u64 {
    (header.seq.low() as u64) << 32 | (config as u64 & CONFIG) << 2 | phase
}

/// The phase that a kind belongs to, and whether it answers.
const fn phase(kind: Kind) -> Option<(u64, bool)> {
    Some(match kind {
        Kind::AbdStamp | Kind::AbdRead => (1, false),
        Kind::AbdStampAck | Kind::AbdReadAck => (1, true),
        Kind::AbdWrite | Kind::AbdWriteBack => (2, false),
        Kind::AbdWriteAck | Kind::AbdWriteBackAck => (2, true),
        _ => return None,
    })
}

impl Default for QuorumProgram {
    fn default() -> Self {
        Self::new(MAX_REQUESTERS)
    }
}

impl QuorumProgram {
    /// With rows for so many requesters of each node: for one that has none it does not count.
    pub fn new(slots: usize) -> Self {
        let rows = MAX_NODES * slots * 2;
        QuorumProgram {
            pipeline: Pipeline::default(),
            operation: Array::new(0, rows),
            max_high: Array::new(1, rows),
            max_low: Array::new(2, rows),
            answered: Array::new(3, rows),
            agree: Array::new(3, rows),
            groups: [None; GROUPS],
            slots,
            counts_on: false,
        }
    }

    /// The same with a rule broken on purpose: rows go on counting when a requester's next phase
    /// begins.
    #[must_use]
    pub fn counting_on(mut self, counts_on: bool) -> Self {
        self.counts_on = counts_on;
        self
    }

    /// The control plane: counts for this group from here on, or not any more.
    pub fn count(&mut self, group: u16, counted: Option<Counted>) {
        if let Some(place) = self.groups.get_mut(usize::from(group)) {
            *place = counted;
        }
    }

    /// The config of a group by which it counts.
    pub fn config(&self, group: u16) -> Option<u32> {
        let row = self.groups.get(usize::from(group))?.as_ref();
        row.map(|row| row.config)
    }

    /// What the program keeps, array by array: name, stage, rows, bytes a row.
    pub fn arrays(&self) -> [(&'static str, u8, usize, usize); 5] {
        fn of<T>(name: &'static str, array: &Array<T>) -> (&'static str, u8, usize, usize) {
            (name, array.stage(), array.len(), array.item_bytes())
        }
        [
            of("ABD-OP", &self.operation),
            of("ABD-MAX-HI", &self.max_high),
            of("ABD-MAX-LO", &self.max_low),
            of("ABD-ANSWERED", &self.answered),
            of("ABD-AGREE", &self.agree),
        ]
    }

    /// Everything that decides what it will do.
    pub fn state(&self) -> impl core::hash::Hash + use<> {
        let used = (0..self.operation.len()).filter(|at| self.operation.items()[*at] != 0);
        let rows = used.map(|at| {
            let max = (self.max_high.items()[at], self.max_low.items()[at]);
            let counts = (self.answered.items()[at], self.agree.items()[at]);
            (at, self.operation.items()[at], max, counts)
        });
        (rows.collect::<alloc::vec::Vec<_>>(), self.groups)
    }

    /// A packet of ABD's comes: what leaves, and to whom. Its body goes along with what is passed
    /// on, and with nothing else.
    pub fn handle(&mut self, header: &Header, own: &Own) -> Option<(Dest, Header, Own)> {
        // A rule of the pipeline that does not hold is a defect of this program;
        // the packet is dropped.
        self.pass(header, own).unwrap_or(None)
    }

    fn pass(
        &mut self,
        header: &Header,
        own: &Own,
    ) -> Result<Option<(Dest, Header, Own)>, Violation> {
        let Some((phase, answers)) = phase(header.kind) else {
            return Ok(None);
        };
        let group = usize::from(header.tag.home().0);
        let group = self.groups.get(group).copied().flatten();
        let RequesterId { node, slot } = header.requester;
        let (node, slot) = (usize::from(node), usize::from(slot));
        let at = (node * self.slots + slot) * 2 + header.seq.parity();
        let config = config_of(own);
        let counted = group.filter(|group| group.config == config);
        let counted = counted.filter(|_| slot < self.slots && at < self.operation.len());
        let pass = self.pipeline.enter();
        match (answers, counted) {
            (false, None) => Ok(Some(multiplied(header, own))),
            (false, Some(_)) => {
                let newer = self.request(&pass, at, operation(header, config, phase))?;
                Ok(newer.then(|| multiplied(header, own)))
            }
            (true, None) => Ok(Some(passed(header, own))),
            (true, Some(_)) if header.flags.has(Flags::DATA) => Ok(Some(passed(header, own))),
            (true, Some(group)) => {
                let operation = operation(header, config, phase);
                self.answer(&pass, at, operation, (header, own, &group))
            }
        }
    }

    /// A request takes its row, unless that is of a later one.
    fn request(&mut self, pass: &Pass, at: usize, operation: u64) -> Result<bool, Violation> {
        let newer = self.operation.access(pass, at, |row| {
            let (number, phase) = ((*row >> 32) as u32, *row & 3);
            let seq = crate::wire::Seq(operation >> 32);
            let late = match numbers::order(seq, number) {
                Ordering::Less => true,
                Ordering::Equal => (operation & 3) < phase,
                Ordering::Greater => false,
            };
            if !late {
                *row = operation;
            }
            !late
        })?;
        if newer && !self.counts_on {
            self.max_high.access(pass, at, |max| *max = 0)?;
            self.max_low.access(pass, at, |max| *max = 0)?;
            self.answered.access(pass, at, |set| *set = 0)?;
            self.agree.access(pass, at, |set| *set = 0)?;
        }
        Ok(newer)
    }

    fn answer(
        &mut self,
        pass: &Pass,
        at: usize,
        operation: u64,
        (header, own, group): (&Header, &Own, &Counted),
    ) -> Result<Option<(Dest, Header, Own)>, Violation> {
        let place = (group.nodes.iter()).position(|node| *node == Some(header.sender));
        let Some(place) = place else {
            return Ok(None);
        };
        if !self.operation.access(pass, at, |row| *row == operation)? {
            return Ok(None);
        }
        let (high, low, bit) = ((own.a >> 32) as u32, own.a as u32, 1u8 << place);
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
        let reached = |set: u8| (set & group.counting).count_ones() >= group.quorum;
        if reached(before) || !reached(answered) {
            return Ok(None);
        }
        let told = Quorum {
            answered,
            agree,
            max: crate::abd::Stamp(u64::from(max_high) << 32 | u64::from(max_low)),
        };
        let mut header = *header;
        header.sender = super::SWITCH;
        header.copyset = Copyset(told.to_copyset());
        let own = Own {
            a: told.max.0,
            b: own.b,
        };
        Ok(Some((Dest::Agent(header.requester.node), header, own)))
    }
}

/// A request, to the members that it names; the provider's copy says so.
fn multiplied(header: &Header, own: &Own) -> (Dest, Header, Own) {
    let provider = (header.kind == Kind::AbdRead).then_some(header.offset as NodeId);
    let nodes = header.copyset;
    (Dest::Agents { nodes, provider }, *header, *own)
}

fn passed(header: &Header, own: &Own) -> (Dest, Header, Own) {
    (Dest::Agent(header.requester.node), *header, *own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abd::{Member, Stamp, first_line, own};
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
        let left = program.handle(&answer, &own(Stamp(stamp), config));
        left.map(|(to, header, own)| {
            assert_eq!(to, Dest::Agent(WHO.node));
            (header, own)
        })
    }

    #[test]
    fn the_answer_that_completes_a_quorum_says_who_and_the_exact_maximum() {
        for (members, quorum) in [(3, 2), (5, 3), (7, 4)] {
            let (mut program, config) = program(members);
            let ask = program.handle(&packet(Kind::AbdStamp, 1), &own(Stamp::NONE, config.number));
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
            program.handle(&packet(Kind::AbdStamp, 1), &crate::abd::own(Stamp::NONE, 1));
            assert_eq!(answer(&mut program, &ack, (0, high, 1)), None);
        }
    }

    #[test]
    fn answers_of_another_operation_phase_or_config_complete_nothing() {
        let (mut program, config) = program(3);
        let mut late = config;
        late.number = 2;
        program.handle(&packet(Kind::AbdRead, 1), &own(Stamp::NONE, 1));
        let ack = packet(Kind::AbdReadAck, 1);
        assert_eq!(answer(&mut program, &ack, (0, 5, 1)), None);
        // An operation of the other parity has a row of its own, a later one of the same takes it.
        program.handle(&packet(Kind::AbdRead, 2), &own(Stamp::NONE, 1));
        assert_eq!(
            answer(&mut program, &packet(Kind::AbdReadAck, 2), (1, 5, 1)),
            None
        );
        program.handle(&packet(Kind::AbdWriteBack, 1), &own(Stamp(5), 1));
        assert_eq!(answer(&mut program, &ack, (1, 5, 1)), None);
        assert_eq!(
            program.handle(&packet(Kind::AbdRead, 1), &own(Stamp::NONE, 1)),
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

    #[test]
    fn strangers_count_nothing_and_segments_pass() {
        let (mut program, _) = program(3);
        let ask = program.handle(&packet(Kind::AbdRead, 1), &own(Stamp::NONE, 1));
        assert!(ask.is_some_and(|(_, header, _)| header.kind == Kind::AbdRead));
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
        assert!(program.handle(&other, &own(Stamp::NONE, 1)).is_some());
        assert!(answer(&mut program, &other.answer(Kind::AbdReadAck, 1), (1, 5, 1)).is_some());
    }

    #[test]
    fn its_arrays_are_small_and_in_order() {
        let arrays = QuorumProgram::default().arrays();
        let bytes: usize = arrays.iter().map(|(_, _, rows, bytes)| rows * bytes).sum();
        assert_eq!(bytes, MAX_NODES * MAX_REQUESTERS * 2 * 18);
        assert!(arrays.windows(2).all(|two| two[0].1 <= two[1].1));
    }
}
