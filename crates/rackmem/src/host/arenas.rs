//! Arenas that this node has attached: what they count is told with the node's other figures.

use crate::host::metrics::ArenaCounts;
use rackmem_fabric::Whole;
use std::sync::{Arc, Mutex, Weak};

/// An arena that is attached.
pub(crate) trait Counted: Send + Sync {
    /// Its figures. It does not wait.
    fn counted(&self) -> ArenaCounts;
}

/// See the module.
#[derive(Default)]
pub(crate) struct Arenas(Mutex<Attached>);

#[derive(Default)]
struct Attached {
    /// As many as the program has attached.
    now: Vec<Weak<dyn Counted>>,
    /// What those counted that were.
    before: ArenaCounts,
}

impl Arenas {
    /// One more.
    pub fn attach(&self, arena: Weak<dyn Counted>) {
        self.0.lock().whole().now.push(arena);
    }

    /// It is none any more.
    pub fn detach(&self, arena: &Arc<impl Counted + 'static>) {
        let mut attached = self.0.lock().whole();
        let here = Arc::as_ptr(arena).cast::<()>();
        attached.now.retain(|one| one.as_ptr().cast() != here);
        attached.before += arena.counted();
    }

    /// Figures of all, since the node was started.
    pub fn counts(&self) -> ArenaCounts {
        let attached = self.0.lock().whole();
        let mut sum = attached.before;
        for arena in attached.now.iter().filter_map(Weak::upgrade) {
            sum += arena.counted();
        }
        sum
    }
}
