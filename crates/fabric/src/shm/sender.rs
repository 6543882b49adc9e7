//! Sending: into the receiver's memory, a lane for each pair. A full lane is waited for,
//! but not for ever.

use super::hub::Member;
use super::lane::{Producer, Ring};
use super::layout::{PORTS, own_inbox};
use super::segment::Segment;
use super::service::SERVING;
use crate::Whole;
use crate::awake::{Awake, SPIN};
use crate::{Body, Counters, End, Net, Receiver};
use rackmem_wire::{Dest, Header, MAX_BODY, encode, segment_len};
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
    short: Way,
    /// Once a long packet has been sent.
    long: Option<Way>,
    /// The sender is who receives here: it cannot wait for itself.
    own: bool,
}

/// The sender's end of one of a lane's rings.
struct Way {
    producer: Producer,
    /// Where the receiver was when it was waited for in vain: until it has moved,
    /// nobody waits again.
    stalled: Option<u64>,
}

impl Way {
    fn open(ring: Ring<'_>) -> Way {
        Way {
            producer: Producer::resume(ring),
            stalled: None,
        }
    }
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
        if body.len() <= MAX_BODY {
            return self.packet(&mut lanes, place, header, body);
        }
        let Body::Block(words) = body else {
            return self.unsent();
        };
        let segment = self.segment(body.len());
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
        let long = body.len() > self.member.hub().geometry().body();
        // A second try, because a receiver that has been replaced is found out on the way.
        for _ in 0..2 {
            let Some(lane) = self.lane(lanes, place) else {
                break;
            };
            match lane.send(&bytes, body, long) {
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
        let member = self.member.index();
        let lane = hub.geometry().lane((to, inbox), (member, self.number));
        let lane = lane.ok_or(io::ErrorKind::InvalidInput)?;
        segment.reserve(inbox, lane)?;
        let there = segment.inbox(inbox).ok_or(io::ErrorKind::InvalidInput)?;
        let short = Way::open(there.lane(lane));
        Ok(Lane {
            segment,
            inbox,
            lane,
            short,
            long: None,
            own: (to, inbox) == (member, own_inbox(self.number))
                && (inbox != 0 || self.number == SERVING),
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
    fn send(&mut self, header: &[u8], body: Body<'_>, long: bool) -> Sent {
        if self.segment.is_closed() {
            return Sent::Gone;
        }
        let Some(inbox) = self.segment.inbox(self.inbox) else {
            return Sent::Gone;
        };
        let (ring, way) = match long {
            false => (inbox.lane(self.lane), &mut self.short),
            true => match (inbox.long(self.lane), &mut self.long) {
                (None, _) => return Sent::NoRoom,
                (Some(ring), Some(way)) => (ring, way),
                (Some(ring), none) => {
                    if self.segment.reserve_long(self.inbox, self.lane).is_err() {
                        return Sent::NoRoom;
                    }
                    (ring, none.insert(Way::open(ring)))
                }
            },
        };
        if !way.producer.push(ring, header, body) {
            let head = ring.head.load(Acquire);
            if self.own || way.stalled == Some(head) {
                return Sent::NoRoom;
            }
            // The receiver may be asleep, if its waker died.
            inbox.bell().ring_for(self.lane);
            let producer = &mut way.producer;
            match wait(&self.segment, || producer.push(ring, header, body)) {
                Sent::Yes => {}
                Sent::NoRoom => {
                    way.stalled = Some(ring.head.load(Acquire));
                    return Sent::NoRoom;
                }
                Sent::Gone => return Sent::Gone,
            }
        }
        way.stalled = None;
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
        segment_len(block as u32, MAX_BODY as u32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::{Geometry, Hub};
    use rackmem_wire::{Kind, RequesterId, Seq, Tag};
    use std::os::unix::fs::MetadataExt;

    fn send(sender: &Sender, len: usize) {
        let who = RequesterId { node: 1, slot: 0 };
        let header = Header::request(Kind::Store, 1, Tag(0), who, Seq(1));
        let body = vec![7; len];
        sender.transmit(Dest::Agent(0), &header, Body::Bytes(&body));
    }

    /// What a rack's members have of the system's memory, and what moves no long ranges does not
    /// pay for those who do.
    #[test]
    fn only_a_long_packet_gets_memory_for_long_packets() {
        let hub = Hub::in_process(Geometry::new(4, 4096));
        let (home, member) = (End::Node(0), End::Node(1));
        let (home, member) = (hub.claim(home).unwrap(), hub.claim(member).unwrap());
        let used = || home.segment().file().metadata().unwrap().blocks() * 512;
        let port = super::super::service::SERVING + 2;
        let sender = Sender::new(member, port, Arc::default());
        let before = used();
        send(&sender, 4096);
        let short = used();
        assert!(
            (1..=64 << 10).contains(&(short - before)),
            "{before} {short}"
        );
        (0..3).for_each(|_| send(&sender, MAX_BODY));
        let long = used();
        assert!((1..=128 << 10).contains(&(long - short)), "{short} {long}");
        assert_eq!(sender.counters.unsent.load(Relaxed), 0);
        // A full ring of long packets does not keep short ones back.
        send(&sender, MAX_BODY);
        assert_eq!(sender.counters.unsent.load(Relaxed), 1);
        send(&sender, 8);
        assert_eq!((sender.counters.unsent.load(Relaxed), used()), (1, long));
    }
}
