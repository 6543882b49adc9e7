//! Locks of homes that groups keep, which a node begins to serve with an epoch.

use super::table::{Locks, MAX_LOCKS};
use crate::membership::current_view::CurrentView;
use rackmem_fabric::Whole;
use rackmem_proto::gcp::{MAX_LOCKED, Region, Regions};
use rackmem_proto::wire::{NodeId, Tag};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Locks that a node takes over beside those that it may know: others tell of them, whatever room
/// there is here.
const MAX_TAKEN_OVER: usize = MAX_LOCKS;

/// The epoch, of a node that keeps homes of groups in it; otherwise none.
pub(super) fn told_all(me: NodeId, standing: &CurrentView) -> u32 {
    match standing.keeper() == Some(me) {
        true => standing.epoch(),
        false => 0,
    }
}

impl Locks {
    /// A lock of which others have told, and whose home a group keeps: it is known here before
    /// anybody can take it for one at rest. If there are too many, none that is unknown is taken
    /// for one in this epoch, and whoever enters it waits.
    pub(crate) fn take_over(&self, tag: Tag) {
        let mut cells = self.shard(tag).write().whole();
        if cells.contains_key(&tag) {
            return;
        }
        let epoch = self.standing.epoch();
        if self.known.load(Relaxed) >= MAX_LOCKS + MAX_TAKEN_OVER {
            self.untaken.store(epoch, SeqCst);
            return;
        }
        self.known.fetch_add(1, Relaxed);
        let region = Region {
            addr: tag.0,
            len: MAX_LOCKED,
        };
        let regions = Regions::new(&[region]).unwrap_or_default();
        let cell = self.cell(tag, (MAX_LOCKED as usize, true), regions, epoch);
        cells.insert(tag, Arc::new(cell));
    }

    /// From here on, what is not known here of homes that groups keep is at rest, if this node
    /// keeps them in this epoch: the thread says so that lives by views.
    pub(crate) fn all_told(&self) {
        let epoch = told_all(self.me, &self.standing);
        let all = self.untaken.load(SeqCst) != epoch;
        self.told_all.store(if all { epoch } else { 0 }, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::membership::View;
    use rackmem_proto::wire::{Contract, Copyset, HomeId};

    fn keeper() -> Locks {
        let view = View::first(Copyset(0b11), false);
        Locks::new(0, 1400, 1 << 40, Arc::new(CurrentView::new(2, &view)))
    }

    fn lock(nth: u64) -> Tag {
        Tag(HomeId::of_group(0).start().0 + nth * 64).under(Contract::Locked)
    }

    #[test]
    fn with_too_many_locks_to_take_over_none_is_taken_for_one_at_rest() {
        let locks = keeper();
        locks.take_over(lock(0));
        locks.all_told();
        assert!(locks.knows(lock(0)));
        assert_eq!(locks.told_all.load(SeqCst), 1);
        locks.known.store(MAX_LOCKS + MAX_TAKEN_OVER, Relaxed);
        locks.take_over(lock(0));
        locks.all_told();
        assert_eq!(locks.told_all.load(SeqCst), 1, "it is known already");
        locks.take_over(lock(1));
        locks.all_told();
        assert!(!locks.knows(lock(1)));
        assert_eq!(locks.told_all.load(SeqCst), 0);
    }
}
