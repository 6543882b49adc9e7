//! A net that keeps what it is given, and packets to give it.
#![allow(dead_code, reason = "each test file uses its part")]

use rackmem_fabric::{Body, Net, Port, Receiver};
use rackmem_wire::{Dest, Header, Kind, RequesterId, Seq, Tag};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A packet as a net got it.
#[derive(Clone, PartialEq, Debug)]
pub struct Got {
    pub to: Dest,
    pub header: Header,
    pub body: Vec<u8>,
}

/// Keeps packets, and cuts blocks into segments of 1,024 bytes.
#[derive(Default)]
pub struct Keeper(Mutex<Vec<Got>>);

impl Keeper {
    pub fn got(&self) -> Vec<Got> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until there are so many packets.
    pub fn wait_for(&self, count: usize) -> Vec<Got> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.got().len() < count {
            assert!(Instant::now() < deadline, "{} of {count}", self.got().len());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.got()
    }
}

impl Net for Keeper {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        let body = match body {
            Body::Bytes(bytes) => bytes.to_vec(),
            Body::None => Vec::new(),
            Body::Block(_) => panic!("a block that was not cut"),
        };
        let header = *header;
        self.0.lock().unwrap().push(Got { to, header, body });
    }

    fn segment(&self, block: usize) -> usize {
        block.min(1024)
    }
}

/// A port onto such a net.
pub struct KeeperPort(pub Arc<Keeper>);

impl Net for KeeperPort {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.0.send(to, header, body, reply);
    }

    fn segment(&self, block: usize) -> usize {
        self.0.segment(block)
    }
}

impl Port for KeeperPort {
    fn wait(&mut self, _: Duration, _: &mut dyn Receiver) -> bool {
        false
    }

    fn reply_port(&self) -> u16 {
        0
    }

    fn lossy(&self) -> bool {
        true
    }
}

/// A requester's packet, with a number to know it by.
pub fn header(number: u64) -> Header {
    let requester = RequesterId { node: 1, slot: 3 };
    Header::request(Kind::ReadMiss, 1, Tag(1 << 48), requester, Seq(number))
}
