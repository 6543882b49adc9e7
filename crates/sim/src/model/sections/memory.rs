//! What all threads share: the words of locks above coherent memory, and who is inside.

use super::super::draw::Chances;
use super::super::layout::Layout;
use super::super::occupied::Occupied;
use super::Sections;
use rackmem_baselines::locks::Op;

/// Words of a block that locks use.
const WORDS: usize = 8;

/// See the module.
pub struct Memory {
    /// Where everything is.
    pub layout: Layout,
    /// Which lock is next.
    pub chances: Chances,
    /// The one that may write a block is the only one that has it, so one copy stands for all.
    words: Box<[[u64; WORDS]]>,
    /// Who is inside each lock.
    pub occupied: Occupied,
}

impl Memory {
    /// Zeros, and nobody.
    pub fn new(program: &Sections, layout: Layout) -> Self {
        Memory {
            layout,
            chances: Chances::new(program.locks, program.keys, program.theta),
            words: vec![[0; WORDS]; layout.shared as usize].into(),
            occupied: Occupied::new(program.locks),
        }
    }

    /// Executes an operation on memory. Nothing: what it waits for is not there.
    pub fn execute(&mut self, block: u32, op: Op) -> Option<u64> {
        let at = match op {
            Op::Load(at) | Op::Store(at, _) | Op::Swap(at, _) | Op::Add(at, _) => at,
            Op::Wait(at, _) | Op::CompareSwap { at, .. } => at,
            Op::Pause(_) | Op::Ask(_) | Op::Tell(_) => return Some(0),
        };
        let word = &mut self.words[block as usize][usize::from(at.word) % WORDS];
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
