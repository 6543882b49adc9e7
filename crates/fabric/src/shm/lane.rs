//! A lane: a ring of packets with one sender and one receiver, in memory that both have mapped.
//!
//! A packet is there when the sender moves the tail past it, in one store. A sender that dies
//! before has sent nothing, and what it had begun to write is overwritten by its successor. Neither
//! end believes the other's figures: each keeps its own in its own memory, and a figure of the
//! other's that cannot be true empties the lane.

use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::{Body, words};
use rackmem_wire::HEADER_LEN;

/// In place of a length: the next packet is at the start of the ring,
/// because it did not fit before its end.
const ELSEWHERE: u64 = u64::MAX;

/// The shared part: positions are words written or read since the beginning, so they only grow.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    pub head: &'a AtomicU64,
    pub tail: &'a AtomicU64,
    /// A power of two of words, at least two of the largest records.
    pub data: &'a [AtomicU64],
}

impl Ring<'_> {
    fn capacity(&self) -> u64 {
        self.data.len() as u64
    }

    fn at(&self, position: u64) -> usize {
        (position & (self.capacity() - 1)) as usize
    }
}

/// The sender's end.
#[derive(Debug)]
pub(super) struct Producer {
    tail: u64,
    /// What the receiver was known to have read.
    head: u64,
}

impl Producer {
    /// Goes on where the last sender ended.
    pub fn resume(ring: Ring<'_>) -> Producer {
        let head = ring.head.load(Acquire);
        let mut tail = ring.tail.load(Relaxed);
        if tail.wrapping_sub(head) > ring.capacity() {
            tail = head;
            ring.tail.store(tail, Release);
        }
        Producer { tail, head }
    }

    /// Puts a packet in, whose header is whole words. False when there is no room now; the largest
    /// packet fits when the lane is empty.
    pub fn push(&mut self, ring: Ring<'_>, header: &[u8], body: Body<'_>) -> bool {
        let bytes = header.len() + body.len();
        let need = 1 + bytes.div_ceil(8);
        let mut at = ring.at(self.tail);
        let to_end = ring.data.len() - at;
        let skip = if need > to_end { to_end } else { 0 };
        if !self.has_room(ring, (skip + need) as u64) {
            return false;
        }
        if skip > 0 {
            ring.data[at].store(ELSEWHERE, Relaxed);
            at = 0;
        }
        let record = &ring.data[at..at + need];
        record[0].store(bytes as u64, Relaxed);
        let (head, rest) = record[1..].split_at(header.len() / 8);
        words::write(head, header);
        match body {
            Body::None => {}
            Body::Block(block) => words::copy(rest, block),
            Body::Bytes(bytes) => write(rest, bytes),
        }
        self.tail = self.tail.wrapping_add((skip + need) as u64);
        ring.tail.store(self.tail, Release);
        true
    }

    fn has_room(&mut self, ring: Ring<'_>, need: u64) -> bool {
        let fits = |head: u64| {
            let used = self.tail.wrapping_sub(head);
            used <= ring.capacity() && ring.capacity() - used >= need
        };
        if !fits(self.head) {
            self.head = ring.head.load(Acquire);
        }
        fits(self.head)
    }
}

/// Bytes of any number into words; the last word is filled with zeros.
fn write(to: &[AtomicU64], bytes: &[u8]) {
    words::write(to, bytes);
    let rest = bytes.chunks_exact(8).remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        to[bytes.len() / 8].store(u64::from_ne_bytes(last), Relaxed);
    }
}

/// What a look at a lane finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Nothing,
    /// A packet of so many bytes.
    Packet(usize),
    /// Figures that no sender of ours writes. The lane has been emptied.
    Nonsense,
}

/// The receiver's end.
#[derive(Clone, Debug)]
pub(super) struct Consumer {
    head: u64,
}

impl Consumer {
    /// Begins after whatever is there.
    pub fn begin(ring: Ring<'_>) -> Consumer {
        let consumer = Consumer {
            head: ring.tail.load(Acquire),
        };
        ring.head.store(consumer.head, Release);
        consumer
    }

    /// Takes a packet out, into `packet`, which has room for whole words of the largest.
    pub fn pop(&mut self, ring: Ring<'_>, packet: &mut [u8]) -> Found {
        let (found, at) = self.find(ring, packet.len());
        if let Found::Packet(len) = found {
            let words = len.div_ceil(8);
            words::read(&mut packet[..words * 8], &ring.data[at..at + words]);
            self.pass(ring, len);
        }
        found
    }

    /// Finds the next packet, of at most `room` bytes, and the first of its words. It stays where
    /// it is until [`Consumer::pass`]; its sender may be wrong about it, and change it meanwhile.
    pub fn find(&mut self, ring: Ring<'_>, room: usize) -> (Found, usize) {
        let tail = ring.tail.load(Acquire);
        let found = self.look(ring, tail, room);
        if found.0 == Found::Nonsense {
            self.head = tail;
            ring.head.store(self.head, Release);
        }
        found
    }

    /// The packet of so many bytes that was found has been used: its sender may have the room.
    pub fn pass(&mut self, ring: Ring<'_>, len: usize) {
        self.head = self.head.wrapping_add(1 + len.div_ceil(8) as u64);
        ring.head.store(self.head, Release);
    }

    fn look(&mut self, ring: Ring<'_>, tail: u64, room: usize) -> (Found, usize) {
        const NONSENSE: (Found, usize) = (Found::Nonsense, 0);
        let mut there = tail.wrapping_sub(self.head);
        if there == 0 {
            return (Found::Nothing, 0);
        }
        let mut at = ring.at(self.head);
        if there > ring.capacity() {
            return NONSENSE;
        }
        let mut len = ring.data[at].load(Relaxed);
        if len == ELSEWHERE {
            let skip = (ring.data.len() - at) as u64;
            if skip >= there {
                return NONSENSE;
            }
            self.head = self.head.wrapping_add(skip);
            there -= skip;
            at = ring.at(self.head);
            len = ring.data[at].load(Relaxed);
        }
        let room = room as u64 / 8 * 8;
        if len < HEADER_LEN as u64 || len > room {
            return NONSENSE;
        }
        let end = at + 1 + (len as usize).div_ceil(8);
        if end > ring.data.len() || (end - at) as u64 > there {
            return NONSENSE;
        }
        (Found::Packet(len as usize), at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory {
        ends: [AtomicU64; 2],
        data: Vec<AtomicU64>,
    }

    impl Memory {
        fn new(start: u64) -> Memory {
            Memory {
                ends: [AtomicU64::new(start), AtomicU64::new(start)],
                data: (0..64).map(|_| AtomicU64::new(0)).collect(),
            }
        }

        fn ring(&self) -> Ring<'_> {
            Ring {
                head: &self.ends[0],
                tail: &self.ends[1],
                data: &self.data,
            }
        }
    }

    fn header(n: u64) -> [u8; HEADER_LEN] {
        [n as u8; HEADER_LEN]
    }

    #[test]
    fn packets_of_all_lengths_come_out_as_they_went_in() {
        let memory = Memory::new(u64::MAX - 100);
        let ring = memory.ring();
        let (mut producer, mut consumer) = (Producer::resume(ring), Consumer::begin(ring));
        let (mut sent, mut taken) = (0u64, 0u64);
        let mut packet = [0; 256];
        let body = |n: u64| vec![n as u8 ^ 0xa5; (n * 7 % 130) as usize];
        while taken < 2000 {
            // Fill up, then take a few: the two ends meet everywhere in the ring.
            while producer.push(ring, &header(sent), Body::Bytes(&body(sent))) {
                sent += 1;
            }
            for _ in 0..1 + taken % 3 {
                let expected = [&header(taken)[..], &body(taken)].concat();
                if taken == sent {
                    assert_eq!(consumer.pop(ring, &mut packet), Found::Nothing);
                    break;
                }
                assert_eq!(
                    consumer.pop(ring, &mut packet),
                    Found::Packet(expected.len())
                );
                assert_eq!(packet[..expected.len()], expected);
                taken += 1;
            }
        }
    }

    #[test]
    fn the_largest_packet_fits_an_empty_lane_wherever_it_stands() {
        for start in 0..64 {
            let memory = Memory::new(start);
            let ring = memory.ring();
            let mut producer = Producer::resume(ring);
            let body = [7; 31 * 8 - HEADER_LEN];
            assert!(producer.push(ring, &header(1), Body::Bytes(&body)));
        }
    }

    #[test]
    fn what_a_dead_sender_has_half_written_was_never_sent() {
        let memory = Memory::new(0);
        let ring = memory.ring();
        let mut consumer = Consumer::begin(ring);
        let mut first = Producer::resume(ring);
        assert!(first.push(ring, &header(1), Body::Bytes(&[1; 40])));
        let whole = ring.tail.load(Relaxed);
        assert!(first.push(ring, &header(2), Body::Bytes(&[2; 40])));
        // As if it had died just before it moved the tail.
        ring.tail.store(whole, Relaxed);
        let mut next = Producer::resume(ring);
        assert!(next.push(ring, &header(3), Body::Bytes(&[3; 8])));
        let mut packet = [0; 256];
        assert_eq!(consumer.pop(ring, &mut packet), Found::Packet(88));
        assert_eq!(packet[0], 1);
        assert_eq!(consumer.pop(ring, &mut packet), Found::Packet(56));
        assert_eq!((packet[0], packet[48]), (3, 3));
        assert_eq!(consumer.pop(ring, &mut packet), Found::Nothing);
    }

    #[test]
    fn nonsense_empties_the_lane_and_the_next_packet_comes() {
        let lies: [&dyn Fn(Ring<'_>); 7] = [
            &|ring| ring.data[0].store(ELSEWHERE, Relaxed),
            &|ring| ring.data[0].store(47, Relaxed),
            &|ring| ring.data[0].store(1 << 40, Relaxed),
            &|ring| ring.data[0].store(u64::MAX - 1, Relaxed),
            &|ring| ring.data[0].store(200, Relaxed),
            &|ring| ring.tail.store(1000, Relaxed),
            &|ring| ring.tail.store(u64::MAX, Relaxed),
        ];
        for lie in lies {
            let memory = Memory::new(0);
            let ring = memory.ring();
            let mut consumer = Consumer::begin(ring);
            assert!(Producer::resume(ring).push(ring, &header(1), Body::None));
            lie(ring);
            let mut packet = [0; 256];
            assert_eq!(consumer.pop(ring, &mut packet), Found::Nonsense);
            assert_eq!(consumer.pop(ring, &mut packet), Found::Nothing);
            assert!(Producer::resume(ring).push(ring, &header(9), Body::None));
            assert_eq!(consumer.pop(ring, &mut packet), Found::Packet(48));
            assert_eq!(packet[0], 9);
        }
    }

    #[test]
    fn no_pattern_of_words_gets_a_receiver_out_of_its_ring() {
        let memory = Memory::new(0);
        let ring = memory.ring();
        let mut consumer = Consumer::begin(ring);
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut packet = [0; 256];
        let mut packets = 0;
        for _ in 0..200_000 {
            let word = match draw() % 4 {
                0 => draw(),
                1 => ELSEWHERE,
                _ => draw() % 300,
            };
            ring.data[(draw() % 64) as usize].store(word, Relaxed);
            let head = ring.head.load(Relaxed);
            let ahead = if draw() % 8 == 0 { draw() } else { draw() % 65 };
            ring.tail.store(head.wrapping_add(ahead), Relaxed);
            if let Found::Packet(len) = consumer.pop(ring, &mut packet) {
                assert!((HEADER_LEN..=packet.len()).contains(&len));
                packets += 1;
            }
        }
        assert!(packets > 1000, "{packets}");
    }

    #[test]
    fn a_sender_believes_no_head_that_cannot_be() {
        let memory = Memory::new(0);
        let ring = memory.ring();
        let mut producer = Producer::resume(ring);
        while producer.push(ring, &header(1), Body::None) {}
        for lie in [5000, u64::MAX] {
            ring.head.store(lie, Relaxed);
            assert!(!producer.push(ring, &header(1), Body::None));
        }
    }
}
