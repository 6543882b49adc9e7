//! An inbox's receiver: looks into lanes that have something, each in its turn; awake for a while,
//! then asleep.

use super::lane::{Consumer, Found};
use super::segment::{Inbox, Segment};
use crate::awake::Awake;
use crate::body::as_body;
use crate::{Body, Counters, words};
use rackmem_wire::{HEADER_LEN, Header, MAX_BODY, WireError, decode, decode_header};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Looks between two times that the processor is given away: one where there are fewer processors
/// than a packet has hops, because the next of them may need this one.
const LOOKS: [u32; 2] = [1, 32];
/// Hops of a miss, with what it leaves to be done.
const HOPS: usize = 5;

/// A packet that has come.
#[derive(Clone, Copy)]
enum Came {
    /// It has been copied out: so many bytes.
    Copied(usize),
    /// A long one, of so many bytes, lies in the ring of this lane, from this word on.
    Lies { lane: usize, at: usize, len: usize },
}

pub(super) struct Receiving {
    segment: Arc<Segment>,
    number: usize,
    lanes: Lanes,
    /// Lanes that have not been found empty, a bit each.
    pending: Vec<u64>,
    /// The lane after the last one that had something.
    next: usize,
    looks: u32,
}

/// The receiver's ends of an inbox's lanes.
struct Lanes {
    short: Vec<Consumer>,
    /// Of long packets, where there are such.
    long: Vec<Consumer>,
    packet: Box<[u8]>,
    counters: Arc<Counters>,
}

impl Lanes {
    /// Takes a lane's next packet out. A long one stays where it lies until it has been used.
    fn next(&mut self, inbox: Inbox<'_>, lane: usize) -> Option<Came> {
        if let (Some(consumer), Some(ring)) = (self.long.get_mut(lane), inbox.long(lane)) {
            match consumer.find(ring, self.packet.len()) {
                (Found::Packet(len), at) if len % 8 == 0 => {
                    return Some(Came::Lies { lane, at, len });
                }
                (Found::Packet(_), _) => {
                    let found = consumer.pop(ring, &mut self.packet);
                    return self.copied(found);
                }
                (found, _) => drop(self.copied(found)),
            }
        }
        // A bit without a lane: a corrupt or hostile sender.
        let consumer = self.short.get_mut(lane)?;
        let found = consumer.pop(inbox.lane(lane), &mut self.packet);
        self.copied(found)
    }

    fn copied(&self, found: Found) -> Option<Came> {
        match found {
            Found::Packet(len) => return Some(Came::Copied(len)),
            Found::Nothing => {}
            Found::Nonsense => {
                self.counters.malformed.fetch_add(1, Relaxed);
            }
        }
        None
    }
}

/// Gives a packet to `take` where it lies. Its header is copied out before anything is believed.
fn in_place(packet: &[AtomicU64], take: impl FnOnce(&Header, Body<'_>)) -> Result<(), WireError> {
    let (head, body) = packet.split_at(HEADER_LEN / 8);
    let mut bytes = [0; HEADER_LEN];
    words::read(&mut bytes, head);
    let header = decode_header(&bytes, body.len() * 8)?;
    take(&header, Body::Block(body));
    Ok(())
}

impl Receiving {
    /// Receives in an inbox, which must be no one else's. What is in it is dropped.
    pub fn begin(
        segment: Arc<Segment>,
        number: usize,
        counters: Arc<Counters>,
    ) -> Option<Receiving> {
        let inbox = segment.inbox(number)?;
        let lanes = 0..inbox.layout.lanes;
        let short = lanes.clone().map(|lane| inbox.lane(lane));
        let long = lanes.filter_map(|lane| inbox.long(lane));
        let lanes = Lanes {
            short: short.map(Consumer::begin).collect(),
            long: long.map(Consumer::begin).collect(),
            // Whole words of the largest packet.
            packet: vec![0; (HEADER_LEN + MAX_BODY).next_multiple_of(8)].into(),
            counters,
        };
        let words = inbox.bell().bits.len();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Some(Receiving {
            segment,
            number,
            lanes,
            pending: vec![0; words],
            next: 0,
            looks: LOOKS[usize::from(cores >= HOPS)],
        })
    }

    fn inbox(segment: &Segment, number: usize) -> Inbox<'_> {
        segment.inbox(number).expect("`begin` has looked")
    }

    /// Waits for one packet: up to `spin` awake, then asleep, but no longer than `at_most` in all.
    /// Gives it to `take`, and says whether it was one; `None`: none came.
    pub fn receive(
        &mut self,
        (spin, at_most): (Duration, Duration),
        take: impl FnOnce(&Header, Body<'_>),
    ) -> Option<bool> {
        let result = match self.wait(spin, at_most)? {
            Came::Copied(len) => {
                decode(&self.lanes.packet[..len]).map(|(header, body)| take(&header, as_body(body)))
            }
            Came::Lies { lane, at, len } => {
                let ring = Self::inbox(&self.segment, self.number).long(lane)?;
                let packet = ring.data.get(at..at + len / 8)?;
                let result = in_place(packet, take);
                self.lanes.long[lane].pass(ring, len);
                result
            }
        };
        if result.is_err() {
            self.lanes.counters.malformed.fetch_add(1, Relaxed);
        }
        Some(result.is_ok())
    }

    fn wait(&mut self, spin: Duration, at_most: Duration) -> Option<Came> {
        let found = self.look();
        if found.is_some() || at_most.is_zero() {
            return found;
        }
        let mut awake = Awake::begin(spin);
        loop {
            for _ in 0..self.looks {
                if let Some(came) = self.look() {
                    return Some(came);
                }
                std::hint::spin_loop();
            }
            let waited = awake.waited();
            if waited >= at_most {
                return None;
            }
            if !awake.look_again(waited) {
                let inbox = Self::inbox(&self.segment, self.number);
                inbox.bell().sleep(at_most - waited);
            }
        }
    }

    /// Takes the next packet that is there.
    fn look(&mut self) -> Option<Came> {
        let inbox = Self::inbox(&self.segment, self.number);
        let bell = inbox.bell();
        let words = bell.bits.len();
        let (first, shift) = (self.next / 64, self.next % 64);
        // Once around; the first word twice, its lower bits last.
        for step in 0..=words {
            let at = (first + step) % words;
            let mask = match step {
                0 => u64::MAX << shift,
                _ if step == words => !(u64::MAX << shift),
                _ => u64::MAX,
            };
            self.pending[at] |= bell.rung(at);
            while self.pending[at] & mask != 0 {
                let bit = (self.pending[at] & mask).trailing_zeros() as usize;
                let lane = at * 64 + bit;
                if let Some(came) = self.lanes.next(inbox, lane) {
                    self.next = (lane + 1) % self.lanes.short.len();
                    return Some(came);
                }
                self.pending[at] &= !(1 << bit);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::sender::Sender;
    use crate::shm::{Geometry, Hub};
    use crate::{End, Net, Nobody};
    use rackmem_wire::{Dest, Kind, RequesterId, Seq, Tag};

    /// Another process may write anything into the ring of long packets, at any time.
    #[test]
    fn nonsense_among_long_packets_is_counted_and_the_next_ones_come() {
        let hub = Hub::in_process(Geometry::new(2, 4096));
        let (home, member) = (End::Node(0), End::Node(1));
        let (home, member) = (hub.claim(home).unwrap(), hub.claim(member).unwrap());
        let port = crate::shm::service::SERVING + 2;
        let sender = Sender::new(member, port, Arc::default());
        let counters = Arc::<Counters>::default();
        let segment = home.segment().clone();
        let mut receiving = Receiving::begin(segment.clone(), 0, counters.clone()).unwrap();
        let who = RequesterId { node: 1, slot: 0 };
        let send = |number: u64, len: usize| {
            let header = Header::request(Kind::Store, 1, Tag(0), who, Seq(number));
            let body = vec![number as u8; len];
            sender.send(Dest::Agent(0), &header, Body::Bytes(&body), &mut Nobody);
        };
        let mut receive = || {
            let mut got = None;
            let take = |header: &Header, body: Body<'_>| {
                got = Some((header.seq.0, body.len(), matches!(body, Body::Block(_))));
            };
            let came = receiving.receive((Duration::ZERO, Duration::ZERO), take);
            (came, got)
        };
        let lane = hub.geometry().lane((0, 0), (1, port)).unwrap();
        let long = segment.inbox(0).unwrap().long(lane).unwrap();
        let malformed = || counters.malformed.load(Relaxed);

        send(1, 8192);
        assert_eq!(receive(), (Some(true), Some((1, 8192, true))));
        // A length that cannot be, and a packet that is none.
        send(2, 8192);
        send(3, 8);
        let second = 1 + (HEADER_LEN + 8192) / 8;
        long.data[second].store(u64::MAX - 1, Relaxed);
        assert_eq!(receive(), (Some(true), Some((3, 8, false))));
        assert_eq!((receive(), malformed()), ((None, None), 1));
        send(4, 8192);
        long.data[2 * second + 1].store(0, Relaxed);
        assert_eq!((receive(), malformed()), ((Some(false), None), 2));
        // What is no whole number of words is copied out.
        send(5, 8191);
        assert_eq!(receive(), (Some(true), Some((5, 8191, false))));
        send(6, MAX_BODY);
        assert_eq!(receive(), (Some(true), Some((6, MAX_BODY, true))));
        assert_eq!((receive(), malformed()), ((None, None), 2));
    }
}
