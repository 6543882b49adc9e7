//! A rack at one time: what each node has of each block, events, and threads.

mod taking;
mod threads;

use super::scenario::{BLOCKS, LOADS, NODES, Op, Scenario, Seen, Sight, Var, WORDS};
use crate::driver::{Complaint, Unpacked};
use crate::print::Print;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::pages::{Act, Defect, Habit, Right};
use std::hash::Hash;
pub use taking::Taking;
pub use threads::{Phase, Purpose};

/// Threads of a rack, at most.
pub const THREADS: usize = 4;
/// What is in memory that has gone back to the system.
const GONE: u8 = 99;

pub const LAST: &str = "a load is of the last store";
pub const ALIVE: &str = "a node that cannot show that it is alive loads nothing";
pub const FOUND: &str = "a system call finds what is pinned";
pub const MOMENT: &str = "a call sees a block at one moment";

/// The words of a block.
pub type Bytes = [u8; WORDS];

/// What a node has of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Page {
    /// The frame's.
    pub bytes: Bytes,
    pub status: LocalStatus,
    /// What the entry says of the mapping's right.
    pub right: Right,
    /// What the mapping allows.
    pub mapped: Right,
    /// Its entry is locked.
    pub locked: bool,
    /// It has been shown just now.
    pub fresh: bool,
    /// What its program has pinned.
    pub pinned: Right,
    /// An event of this node is about it.
    pub reserved: bool,
    /// How its program uses it.
    pub habit: Habit,
}

/// Something about a block of which there is one at a time: its entry at home is locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    pub purpose: Purpose,
    /// Copies that are taken, by node.
    pub takings: [Option<Taking>; NODES],
    /// What the requester gets, as far as it is known.
    pub bytes: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    pub node: u8,
    /// Which of its operations comes next.
    pub next: u8,
    pub phase: Phase,
    /// Stores that nobody else sees yet, the oldest first.
    pub buffer: [Option<(Var, u8)>; 2],
    pub seen: Seen,
    pub loads: u8,
    /// Rights that it may go on using, by block: the shootdown has not reached it.
    pub stale: [Right; BLOCKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct World {
    pub pages: [[Page; BLOCKS]; NODES],
    pub home: [Bytes; BLOCKS],
    /// What was stored last.
    pub truth: [Bytes; BLOCKS],
    pub events: [Option<Event>; BLOCKS],
    pub threads: [Option<Thread>; THREADS],
    /// Taken from pages of a node that cannot show that it is alive; `closing`: those it has not
    /// looked at.
    pub closing: [Option<Taking>; BLOCKS],
    pub unseen: [bool; BLOCKS],
    pub closed: bool,
    pub drops: u8,
    pub closes: u8,
}

/// Node that may be closed.
pub const CLOSES: usize = 1;

/// What does not change.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub scenario: Scenario,
    pub defect: Option<Defect>,
}

impl Rules {
    pub fn breaks(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// What becomes of a page's habit, where that is followed.
    pub fn learn<R>(&self, page: &mut Page, f: impl FnOnce(&mut Habit) -> R) -> Option<R> {
        self.scenario.habit.map(|_| f(&mut page.habit))
    }

    pub fn op(&self, nth: usize, thread: &Thread) -> Option<Op> {
        let ops = self.scenario.threads[nth].1;
        ops.get(usize::from(thread.next)).copied()
    }
}

impl World {
    pub fn new(rules: &Rules) -> World {
        let mut threads = [None; THREADS];
        for (thread, (node, _)) in threads.iter_mut().zip(rules.scenario.threads) {
            *thread = Some(Thread {
                node: *node,
                next: 0,
                phase: Phase::Runs,
                buffer: [None; 2],
                seen: [0; LOADS],
                loads: 0,
                stale: [Right::Hidden; BLOCKS],
            });
        }
        let page = Page {
            habit: rules.scenario.habit.unwrap_or_default(),
            ..Page::default()
        };
        World {
            pages: [[page; BLOCKS]; NODES],
            home: Default::default(),
            truth: Default::default(),
            events: [None; BLOCKS],
            threads,
            closing: [None; BLOCKS],
            unseen: [false; BLOCKS],
            closed: false,
            drops: rules.scenario.events.drops,
            closes: rules.scenario.events.closes,
        }
    }

    pub fn threads(&self) -> impl Iterator<Item = (usize, &Thread)> {
        let threads = self.threads.iter().enumerate();
        threads.filter_map(|(nth, thread)| Some((nth, thread.as_ref()?)))
    }

    fn thread(&mut self, nth: usize) -> &mut Thread {
        self.threads[nth].as_mut().expect("a thread")
    }

    fn page(&mut self, node: usize, block: usize) -> &mut Page {
        &mut self.pages[node][block]
    }

    /// Whether node 1 has to give up what it has, and has.
    fn is_closed(&self, node: usize) -> bool {
        let over = self.unseen == [false; BLOCKS] && self.closing == [None; BLOCKS];
        node == CLOSES && self.closed && over
    }

    /// Does an act to a mapping. Threads of the node may go on with what they had.
    pub fn act(&mut self, node: usize, block: usize, act: Act) {
        let page = self.page(node, block);
        let had = page.mapped;
        let has = match act {
            // A page that is there is left as it is.
            Act::Place { .. } if had != Right::Hidden => had,
            Act::Place { stores } => Right::wanted(stores),
            // One that is not there stays so.
            Act::Open if had == Right::Hidden => had,
            Act::Open => Right::Store,
            Act::Protect => had.min(Right::Load),
            Act::Hide => Right::Hidden,
        };
        page.mapped = has;
        if has < had {
            for thread in self.threads.iter_mut().flatten() {
                if usize::from(thread.node) == node {
                    thread.stale[block] = thread.stale[block].max(had);
                }
            }
        }
    }

    /// Whether all threads of a node know what its mapping of a block allows.
    fn is_known(&self, node: usize, block: usize) -> bool {
        let mut here = self.threads.iter().flatten();
        here.all(|thread| usize::from(thread.node) != node || thread.stale[block] == Right::Hidden)
    }

    /// The shootdown reaches a thread, once its stores have left the buffer.
    pub fn can_be_shot(&self, thread: usize, block: usize) -> bool {
        let thread = self.threads[thread].as_ref();
        thread.is_some_and(|t| t.stale[block] != Right::Hidden && t.buffer[0].is_none())
    }

    pub fn shoot(&mut self, thread: usize, block: usize) {
        self.thread(thread).stale[block] = Right::Hidden;
    }

    /// A store leaves its buffer, into the frame that its page has been translated to.
    pub fn drain(&mut self, nth: usize, seen: &mut Vec<Sight>) {
        let thread = self.thread(nth);
        let node = usize::from(thread.node);
        let Some((Var(block, word), value)) = thread.buffer[0] else {
            return;
        };
        thread.buffer = [thread.buffer[1], None];
        let (block, word) = (usize::from(block), usize::from(word));
        if thread.stale[block] == Right::Store {
            seen.push(Sight::DrainedByTheShootdown);
        }
        self.page(node, block).bytes[word] = value;
        self.truth[block][word] = value;
    }

    /// The system or the program takes a page out of a mapping.
    pub fn drop_page(&mut self, node: usize, block: usize) {
        self.drops -= 1;
        self.act(node, block, Act::Hide);
    }

    /// Node 1 cannot show any more that it is alive: from here on it gives no right, and it looks
    /// at each page.
    pub fn close(&mut self) {
        self.closes -= 1;
        self.closed = true;
        self.unseen = [true; BLOCKS];
    }

    fn check(&self, node: usize, Var(block, word): Var) -> Result<u8, Complaint> {
        let (block, word) = (usize::from(block), usize::from(word));
        let (value, last) = (self.pages[node][block].bytes[word], self.truth[block][word]);
        if self.is_closed(node) {
            let detail = format!("node {node} loads of block {block}");
            return Err((ALIVE, "paper §5.4", detail));
        }
        match value == last {
            true => Ok(value),
            false => {
                let detail =
                    format!("node {node} loads {value} of word {block}.{word}, which is {last}");
                Err((LAST, "paper §5.1.2", detail))
            }
        }
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        self.hash(&mut print);
        print.whole()
    }
}
