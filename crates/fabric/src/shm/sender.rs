//! Sending: into the receiver's memory, a lane for each pair. A full lane is waited for,
//! but not for ever.

use super::hub::Member;
use super::lane::Producer;
use super::layout::PORTS;
use super::segment::Segment;
use super::service::SERVING;
use crate::Whole;
use crate::awake::{Awake, SPIN};
use crate::{Body, Counters, End, Net, Receiver};
use rackmem_wire::{Dest, Header, encode, segment_len};
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How long a sender waits for room. A receiver that has read nothing for so long is dead, stopped,
/// or waits for room itself, perhaps ours: what does not fit then is lost,
/// which the protocols mend.
const ROOM_PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks of a sender that has waited for long.
const NAP: Duration = Duration::from_micros(100);
/// Naps between two looks whether the receiver lives.
const NAPS: u32 = 10;

/// A lane to one receiver.
struct Lane {
    segment: Arc<Segment>,
    inbox: usize,
    lane: usize,
    producer: Producer,
    /// Where the receiver was when it was waited for in vain: until it has moved,
    /// nobody waits again.
    stalled: Option<u64>,
    /// The sender is who receives here: it cannot wait for itself.
    own: bool,
}

#[derive(Default)]
struct Lanes {
    /// By member and inbox.
    open: Vec<Option<Box<Lane>>>,
    /// The member's place is vacant or has a new holder: packets for its lanes are dropped.
    over: bool,
}

/// One of a member's senders. Threads that share it take turns.
pub(super) struct Sender {
    member: Arc<Member>,
    number: usize,
    lanes: Arc<Silence>,
    counters: Arc<Counters>,
}

/// What silences a sender when its member gives its place up.
#[derive(Default)]
pub(super) struct Silence(Mutex<Lanes>);

impl Silence {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        // A packet has been sent or not: a panic elsewhere does not spoil a lane.
        self.0.lock().whole()
    }

    /// Returns when nothing is being sent any more.
    pub fn keep(&self) {
        let mut lanes = self.lock();
        lanes.over = true;
        lanes.open.clear();
    }
}

impl Sender {
    /// The member's sender of this number; the number must be unused.
    pub fn new(member: Arc<Member>, number: usize, counters: Arc<Counters>) -> Sender {
        let lanes = Arc::new(Silence::default());
        member.silence_at_the_end(&lanes);
        Sender {
            member,
            number,
            lanes,
            counters,
        }
    }

    fn place(&self, to: Dest, header: &Header) -> Option<(usize, usize)> {
        let hub = self.member.hub();
        match to {
            Dest::Switch => Some((hub.index(End::Switch)?, 0)),
            Dest::Agent(node) => Some((hub.index(End::Node(node))?, 0)),
            Dest::Requester(id) => {
                let inbox = usize::from(header.reply_port);
                let inbox = Some(inbox).filter(|inbox| (1..=PORTS).contains(inbox))?;
                Some((hub.index(End::Node(id.node))?, inbox))
            }
            Dest::Agents { .. } | Dest::Home(_) => None,
        }
    }

    fn transmit(&self, to: Dest, header: &Header, body: Body<'_>) {
        let Some(place) = self.place(to, header) else {
            return self.unsent();
        };
        let mut lanes = self.lanes.lock();
        let room = self.member.hub().geometry().body();
        if body.len() <= room {
            return self.packet(&mut lanes, place, header, body);
        }
        let Body::Block(words) = body else {
            return self.unsent();
        };
        let segment = segment_len(body.len() as u32, room as u32) as usize;
        for (number, part) in words.chunks((segment / 8).max(1)).enumerate() {
            let header = Header {
                offset: (number * segment) as u32,
                ..*header
            };
            self.packet(&mut lanes, place, &header, Body::Block(part));
        }
    }

    fn packet(&self, lanes: &mut Lanes, place: (usize, usize), header: &Header, body: Body<'_>) {
        let bytes = encode(header, body.len());
        // A second try, because a receiver that has been replaced is found out on the way.
        for _ in 0..2 {
            let Some(lane) = self.lane(lanes, place) else {
                break;
            };
            match lane.send(&bytes, body) {
                Sent::Yes => return,
                Sent::NoRoom => break,
                Sent::Gone => lanes.open[slot(place)] = None,
            }
        }
        self.unsent();
    }

    fn lane<'a>(&self, lanes: &'a mut Lanes, place: (usize, usize)) -> Option<&'a mut Lane> {
        if lanes.over {
            return None;
        }
        let slot = slot(place);
        if lanes.open.len() <= slot {
            lanes.open.resize_with(slot + 1, || None);
        }
        let lane = &mut lanes.open[slot];
        if lane.is_none() {
            *lane = Some(Box::new(self.open(place).ok()?));
        }
        lane.as_deref_mut()
    }

    fn open(&self, (to, inbox): (usize, usize)) -> io::Result<Lane> {
        let hub = self.member.hub();
        let segment = hub.find(to)?;
        let lane = hub.geometry().lane(inbox, self.member.index(), self.number);
        let lane = lane.ok_or(io::ErrorKind::InvalidInput)?;
        segment.reserve(inbox, lane)?;
        let there = segment.inbox(inbox).ok_or(io::ErrorKind::InvalidInput)?;
        let producer = Producer::resume(there.lane(lane));
        Ok(Lane {
            segment,
            inbox,
            lane,
            producer,
            stalled: None,
            own: self.number == SERVING && (to, inbox) == (self.member.index(), 0),
        })
    }

    fn unsent(&self) {
        self.counters.unsent.fetch_add(1, Relaxed);
    }
}

/// Where a sender keeps its lane to a member's inbox.
fn slot((member, inbox): (usize, usize)) -> usize {
    member * (PORTS + 1) + inbox
}

enum Sent {
    Yes,
    NoRoom,
    /// The receiver is gone.
    Gone,
}

impl Lane {
    fn send(&mut self, header: &[u8], body: Body<'_>) -> Sent {
        if self.segment.is_closed() {
            return Sent::Gone;
        }
        let Some(inbox) = self.segment.inbox(self.inbox) else {
            return Sent::Gone;
        };
        let ring = inbox.lane(self.lane);
        if !self.producer.push(ring, header, body) {
            let head = ring.head.load(Acquire);
            if self.own || self.stalled == Some(head) {
                return Sent::NoRoom;
            }
            // The receiver may be asleep, if its waker died.
            inbox.bell().ring_for(self.lane);
            let producer = &mut self.producer;
            match wait(&self.segment, || producer.push(ring, header, body)) {
                Sent::Yes => {}
                Sent::NoRoom => {
                    self.stalled = Some(ring.head.load(Acquire));
                    return Sent::NoRoom;
                }
                Sent::Gone => return Sent::Gone,
            }
        }
        self.stalled = None;
        inbox.bell().ring_for(self.lane);
        Sent::Yes
    }
}

fn wait(segment: &Segment, mut push: impl FnMut() -> bool) -> Sent {
    let mut awake = Awake::begin(SPIN);
    let mut naps = 0;
    loop {
        if push() {
            return Sent::Yes;
        }
        let waited = awake.waited();
        if awake.look_again(waited) {
            continue;
        }
        if naps % NAPS == 0 && !segment.is_alive() {
            // The memory is never used again: tell all processes that still map it.
            segment.close();
        }
        if segment.is_closed() {
            return Sent::Gone;
        }
        if waited >= ROOM_PATIENCE {
            return Sent::NoRoom;
        }
        naps += 1;
        std::thread::sleep(NAP);
    }
}

impl Net for Sender {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        self.transmit(to, header, body);
    }

    fn segment(&self, block: usize) -> usize {
        let room = self.member.hub().geometry().body();
        segment_len(block as u32, room as u32) as usize
    }
}
