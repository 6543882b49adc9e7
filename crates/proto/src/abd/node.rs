//! Replicated memory at one node: the groups that it knows, the copies that it keeps,
//! and an operation a slot.

use super::config::{Config, Member, Role};
use super::effects::{Body, Defect, Effects};
use super::fill::{Fill, Filling};
use super::operation::{Asking, Operation};
use super::replica::{Answering, FILLING, Replica, config_of};
use super::rows::Rows;
use super::{Command, GROUPS, Layout, Outcome, Phase, Stamp, Why, first_line};
use crate::call::Ticks;
use crate::wire::{Contract, Header, Kind, MAX_REQUESTERS, NodeId, Own, Record, RequesterId, Seq};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// What a node keeps of a group.
#[derive(Clone, Debug)]
struct Keeping {
    /// As which life: another one of this node is no member.
    life: u64,
    replica: Replica,
    fill: Option<Fill>,
    pace: Ticks,
}

#[derive(Clone, Debug, Default)]
struct Group {
    known: Option<(Layout, Config)>,
    keeping: Option<Keeping>,
}

/// A requester.
#[derive(Clone, Debug, Default)]
struct Slot {
    seq: Seq,
    last_round: u64,
    operation: Option<Operation>,
    pace: Ticks,
}

/// See the module. It is one section: a line's stamp, what is staged of it and an operation's count
/// never part from each other.
#[derive(Clone, Debug)]
pub struct Abd {
    me: NodeId,
    incarnation: u32,
    groups: Vec<Group>,
    rows: Rows,
    slots: Vec<Slot>,
}

impl Abd {
    /// Of a node that knows of no group.
    pub fn new(me: NodeId, incarnation: u32) -> Self {
        Abd {
            me,
            incarnation,
            groups: Vec::new(),
            rows: Rows::default(),
            slots: Vec::new(),
        }
    }

    /// Keeps copies of a group as this life of the member: with no line, or with what its store
    /// has. Whether it is a member of the group, and counts, the config says.
    pub fn keep(&mut self, group: u16, life: u64, replica: Replica) {
        if let Some(group) = self.group(group) {
            group.keeping = Some(Keeping {
                life,
                replica,
                fill: None,
                pace: Ticks::default(),
            });
        }
    }

    fn group(&mut self, group: u16) -> Option<&mut Group> {
        let at = usize::from(group);
        if at >= GROUPS {
            return None;
        }
        if self.groups.len() <= at {
            self.groups.resize_with(at + 1, Group::default);
        }
        self.groups.get_mut(at)
    }

    /// The config of a group, as it is known here.
    pub fn config(&self, group: u16) -> Option<&Config> {
        let known = self.groups.get(usize::from(group))?.known.as_ref();
        known.map(|(_, config)| config)
    }

    /// The copies of a group that are kept here.
    pub fn replica(&self, group: u16) -> Option<&Replica> {
        let keeping = self.groups.get(usize::from(group))?.keeping.as_ref();
        keeping.map(|keeping| &keeping.replica)
    }

    /// What is filled here of a group.
    pub fn fill(&self, group: u16) -> Option<&Fill> {
        let keeping = self.groups.get(usize::from(group))?.keeping.as_ref();
        keeping?.fill.as_ref()
    }

    /// What a slot's operation waits for: its number and phase.
    pub fn awaits(&self, slot: u8) -> Option<(Seq, Phase)> {
        let slot = self.slots.get(usize::from(slot))?;
        let operation = slot.operation.as_ref()?;
        Some((operation.seq(), operation.phase()))
    }

    /// The rack's view has this config of a group. Configs only rise.
    pub fn learn(&mut self, group: u16, layout: Layout, config: &Config, fx: &mut impl Effects) {
        let (me, incarnation) = (self.me, self.incarnation);
        let Some(at) = self.group(group) else {
            return;
        };
        if at
            .known
            .is_some_and(|(_, known)| known.number >= config.number)
        {
            return;
        }
        at.known = Some((layout, *config));
        fx.adopted(group, config.number);
        if let Some(keeping) = &mut at.keeping {
            let member = Member {
                node: me,
                life: keeping.life,
            };
            keeping.fill = match config.role(member) {
                Some(Role::Filling) => Some(Fill::new(first_line(group))),
                _ => None,
            };
            let filling = Filling {
                me,
                incarnation,
                config,
                layout,
            };
            if let Some(fill) = &mut keeping.fill {
                fill.ask(&filling, fx);
            }
        }
        for (nth, slot) in self.slots.iter_mut().enumerate() {
            let Some(operation) = &mut slot.operation else {
                continue;
            };
            if operation.line().home().0 == group {
                slot.pace.reset();
                let requester = RequesterId {
                    node: me,
                    slot: nth as u16,
                };
                let mut asking = Asking {
                    requester,
                    incarnation,
                    config,
                    layout,
                    last_round: &mut slot.last_round,
                };
                operation.reconfigure(&mut asking, fx);
            }
        }
    }

    /// A thread asks for something.
    pub fn command(&mut self, slot: u8, command: Command, fx: &mut impl Effects) {
        let (line, writes) = match command {
            Command::Read(line) => (line, false),
            Command::Write(line) => (line, true),
        };
        let at = usize::from(slot);
        if at < MAX_REQUESTERS && self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        let group = line.home().0;
        let known = self.groups.get(usize::from(group)).and_then(|g| g.known);
        let known = known.filter(|(layout, _)| layout.has(group, line));
        let row = self.slots.get_mut(at).filter(|row| row.operation.is_none());
        let (row, (layout, config)) = match (row, known) {
            (None, _) => return fx.done(slot, Outcome::Refused(Why::Slot)),
            (_, None) => return fx.done(slot, Outcome::Refused(Why::NoLine)),
            (Some(row), Some(known)) => (row, known),
        };
        row.seq = row.seq.next();
        row.pace.reset();
        let requester = RequesterId {
            node: self.me,
            slot: slot.into(),
        };
        let mut asking = Asking {
            requester,
            incarnation: self.incarnation,
            config: &config,
            layout,
            last_round: &mut row.last_round,
        };
        row.operation = Some(Operation::begin((line, writes), row.seq, &mut asking, fx));
    }

    /// A thread waits no longer. A write may take effect later, or never.
    pub fn abandon(&mut self, slot: u8) {
        if let Some(slot) = self.slots.get_mut(usize::from(slot)) {
            slot.operation = None;
        }
    }

    /// Does something with an operation that is under way.
    fn with_operation<F: Effects>(
        &mut self,
        slot: u8,
        fx: &mut F,
        act: impl FnOnce(&mut Operation, &mut Asking<'_>, &mut F) -> Option<Outcome>,
    ) {
        let Some(row) = self.slots.get_mut(usize::from(slot)) else {
            return;
        };
        let Some(operation) = &mut row.operation else {
            return;
        };
        let group = usize::from(operation.line().home().0);
        let Some((layout, config)) = self.groups.get(group).and_then(|group| group.known) else {
            return;
        };
        let requester = RequesterId {
            node: self.me,
            slot: slot.into(),
        };
        let mut asking = Asking {
            requester,
            incarnation: self.incarnation,
            config: &config,
            layout,
            last_round: &mut row.last_round,
        };
        let phase = operation.phase();
        let outcome = act(operation, &mut asking, fx);
        if operation.phase() != phase {
            row.pace.reset();
        }
        if let Some(outcome) = outcome {
            row.operation = None;
            fx.done(slot, outcome);
        }
    }

    /// Sends again what a slot's operation waits for.
    pub fn retry(&mut self, slot: u8, fx: &mut impl Effects) {
        self.with_operation(slot, fx, |operation, asking, fx| {
            operation.retry(asking, fx);
            None
        });
    }

    /// Asks again for what is filled here of a group.
    pub fn refill(&mut self, group: u16, fx: &mut impl Effects) {
        let (me, incarnation) = (self.me, self.incarnation);
        let Some(group) = self.groups.get_mut(usize::from(group)) else {
            return;
        };
        let (Some((layout, config)), Some(keeping)) = (group.known, &mut group.keeping) else {
            return;
        };
        let filling = Filling {
            me,
            incarnation,
            config: &config,
            layout,
        };
        if let Some(fill) = &mut keeping.fill {
            fill.ask(&filling, fx);
        }
    }

    /// What is due every few round trips.
    pub fn tick(&mut self, fx: &mut impl Effects) {
        for slot in 0..self.slots.len() {
            let row = &mut self.slots[slot];
            if row.operation.is_some() && row.pace.tick() {
                self.retry(slot as u8, fx);
            }
        }
        for group in 0..self.groups.len() {
            let keeping = self.groups[group].keeping.as_mut();
            let due = keeping.is_some_and(|k| k.fill.is_some() && k.pace.tick());
            if due {
                self.refill(group as u16, fx);
            }
        }
    }

    /// A packet of one of ABD's kinds. `len`: bytes behind what its kind has of its own; `records`:
    /// what they are, for a list.
    pub fn packet(
        &mut self,
        header: &Header,
        own: &Own,
        (len, records): (u32, &[Record]),
        fx: &mut impl Effects,
    ) {
        if !header.tag.is_under(Contract::Replicated) {
            return;
        }
        match header.kind {
            Kind::AbdStamp
            | Kind::AbdRead
            | Kind::AbdFetch
            | Kind::AbdWrite
            | Kind::AbdWriteBack
            | Kind::AbdFill => self.asked(header, own, len, fx),
            Kind::AbdFillAck => self.filled(header, own, (len, records), fx),
            Kind::AbdReadAck if header.seq == FILLING => {
                self.filled(header, own, (len, records), fx);
            }
            Kind::AbdConfig => self.told(header.tag.home().0, config_of(own), fx),
            _ => self.answered(header, own, len, fx),
        }
    }

    /// An answer for one of this node's operations.
    fn answered(&mut self, header: &Header, own: &Own, len: u32, fx: &mut impl Effects) {
        let RequesterId { node, slot } = header.requester;
        if node != self.me || header.incarnation != self.incarnation {
            return;
        }
        self.with_operation(slot as u8, fx, |operation, asking, fx| {
            if operation.line() != header.tag {
                return None;
            }
            operation.answer(asking, (header, own, len), fx)
        });
    }

    /// Somebody lives by this config.
    fn told(&mut self, group: u16, config: u32, fx: &mut impl Effects) {
        let known = self.config(group).map_or(0, |config| config.number);
        if config > known {
            fx.behind(group, config);
        }
    }

    /// A packet for a member.
    fn asked(&mut self, header: &Header, own: &Own, len: u32, fx: &mut impl Effects) {
        let number = header.tag.home().0;
        let Some(group) = self.groups.get_mut(usize::from(number)) else {
            return;
        };
        let (Some((layout, config)), Some(keeping)) = (group.known, &mut group.keeping) else {
            return;
        };
        let answering = Answering {
            me: self.me,
            config: config.number,
            through_switch: config.through_switch,
        };
        let of = config_of(own);
        if of > config.number {
            return fx.behind(number, of);
        }
        let accepts_old = fx.defect() == Some(Defect::AcceptOldConfig);
        if of < config.number && !accepts_old {
            return answering.answer(header, Kind::AbdConfig, Stamp::NONE, Body::Nothing, fx);
        }
        let answering = Answering {
            config: of,
            ..answering
        };
        let member = Member {
            node: self.me,
            life: keeping.life,
        };
        let mut role = config.role(member);
        if fx.defect() == Some(Defect::ForgetfulCounts) && config.place(self.me).is_some() {
            role = Some(Role::Counting);
        }
        let writes = matches!(header.kind, Kind::AbdWrite | Kind::AbdWriteBack);
        let serves = match role {
            Some(Role::Counting) => true,
            Some(Role::Filling) => writes || fx.defect() == Some(Defect::FillingCounts),
            None => accepts_old,
        };
        if !serves {
            return;
        }
        if header.kind == Kind::AbdFill {
            return keeping.replica.list(&answering, header, fx);
        }
        if layout.has(number, header.tag) {
            let packet = (header, own, len);
            let rows = &mut self.rows;
            keeping
                .replica
                .packet(&answering, packet, (&layout, rows), fx);
        }
    }

    /// What was staged of this write is durable: any of its packets.
    pub fn synced(&mut self, header: &Header, own: &Own, fx: &mut impl Effects) {
        let number = usize::from(header.tag.home().0);
        let Some(group) = self.groups.get_mut(number) else {
            return;
        };
        let (Some((_, config)), Some(keeping)) = (group.known, &mut group.keeping) else {
            return;
        };
        let answering = Answering {
            me: self.me,
            config: config.number,
            through_switch: config.through_switch,
        };
        // It is stored whatever the config is by now. An acknowledgement would promise it to one
        // that this member has left.
        let answering = (config_of(own) == config.number).then_some(&answering);
        let of = (header, Stamp(own.a));
        let rows = &mut self.rows;
        keeping.replica.synced(answering, of, rows, fx);
    }

    /// An answer for a member that fills.
    fn filled(
        &mut self,
        header: &Header,
        own: &Own,
        (len, records): (u32, &[Record]),
        fx: &mut impl Effects,
    ) {
        let (me, incarnation) = (self.me, self.incarnation);
        if header.requester.node != me || header.incarnation != incarnation {
            return;
        }
        let number = usize::from(header.tag.home().0);
        let Some(group) = self.groups.get_mut(number) else {
            return;
        };
        let (Some((layout, config)), Some(keeping)) = (group.known, &mut group.keeping) else {
            return;
        };
        let filling = Filling {
            me,
            incarnation,
            config: &config,
            layout,
        };
        let Some(fill) = &mut keeping.fill else {
            return;
        };
        if config_of(own) != config.number {
            return;
        }
        keeping.pace.reset();
        let replica = &mut keeping.replica;
        match header.kind {
            Kind::AbdFillAck => fill.listed(&filling, replica, (header, own, records), fx),
            _ => fill.fetched(&filling, replica, (header, own, len), fx),
        };
    }

    /// Everything that decides what it will do but when it asks again.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.me.hash(into);
        self.incarnation.hash(into);
        for group in &self.groups {
            group.known.hash(into);
            if let Some(keeping) = &group.keeping {
                (keeping.life, &keeping.replica, &keeping.fill).hash(into);
            }
        }
        self.rows.fingerprint(into);
        for slot in &self.slots {
            (slot.seq, slot.last_round, slot.operation).hash(into);
        }
    }
}
