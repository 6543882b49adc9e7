//! Events of one thread that are under way at a time, each with a requester and a reserved entry.

use super::access::Access;
use super::bulk::Lane;
use crate::bytes::mapped::Stop;
use crate::bytes::node_cache::LockedEntry;
use crate::bytes::pending::Reservation;
use crate::ports::requester::Bytes;
use rackmem_proto::engine::{self, Do, Purpose, Then};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// See the module. It must come to its end: the entry may be locked in the whole rack.
pub(super) struct Flight<'a> {
    access: &'a Access,
    pub lane: Lane<'a>,
    event: engine::Access,
    /// Its entry, which no other event of this node touches meanwhile.
    pub reserved: Reservation<'a>,
    /// The words of the entry, and what of them is sent or filled.
    block: &'a [AtomicU64],
    bytes: Bytes<'a>,
    locked: Option<LockedEntry<'a>>,
    /// Which of those that its thread has wanted.
    pub nth: usize,
}

impl<'a> Flight<'a> {
    /// `None`: the rack goes on without this process.
    pub fn begin(
        access: &'a Access,
        mut lane: Lane<'a>,
        (purpose, reserved): (Purpose, Reservation<'a>),
        nth: usize,
    ) -> Option<Self> {
        let cache = &access.agents.cache;
        let (block, bytes) = match purpose.fetches() {
            true => {
                let vacant = cache.vacant(reserved.entry);
                (vacant, Bytes::Block(vacant))
            }
            false => {
                let block = cache.block(reserved.entry);
                (block, Bytes::Copy(block))
            }
        };
        let event = lane.slot().begin(purpose, reserved.tag, 0, bytes)?;
        Some(Flight {
            access,
            lane,
            event,
            reserved,
            block,
            bytes,
            locked: None,
            nth,
        })
    }

    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        self.event.purpose()
    }

    /// Waits no longer than this for its next packet. `f` sees the block once it is here and before
    /// anybody can take it away. What has become of it, if it is over.
    pub fn go_on(&mut self, at_most: Duration, mut f: impl FnMut(&[AtomicU64])) -> Option<Then> {
        let (agents, entry) = (&self.access.agents, self.reserved.entry);
        let purpose = self.purpose();
        let stop = Stop::to_end(purpose.evicts());
        let then = loop {
            let slot = self.lane.slot();
            match slot.next_within(at_most, &mut self.event, self.bytes)? {
                Do::Use => {
                    self.locked = Some(agents.cache.lock(entry, stop));
                    f(self.block);
                }
                Do::Set(status) => {
                    let locked = self.locked.take();
                    let locked = locked.unwrap_or_else(|| agents.cache.lock(entry, stop));
                    agents.install(locked, self.reserved.tag, status);
                }
                Do::Over(then) => break then,
                Do::Wait | Do::Held | Do::Send(_) => break Then::Lost,
            }
        };
        match then {
            Then::Done => {
                agents.events.count(purpose.kind());
                agents.hot.count(self.reserved.tag, purpose.kind());
            }
            Then::Lost => {}
            _ => agents.events.refused(),
        }
        Some(then)
    }

    /// The same, however long it takes.
    pub fn end(&mut self, mut f: impl FnMut(&[AtomicU64])) -> Then {
        loop {
            if let Some(then) = self.go_on(Duration::MAX, &mut f) {
                return then;
            }
        }
    }
}
