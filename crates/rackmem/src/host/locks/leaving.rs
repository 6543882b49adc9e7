//! A node leaves politely: the locks that it has used go home first, with what they protect.
//! No epoch begins, so nobody would ever ask what it had.
//!
//! It asks the home of each (`Yield`) until that answers (`YieldAck`). The home takes the lock like
//! a writer, and nobody enters; what is in its hands whole depends on nobody else any more. Neither
//! side remembers anything but that: a question that was lost is asked again.

use super::cell::{Cell, State};
use super::table::Locks;
use crate::error::LeaveError;
use crate::host::access::Access as Coherent;
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::gcp::Life;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Locks that are asked for at a time.
const WINDOW: usize = 64;
/// The first pause between two questions, and the longest.
pub(crate) const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(16)];

impl Locks {
    /// Those of other nodes that this one has used, and whose homes are there.
    fn abroad(&self) -> Vec<Arc<Cell>> {
        let mut cells = self.all();
        cells.retain(|cell| {
            let used = |state: &mut State| !state.lock.is_over() && state.lock.used();
            let home = cell.tag.home();
            !self.is_home(cell.tag) && !self.standing.has_gone(home) && self.look(cell, used)
        });
        cells
    }
}

/// Brings the locks of other nodes that a node has used home, with what they protect.
///
/// What is asked of the node by others meanwhile passes, and so does a wait that has an end: it
/// tries again for as long as it has patience.
///
/// `epoch_follows`: the rack goes on in another epoch, whose homes ask the members what they have.
/// A lock that another node has by then need not be taken home first, which may take long where
/// many want it.
///
/// # Errors
/// [`LeaveError::LocksInUse`] when a thread of the node is inside one of them, or waits,
/// or their homes do not answer in this time.
pub(crate) fn bring_home(
    access: &Coherent,
    patience: Duration,
    epoch_follows: bool,
) -> Result<(), LeaveError> {
    let began = Instant::now();
    let mut pause = PAUSES[0];
    while !try_to_bring_home(access, (began, patience), epoch_follows) {
        if began.elapsed() >= patience || access.standing.is_over() {
            let node = access.agents.locks.me;
            return Err(LeaveError::LocksInUse { node });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSES[1]);
    }
    Ok(())
}

/// Has the home of a lock take it once, with what it protects, which then outlives this node.
/// Threads that use the lock meanwhile come before or after. Whether it was taken in this time.
pub(crate) fn bring_one_home(access: &Coherent, cell: &Arc<Cell>, patience: Duration) -> bool {
    let locks = &access.agents.locks;
    locks.look(cell, |state| state.lock.begin_leaving());
    let done = |cell: &&Arc<Cell>| locks.look(cell, |state| state.lock.has_left());
    let limit = (Instant::now(), patience);
    ask_until(access, std::slice::from_ref(cell), done, limit)
}

/// Asks the homes of some locks until all of these are done with, or this time is over.
fn ask_until(
    access: &Coherent,
    cells: &[Arc<Cell>],
    done: impl Fn(&&Arc<Cell>) -> bool,
    (began, patience): (Instant, Duration),
) -> bool {
    let done = |cell: &&Arc<Cell>| done(cell) || access.standing.has_gone(cell.tag.home());
    let mut left: Vec<_> = cells.iter().collect();
    let mut pause = PAUSES[0];
    loop {
        ask(access, &left, None);
        left.retain(|cell| !done(cell));
        let nobody = access.standing.is_over();
        if left.is_empty() || nobody || began.elapsed() >= patience {
            return left.is_empty();
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSES[1]);
        left.retain(|cell| !done(cell));
    }
}

/// Whether all of them are at home.
fn try_to_bring_home(
    access: &Coherent,
    (began, patience): (Instant, Duration),
    epoch_follows: bool,
) -> bool {
    let locks = &access.agents.locks;
    let cells = locks.abroad();
    for cell in &cells {
        let busy = locks.look(cell, |state| {
            state.lock.begin_leaving();
            state.lock.in_use()
        });
        if busy {
            return false;
        }
    }
    let done = |cell: &&Arc<Cell>| {
        locks.look(cell, |state| {
            state.lock.has_left() || epoch_follows && !state.lock.has()
        })
    };
    for window in cells.chunks(WINDOW) {
        if !ask_until(access, window, done, (began, patience)) {
            return false;
        }
    }
    // Nobody stops other threads of this node from taking one again.
    let has = |cell: &Arc<Cell>| locks.look(cell, |state| state.lock.has());
    !locks.abroad().iter().any(has)
}

/// Asks homes to take locks, or to take note of the end of a life.
pub(crate) fn ask(access: &Coherent, cells: &[&Arc<Cell>], ended: Option<Life>) {
    // Without a socket they are lost, and sent again later.
    let Ok(slot) = access.requesters.borrow() else {
        return;
    };
    for cell in cells {
        let locks = &access.agents.locks;
        let (home, header) = locks.look(cell, |state| state.lock.ask_home(ended));
        if let Some(home) = home.hosted(|home| locks.standing.host(home)) {
            slot.net().send(home, &header, Body::None, &mut Nobody);
        }
    }
}
