//! Replicated memory at one node: the groups that it knows, the copies that it keeps,
//! and an operation a slot.

use super::config::{Config, Member, Role};
use super::effects::{Body, Defect, Effects};
use super::fill::{Fill, Filling};
use super::operation::{Asking, Operation, Term};
use super::replica::{Answering, FILLING, Replica, config_of};
use super::rows::Rows;
use super::{Command, GROUPS, Layout, Outcome, Phase, Stamp, Why, first_line};
use crate::call::Ticks;
use crate::wire::{
    Contract, Copyset, Header, Kind, MAX_REQUESTERS, NodeId, Own, Record, RequesterId, Seq, Tag,
};
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
    /// Epochs fence it: the highest count of a stamp that this node has used in its epoch.
    counted: Option<u32>,
}

impl Group {
    /// Whether a packet of this epoch means nothing in that one.
    fn is_fenced(&self, header: &Header, epoch: u32) -> bool {
        // Members fetch from one another what they are to have: in whichever epoch, it was stored.
        let of_members = header.kind == Kind::AbdFill || header.seq == FILLING;
        self.counted.is_some() && !of_members && header.epoch != epoch
    }
}

/// A requester.
#[derive(Clone, Debug, Default)]
struct Slot {
    seq: Seq,
    last_round: u64,
    operation: Option<Operation>,
    /// See [`Asking::doubtful`].
    doubtful: bool,
    pace: Ticks,
}

/// See the module. It is one section: a line's stamp, what is staged of it and an operation's count
/// never part from each other.
#[derive(Clone, Debug)]
pub struct Abd {
    me: NodeId,
    incarnation: u32,
    /// The rack's epoch, for groups that epochs fence.
    epoch: u32,
    groups: Vec<Group>,
    rows: Rows,
    slots: Vec<Slot>,
    /// Where a quorum is asked first: members that were asked and had not answered in time.
    slow: Option<Copyset>,
}

impl Abd {
    /// Of a node that knows of no group.
    pub fn new(me: NodeId, incarnation: u32) -> Self {
        Abd {
            me,
            incarnation,
            epoch: 0,
            groups: Vec::new(),
            rows: Rows::default(),
            slots: Vec::new(),
            slow: None,
        }
    }

    /// From now on questions go to a quorum first, and to all when they are asked again: members
    /// that have not answered by then are slow, and are asked after others. Called again, none is.
    pub fn ask_a_quorum_first(&mut self) {
        self.slow = Some(Copyset::EMPTY);
    }

    /// Members that had not answered in time.
    pub fn slow(&self) -> Copyset {
        self.slow.unwrap_or(Copyset::EMPTY)
    }

    /// The rack is in this epoch.
    pub fn enter(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            let counts = self.groups.iter_mut().filter_map(|g| g.counted.as_mut());
            counts.for_each(|count| *count = 0);
        }
    }

    /// From now on epochs fence this group as well: it has one writer in each. A member that is in
    /// another epoch than a request drops it, so a writer that the rack has gone on without
    /// changes nothing, and the next one asks only members that have left it behind.
    pub fn fence_by_epochs(&mut self, group: u16) {
        if let Some(group) = self.group(group) {
            group.counted.get_or_insert(0);
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

    /// Keeps no copies of a group any more: its store has failed, or the member was replaced. It
    /// answers nothing for it from here on.
    pub fn end(&mut self, group: u16) {
        if let Some(group) = self.groups.get_mut(usize::from(group)) {
            group.keeping = None;
        }
    }

    /// Ends copies that are kept here of another region than one that begins with this config: a
    /// removed one, whose number it has. `true`: some were.
    pub fn end_removed(&mut self, group: u16, config: &Config, fx: &mut impl Effects) -> bool {
        let of_another = |keeping: &Keeping| {
            // One without a config has promised nothing yet.
            let earlier = (1..config.first).contains(&keeping.replica.config());
            earlier && fx.defect() != Some(Defect::KeepRemoved)
        };
        let at = self.groups.get_mut(usize::from(group));
        let ended = at.and_then(|at| {
            let keeping = at.keeping.as_ref()?;
            let ends = config.is_removed() || of_another(keeping);
            ends.then(|| at.keeping.take())
        });
        if ended.is_some() {
            fx.forget(group);
        }
        ended.is_some()
    }

    /// As which life of the member copies of a group are kept here.
    pub fn life(&self, group: u16) -> Option<u64> {
        let keeping = self.groups.get(usize::from(group))?.keeping.as_ref();
        keeping.map(|keeping| keeping.life)
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

    /// The config in which the copies of a group that are kept here are read by whoever asks, one
    /// packet by one answer, from what they are now. None: there are none, they are not asked that
    /// way, or what is asked for has to be looked at more closely ([`Abd::is_plain`]).
    pub fn reads_in(&self, group: u16) -> Option<u32> {
        let at = self.groups.get(usize::from(group))?;
        let (_, config) = at.known?;
        let keeping = at.keeping.as_ref().filter(|_| self.is_plain(group))?;
        let member = Member {
            node: self.me,
            life: keeping.life,
        };
        // As `asked` says.
        let lives = config.number >= keeping.replica.config();
        let counts = config.role(member) == Some(Role::Counting);
        (lives && counts && !config.through_switch).then_some(config.number)
    }

    /// Whether the copies of a group that are kept here are those of a member that ends with its
    /// process, and no epoch has a say in who reads them.
    pub fn is_plain(&self, group: u16) -> bool {
        let at = self.groups.get(usize::from(group));
        let plain = at.filter(|at| at.counted.is_none());
        let keeping = plain.and_then(|at| at.keeping.as_ref());
        keeping.is_some_and(|keeping| !keeping.replica.is_durable())
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

    /// The phase that a slot's operation is in, if only a quorum has been asked in it.
    pub fn few(&self, slot: u8) -> Option<(Seq, Phase)> {
        let operation = self.slots.get(usize::from(slot))?.operation.as_ref()?;
        operation.few()?;
        Some((operation.seq(), operation.phase()))
    }

    /// How many of its group's counting members have answered the phase that a slot's operation is
    /// in, and how many are needed.
    pub fn progress(&self, slot: u8) -> Option<(u8, u8)> {
        let operation = self.slots.get(usize::from(slot))?.operation.as_ref()?;
        let config = self.config(operation.line().home().0)?;
        let counting = operation.answered() & config.counting;
        Some((counting.count_ones() as u8, config.quorum() as u8))
    }

    /// The rack's view has this config of a group. Configs only rise. Copies of a region that had
    /// the group's number before end ([`Abd::end_removed`]), and so do operations on it.
    pub fn learn(&mut self, group: u16, layout: Layout, config: &Config, fx: &mut impl Effects) {
        let (me, incarnation, epoch) = (self.me, self.incarnation, self.epoch);
        let slow = self.slow;
        let Some(at) = self.group(group) else {
            return;
        };
        if at
            .known
            .is_some_and(|(_, known)| known.number >= config.number)
        {
            return;
        }
        let before = at.known.replace((layout, *config));
        fx.adopted(group, config.number);
        let other = before.is_some_and(|(_, before)| before.first != config.first);
        let carries = fx.defect() == Some(Defect::CarryOver);
        let removed = config.is_removed() || other && !carries;
        self.end_removed(group, config, fx);
        let at = &mut self.groups[usize::from(group)];
        if let Some(keeping) = &mut at.keeping {
            let member = Member {
                node: me,
                life: keeping.life,
            };
            keeping.replica.lives_by(config.number);
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
        let at = &mut self.groups[usize::from(group)];
        for (nth, slot) in self.slots.iter_mut().enumerate() {
            let Some(operation) = &mut slot.operation else {
                continue;
            };
            if operation.line().home().0 == group && removed {
                slot.doubtful |= operation.is_in_doubt();
                slot.operation = None;
                fx.done(nth as u8, Outcome::Refused(Why::Removed));
            } else if operation.line().home().0 == group {
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
                    last: &mut slot.seq,
                    doubtful: &mut slot.doubtful,
                    term: at.counted.as_mut().map(|last| Term { epoch, last }),
                    slow,
                };
                operation.reconfigure(&mut asking, fx);
            }
        }
    }

    /// A thread asks for something.
    pub fn command(&mut self, slot: u8, command: Command, fx: &mut impl Effects) {
        let line = command.line();
        let at = usize::from(slot);
        if at < MAX_REQUESTERS && self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        let group = line.home().0;
        let at_group = self.groups.get_mut(usize::from(group));
        let (known, counted) = at_group.map_or((None, None), |g| (g.known, g.counted.as_mut()));
        if known.is_some_and(|(_, config)| config.is_removed()) {
            return fx.done(slot, Outcome::Refused(Why::Removed));
        }
        let known = known.filter(|(layout, _)| layout.has(group, line));
        let row = self.slots.get_mut(at).filter(|row| row.operation.is_none());
        let (row, (layout, config)) = match (row, known) {
            (None, _) => return fx.done(slot, Outcome::Refused(Why::Slot)),
            (_, None) => return fx.done(slot, Outcome::Refused(Why::NoLine)),
            (Some(row), Some(known)) => (row, known),
        };
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
            last: &mut row.seq,
            doubtful: &mut row.doubtful,
            term: counted.map(|last| Term {
                epoch: self.epoch,
                last,
            }),
            slow: self.slow,
        };
        row.operation = Some(Operation::begin(command, &mut asking, fx));
    }

    /// A thread waits no longer. A write may take effect later, or never.
    pub fn abandon(&mut self, slot: u8) {
        if let Some(slot) = self.slots.get_mut(usize::from(slot)) {
            let operation = slot.operation.take();
            slot.doubtful |= operation.is_some_and(|operation| operation.is_in_doubt());
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
        let Some(at) = self.groups.get_mut(group) else {
            return;
        };
        let Some((layout, config)) = at.known else {
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
            last: &mut row.seq,
            doubtful: &mut row.doubtful,
            term: at.counted.as_mut().map(|last| Term {
                epoch: self.epoch,
                last,
            }),
            slow: self.slow,
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
        self.mark_slow(slot);
        self.with_operation(slot, fx, |operation, asking, fx| {
            operation.retry(asking, fx)
        });
    }

    /// Of a quorum that was asked first, those that have not answered are slow.
    fn mark_slow(&mut self, slot: u8) {
        let row = self.slots.get(usize::from(slot));
        let Some(operation) = row.and_then(|row| row.operation.as_ref()) else {
            return;
        };
        let config = self.config(operation.line().home().0);
        let silent = operation.few().zip(config);
        if let (Some((silent, config)), Some(slow)) = (silent, self.slow) {
            self.slow = Some(slow.union(config.nodes(silent)));
        }
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

    /// Sends again whatever waits for an answer. Where a config has come to several nodes one after
    /// the other, the first ones asked members that did not know it.
    pub fn ask_again(&mut self, fx: &mut impl Effects) {
        (0..self.slots.len()).for_each(|slot| self.retry(slot as u8, fx));
        (0..self.groups.len()).for_each(|group| self.refill(group as u16, fx));
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
            Kind::AbdFill => self.asked(header, own, len, fx),
            kind if kind.asks_copies() => self.asked(header, own, len, fx),
            Kind::AbdFillAck => self.filled(header, own, Some((len, records)), fx),
            Kind::AbdReadAck if header.seq == FILLING => {
                self.filled(header, own, Some((len, records)), fx);
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
        fx.answered(header);
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
        // It may be the first that this node hears of any group.
        self.group(number);
        let Some(group) = self.groups.get_mut(usize::from(number)) else {
            return;
        };
        let fenced = fx.defect() != Some(Defect::OldHomeWrites);
        if fenced && group.is_fenced(header, self.epoch) {
            return;
        }
        let of = config_of(own);
        let (Some((layout, config)), Some(keeping)) = (group.known, &mut group.keeping) else {
            // Who asks knows more of the group than is known here, or not that it was removed.
            let known = group.known.map(|(_, config)| config);
            if of > known.map_or(0, |config| config.number) {
                fx.behind(number, of);
            } else if let Some(config) = known.filter(Config::is_removed) {
                let answering = Answering {
                    me: self.me,
                    config: config.number,
                    through_switch: false,
                };
                answering.answer(header, Kind::AbdConfig, Stamp::NONE, Body::Nothing, fx);
            }
            return;
        };
        // It has lived by a later one before it restarted.
        if config.number < keeping.replica.config() {
            return;
        }
        let answering = Answering {
            me: self.me,
            config: config.number,
            through_switch: config.through_switch,
        };
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
        let writes = matches!(
            header.kind,
            Kind::AbdWrite | Kind::AbdWriteBack | Kind::AbdAsk
        );
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

    /// What was staged of this write, or fetched, is durable: any of its packets.
    pub fn synced(&mut self, header: &Header, own: &Own, fx: &mut impl Effects) {
        if header.seq == FILLING {
            return self.filled(header, own, None, fx);
        }
        let number = usize::from(header.tag.home().0);
        let Some(group) = self.groups.get_mut(number) else {
            return;
        };
        let is_fenced = group.is_fenced(header, self.epoch);
        let (Some((_, config)), Some(keeping)) = (group.known, &mut group.keeping) else {
            return;
        };
        let answering = Answering {
            me: self.me,
            config: config.number,
            through_switch: config.through_switch,
        };
        // It is stored whatever the config and the epoch are by now. An acknowledgement would
        // promise it to one that this member has left, where others have not asked for it.
        let is_over = is_fenced || config_of(own) != config.number;
        let answering = (!is_over).then_some(&answering);
        let of = (header, Stamp(own.a));
        let rows = &mut self.rows;
        keeping.replica.synced(answering, of, rows, fx);
    }

    /// A line is durable here under a stamp, also if its requester has begun other writes since and
    /// [`Abd::synced`] does not know it any more. `true`: it is the line from here on, as it would
    /// be after a restart, and the host has its bytes. Nothing is answered.
    pub fn is_durable(&mut self, line: Tag, stamp: Stamp) -> bool {
        let group = self.groups.get_mut(usize::from(line.home().0));
        let Some(keeping) = group.and_then(|group| group.keeping.as_mut()) else {
            return false;
        };
        let newer = stamp > keeping.replica.stamp(line);
        if newer {
            keeping.replica.restore(line, stamp);
        }
        newer
    }

    /// An answer for a member that fills. Without its bytes: what it has brought is durable.
    fn filled(
        &mut self,
        header: &Header,
        own: &Own,
        came: Option<(u32, &[Record])>,
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
        match (header.kind, came) {
            (_, None) => fill.synced(&filling, replica, (header.tag, Stamp(own.a)), fx),
            (Kind::AbdFillAck, Some((_, records))) => {
                fill.listed(&filling, replica, (header, own, records), fx)
            }
            (_, Some((len, _))) => fill.fetched(&filling, replica, (header, own, len), fx),
        };
    }

    /// Everything that decides what it will do but when it asks again.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.me.hash(into);
        (self.incarnation, self.epoch, self.slow).hash(into);
        for group in &self.groups {
            (group.known, group.counted).hash(into);
            if let Some(keeping) = &group.keeping {
                (keeping.life, &keeping.replica, &keeping.fill).hash(into);
            }
        }
        self.rows.fingerprint(into);
        for slot in &self.slots {
            (slot.seq, slot.last_round, slot.doubtful, slot.operation).hash(into);
        }
    }
}
