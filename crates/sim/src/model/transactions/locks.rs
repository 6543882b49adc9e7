//! The words of all locks. A word is in front of its row, in the same block:
//! who locks to read has a copy of the block, who locks to write owns it, as with the locks of GAM.

use super::super::occupied::Occupied;

/// What a word is while a writer is inside; otherwise it counts readers.
const WRITER: u16 = u16::MAX;

/// See the module.
pub struct Locks {
    words: Box<[u16]>,
    /// Who is inside.
    pub occupied: Occupied,
}

impl Locks {
    /// So many, all free.
    pub fn new(locks: u32) -> Self {
        Locks {
            words: vec![0; locks as usize].into(),
            occupied: Occupied::new(locks),
        }
    }

    /// Takes a lock, if it is to be had.
    pub fn take(&mut self, lock: u32, writes: bool) -> bool {
        let word = &mut self.words[lock as usize];
        *word = match (*word, writes) {
            (0, true) => WRITER,
            (WRITER, _) | (_, true) => return false,
            (readers, false) => readers + 1,
        };
        true
    }

    /// Leaves one.
    pub fn leave(&mut self, lock: u32, writes: bool) {
        let word = &mut self.words[lock as usize];
        *word = if writes { 0 } else { word.saturating_sub(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_writers_do_not() {
        let mut locks = Locks::new(2);
        assert!(locks.take(1, false) && locks.take(1, false) && !locks.take(1, true));
        locks.leave(1, false);
        assert!(!locks.take(1, true));
        locks.leave(1, false);
        assert!(locks.take(1, true) && !locks.take(1, true) && !locks.take(1, false));
        assert!(locks.take(0, true));
        locks.leave(1, true);
        assert!(locks.take(1, false));
    }
}
