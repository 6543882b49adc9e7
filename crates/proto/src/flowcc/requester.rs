//! The requester: one a thread, drives its coherence events (§5.1.1 "Requester-driven Coherence
//! Control").
//!
//! An event goes `begin` → packets → [`Step::Held`] → the host installs what it got → `unlock`.
//! What follows is asynchronous: the next event may begin before the unlock is acknowledged, but
//! not end (§5.3.2). A read miss under `Modified` is held as soon as the data is here, while the
//! provider's write-back may still be on its way: the unlock then waits for it, not the
//! application. A block of the requester's own cache that an event fills or empties is reserved by
//! the host until it is unlocked.

use super::event::{Accept, Event, Home, Running, Step};
use super::rebuild::Open;
use super::tables;
use crate::call::{Caller, CallerConfig, Retry, Sent};
use crate::wire::{Flags, Header, Kind, Reason, RequesterId, Seq, Tag};
use crate::{Data, Dest, Output, Outputs};
use core::hash::{Hash, Hasher};

/// How a requester is set up. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct RequesterConfig {
    /// Who it is.
    pub id: RequesterId,
    /// Epoch of the rack.
    pub epoch: u32,
    /// How often its node has started.
    pub incarnation: u32,
    /// Block size in bytes.
    pub block: u32,
    /// Whether requests go to a switch first.
    pub switch: bool,
    /// Retransmission never waits less than this, whatever the measured round trip.
    pub min_timeout: u64,
    /// An event that has made no progress for this long has failed.
    pub give_up: u64,
}

/// Round trips until an event is sent again, and until an unlock is (§5.3.1).
const EVENT: u64 = 6;
const UNLOCK: u64 = 3;

/// In a store's or an operation's `offset`, when it begins: it is the one before, whose epoch has
/// ended before there was an answer.
pub const STORE_AGAIN: u32 = 1;

/// An unlock that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Unlocking {
    header: Header,
    sent: Sent,
}

/// What the end of an epoch has cut off at one requester.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interrupted {
    /// Events that may hold locks: one whose unlock is not acknowledged, one that waits for home,
    /// the current one.
    pub open: [Option<Open>; 3],
    /// Blocks that this node has read and whose home may not have them yet.
    pub unfinished: [Option<Tag>; 2],
}

/// One requester.
#[derive(Clone, Debug)]
pub struct Requester {
    block: u32,
    caller: Caller,
    current: Option<Running>,
    /// An event whose unlock waits for home to have the block.
    tail: Option<Running>,
    unlock: Option<Unlocking>,
    /// The number of its last store or operation, when that was sent first.
    stored: Seq,
}

impl Requester {
    /// A requester that has done nothing.
    pub fn new(config: RequesterConfig) -> Self {
        let caller = CallerConfig {
            id: config.id,
            epoch: config.epoch,
            incarnation: config.incarnation,
            switch: config.switch,
            min_timeout: config.min_timeout,
            give_up: config.give_up,
        };
        Requester {
            block: config.block,
            caller: Caller::new(caller),
            current: None,
            tail: None,
            unlock: None,
            stored: Seq(0),
        }
    }

    /// The epoch it is in.
    pub fn epoch(&self) -> u32 {
        self.caller.epoch()
    }

    /// The bare lock that the application holds by the current event,
    /// as [`Requester::enter`] would tell it.
    pub fn held_lock(&self) -> Option<Open> {
        let current = self.current.as_ref()?;
        let holds = matches!(current.step, Step::Held(_)) && current.request.kind.only_locks();
        holds.then(|| Open {
            bare: true,
            ..Open::of(&current.request)
        })
    }

    /// Who it is.
    pub fn id(&self) -> RequesterId {
        self.caller.id()
    }

    /// How often it has sent something again.
    pub fn retransmissions(&self) -> u64 {
        self.caller.retransmissions()
    }

    /// Everything that decides what it will do but the times at which it has sent something,
    /// for explorers of all states.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.caller.fingerprint(into);
        for event in [&self.current, &self.tail] {
            event.is_some().hash(into);
            if let Some(event) = event {
                event.fingerprint(into);
            }
        }
        self.unlock.map(|pending| pending.header).hash(into);
        if self.stored != Seq(0) {
            self.stored.hash(into);
        }
    }

    /// The sequence numbers of the events that it still takes answers to: the current one,
    /// one whose unlock waits for home, and one whose unlock is not acknowledged.
    pub fn open(&self) -> [Option<Seq>; 3] {
        let event = |event: &Option<Running>| event.as_ref().map(|event| event.request.seq);
        let unlock = self.unlock.map(|pending| pending.header.seq);
        [event(&self.current), event(&self.tail), unlock]
    }

    /// Begins an event; what was left of an earlier one is forgotten.
    pub fn begin(&mut self, now: u64, event: Event) -> Output {
        let [_, tail, unlock] = self.open();
        let request = self.caller.begin(event.kind, event.tag, [tail, unlock]);
        let request = Header {
            offset: match event.kind {
                Kind::Store | Kind::Operate => {
                    self.number_store(request.seq, event.offset == STORE_AGAIN)
                }
                _ => event.offset,
            },
            reply_port: event.reply_port,
            ..request
        };
        self.current = Some(Running::new(request, now));
        Self::outgoing(&self.caller, request)
    }

    /// The current event, of which nothing has been sent, is refused by its own host.
    pub(crate) fn refuse(&mut self, reason: Reason) {
        if let Some(current) = &mut self.current {
            current.step = Step::Refused(reason);
        }
    }

    /// How far behind its own the number of a store or an operation is: the number under which it
    /// was sent first.
    fn number_store(&mut self, seq: Seq, again: bool) -> u32 {
        if !again {
            self.stored = seq;
        }
        // Nothing else has been begun since.
        u32::try_from(seq.0 - self.stored.0).unwrap_or(0)
    }

    fn outgoing(caller: &Caller, request: Header) -> Output {
        // A switch has no entries of homes that groups keep.
        let to = match caller.asks_switch(request.kind) && request.tag.home().is_own() {
            true => Dest::Switch,
            false => Dest::Home(request.tag.home()),
        };
        let data = match request.kind {
            Kind::WriteBack => Data::Cache,
            Kind::GuestAsk | Kind::Free | Kind::Store | Kind::Operate => Data::Operand,
            _ => Data::None,
        };
        Output::with(to, request, data)
    }

    /// How far the current event is.
    #[inline]
    pub fn step(&self) -> Step {
        self.current
            .as_ref()
            .map_or(Step::Refused(Reason::None), |current| current.step)
    }

    /// Whether answers to the current event are missing.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(&self.current, Some(current) if current.step == Step::Waiting)
    }

    /// Whether the current event has its entry's lock, as far as this requester knows.
    #[inline]
    pub fn holds(&self) -> bool {
        matches!(&self.current, Some(current) if current.grant.is_some())
    }

    /// Takes a packet with `body_len` bytes behind its header: what to do with these,
    /// and what to send.
    pub fn handle(&mut self, now: u64, header: &Header, body_len: u32) -> (Accept, Option<Output>) {
        let nothing = (Accept::Drop, None);
        if !self.caller.is_own(header) {
            return nothing;
        }
        if header.kind == Kind::UnlockAck {
            if self
                .unlock
                .is_some_and(|pending| pending.header.seq == header.seq)
            {
                self.unlock = None;
            }
            return nothing;
        }
        if self.tail.is_some_and(|tail| tail.request.seq == header.seq) {
            return (Accept::Drop, self.handle_tail(now, header));
        }
        let (me, block) = (self.caller.id().node, self.block);
        let Some(current) = &mut self.current else {
            return nothing;
        };
        if header.seq != current.request.seq {
            return nothing;
        }
        if header.kind == Kind::WriteBackAck {
            current.home_done = true;
        }
        if current.step != Step::Waiting {
            return nothing;
        }
        let taken = match header.kind {
            Kind::Ack => current.ack(header, body_len, block),
            Kind::WriteBackAck => Accept::Drop,
            Kind::AllocAck
            | Kind::FreeAck
            | Kind::GuestTell
            | Kind::AcceptLossAck
            | Kind::FetchAck
            | Kind::StoreAck
            | Kind::OperateAck => current.done(header),
            _ => return nothing,
        };
        current.settle(me);
        if current.step != Step::Waiting {
            self.caller.answered(now, &current.sent);
        }
        (taken, None)
    }

    /// A packet for an event that only waits for home to have the block, or to say that there is no
    /// such block any more.
    fn handle_tail(&mut self, now: u64, header: &Header) -> Option<Output> {
        // Its region is removed, and who was to bring it home has dropped it.
        let gone = header.kind == Kind::Ack && header.reason == Reason::NoMemory;
        if header.kind != Kind::WriteBackAck && !gone {
            return None;
        }
        let tail = self.tail.take()?;
        self.release(now, &tail, gone)
    }

    /// An EVICT-MODIFIED that is held: send the block home before unlocking.
    /// `Held` again means it is there.
    pub fn write_back(&mut self, now: u64) -> Option<Output> {
        let current = self.current.as_mut()?;
        if current.fenced {
            current.step = Step::Refused(Reason::Fenced);
            current.grant = None;
            return None;
        }
        current.step = Step::Waiting;
        current.home = Home::WritingBack;
        current.sent.progress(now);
        Some(current.write_back())
    }

    /// Whether a held event may be unlocked now: the unlock before it is acknowledged (§5.3.2).
    #[inline]
    pub fn can_unlock(&self) -> bool {
        self.unlock.is_none() && self.tail.is_none()
    }

    /// The block whose unlock is not acknowledged, and whether it was locked as by a reader.
    pub fn unlocking(&self) -> Option<(Tag, bool)> {
        let header = self.unlock.map(|pending| pending.header);
        header.map(|header| (header.tag, header.flags.has(Flags::READER)))
    }

    /// Ends a held event: new metadata to the owner that granted it,
    /// at once or when home has the block. With `keep`, the metadata stays as it is. What is
    /// returned is to be sent; [`Requester::handle`] and
    /// [`Requester::handle_timeout`] return the rest.
    pub fn unlock(&mut self, now: u64, keep: bool) -> Option<Output> {
        let mut current = self.current.take()?;
        if current.fenced {
            return None;
        }
        if keep || current.home_is_current() {
            return self.release(now, &current, keep);
        }
        current.step = Step::Waiting;
        current.sent.progress(now);
        self.tail = Some(current);
        None
    }

    /// The block of the event whose unlock waits for home to have it.
    pub fn tail(&self) -> Option<Tag> {
        self.tail.map(|tail| tail.request.tag)
    }

    fn release(&mut self, now: u64, event: &Running, keep: bool) -> Option<Output> {
        let grant = event.grant?;
        let kind = event.request.kind;
        let (status, copyset) =
            tables::next(kind, self.caller.id().node, grant.status, grant.copyset);
        let mut flags = Flags(grant.flags.0 & Flags::IN_SWITCH.0);
        if kind.locks_shared() {
            flags = flags.and(Flags::READER);
        }
        if keep || kind.only_locks() {
            flags = flags.and(Flags::KEEP);
        }
        let header = Header {
            kind: Kind::Unlock,
            status,
            copyset,
            flags,
            offset: 0,
            ..event.request
        };
        self.unlock = Some(Unlocking {
            header,
            sent: Sent::now(now),
        });
        Some(Self::to_owner(header))
    }

    fn to_owner(unlock: Header) -> Output {
        let in_switch = unlock.flags.has(Flags::IN_SWITCH);
        Output::new(
            if in_switch {
                Dest::Switch
            } else {
                Dest::Home(unlock.tag.home())
            },
            unlock,
        )
    }

    /// The rack goes on to another epoch, with or without a switch.
    /// What is under way has not happened: it ends with
    /// [`Reason::Fenced`]. What is held takes effect in this node's cache,
    /// which is what the directory will be made from, and needs no unlock; only bare locks stay,
    /// and their unlocks go to the home from now on.
    pub fn enter(&mut self, epoch: u32, switch: bool) -> Interrupted {
        let mut interrupted = Interrupted::default();
        if !self.caller.enter(epoch, switch) {
            return interrupted;
        }
        let unlock = self.unlock.take();
        interrupted.open[0] = unlock.map(|pending| Open::of(&pending.header));
        if let Some(tail) = self.tail.take() {
            interrupted.open[1] = Some(Open::of(&tail.request));
            interrupted.unfinished[0] = Some(tail.request.tag);
        }
        let Some(current) = &mut self.current else {
            return interrupted;
        };
        let kind = current.request.kind;
        let event = Open::of(&current.request);
        match current.step {
            Step::Held(_) if kind.only_locks() => {
                interrupted.open[2] = Some(Open {
                    bare: true,
                    ..event
                });
                current.request.epoch = epoch;
                if let Some(grant) = &mut current.grant {
                    grant.flags = grant.flags.but(Flags::IN_SWITCH);
                }
            }
            Step::Held(_) => {
                current.fenced = true;
                interrupted.open[2] = kind.is_request().then_some(event);
                let unfinished = !current.home_is_current();
                interrupted.unfinished[1] = unfinished.then_some(event.tag);
            }
            Step::Waiting => {
                interrupted.open[2] = kind.is_request().then_some(Open {
                    awaits_data: kind == Kind::WriteMiss,
                    ..event
                });
                current.step = Step::Refused(Reason::Fenced);
                current.grant = None;
            }
            // Granted, and its provider could not serve: the lock may be ours.
            Step::Refused(_) | Step::Lost => {
                interrupted.open[2] = current.grant.take().map(|_| event);
            }
        }
        interrupted
    }

    /// Whoever is to answer can answer again: what waits is sent again at the next
    /// [`Requester::handle_timeout`].
    pub fn poke(&mut self) {
        let events = [&mut self.current, &mut self.tail];
        for event in events.into_iter().flatten() {
            event.sent.poke();
        }
        if let Some(unlock) = &mut self.unlock {
            unlock.sent.poke();
        }
    }

    /// When to call [`Requester::handle_timeout`], if nothing comes before.
    pub fn poll_timeout(&self) -> Option<u64> {
        let events = [&self.current, &self.tail].into_iter().flatten();
        let waiting = events.filter(|event| event.step == Step::Waiting);
        let requests = waiting.map(|event| self.caller.due(&event.sent, EVENT));
        let unlock = self.unlock.iter();
        let unlock = unlock.map(|unlock| self.caller.due(&unlock.sent, UNLOCK));
        requests.chain(unlock).min()
    }

    /// Sends again what has gone unanswered, or gives it up.
    pub fn handle_timeout(&mut self, now: u64) -> Outputs {
        let mut outputs = Outputs::default();
        if let Some(unlock) = &mut self.unlock {
            match self.caller.retry(now, &mut unlock.sent, UNLOCK) {
                Retry::Again => outputs.push(Self::to_owner(unlock.header)),
                Retry::GiveUp => self.unlock = None,
                Retry::Wait => {}
            }
        }
        for event in [&mut self.tail, &mut self.current] {
            let waiting = event.as_mut().filter(|event| event.step == Step::Waiting);
            let Some(event) = waiting else { continue };
            match self.caller.retry(now, &mut event.sent, EVENT) {
                Retry::Again => outputs.push(Self::outgoing(&self.caller, event.asked())),
                Retry::GiveUp => event.step = Step::Lost,
                Retry::Wait => {}
            }
        }
        if self.tail.is_some_and(|tail| tail.step == Step::Lost) {
            self.tail = None;
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::{SwitchConfig, SwitchProgram};
    use crate::wire::{Copyset, GlobalStatus};

    const BLOCK: Tag = Tag(1 << 48);

    /// A switch that has the block, and nothing else that it remembers.
    fn switch(epoch: u32) -> SwitchProgram {
        let mut switch = SwitchProgram::new(SwitchConfig {
            epoch,
            sets: 4,
            ..SwitchConfig::default()
        });
        let home = RequesterId { node: 1, slot: 0 };
        let mut add = Header::request(Kind::AddToSwitch, epoch, BLOCK, home, Seq(1));
        (add.status, add.copyset) = (GlobalStatus::Shared, Copyset::of(2));
        assert_eq!(switch.handle(&add).iter().count(), 1);
        switch
    }

    fn requester(seq: u64) -> Requester {
        let mut requester = Requester::new(RequesterConfig {
            id: RequesterId { node: 0, slot: 3 },
            epoch: 1,
            incarnation: 1,
            block: 4096,
            switch: true,
            min_timeout: 1,
            give_up: 1000,
        });
        requester.caller.skip_to(Seq(seq));
        requester
    }

    fn ask(requester: &mut Requester, kind: Kind) -> Header {
        let event = Event {
            kind,
            tag: BLOCK,
            offset: 0,
            reply_port: 0,
        };
        requester.begin(0, event).header
    }

    fn grants(switch: &mut SwitchProgram, request: &Header) -> bool {
        let outputs = switch.handle(request);
        let granted = |output: &Output| output.header.flags.has(Flags::GRANTED);
        outputs.iter().any(granted)
    }

    /// Its unlock waits for home to have what it has read. The region is removed before that, and
    /// the packet that brings it is lost: nobody sends it again.
    #[test]
    fn an_event_that_waits_for_home_ends_when_there_is_no_such_block_any_more() {
        let mut requester = requester(0);
        let request = ask(&mut requester, Kind::ReadMiss);
        let mut data = request.answer(Kind::Ack, 2);
        data.status = GlobalStatus::Modified;
        data.flags = Flags::GRANTED.and(Flags::PROVIDER).and(Flags::DATA);
        assert_eq!(requester.handle(1, &data, 4096).0, Accept::Store);
        assert!(matches!(requester.step(), Step::Held(_)));
        assert!(requester.unlock(2, false).is_none() && requester.tail().is_some());
        let refused = |reason| request.refuse(Kind::Ack, 1, reason);
        let ignored = requester.handle(3, &refused(Reason::Refused), 0);
        assert!(ignored == (Accept::Drop, None) && !requester.can_unlock());
        let (accept, output) = requester.handle(4, &refused(Reason::NoMemory), 0);
        let unlock = output.expect("it lets the lock go").header;
        assert_eq!((accept, unlock.kind), (Accept::Drop, Kind::Unlock));
        // What the entry says is no news of a block that is not there.
        assert!(unlock.flags.has(Flags::KEEP) && requester.tail().is_none());
        requester.handle(5, &request.answer(Kind::UnlockAck, 1), 0);
        assert!(requester.can_unlock());
    }

    #[test]
    fn a_new_epochs_switch_takes_a_requester_with_any_number() {
        for seq in [0x7fff_fffe, 0x8000_0001, 0xffff_fffe, 0xffff_ffff, 9 << 32] {
            let mut requester = requester(seq);
            requester.enter(2, true);
            let mut switch = switch(2);
            for _ in 0..4 {
                let request = ask(&mut requester, Kind::ReadMiss);
                assert!(grants(&mut switch, &request), "{request:?} after {seq:#x}");
            }
        }
    }

    #[test]
    fn a_switch_takes_a_requester_that_was_away_for_any_number_of_calls() {
        for calls in [1, 1 << 24, 1 << 31, 0xff00_0000, 1 << 32, 3 << 33] {
            let (mut requester, mut switch) = (requester(0), switch(1));
            for _ in 0..2 {
                let request = ask(&mut requester, Kind::ReadMiss);
                assert!(grants(&mut switch, &request));
            }
            // Calls about memory are numbered as well, and do not go by the switch.
            let seq = requester.caller.seq().0 + calls - 1;
            requester.caller.skip_to(Seq(seq));
            let call = ask(&mut requester, Kind::Alloc);
            let requests = [0, 1].map(|_| ask(&mut requester, Kind::ReadMiss));
            assert!(requests[0].seq > call.seq && requests[1].seq > requests[0].seq);
            for request in requests {
                assert!(
                    grants(&mut switch, &request),
                    "{request:?} after {calls:#x}"
                );
            }
        }
    }
}
