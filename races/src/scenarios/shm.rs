//! A sender, a receiver that sleeps, and the lane between them.

use super::bell::Bell;
use super::lane::{Consumer, Found, Producer, Ring};
use crate::sync::AtomicU64;
use crate::{Body, Scenario};
use loom::thread;
use rackmem_wire::HEADER_LEN;
use std::sync::Arc;
use std::time::Duration;

pub const ALL: &[Scenario] = &[
    ("a packet wakes its receiver", one_packet),
    ("two senders wake one receiver", two_senders),
    ("a lane is used again", a_lane_that_wraps),
];

/// Words of a lane: three records of a header.
const LANE: usize = 16;

struct Memory {
    word: AtomicU64,
    bits: [AtomicU64; 1],
    ends: [[AtomicU64; 2]; 2],
    data: [Vec<AtomicU64>; 2],
}

impl Memory {
    fn new() -> Arc<Memory> {
        let zero = || AtomicU64::new(0);
        let lane = || (0..LANE).map(|_| zero()).collect();
        Arc::new(Memory {
            word: zero(),
            bits: [zero()],
            ends: [[zero(), zero()], [zero(), zero()]],
            data: [lane(), lane()],
        })
    }

    fn bell(&self) -> Bell<'_> {
        Bell {
            word: &self.word,
            bits: &self.bits,
        }
    }

    fn ring(&self, lane: usize) -> Ring<'_> {
        Ring {
            head: &self.ends[lane][0],
            tail: &self.ends[lane][1],
            data: &self.data[lane],
        }
    }
}

fn send(memory: &Memory, lane: usize, mark: u8) {
    let mut producer = Producer::resume(memory.ring(lane));
    assert!(producer.push(memory.ring(lane), &[mark; HEADER_LEN], Body::None));
    memory.bell().ring_for(lane);
}

/// The receiver's ends: begun before anybody sends, since what is there then is dropped.
fn begin(memory: &Memory) -> [Consumer; 2] {
    [0, 1].map(|lane| Consumer::begin(memory.ring(lane)))
}

/// Waits until so many packets have come, as `Receiving` does, and says which.
fn receive(memory: &Memory, consumers: &mut [Consumer; 2], wanted: usize) -> Vec<u8> {
    let mut packet = [0; HEADER_LEN];
    let mut marks = Vec::new();
    while marks.len() < wanted {
        let rung = memory.bell().rung(0);
        if rung == 0 {
            memory.bell().sleep(Duration::MAX);
        }
        for lane in (0..2).filter(|lane| rung >> lane & 1 != 0) {
            loop {
                let found = consumers[lane].pop(memory.ring(lane), &mut packet);
                if found == Found::Nothing {
                    break;
                }
                assert_eq!(
                    found,
                    Found::Packet(HEADER_LEN),
                    "a packet that was not sent"
                );
                assert_eq!(packet, [packet[0]; HEADER_LEN], "half a packet");
                marks.push(packet[0]);
            }
        }
    }
    marks
}

fn one_packet() {
    let memory = Memory::new();
    let mut consumers = begin(&memory);
    let there = memory.clone();
    let sender = thread::spawn(move || send(&there, 0, 7));
    assert_eq!(receive(&memory, &mut consumers, 1), [7]);
    sender.join().expect("it sends");
}

fn two_senders() {
    let memory = Memory::new();
    let mut consumers = begin(&memory);
    let senders = [0, 1].map(|lane| {
        let there = memory.clone();
        thread::spawn(move || send(&there, lane, 7 + lane as u8))
    });
    let mut marks = receive(&memory, &mut consumers, 2);
    marks.sort_unstable();
    assert_eq!(marks, [7, 8]);
    for sender in senders {
        sender.join().expect("it sends");
    }
}

/// The lane has room for two packets: the third takes the place of the first.
fn a_lane_that_wraps() {
    let memory = Memory::new();
    let mut consumers = begin(&memory);
    let there = memory.clone();
    let sender = thread::spawn(move || {
        let ring = there.ring(0);
        let mut producer = Producer::resume(ring);
        for mark in 1..=3 {
            while !producer.push(ring, &[mark; HEADER_LEN], Body::None) {
                thread::yield_now();
            }
            there.bell().ring_for(0);
        }
    });
    assert_eq!(receive(&memory, &mut consumers, 3), [1, 2, 3]);
    sender.join().expect("it sends");
}
