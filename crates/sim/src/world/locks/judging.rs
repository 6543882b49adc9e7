//! What is known of a world's locks, and what threads that enter them must find.

use crate::gcp::Judge;
use crate::world::thread::Complaint;
use rackmem_proto::gcp::{Access, Entered};
use rackmem_proto::membership::host;
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{NodeId, Reason, RequesterId, Tag};
use std::collections::BTreeMap;

/// What was come across, so that nothing passes for want of an occasion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockSeen {
    /// Critical sections.
    pub entries: u64,
    /// Threads that were told that a holder had died.
    pub owner_died: u64,
    /// Threads that were told that the data is older still.
    pub lost: u64,
    /// Threads whose lock went with its home.
    pub gone: u64,
    /// Threads that were inside while their node went into another epoch.
    pub inside_over_epochs: u64,
    /// Members that went into another epoch before they had gone on in the last one, with a thread
    /// inside a lock or before it.
    pub close_epochs: u64,
    /// Nodes that died when they owned a block and a lock.
    pub owners_of_both_died: u64,
    /// Nodes whose lease ended with a thread inside a lock.
    pub fenced_inside: u64,
    /// Homes that died when they owned a block or a lock of another home.
    pub homes_that_owned_died: u64,
    /// Switches that died while an entry moved to them or back, and a lock was being placed or on
    /// its way to a thread.
    pub switches_died_moving_both: u64,
    /// Losses of blocks that a thread accepted inside a lock.
    pub accepted_inside: u64,
    /// Operations on blocks that ended inside a lock.
    pub operations_inside: u64,
    /// Packets of a rebuild that told of blocks and of locks, and were lost.
    pub mixed_lists_lost: u64,
}

struct Known {
    judge: Judge,
    /// The incarnation of the node that had the lock to write last.
    incarnation: u32,
    inside: Vec<(RequesterId, Access)>,
}

/// All locks.
pub struct Locked {
    known: BTreeMap<Tag, Known>,
    pub seen: LockSeen,
    nodes: u16,
}

impl Locked {
    pub fn new(nodes: u16) -> Self {
        Locked {
            known: BTreeMap::new(),
            seen: LockSeen::default(),
            nodes,
        }
    }

    fn known(&mut self, tag: Tag) -> &mut Known {
        let nodes = self.nodes;
        let home = host(tag.home()).unwrap_or(SWITCH);
        self.known.entry(tag).or_insert_with(|| Known {
            judge: Judge::new(nodes.into(), home, 0),
            incarnation: crate::world::block::incarnation(tag),
            inside: Vec::new(),
        })
    }

    /// A node may write.
    pub fn gained(&mut self, tag: Tag, (node, incarnation): (NodeId, u32), data: u64) {
        let known = self.known(tag);
        known.judge.gained(node, data);
        known.incarnation = incarnation;
    }

    /// Who had the lock to write last, in which incarnation.
    pub fn tenure(&mut self, tag: Tag) -> (NodeId, u32) {
        let known = self.known(tag);
        (known.judge.tenure.0, known.incarnation)
    }

    /// Its home has made its entry anew.
    pub fn settled(&mut self, tag: Tag, dead: bool) {
        self.known(tag).judge.settled(dead);
    }

    /// A thread is inside.
    pub fn entered(
        &mut self,
        tag: Tag,
        who: RequesterId,
        entered: Entered,
        data: [u64; 2],
    ) -> Result<(), Complaint> {
        self.seen.entries += 1;
        match entered.reason {
            Reason::OwnerDied => self.seen.owner_died += 1,
            Reason::Lost => self.seen.lost += 1,
            _ => {}
        }
        let known = self.known(tag);
        let complaint = |promise, detail| Complaint {
            promise: (promise, "GCP"),
            tag,
            detail,
        };
        let alone = entered.access == Access::Write;
        let other = known
            .inside
            .iter()
            .find(|(_, access)| alone || *access == Access::Write);
        if let Some((other, access)) = other {
            let detail = format!(
                "{}.{} is inside beside {}.{}, which came to {access:?}",
                who.node, who.slot, other.node, other.slot
            );
            return Err(complaint("mutual exclusion", detail));
        }
        known.inside.push((who, entered.access));
        let found = known.judge.entered(who.node, entered, data);
        found
            .map(|_| ())
            .map_err(|(promise, detail)| complaint(promise, detail))
    }

    /// A thread leaves; a writer has left the data as this.
    pub fn left(&mut self, tag: Tag, who: RequesterId, wrote: Option<u64>) {
        let known = self.known(tag);
        known.inside.retain(|(other, _)| *other != who);
        if let Some(data) = wrote {
            known.judge.left(data);
        }
    }
}
