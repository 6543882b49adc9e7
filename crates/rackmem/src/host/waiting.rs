//! Requests of other nodes for pages that the program has pinned.
//!
//! Where packets can be lost they are put aside and taken up again when a page is unpinned, or by a
//! tick; who has sent one sends it again meanwhile, which changes nothing. Where packets are calls
//! the thread that asks is in this one, and waits here.

use super::agents::Agents;
use crate::backoff::Backoff;
use crate::bytes::mapped::Stop;
use crate::bytes::node_cache::Other;
use crate::bytes::pins::PIN_MOST;
use rackmem_fabric::{Body, Net, Nobody, Whole};
use rackmem_proto::engine::{Role, role};
use rackmem_proto::wire::{Contract, Header, Kind};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Requests that are put aside, at most: each requester of a rack may have one. What finds no room
/// is lost, and sent again.
const ROOM: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct Waiting {
    requests: Mutex<Vec<Header>>,
    /// How many.
    count: AtomicUsize,
}

impl Waiting {
    /// Locks the page that a packet asks this node to give up, if it asks for one.
    #[inline]
    pub fn page<'a>(&self, agents: &'a Agents, header: &Header) -> Other<'a> {
        let reads = header.kind == Kind::ReadMiss;
        let takes = reads || matches!(header.kind, Kind::WriteMiss | Kind::WriteShared);
        let ours = takes
            && header.tag.is_under(Contract::Coherent)
            && role(agents.node, header) == Role::Cache;
        match ours {
            true => self.take(agents, header, Stop::to_give(reads)),
            false => Other::Elsewhere,
        }
    }

    fn take<'a>(&self, agents: &'a Agents, header: &Header, stop: Stop) -> Other<'a> {
        // Longer than that nothing is pinned.
        let mut backoff = Backoff::new(Duration::from_nanos(PIN_MOST));
        loop {
            match agents.cache.lock_page_for_other(header.tag, stop) {
                Other::Pinned if agents.copies.is_some() => {
                    self.put_aside(header);
                    return Other::Pinned;
                }
                Other::Pinned => drop(backoff.wait()),
                other => return other,
            }
        }
    }

    fn put_aside(&self, header: &Header) {
        let mut requests = self.requests.lock().whole();
        // It has one event at a time.
        requests.retain(|other| other.requester != header.requester);
        if requests.len() < ROOM {
            requests.push(*header);
        }
        self.count.store(requests.len(), Relaxed);
    }

    /// Whether somebody waits.
    pub fn is_waited_for(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Takes up what was put aside. What is pinned still is put aside again.
    pub fn again(&self, agents: &Agents, net: &dyn Net) {
        if !self.is_waited_for() {
            return;
        }
        let requests = std::mem::take(&mut *self.requests.lock().whole());
        self.count.store(0, Relaxed);
        for header in requests {
            agents.serve(net, &header, Body::None, &mut Nobody);
        }
    }
}
