//! The memory that a database is in.

use crate::error::Result;
use crate::page::PAGE;
use rackmem::{CoherentPages, Node, Region};
use std::sync::atomic::Ordering::Relaxed;

/// Pages that all of the rack sees, zeros at first. Whatever uses them has the database's lock.
pub trait Memory: Sync {
    /// How many there are.
    fn pages(&self) -> u32;

    /// Reads a page.
    ///
    /// # Errors
    /// Those of the rack.
    fn read(&self, page: u32, out: &mut [u8; PAGE]) -> Result<()>;

    /// Writes a page.
    ///
    /// # Errors
    /// Those of the rack.
    fn write(&self, page: u32, bytes: &[u8; PAGE]) -> Result<()>;

    /// Reads a word of the first page.
    ///
    /// # Errors
    /// Those of the rack.
    fn load(&self, word: usize) -> Result<u64>;

    /// Writes a word of the first page.
    ///
    /// # Errors
    /// Those of the rack.
    fn store(&self, word: usize, value: u64) -> Result<()>;
}

fn pages_of(bytes: usize) -> u32 {
    u32::try_from(bytes / PAGE).unwrap_or(u32::MAX)
}

fn offset(page: u32) -> u64 {
    u64::from(page) * PAGE as u64
}

/// A region of coherent memory, used by calls: what fails is an error.
#[derive(Clone, Debug)]
pub struct Called {
    node: Node,
    base: u64,
    pages: u32,
}

impl Called {
    /// A region as a node has it. The database is gone when its home is.
    pub fn new(node: &Node, region: &Region) -> Called {
        Called {
            node: node.clone(),
            base: region.addr(),
            pages: pages_of(region.bytes()),
        }
    }
}

impl Memory for Called {
    fn pages(&self) -> u32 {
        self.pages
    }

    fn read(&self, page: u32, out: &mut [u8; PAGE]) -> Result<()> {
        Ok(self.node.read(self.base + offset(page), out)?)
    }

    fn write(&self, page: u32, bytes: &[u8; PAGE]) -> Result<()> {
        Ok(self.node.write(self.base + offset(page), bytes)?)
    }

    fn load(&self, word: usize) -> Result<u64> {
        Ok(self.node.load(self.base + 8 * word as u64)?)
    }

    fn store(&self, word: usize, value: u64) -> Result<()> {
        Ok(self.node.store(self.base + 8 * word as u64, value)?)
    }
}

/// A region of coherent memory, mapped: loads and stores. What fails ends the thread by `SIGBUS`
/// (`docs/mapped.md`).
#[derive(Debug)]
pub struct Mapped {
    words: CoherentPages,
}

/// Words of a page.
const WORDS: usize = PAGE / 8;

impl Mapped {
    /// Maps a region.
    ///
    /// # Errors
    /// Those of [`Region::map`]: this system may not allow it.
    pub fn new(region: &Region) -> Result<Mapped> {
        let words = region.map()?;
        Ok(Mapped { words })
    }

    fn first(&self, page: u32) -> usize {
        page as usize * WORDS
    }
}

// Relaxed: the lock orders what different threads do, and words of one page need no order.
impl Memory for Mapped {
    fn pages(&self) -> u32 {
        pages_of(self.words.len())
    }

    fn read(&self, page: u32, out: &mut [u8; PAGE]) -> Result<()> {
        let words = &self.words.words()[self.first(page)..][..WORDS];
        for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        Ok(())
    }

    fn write(&self, page: u32, bytes: &[u8; PAGE]) -> Result<()> {
        let words = &self.words.words()[self.first(page)..][..WORDS];
        for (bytes, word) in bytes.as_chunks::<8>().0.iter().zip(words) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        Ok(())
    }

    fn load(&self, word: usize) -> Result<u64> {
        Ok(self.words.words()[word].load(Relaxed))
    }

    fn store(&self, word: usize, value: u64) -> Result<()> {
        self.words.words()[word].store(value, Relaxed);
        Ok(())
    }
}

impl<M: Memory + ?Sized> Memory for Box<M> {
    fn pages(&self) -> u32 {
        (**self).pages()
    }

    fn read(&self, page: u32, out: &mut [u8; PAGE]) -> Result<()> {
        (**self).read(page, out)
    }

    fn write(&self, page: u32, bytes: &[u8; PAGE]) -> Result<()> {
        (**self).write(page, bytes)
    }

    fn load(&self, word: usize) -> Result<u64> {
        (**self).load(word)
    }

    fn store(&self, word: usize, value: u64) -> Result<()> {
        (**self).store(word, value)
    }
}
