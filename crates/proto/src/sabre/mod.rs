//! Whole objects, read without tearing and without a lock: SABRes, the `Object` contract.
//!
//! An object has a version in front of it. Writers are threads of its home's process; readers copy
//! it wherever they can reach it and look at the version before and after ([`rule`]).
//! `docs/protocols/sabres.md` tells what is the paper's and what is not.
//!
//! | question | answered in |
//! |---|---|
//! | how does an object lie in memory? | [`Meta`], `layout` |
//! | may it be copied, and was it whole? | [`rule`] |
//! | what of a home's memory is given out? | [`Book`] |
//! | what does a home do with a packet? | [`Home`] |
//! | what does a thread do that cannot reach the memory? | [`Operation`] |
//! | and when a writer is in, or the object has moved? | [`Retry`] |
//! | an object that does not die with its home? | [`KeptObjects`] |
//! | several objects, as one step? | [`transaction`] |
//!
//! [`Sabre`] is all of it at one node. The words of objects are the host's ([`Words`]);
//! what travels and what threads hold is beside it ([`Section`], [`Values`]). The hardware that the
//! paper proposes is [`controller`], for the checker and the cycle model.

mod book;
mod calls;
pub mod controller;
mod effects;
mod form;
mod home;
mod kept;
mod layout;
mod operation;
mod retry;
pub mod rule;
mod section;
pub mod transaction;

pub use book::{Book, Given, Spot};
pub use calls::Answer;
pub use effects::{Bytes, Defect, Effects, Memory};
pub use form::{Forms, MISSES};
pub use home::{Home, Write};
pub use kept::{KeptObjects, Laid, Need, bytes_with_rows, bytes_without_rows, room_of, span_of};
pub use layout::{
    GRANULE, HEADER, LINE, MAX_BYTES, Meta, SLAB, all_granules, class_bytes, class_of, granules,
};
pub use operation::{ANEW, BURST, Command, Heard, Known, Lane, Operation, Outcome, Ref};
pub use retry::{Attempts, Next, Retry, Then};
pub use section::{Section, Sender, Values, Words};

use self::transaction::{ENDED, Plan, Step, Transaction, ask_whether_ended, slot_in_doubt};
use crate::call::Ticks;
use crate::wire::{
    Contract, Copyset, Header, HomeId, Kind, MAX_REQUESTERS, NodeId, Own, Reason, Record,
    RequesterId, Seq,
};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// What kinds from 0x60 to 0x6f have of their own.
pub const fn own(version: u64, generation: u32, len: u32) -> Own {
    Own {
        a: version,
        b: (generation as u64) << 32 | len as u64,
    }
}

/// The generation in it.
pub const fn generation_of(own: &Own) -> u32 {
    (own.b >> 32) as u32
}

/// The length in it.
pub const fn len_of(own: &Own) -> u32 {
    own.b as u32
}

/// Reads that one thread has under way together, at most.
pub const MANY: usize = 16;

/// A requester and its node's incarnation.
type Who = (RequesterId, u32);

/// Reads of objects of other homes that have ended with the object, by who has sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadsDone {
    /// The kernel of the home's host, all of it.
    pub kernel: u64,
    /// The home's agent.
    pub agent: u64,
}

#[derive(Clone, Default, Debug)]
struct Slot {
    /// The last number that was used.
    number: Seq,
    /// What began together and has not ended; empty when all of it has.
    lanes: Vec<Option<Operation>>,
    pace: Ticks,
    /// The transaction that is to end here, with its thread or without.
    transaction: Option<Transaction>,
    /// Homes in which something is in doubt that an earlier life of the node has begun here.
    earlier: Copyset,
}

impl Slot {
    /// Asks for everything that has not ended. `told`: all homes have reported what is in doubt.
    fn ask(&mut self, (who, told): (Who, bool), forms: &Forms, fx: &mut impl Effects) {
        for home in self.earlier.iter() {
            ask_whether_ended(home, who, fx);
        }
        let may_keeper = told && self.earlier.is_empty();
        for operation in self.lanes.iter_mut().flatten() {
            let home = operation.command().tag().home();
            if home.is_own() || may_keeper {
                operation.ask(who.0.slot as u8, who, forms.is_by_granules(home), fx);
            }
        }
        self.ask_transaction((who, told), fx);
    }

    fn ask_transaction(&self, (who, told): (Who, bool), fx: &mut impl Effects) {
        let transaction = self.transaction.as_ref();
        if let Some(transaction) = transaction.filter(|_| self.earlier.is_empty()) {
            transaction.ask((who, told), fx);
        }
    }

    fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.transaction.is_none()
    }

    /// What a step of the transaction has come to.
    fn follow(&mut self, step: Step, (who, told): (Who, bool), fx: &mut impl Effects) {
        match step {
            Step::Nothing => return,
            Step::News => {}
            Step::Onward => self.ask_transaction((who, told), fx),
            Step::Ended(outcome) => {
                self.transaction = None;
                fx.done(Transaction::lane(who.0.slot as u8), outcome);
            }
        }
        self.pace.reset();
    }

    fn end(&mut self, nth: usize) {
        if let Some(lane) = self.lanes.get_mut(nth) {
            *lane = None;
        }
        if self.lanes.iter().all(Option::is_none) {
            self.lanes.clear();
        }
    }
}

/// Objects at one node: those of its home, and what its threads do with others.
#[derive(Clone, Debug)]
pub struct Sabre {
    me: NodeId,
    incarnation: u32,
    /// Its home.
    pub home: Home,
    /// Homes that groups keep, as far as it serves them.
    pub kept: KeptObjects,
    slots: Vec<Slot>,
    /// The nodes that the epoch began with.
    members: Copyset,
    /// All homes have reported, and so which of these slots' calls keepers are to remember.
    told: bool,
    forms: Forms,
    /// Who has answered its reads.
    pub reads: ReadsDone,
}

impl Sabre {
    /// A node with these books.
    pub fn new((me, incarnation): (NodeId, u32), book: Book) -> Self {
        Sabre {
            me,
            incarnation,
            home: Home::new(book),
            kept: KeptObjects::default(),
            slots: Vec::new(),
            members: Copyset::EMPTY,
            told: true,
            forms: Forms::default(),
            reads: ReadsDone::default(),
        }
    }

    fn who(&self, slot: u8) -> Who {
        let id = RequesterId {
            node: self.me,
            slot: slot.into(),
        };
        (id, self.incarnation)
    }

    /// Who a slot is, and whether it may ask keepers.
    fn asker(&self, slot: u8) -> (Who, bool) {
        (self.who(slot), self.told)
    }

    /// A thread asks for something, in a slot in which nothing is under way.
    pub fn command(&mut self, slot: u8, command: Command, fx: &mut impl Effects) {
        self.begin(slot, core::iter::once(command), fx);
    }

    /// A thread asks for several objects at once, [`MANY`] at most, each unless it has this
    /// version. Each read is on its own. Nothing but reads can be under way together: a home
    /// remembers one call of a requester, and reads are none.
    pub fn reads(&mut self, slot: u8, objects: &[(Ref, Known)], fx: &mut impl Effects) {
        let reads = objects.iter().take(MANY);
        let reads = reads.map(|(object, known)| Command::Read(*object, *known));
        self.begin(slot, reads, fx);
    }

    fn begin(&mut self, slot: u8, all: impl Iterator<Item = Command>, fx: &mut impl Effects) {
        let who = self.asker(slot);
        let Some(row) = self.row(slot) else {
            return;
        };
        row.lanes.clear();
        for command in all {
            row.number = row.number.next();
            row.lanes.push(Some(Operation::begin(command, row.number)));
        }
        row.pace.reset();
        if let Some(row) = self.slots.get_mut(usize::from(slot)) {
            row.ask(who, &self.forms, fx);
        }
    }

    fn row(&mut self, slot: u8) -> Option<&mut Slot> {
        let at = usize::from(slot);
        if at >= MAX_REQUESTERS {
            return None;
        }
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        self.slots.get_mut(at)
    }

    /// Whether no transaction of this slot is under way, with its thread or without.
    pub fn may_transact(&self, slot: u8) -> bool {
        let row = self.slots.get(usize::from(slot));
        row.is_none_or(|row| row.transaction.is_none())
    }

    /// Whether this slot may ask a keeper for something: it remembers one call of a requester, and
    /// a transaction's for as long as homes may have to ask for that.
    pub fn may_ask_keeper(&self, slot: u8) -> bool {
        let row = self.slots.get(usize::from(slot));
        let transaction = row.and_then(|row| row.transaction.as_ref());
        !transaction.is_some_and(Transaction::needs_keeper)
    }

    /// The homes that the transaction of this slot concerns.
    pub fn homes(&self, slot: u8) -> Copyset {
        let row = self.slots.get(usize::from(slot));
        let transaction = row.and_then(|row| row.transaction.as_ref());
        transaction.map_or(Copyset::EMPTY, Transaction::homes)
    }

    /// A home that the transaction of this slot waits for.
    pub fn awaited(&self, slot: u8) -> Option<HomeId> {
        let row = self.slots.get(usize::from(slot))?;
        row.transaction.as_ref()?.awaited()
    }

    /// A thread commits a transaction, in a slot where none is under way. False: one is.
    pub fn transact(&mut self, slot: u8, plan: Plan, fx: &mut impl Effects) -> bool {
        let who = self.asker(slot);
        let Some(row) = self.row(slot).filter(|row| row.transaction.is_none()) else {
            return false;
        };
        row.number = row.number.next();
        let transaction = Transaction::begin(plan, row.number, fx.defect());
        row.transaction = Some(transaction);
        row.follow(Step::Onward, who, fx);
        true
    }

    /// The thread in this slot does not wait for its transaction any longer: whether that may take
    /// effect. What it has locked is released, if it is not decided.
    pub fn leave(&mut self, slot: u8, fx: &mut impl Effects) -> bool {
        let who = self.asker(slot);
        let Some(row) = self.row(slot) else {
            return false;
        };
        let Some(transaction) = &mut row.transaction else {
            return false;
        };
        let decided = transaction.is_decided();
        let step = transaction.abandon();
        row.follow(step, who, fx);
        decided
    }

    /// The thread in this slot does not wait for this operation any longer.
    pub fn abandon(&mut self, lane: Lane) {
        if let Some(row) = self.slots.get_mut(usize::from(lane.slot)) {
            row.end(lane.nth.into());
        }
    }

    /// What is due every few round trips: packets may have been lost, and epochs may have begun.
    pub fn tick(&mut self, fx: &mut impl Effects) {
        for at in 0..self.slots.len() {
            let who = self.asker(at as u8);
            let row = &mut self.slots[at];
            if !row.is_idle() && row.pace.tick() {
                row.ask(who, &self.forms, fx);
            }
        }
        self.home.tick_in_doubt(self.who(0), fx);
    }

    /// All homes serve in a new epoch: what was asked in the last one was dropped.
    pub fn resume(&mut self, fx: &mut impl Effects) {
        for at in 0..self.slots.len() {
            let who = self.asker(at as u8);
            let row = &mut self.slots[at];
            row.pace.reset();
            row.ask(who, &self.forms, fx);
        }
        self.home.ask_in_doubt(self.who(0), fx);
    }

    /// Asks again for what is under way in a slot, where nothing else does.
    pub fn ask_again(&mut self, slot: u8, fx: &mut impl Effects) {
        let who = self.asker(slot);
        if let Some(row) = self.slots.get_mut(usize::from(slot)) {
            row.ask(who, &self.forms, fx);
        }
    }

    /// An epoch begins with these nodes.
    pub fn enter(&mut self, members: Copyset) {
        (self.members, self.told) = (members, false);
        for row in &mut self.slots {
            row.earlier = Copyset::EMPTY;
        }
        self.kept.enter();
    }

    /// Incarnations of these nodes have ended, and the memory of their homes is gone.
    pub fn forget(&mut self, gone: Copyset, fx: &mut impl Effects) {
        self.home.participant.forget(gone);
        for at in 0..self.slots.len() {
            self.lose(at as u8, gone, fx);
        }
    }

    /// The transaction of this slot does not wait for these homes, whose memory is gone.
    pub fn lose(&mut self, slot: u8, gone: Copyset, fx: &mut impl Effects) {
        let who = self.asker(slot);
        if let Some(row) = self.slots.get_mut(usize::from(slot)) {
            let transaction = row.transaction.as_mut();
            let step = transaction.map_or(Step::Nothing, |tx| tx.forget(gone));
            row.follow(step, who, fx);
        }
    }

    /// What other homes are to know of transactions whose coordinators are dead.
    pub fn report(&mut self) -> Vec<Record> {
        self.home.participant.report(self.me, self.members)
    }

    /// Another home has reported this.
    pub fn hear(&mut self, record: Record) {
        let Some((slot, home)) = slot_in_doubt(record) else {
            return self.home.participant.hear(record);
        };
        if let Some(row) = self.row(slot) {
            row.earlier = row.earlier.with(home);
        }
    }

    /// All homes have reported.
    pub fn settle(&mut self, fx: &mut impl Effects) {
        self.told = true;
        self.home.settle_transactions(fx);
        self.kept.serve();
    }

    /// A packet of one of its kinds. `bytes`: how many are behind what its kind has of its own.
    pub fn packet(&mut self, header: &Header, own: &Own, bytes: u32, fx: &mut impl Effects) {
        if header.kind.asks_object() {
            if header.tag.home().is_own() {
                return self.home.packet(header, own, bytes, fx);
            }
            return self.kept.packet(header, own, bytes, fx);
        }
        let slot = header.requester.slot;
        let ours = self.who(slot as u8) == (header.requester, header.incarnation);
        // What was refused may have an address that is under no contract.
        let object = header.tag.is_under(Contract::Object) || header.reason != Reason::None;
        let who = self.asker(slot as u8);
        if header.kind == Kind::TxLockAck && !header.tag.home().is_own() {
            if ours {
                self.home.hear_outcome(header, own, fx);
            }
            return;
        }
        let Some(row) = self.slots.get_mut(usize::from(slot)) else {
            return;
        };
        if header.seq == ENDED && ours && header.kind == Kind::TxCommitAck {
            row.earlier = row.earlier.without(header.sender);
            if row.earlier.is_empty() {
                row.pace.reset();
                row.ask(who, &self.forms, fx);
            }
            return;
        }
        let number = row.transaction.as_ref().map(Transaction::number);
        if ours && object && number == Some(header.seq) {
            let transaction = row.transaction.as_mut();
            let step = transaction.map_or(Step::Nothing, |tx| tx.packet(header, own, fx));
            return row.follow(step, who, fx);
        }
        let mut lanes = row.lanes.iter_mut().enumerate();
        let meant = lanes.find_map(|(nth, lane)| {
            let operation = lane.as_mut()?;
            (operation.number() == header.seq).then_some((nth, operation))
        });
        let Some((nth, operation)) = meant.filter(|_| ours && object) else {
            return;
        };
        let lane = Lane {
            slot: slot as u8,
            nth: nth as u8,
        };
        let home = operation.command().tag().home();
        let heard = operation.packet(header, own, (lane, bytes), fx);
        if heard != Heard::Nothing {
            self.forms.hear(home, header);
        }
        match heard {
            Heard::Nothing => {}
            Heard::News => row.pace.reset(),
            Heard::More => {
                let by_granules = self.forms.is_by_granules(home);
                operation.ask(lane.slot, who.0, by_granules, fx);
                row.pace.reset();
            }
            Heard::Ended(outcome) => {
                if matches!(outcome, Outcome::Read { .. }) {
                    self.forms.note(home, operation);
                    let by = match operation.is_by_kernel() {
                        true => &mut self.reads.kernel,
                        false => &mut self.reads.agent,
                    };
                    *by += 1;
                }
                row.end(nth);
                row.pace.reset();
                fx.done(lane, outcome);
            }
        }
    }

    /// Everything that decides what it will do, but when.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.me, self.incarnation, self.members, self.told).hash(into);
        self.home.fingerprint(into);
        self.kept.fingerprint(into);
        self.forms.hash(into);
        for slot in &self.slots {
            let Slot {
                number,
                lanes,
                transaction,
                earlier,
                ..
            } = slot;
            (number, lanes, transaction, earlier).hash(into);
        }
    }
}
