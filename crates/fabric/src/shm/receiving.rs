//! An inbox's receiver: looks into lanes that have something, each in its turn; awake for a while,
//! then asleep.

use super::lane::{Consumer, Found};
use super::segment::{Inbox, Segment};
use crate::Counters;
use crate::awake::Awake;
use rackmem_wire::{HEADER_LEN, MAX_BODY};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Looks between two times that the processor is given away: one where there are fewer processors
/// than a packet has hops, because the next of them may need this one.
const LOOKS: [u32; 2] = [1, 32];
/// Hops of a miss, with what it leaves to be done.
const HOPS: usize = 5;

pub(super) struct Receiving {
    segment: Arc<Segment>,
    number: usize,
    consumers: Vec<Consumer>,
    /// Lanes that have not been found empty, a bit each.
    pending: Vec<u64>,
    /// The lane after the last one that had something.
    next: usize,
    packet: Box<[u8]>,
    looks: u32,
    counters: Arc<Counters>,
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
        let consumers = lanes.map(|lane| Consumer::begin(inbox.lane(lane)));
        let (consumers, words) = (consumers.collect(), inbox.bell().bits.len());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Some(Receiving {
            segment,
            number,
            consumers,
            pending: vec![0; words],
            next: 0,
            // Whole words of the largest packet.
            packet: vec![0; (HEADER_LEN + MAX_BODY).next_multiple_of(8)].into(),
            looks: LOOKS[usize::from(cores >= HOPS)],
            counters,
        })
    }

    fn inbox(segment: &Segment, number: usize) -> Inbox<'_> {
        segment.inbox(number).expect("`begin` has looked")
    }

    /// Waits for one packet: up to `spin` awake, then asleep, but no longer than `at_most` in all.
    pub fn wait(&mut self, spin: Duration, at_most: Duration) -> Option<&[u8]> {
        let len = self.wait_for_length(spin, at_most)?;
        self.packet.get(..len)
    }

    fn wait_for_length(&mut self, spin: Duration, at_most: Duration) -> Option<usize> {
        let found = self.look();
        if found.is_some() || at_most.is_zero() {
            return found;
        }
        let mut awake = Awake::begin(spin);
        loop {
            for _ in 0..self.looks {
                if let Some(len) = self.look() {
                    return Some(len);
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
    fn look(&mut self) -> Option<usize> {
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
                let found = match self.consumers.get_mut(lane) {
                    Some(consumer) => consumer.pop(inbox.lane(lane), &mut self.packet),
                    // A bit without a lane: a corrupt or hostile sender.
                    None => Found::Nothing,
                };
                match found {
                    Found::Packet(len) => {
                        self.next = (lane + 1) % self.consumers.len();
                        return Some(len);
                    }
                    Found::Nothing => {}
                    Found::Nonsense => {
                        self.counters.malformed.fetch_add(1, Relaxed);
                    }
                }
                self.pending[at] &= !(1 << bit);
            }
        }
        None
    }
}
