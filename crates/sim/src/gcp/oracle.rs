//! What must be true, and what it is judged by.

use super::judge::Judge;
use super::lives;
use super::packet::{ENTERED, LEFT};
use super::world::{At, HOME, LockRack, Witness, World};
use rackmem_proto::gcp::{Access, Entered, Entry, Mode, Right};
use rackmem_proto::wire::Copyset;
use std::fmt;

/// A broken promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// Which.
    pub promise: &'static str,
    /// What happened.
    pub detail: String,
}

impl Complaint {
    /// Somebody waits for ever.
    pub(super) fn stuck(detail: String) -> Self {
        Complaint {
            promise: "every waiter is served",
            detail,
        }
    }
}

impl From<Complaint> for crate::driver::Complaint {
    fn from(Complaint { promise, detail }: Complaint) -> Self {
        (promise, "GCP", detail)
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.detail)
    }
}

/// What it knows that the rack does not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Oracle {
    /// What threads must find.
    pub judge: Judge,
    /// The life of the lock that was made last, and which it truly is.
    pub made: (u64, u64),
    /// Which lock was freed last, even if who did it has died.
    pub freed: Option<u64>,
    /// Entries of each node while another one waits for it, in its turn, beside the first.
    passes: Vec<u8>,
    /// Since when each node waits: the directory's number of its request.
    pub numbered: Vec<Option<u64>>,
    /// The first broken promise of the last move.
    pub complaint: Option<&'static str>,
}

impl Oracle {
    /// Nothing has happened.
    pub fn new(nodes: usize, first: u64) -> Self {
        Oracle {
            judge: Judge::new(nodes, HOME.into(), first),
            made: lives::handle(&lives::FIRST),
            freed: None,
            passes: vec![0; nodes],
            numbered: vec![None; nodes],
            complaint: None,
        }
    }
}

pub(super) fn complain(promise: &'static str, detail: String) -> Result<(), Complaint> {
    Err(Complaint { promise, detail })
}

/// A thread has entered. `granted`: not by a right that the node had already.
pub fn entered(
    world: &mut World,
    rack: &LockRack,
    thread: usize,
    entered: Entered,
    granted: bool,
) -> Result<(), Complaint> {
    let me = world.threads[thread].node;
    let here = usize::from(me);
    for (other, with) in world.threads.iter().enumerate() {
        let conflict = with.at == At::Inside
            && other != thread
            && !world.nodes[usize::from(with.node)].fenced
            && (entered.access == Access::Write || rack.next(world, other) == Some(Access::Write));
        if conflict {
            let detail = format!("threads {thread} and {other} are inside");
            return complain("mutual exclusion", detail);
        }
    }
    let seen = world.nodes[here].cell().fx.data;
    let seen = [ENTERED, LEFT].map(|at| seen[at]);
    let found = world.oracle.judge.entered(me.into(), entered, seen);
    let again = found.map_err(|(promise, detail)| Complaint { promise, detail })?;
    if again {
        world.witness(Witness::ToldAgain);
    }
    let contended = !granted && world.lock(me).contended();
    let passes = &mut world.oracle.passes[here];
    *passes = if contended { *passes + 1 } else { 0 };
    if *passes > rack.scenario.cohort {
        let detail = format!("node {me} has entered {passes} times more");
        return complain("others have their turn", detail);
    }
    if granted && rack.faultless() {
        in_turn(world, rack, me, entered.access)?;
    }
    if granted {
        world.oracle.numbered[here] = None;
    }
    Ok(())
}

/// Nobody is let in before somebody of whom the directory has heard earlier, unless both read.
fn in_turn(world: &World, rack: &LockRack, me: u8, access: Access) -> Result<(), Complaint> {
    let numbered = &world.oracle.numbered;
    let Some(mine) = numbered[usize::from(me)] else {
        return Ok(());
    };
    for (nth, thread) in world.threads.iter().enumerate() {
        let before = numbered[usize::from(thread.node)].is_some_and(|number| number < mine);
        let writes = access == Access::Write || rack.next(world, nth) == Some(Access::Write);
        if thread.at == At::Waiting && thread.node != me && before && writes {
            let detail = format!("node {me} is let in before node {}", thread.node);
            return complain("nobody is overtaken", detail);
        }
    }
    Ok(())
}

/// What is true between any two moves, whatever epochs nodes are in.
pub fn check(world: &World, rack: &LockRack) -> Result<(), Complaint> {
    let entry = world.entry();
    let mut holder = None;
    let mut readers = Copyset::EMPTY;
    for (number, node) in world.nodes.iter().enumerate() {
        let number = number as u16;
        let Some(lock) = node.cell().lock.lock().filter(|_| node.up && !node.fenced) else {
            continue;
        };
        // What the directory has says something about nodes that are in its epoch.
        let entry = entry.filter(|(epoch, _)| *epoch == node.epoch());
        let entry = entry.map(|(_, entry)| entry);
        match lock.right() {
            Right::None => {}
            Right::Shared => {
                readers = readers.with(number);
                if let Some(entry) = entry.filter(|entry| !entry.sharers.contains(number)) {
                    let detail = format!(
                        "node {number} may read, the directory says {:?}",
                        entry.sharers
                    );
                    return complain("the directory covers copies", detail);
                }
            }
            Right::Modified => {
                let holds = entry.is_some_and(|Entry { state, .. }| {
                    // A node whose release was approved, and does not know, has nothing any more.
                    let over = lock.releasing().is_some_and(|at| at < state.since);
                    state.mode == Mode::Modified && u16::from(state.holder) == number && !over
                });
                let releases = lock.releasing().is_some();
                if !holds && !releases && entry.is_some() {
                    let detail =
                        format!("node {number} has the queue, the directory says {entry:?}");
                    return complain("the queue exists once", detail);
                }
                if (holds || !releases)
                    && let Some(other) = holder.replace(number)
                {
                    return complain("the queue exists once", format!("{other} and {number}"));
                }
            }
        }
        if lock.queue().len() >= rack.scenario.nodes.into() {
            let detail = format!("{} at node {number}", lock.queue().len());
            return complain("a queue is for nodes", detail);
        }
    }
    if let Some(holder) = holder.filter(|_| !readers.is_empty()) {
        let detail = format!("{holder} may write, {readers:?} may read");
        return complain("one writer or readers", detail);
    }
    Ok(())
}

/// What is true when everything has ended and nothing has gone wrong.
pub fn at_end(world: &World, rack: &LockRack) -> Result<(), Complaint> {
    let cost = world.cost();
    if rack.faultless() && cost.requests != cost.granted {
        let detail = format!("{} for {} acquisitions", cost.requests, cost.granted);
        return complain("one transaction an acquisition", detail);
    }
    Ok(())
}
