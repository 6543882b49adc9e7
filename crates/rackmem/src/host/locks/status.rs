//! Who holds locks and who waits, as one node knows it: for tools,
//! and for people whose program stands still.

use super::cell::{Cell, State};
use super::table::Locks;
use rackmem_fabric::{Body, Net, Receiver};
use rackmem_proto::gcp::Right;
use rackmem_proto::wire::{Copyset, Dest, Flags, Header, Kind};
use std::sync::atomic::Ordering::Relaxed;

/// A lock, as one node knows it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Held, LockStatus, Mutex};
///
/// let rack = Rack::local(1)?;
/// let lock = Mutex::create(&rack.node(0), 7u64)?;
/// let held = lock.lock()?;
/// let inside: Vec<LockStatus> = rack.node(0).locks(false);
/// assert_eq!((inside[0].addr, inside[0].right), (lock.addr(), Held::ToWrite));
/// assert!(inside[0].writer);
/// drop(held);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockStatus {
    /// Its address.
    pub addr: u64,
    /// Bytes that it protects.
    pub bytes: u32,
    /// What threads of the node may do without asking anybody.
    pub right: Held,
    /// Threads of the node that are inside to read.
    pub readers: u16,
    /// Whether one is inside to write.
    pub writer: bool,
    /// Threads of the node that wait.
    pub waiting: u16,
    /// Nodes that are known here to wait: the node with the right to write keeps the queue.
    pub queue: Copyset,
    /// The fencing token of whoever is inside.
    pub token: u64,
}

/// What a node has of a lock.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Held, RwLock};
///
/// let rack = Rack::local(2)?;
/// let made = RwLock::create(&rack.node(0), 7u64)?;
/// let same = RwLock::<u64>::attach(&rack.node(1), made.addr())?;
/// drop(same.read()?);
/// let there = rack.node(1).locks(true);
/// assert_eq!(there[0].right, Held::ToRead);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// The right to read.
    ToRead,
    /// The right to write, and the queue.
    ToWrite,
}

impl LockStatus {
    /// Bytes of one in a packet.
    pub(crate) const LEN: usize = 32;

    /// Whether somebody is inside, or waits.
    pub fn busy(&self) -> bool {
        self.readers > 0 || self.writer || self.waiting > 0 || !self.queue.is_empty()
    }

    fn of(cell: &Cell, state: &State) -> Self {
        let waiting = state.waiting();
        let mut status = LockStatus {
            addr: cell.tag.0,
            bytes: cell.told_len.load(Relaxed),
            right: Held::Nothing,
            readers: 0,
            writer: false,
            waiting: waiting.threads.try_into().unwrap_or(u16::MAX),
            queue: Copyset::EMPTY,
            token: 0,
        };
        if let Some(lock) = state.lock.lock() {
            (status.readers, status.writer) = lock.inside();
            status.token = lock.token();
            status.right = match lock.right() {
                Right::None => Held::Nothing,
                Right::Shared => Held::ToRead,
                Right::Modified => Held::ToWrite,
            };
            let nodes = lock.queue().iter().map(|waiter| waiter.node);
            status.queue = nodes.fold(Copyset::EMPTY, Copyset::with);
        }
        status
    }

    fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.addr.to_be_bytes());
        out[8..12].copy_from_slice(&self.bytes.to_be_bytes());
        out[12] = self.right as u8;
        out[13] = self.writer.into();
        out[14..16].copy_from_slice(&self.readers.to_be_bytes());
        out[16..18].copy_from_slice(&self.waiting.to_be_bytes());
        out[20..24].copy_from_slice(&self.queue.0.to_be_bytes());
        out[24..].copy_from_slice(&self.token.to_be_bytes());
        out
    }

    /// From a packet; `None` when it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let [u64_at, u32_at, u16_at] = [8, 4, 2].map(|len| {
            move |at: usize| {
                let bytes = &bytes[at..at + len];
                bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
            }
        });
        Some(LockStatus {
            addr: u64_at(0),
            bytes: u32_at(8) as u32,
            right: match bytes[12] {
                0 => Held::Nothing,
                1 => Held::ToRead,
                2 => Held::ToWrite,
                _ => return None,
            },
            writer: bytes[13] != 0,
            readers: u16_at(14) as u16,
            waiting: u16_at(16) as u16,
            queue: Copyset(u32_at(20) as u32),
            token: u64_at(24),
        })
    }
}

impl Locks {
    /// Locks behind this address, in order: all, or those that somebody uses.
    pub fn statuses(&self, after: u64, all: bool) -> Vec<LockStatus> {
        let mut cells = self.all();
        cells.retain(|cell| cell.tag.0 > after);
        let mut statuses: Vec<_> = cells
            .iter()
            .map(|cell| self.look(cell, |state| LockStatus::of(cell, state)))
            .filter(|status| all || status.busy())
            .collect();
        statuses.sort_unstable_by_key(|status| status.addr);
        statuses
    }

    /// A tool asks. One packet answers with as many as it has room for, in order;
    /// fewer are the last.
    pub fn inspect(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        let mut statuses = self.statuses(header.tag.0, header.offset != 0);
        let most = self.room / LockStatus::LEN;
        let mut answer = header.answer(Kind::Inspected, self.me);
        if statuses.len() > most {
            statuses.truncate(most);
            // More follow.
            answer.flags = Flags::DATA;
        }
        let bytes: Vec<u8> = statuses.iter().flat_map(LockStatus::encode).collect();
        let body = if bytes.is_empty() {
            Body::None
        } else {
            Body::Bytes(&bytes)
        };
        net.send(Dest::Requester(header.requester), &answer, body, reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_a_packet_says() {
        let status = LockStatus {
            addr: 0x0123_4567_89ab_cdef,
            bytes: 4096,
            right: Held::ToWrite,
            readers: 3,
            writer: true,
            waiting: 500,
            queue: Copyset(0x8000_0005),
            token: 99,
        };
        let bytes = status.encode();
        assert_eq!(LockStatus::decode(&bytes), Some(status));
        assert_eq!(LockStatus::decode(&bytes[1..]), None);
        let mut strange = bytes;
        strange[12] = 3;
        assert_eq!(LockStatus::decode(&strange), None);
    }
}
