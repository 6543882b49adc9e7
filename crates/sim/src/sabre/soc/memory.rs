//! The memory of the chip that is read: which write each block is of, and who has it.

use super::Time;

/// No core has it to itself.
pub const NOBODY: u8 = u8::MAX;

/// A block of an object.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Which write of the object it is of.
    pub write: u32,
    /// The writer that has it modified.
    pub owner: u8,
    /// R2P2s that have loaded it, a bit each.
    pub sharers: u8,
    /// Loads wait until here: it is about to be stored to.
    pub busy: Time,
}

/// All objects.
#[derive(Debug)]
pub struct Memory {
    /// Blocks of an object.
    pub each: u16,
    pub blocks: Vec<Block>,
    /// By object: odd while a writer is in.
    pub versions: Vec<u64>,
}

impl Memory {
    pub fn new(objects: usize, each: u16) -> Self {
        let block = Block {
            write: 0,
            owner: NOBODY,
            sharers: 0,
            busy: 0,
        };
        Memory {
            each,
            blocks: vec![block; objects * usize::from(each)],
            versions: vec![0; objects],
        }
    }

    /// Where a block of an object is.
    pub fn address(&self, object: u32, nth: u16) -> u64 {
        u64::from(object) * u64::from(self.each) + u64::from(nth)
    }

    pub fn at(&mut self, address: u64) -> &mut Block {
        &mut self.blocks[address as usize]
    }
}
