//! The requester: one a thread, drives its coherence events (§5.1.1 "Requester-driven Coherence Control").
//!
//! An event goes `begin` → packets → [`Step::Held`] → the host installs what it got → `unlock`. What follows is
//! asynchronous: the next event may begin before the unlock is acknowledged, but not end (§5.3.2). A read miss
//! under `Modified` is held as soon as the data is here, while the provider's write-back may still be on its
//! way: the unlock then waits for it, not the application. A block of the requester's own cache that an event
//! fills or empties is reserved by the host until it is unlocked.

use super::event::{Accept, Event, Home, Running, Step};
use super::rebuild::Open;
use super::rtt::RoundTrip;
use super::tables;
use crate::switch::numbers;
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
    /// How often its node has started: answers to another incarnation are not ours.
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

#[derive(Clone, Copy, Debug)]
struct Pending {
    header: Header,
    sent: u64,
    began: u64,
    attempts: u32,
}

/// What the end of an epoch has cut off at one requester.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interrupted {
    /// Events that may hold locks: one whose unlock is not acknowledged, one that waits for home, the current one.
    pub open: [Option<Open>; 3],
    /// Blocks that this node has read and whose home may not have them yet.
    pub unfinished: [Option<Tag>; 2],
}

/// One requester.
#[derive(Clone, Debug)]
pub struct Requester {
    config: RequesterConfig,
    seq: Seq,
    /// By parity: the last number that the switch has been shown in this epoch.
    shown: [Seq; 2],
    current: Option<Running>,
    /// An event whose unlock waits for home to have the block.
    tail: Option<Running>,
    unlock: Option<Pending>,
    rtt: RoundTrip,
    retransmissions: u64,
}

impl Requester {
    /// A requester that has done nothing.
    pub fn new(config: RequesterConfig) -> Self {
        Requester {
            config,
            seq: Seq(0),
            shown: [Seq(0); 2],
            current: None,
            tail: None,
            unlock: None,
            rtt: RoundTrip::default(),
            retransmissions: 0,
        }
    }

    /// The epoch it is in.
    pub fn epoch(&self) -> u32 {
        self.config.epoch
    }

    /// The bare lock that the application holds by the current event, as [`Requester::enter`] would tell it.
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
        self.config.id
    }

    /// How often it has sent something again.
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions
    }

    /// Everything that decides what it will do but the times at which it has sent something, for explorers of all
    /// states.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.config.epoch, self.config.switch, self.seq).hash(into);
        // Which number was shown last matters only when it is far behind.
        for shown in self.shown {
            (self.seq.0.wrapping_sub(shown.0) >> 30).hash(into);
        }
        for event in [&self.current, &self.tail] {
            event.is_some().hash(into);
            if let Some(event) = event {
                event.fingerprint(into);
            }
        }
        self.unlock.map(|pending| pending.header).hash(into);
    }

    /// The sequence numbers of the events that it still takes answers to: the current one, one whose unlock waits
    /// for home, and one whose unlock is not acknowledged.
    pub fn open(&self) -> [Option<Seq>; 3] {
        let event = |event: &Option<Running>| event.as_ref().map(|event| event.request.seq);
        let unlock = self.unlock.map(|pending| pending.header.seq);
        [event(&self.current), event(&self.tail), unlock]
    }

    /// Begins an event; what was left of an earlier one is forgotten.
    pub fn begin(&mut self, now: u64, event: Event) -> Output {
        self.seq = self.next_seq();
        if self.config.switch && event.kind.is_request() {
            let shown = &mut self.shown[self.seq.parity()];
            self.seq = numbers::newer(self.seq, *shown);
            *shown = self.seq;
        }
        let mut request = Header::request(
            event.kind,
            self.config.epoch,
            event.tag,
            self.config.id,
            self.seq,
        );
        request.incarnation = self.config.incarnation;
        request.offset = event.offset;
        request.reply_port = event.reply_port;
        self.current = Some(Running::new(request, now));
        self.outgoing(request)
    }

    /// The next sequence number whose rows at owners and agents no event still needs: of two events after one
    /// that is not acknowledged yet, the second would have its parity, and take its lock's score away.
    fn next_seq(&self) -> Seq {
        let seq = self.seq.next();
        let tail = self.tail.map(|tail| tail.request.seq);
        let unlock = self.unlock.map(|pending| pending.header.seq);
        let taken = |open: Option<Seq>| open.is_some_and(|open| open.parity() == seq.parity());
        if taken(tail) || taken(unlock) {
            seq.next()
        } else {
            seq
        }
    }

    fn outgoing(&self, request: Header) -> Output {
        let to_switch = self.config.switch && request.kind.is_request();
        let to = if to_switch {
            Dest::Switch
        } else {
            Dest::Agent(request.tag.home())
        };
        let data = match request.kind {
            Kind::WriteBack => Data::Cache,
            Kind::DelegateWrite | Kind::DelegateAdd | Kind::DelegateCas | Kind::Free => {
                Data::Operand
            }
            _ => Data::None,
        };
        Output::with(to, request, data)
    }

    /// How far the current event is.
    pub fn step(&self) -> Step {
        self.current
            .as_ref()
            .map_or(Step::Refused(Reason::None), |current| current.step)
    }

    /// Whether the current event has its entry's lock, as far as this requester has been told.
    pub fn holds(&self) -> bool {
        self.current.is_some_and(|current| current.grant.is_some())
    }

    /// Takes a packet with `body_len` bytes behind its header.
    pub fn handle(&mut self, now: u64, header: &Header, body_len: u32) -> (Accept, Outputs) {
        let nothing = (Accept::Drop, Outputs::default());
        let same = header.epoch == self.config.epoch
            && header.requester == self.config.id
            && header.incarnation == self.config.incarnation;
        if !same {
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
        let block = self.config.block;
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
            Kind::AllocAck | Kind::FreeAck | Kind::DelegateAck | Kind::AcceptLossAck => {
                current.done(header)
            }
            _ => return nothing,
        };
        current.settle(self.config.id.node);
        if current.step != Step::Waiting {
            let since = |then: u64| now.saturating_sub(then);
            let (first, last) = (since(current.began), since(current.sent));
            self.rtt.answered(first, last, current.attempts);
        }
        (taken, Outputs::default())
    }

    /// A packet for an event that only waits for home to have the block.
    fn handle_tail(&mut self, now: u64, header: &Header) -> Outputs {
        let mut outputs = Outputs::default();
        if header.kind == Kind::WriteBackAck
            && let Some(tail) = self.tail.take()
            && let Some(unlock) = self.release(now, &tail, false)
        {
            outputs.push(unlock);
        }
        outputs
    }

    /// An EVICT-MODIFIED that is held: send the block home before unlocking. `Held` again means it is there.
    pub fn write_back(&mut self, now: u64) -> Option<Output> {
        let current = self.current.as_mut()?;
        if current.fenced {
            current.step = Step::Refused(Reason::Fenced);
            current.grant = None;
            return None;
        }
        current.step = Step::Waiting;
        current.home = Home::WritingBack;
        (current.sent, current.began) = (now, now);
        Some(current.write_back())
    }

    /// Whether a held event may be unlocked now: the unlock before it is acknowledged (§5.3.2).
    pub fn can_unlock(&self) -> bool {
        self.unlock.is_none() && self.tail.is_none()
    }

    /// Ends a held event: new metadata to the owner that granted it, at once or when home has the block. With
    /// `keep`, the metadata stays as it is. What is returned is to be sent; [`Requester::handle`] and
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
        (current.sent, current.began) = (now, now);
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
            tables::next(kind, self.config.id.node, grant.status, grant.copyset);
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
        self.unlock = Some(Pending {
            header,
            sent: now,
            began: now,
            attempts: 1,
        });
        Some(Self::to_owner(header))
    }

    fn to_owner(unlock: Header) -> Output {
        let in_switch = unlock.flags.has(Flags::IN_SWITCH);
        Output::new(
            if in_switch {
                Dest::Switch
            } else {
                Dest::Agent(unlock.tag.home())
            },
            unlock,
        )
    }

    /// The rack goes on to another epoch, with or without a switch. What is under way has not happened: it ends with
    /// [`Reason::Fenced`]. What is held takes effect in this node's cache, which is what the directory will be
    /// made from, and needs no unlock; only bare locks stay, and their unlocks go to the home from now on.
    pub fn enter(&mut self, epoch: u32, switch: bool) -> Interrupted {
        let mut interrupted = Interrupted::default();
        if epoch == self.config.epoch {
            return interrupted;
        }
        (self.config.epoch, self.config.switch) = (epoch, switch);
        self.shown = [numbers::empty(self.seq); 2];
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

    /// Whoever is to answer can answer again: what waits is sent again at the next [`Requester::handle_timeout`].
    pub fn poke(&mut self) {
        let events = [&mut self.current, &mut self.tail];
        for event in events.into_iter().flatten() {
            event.sent = 0;
        }
        if let Some(unlock) = &mut self.unlock {
            unlock.sent = 0;
        }
    }

    /// When an event's next retransmission is due: 6 round trips after the first transmission (§5.3.1).
    fn event_due(&self, event: &Running) -> u64 {
        let wait = self.rtt.timeout(6, self.config.min_timeout, event.attempts);
        event.sent.saturating_add(wait)
    }

    /// When an unlock's is: 3 round trips.
    fn unlock_due(&self, unlock: &Pending) -> u64 {
        let wait = self
            .rtt
            .timeout(3, self.config.min_timeout, unlock.attempts);
        unlock.sent.saturating_add(wait)
    }

    /// When to call [`Requester::handle_timeout`], if nothing comes before.
    pub fn poll_timeout(&self) -> Option<u64> {
        let events = [self.current, self.tail].into_iter().flatten();
        let waiting = events.filter(|event| event.step == Step::Waiting);
        let requests = waiting.map(|event| self.event_due(&event));
        let unlock = self.unlock.map(|pending| self.unlock_due(&pending));
        requests.chain(unlock).min()
    }

    /// Sends again what has gone unanswered, or gives it up.
    pub fn handle_timeout(&mut self, now: u64) -> Outputs {
        let mut outputs = Outputs::default();
        let due = |event: Option<Running>| event.map_or(u64::MAX, |event| self.event_due(&event));
        let (tail_due, current_due) = (due(self.tail), due(self.current));
        let unlock_due = self.unlock.map_or(u64::MAX, |u| self.unlock_due(&u));
        if let Some(pending) = &mut self.unlock {
            if now >= pending.began + self.config.give_up {
                self.unlock = None;
            } else if now >= unlock_due {
                pending.sent = now;
                pending.attempts += 1;
                self.retransmissions += 1;
                outputs.push(Self::to_owner(pending.header));
            }
        }
        if let Some(tail) = &mut self.tail {
            let again = tail.retry(now, tail_due, self.config.give_up);
            if tail.step == Step::Lost {
                self.tail = None;
            }
            self.retransmissions += again.is_some() as u64;
            again
                .into_iter()
                .for_each(|header| outputs.push(self.outgoing(header)));
        }
        if let Some(current) = &mut self.current {
            let again = current.retry(now, current_due, self.config.give_up);
            self.retransmissions += again.is_some() as u64;
            again
                .into_iter()
                .for_each(|header| outputs.push(self.outgoing(header)));
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
        requester.seq = Seq(seq);
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
            requester.seq = Seq(requester.seq.0 + calls - 1);
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
