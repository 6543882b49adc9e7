//! A blade's part of coherent memory, without bytes: what it may do with each block, and who waits for that to change.
//! All blocks fit, so nothing is evicted.

use super::BLOCK;
use crate::model::agenda::Occurrence;
use crate::model::fabric::Fabric;
use rackmem_baselines::locks::Op;
use rackmem_proto::Outputs;
use rackmem_proto::engine::{self, Answer, Copies, Entries, Plan, Purpose};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Header, NodeId, Tag};

/// What a look at a block tells a thread that wants to access it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Go ahead.
    Hit,
    /// Another thread of this blade is fetching it.
    Busy,
    /// Ask for it by an event for this.
    Miss(Purpose),
}

/// See the module.
pub struct Memory {
    me: NodeId,
    home: NodeId,
    status: Box<[LocalStatus]>,
    /// An event on the block is under way here.
    busy: Box<[bool]>,
    parked: Vec<(u32, u16)>,
    spinning: Vec<(u32, u16)>,
    copies: Copies<()>,
}

/// The tag of a block.
pub fn tag(home: NodeId, block: u32) -> Tag {
    let offset = u64::from(block) * u64::from(BLOCK);
    Tag((u64::from(home) << 48) | offset)
}

/// Which block a tag is of.
pub fn block(tag: Tag) -> u32 {
    (tag.offset() / u64::from(BLOCK)) as u32
}

impl Memory {
    /// None of so many blocks is here.
    pub fn new(me: NodeId, home: NodeId, blocks: u32) -> Self {
        Memory {
            me,
            home,
            status: vec![LocalStatus::Invalid; blocks as usize].into(),
            busy: vec![false; blocks as usize].into(),
            parked: Vec::new(),
            spinning: Vec::new(),
            copies: Copies::new(false),
        }
    }

    /// The tag of a block.
    pub fn tag(&self, block: u32) -> Tag {
        tag(self.home, block)
    }

    /// Looks whether a thread may access a block; if not, what it does is reserved for it.
    pub fn look(&mut self, block: u32, writes: bool) -> Look {
        match (self.status[block as usize], writes) {
            (LocalStatus::Modified, _) | (LocalStatus::Shared, false) => return Look::Hit,
            _ => {}
        }
        match engine::plan(self, block, writes) {
            Plan::Begin(block, purpose) => {
                self.busy[block as usize] = true;
                Look::Miss(purpose)
            }
            _ => Look::Busy,
        }
    }

    /// A thread waits for the event that is under way on a block.
    pub fn park(&mut self, block: u32, thread: u16) {
        self.parked.push((block, thread));
    }

    /// A thread looks at a block again and again, until something else is in it.
    pub fn spin(&mut self, block: u32, thread: u16) {
        self.spinning.push((block, thread));
    }

    /// What the blade may do with a block from now on.
    pub fn install(&mut self, block: u32, status: LocalStatus) {
        self.status[block as usize] = status;
    }

    /// The event on a block is over.
    pub fn release(&mut self, block: u32, fabric: &mut Fabric) {
        self.busy[block as usize] = false;
        wake(&mut self.parked, block, fabric);
    }

    /// A thread of this blade has written to a block.
    pub fn written(&mut self, block: u32, fabric: &mut Fabric) {
        wake(&mut self.spinning, block, fabric);
    }

    /// The cache agent's answer to a request that was granted.
    pub fn react(&mut self, header: &Header, fabric: &mut Fabric) -> Outputs {
        let block = block(header.tag);
        let Some(&local) = self.status.get(block as usize) else {
            return Outputs::default();
        };
        let local = (local != LocalStatus::Invalid).then_some(local);
        let mut outputs = Outputs::default();
        let Answer { reaction, .. } =
            (self.copies).request(self.me, header, local, None, &mut outputs);
        self.status[block as usize] = reaction.next;
        if reaction.next == LocalStatus::Invalid {
            wake(&mut self.spinning, block, fabric);
        }
        outputs
    }
}

impl Entries for Memory {
    type Entry = u32;
    type Block = u32;

    fn under_way(&self, block: u32) -> bool {
        self.busy[block as usize]
    }

    fn find(&self, block: u32) -> Option<(u32, LocalStatus)> {
        Some((block, self.status[block as usize]))
    }

    fn room(&self, block: u32) -> Option<(u32, Option<u32>)> {
        Some((block, None))
    }
}

fn wake(waiting: &mut Vec<(u32, u16)>, block: u32, fabric: &mut Fabric) {
    let now = fabric.now();
    waiting.retain(|&(waits_for, thread)| {
        let wakes = waits_for == block;
        if wakes {
            fabric.agenda.enter(now, Occurrence::Step(thread));
        }
        !wakes
    });
}

/// Words of a block that locks use.
const WORDS: usize = 8;

/// What is in memory. Whoever may write a block is the only one who has it, so one copy stands for all.
pub struct Words(Box<[[u64; WORDS]]>);

impl Words {
    /// Zeros.
    pub fn new(blocks: u32) -> Self {
        Words(vec![[0; WORDS]; blocks as usize].into())
    }

    /// Executes an operation on memory. Nothing: what it waits for is not there.
    pub fn execute(&mut self, block: u32, op: Op) -> Option<u64> {
        let at = match op {
            Op::Load(at) | Op::Store(at, _) | Op::Swap(at, _) | Op::Add(at, _) => at,
            Op::Wait(at, _) | Op::CompareSwap { at, .. } => at,
            Op::Pause(_) | Op::Ask(_) | Op::Tell(_) => return Some(0),
        };
        let word = &mut self.0[block as usize][usize::from(at.word) % WORDS];
        let was = *word;
        match op {
            Op::Store(_, new) | Op::Swap(_, new) => *word = new,
            Op::Add(_, more) => *word = was.wrapping_add(more),
            Op::CompareSwap { old, new, .. } if was == old => *word = new,
            Op::Wait(_, until) if !until.met(was) => return None,
            _ => {}
        }
        Some(was)
    }
}
