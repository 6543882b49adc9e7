//! The caller: numbers for its calls, which answers are its own, when to ask again and when to give
//! up.

use super::rtt::RoundTrip;
use crate::switch::numbers;
use crate::wire::{Header, Kind, RequesterId, Seq, Tag};
use core::hash::{Hash, Hasher};

/// How a caller is set up. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CallerConfig {
    /// Who it is.
    pub id: RequesterId,
    /// Epoch of the rack.
    pub epoch: u32,
    /// How often its node has started: answers to another incarnation are not its own.
    pub incarnation: u32,
    /// Whether requests go to a switch first.
    pub switch: bool,
    /// Retransmission never waits less than this, whatever the measured round trip.
    pub min_timeout: u64,
    /// A call that has made no progress for this long has failed.
    pub give_up: u64,
}

/// When a call was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its last copy; 0: another one is due.
    last: u64,
    /// Its first one, or since when it has made progress.
    began: u64,
    attempts: u32,
}

impl Sent {
    /// Now, for the first time.
    pub fn now(now: u64) -> Self {
        Sent {
            last: now,
            began: now,
            attempts: 1,
        }
    }

    /// It has made progress, and what it waits for from here on is asked for now.
    pub fn progress(&mut self, now: u64) {
        (self.last, self.began) = (now, now);
    }

    /// Another copy is due at once.
    pub fn poke(&mut self) {
        self.last = 0;
    }
}

/// What to do about a call that has not been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Nothing yet.
    Wait,
    /// Send it again.
    Again,
    /// It has failed.
    GiveUp,
}

/// One caller.
#[derive(Clone, Debug)]
pub struct Caller {
    config: CallerConfig,
    seq: Seq,
    /// By parity: the last number that the switch has been shown in this epoch.
    shown: [Seq; 2],
    rtt: RoundTrip,
    retransmissions: u64,
}

impl Caller {
    /// A caller without calls.
    pub fn new(config: CallerConfig) -> Self {
        Caller {
            config,
            seq: Seq(0),
            shown: [Seq(0); 2],
            rtt: RoundTrip::default(),
            retransmissions: 0,
        }
    }

    /// Who it is.
    pub fn id(&self) -> RequesterId {
        self.config.id
    }

    /// The epoch it is in.
    pub fn epoch(&self) -> u32 {
        self.config.epoch
    }

    /// Whether requests of this kind go to a switch first.
    pub fn asks_switch(&self, kind: Kind) -> bool {
        self.config.switch && kind.is_request()
    }

    /// How often it has sent something again.
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions
    }

    /// Begins a call. Its number is of a parity that none of the `open` ones has:
    /// of two calls after one that is not acknowledged yet, the second would have its row at owners
    /// and agents, and take its lock's score away.
    pub fn begin(&mut self, kind: Kind, tag: Tag, open: [Option<Seq>; 2]) -> Header {
        let next = self.seq.next();
        let taken = |open: &Option<Seq>| open.is_some_and(|open| open.parity() == next.parity());
        self.seq = match open.iter().any(taken) {
            true => next.next(),
            false => next,
        };
        if self.asks_switch(kind) {
            let shown = &mut self.shown[self.seq.parity()];
            self.seq = numbers::newer(self.seq, *shown);
            *shown = self.seq;
        }
        let config = &self.config;
        let mut header = Header::request(kind, config.epoch, tag, config.id, self.seq);
        header.incarnation = config.incarnation;
        header
    }

    /// Whether a packet answers a call of this life and epoch.
    pub fn is_own(&self, header: &Header) -> bool {
        let config = &self.config;
        header.epoch == config.epoch
            && header.requester == config.id
            && header.incarnation == config.incarnation
    }

    /// The rack goes on to another epoch, with or without a switch. False when it is there already.
    pub fn enter(&mut self, epoch: u32, switch: bool) -> bool {
        if epoch == self.config.epoch {
            return false;
        }
        (self.config.epoch, self.config.switch) = (epoch, switch);
        self.shown = [numbers::empty(self.seq); 2];
        true
    }

    /// A call has been answered.
    pub fn answered(&mut self, now: u64, sent: &Sent) {
        let since = |then: u64| now.saturating_sub(then);
        let (first, last) = (since(sent.began), since(sent.last));
        self.rtt.answered(first, last, sent.attempts);
    }

    /// When the next copy of a call is due, of a kind that waits for so many round trips.
    pub fn due(&self, sent: &Sent, round_trips: u64) -> u64 {
        let floor = self.config.min_timeout;
        let wait = self.rtt.timeout(round_trips, floor, sent.attempts);
        sent.last.saturating_add(wait)
    }

    /// What to do about a call that has not been answered. Counts what is sent again.
    pub fn retry(&mut self, now: u64, sent: &mut Sent, round_trips: u64) -> Retry {
        if now < self.due(sent, round_trips) {
            return Retry::Wait;
        }
        if now >= sent.began.saturating_add(self.config.give_up) {
            return Retry::GiveUp;
        }
        sent.last = now;
        sent.attempts += 1;
        self.retransmissions += 1;
        Retry::Again
    }

    /// Everything that decides what it will do but the times at which it has sent something.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.config.epoch, self.config.switch, self.seq).hash(into);
        // Which number was shown last matters only when it is far behind.
        for shown in self.shown {
            (self.seq.0.wrapping_sub(shown.0) >> 30).hash(into);
        }
    }

    #[cfg(test)]
    pub(crate) fn skip_to(&mut self, seq: Seq) {
        self.seq = seq;
    }

    #[cfg(test)]
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CallerConfig = CallerConfig {
        id: RequesterId { node: 0, slot: 3 },
        epoch: 1,
        incarnation: 1,
        switch: false,
        min_timeout: 10,
        give_up: 1000,
    };

    #[test]
    fn a_call_never_has_the_parity_of_one_that_is_open() {
        let mut caller = Caller::new(CONFIG);
        let open = caller.begin(Kind::ReadMiss, Tag(0), [None; 2]).seq;
        for _ in 0..5 {
            let next = caller.begin(Kind::ReadMiss, Tag(0), [Some(open), None]).seq;
            assert!(next > open && next.parity() != open.parity());
        }
    }

    #[test]
    fn an_answer_to_another_life_or_epoch_is_not_its_own() {
        let mut caller = Caller::new(CONFIG);
        let header = caller.begin(Kind::ReadMiss, Tag(0), [None; 2]);
        assert!(caller.is_own(&header));
        let incarnation = 2;
        assert!(!caller.is_own(&Header {
            incarnation,
            ..header
        }));
        assert!(caller.enter(2, false) && !caller.enter(2, false));
        assert!(!caller.is_own(&header));
    }

    #[test]
    fn a_call_is_sent_again_until_it_is_given_up() {
        let mut caller = Caller::new(CONFIG);
        let mut sent = Sent::now(5);
        assert_eq!(caller.retry(14, &mut sent, 6), Retry::Wait);
        assert_eq!(caller.retry(15, &mut sent, 6), Retry::Again);
        assert_eq!(caller.retry(34, &mut sent, 6), Retry::Wait);
        assert_eq!(caller.retry(35, &mut sent, 6), Retry::Again);
        assert_eq!(caller.retry(1005, &mut sent, 6), Retry::GiveUp);
        assert_eq!(caller.retransmissions(), 2);
        // Progress begins the time anew, and a poke makes another copy due.
        sent.progress(1005);
        assert_eq!(caller.retry(1006, &mut sent, 6), Retry::Wait);
        sent.poke();
        assert_eq!(caller.retry(1006, &mut sent, 6), Retry::Again);
    }
}
