//! Locks are held by live events only (§5.3.2).

use super::{BlockState, Invariant};

/// A lock word never counts more holders than there are events that may hold it.
pub const INVARIANT: Invariant = Invariant {
    name: "locks of live events",
    section: "§5.3.2",
    always: false,
    broken,
};

fn broken(block: &BlockState) -> Option<String> {
    let readers = block.events.iter().filter(|event| event.shared).count();
    let writers = block.events.len() - readers + usize::from(block.owners.moving);
    if usize::from(block.readers()) > readers {
        return Some(format!(
            "{} readers hold the lock, {readers} events may",
            block.readers()
        ));
    }
    if block.write_locked() && writers == 0 {
        return Some("a writer holds the lock and no event may".into());
    }
    None
}
