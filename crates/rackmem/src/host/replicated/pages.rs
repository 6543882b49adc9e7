//! Of which groups this node has the pages for itself, as their register says; which of these are
//! mapped, and who works for them.

use rackmem_proto::abd::GROUPS;
use rackmem_proto::wire::MAX_REQUESTERS;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

// A bit a group, and a bit a requester.
const _: () = assert!(GROUPS <= u32::BITS as usize && MAX_REQUESTERS <= u64::BITS as usize);

/// See the module.
#[derive(Default)]
pub(crate) struct Pages {
    /// The register says so.
    claimed: AtomicU32,
    /// A mapping lives in this process.
    mapped: AtomicU32,
    /// Requesters with an operation on a page.
    workers: [AtomicU64; GROUPS],
}

/// A requester works for a group's pages.
pub(super) struct Work<'a> {
    workers: Option<&'a AtomicU64>,
    bit: u64,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if let Some(workers) = self.workers {
            workers.fetch_and(!self.bit, SeqCst);
        }
    }
}

const fn bit(group: u16) -> u32 {
    match group as usize {
        at if at < GROUPS => 1 << at,
        _ => 0,
    }
}

impl Pages {
    /// The register says whether they are this node's.
    pub(super) fn are(&self, group: u16, mine: bool) {
        match mine {
            true => self.claimed.fetch_or(bit(group), SeqCst),
            false => self.claimed.fetch_and(!bit(group), SeqCst),
        };
    }

    /// Whether they are this node's.
    pub fn has(&self, group: u16) -> bool {
        self.claimed.load(SeqCst) & bit(group) != 0
    }

    /// They are about to be mapped. False: they are already, in this process.
    pub fn begin(&self, group: u16) -> bool {
        self.mapped.fetch_or(bit(group), SeqCst) & bit(group) == 0
    }

    /// They are not mapped any more.
    pub fn end(&self, group: u16) {
        self.mapped.fetch_and(!bit(group), SeqCst);
    }

    /// A requester works for them from here on.
    pub(super) fn work(&self, group: u16, slot: u8) -> Work<'_> {
        let bit = 1 << (u32::from(slot) % u64::BITS);
        let workers = self.workers.get(usize::from(group));
        if let Some(workers) = workers {
            workers.fetch_or(bit, SeqCst);
        }
        Work { workers, bit }
    }

    /// Requesters that work for them.
    pub(super) fn workers(&self, group: u16) -> impl Iterator<Item = u8> + use<> {
        let workers = self.workers.get(usize::from(group));
        let bits = workers.map_or(0, |workers| workers.load(SeqCst));
        (0..MAX_REQUESTERS as u8).filter(move |slot| bits >> slot & 1 == 1)
    }
}
