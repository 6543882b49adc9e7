//! Pieces that this process has freed, or has had handed out beside what it needed: its next
//! values are put there, and nobody else is asked. A change of the book takes a majority round trip
//! or more, and most changes of a value free as much as they take.
//!
//! What is in here when the process dies is never handed out again. So there is a bound,
//! by the size of the memory; a process that ends gives it back.

use super::book::CLASSES;

/// Pieces of a size.
const MOST_PIECES: usize = 16;
/// Bytes of a size, and which part of the memory.
const MOST_BYTES: usize = 64 << 10;
const PART: usize = 1024;

/// See the module.
pub(super) struct Magazine {
    pieces: [Vec<u64>; CLASSES],
    /// Of a size at most.
    bytes: usize,
}

impl Magazine {
    /// One for memory of so many bytes.
    pub fn new(memory: usize) -> Self {
        Magazine {
            pieces: std::array::from_fn(|_| Vec::new()),
            bytes: MOST_BYTES.min(memory / PART),
        }
    }

    /// Pieces of a class for which there is room.
    pub fn room(&self, class: usize) -> usize {
        let most = MOST_PIECES.min(self.bytes >> class);
        most.saturating_sub(self.pieces[class].len())
    }

    /// One of a class.
    pub fn take(&mut self, class: usize) -> Option<u64> {
        self.pieces[class].pop()
    }

    /// Keeps one of a class, if there is room.
    pub fn keep(&mut self, class: usize, piece: u64) -> bool {
        let room = self.room(class) != 0;
        if room {
            self.pieces[class].push(piece);
        }
        room
    }

    /// All that is kept, by class.
    pub fn empty(&mut self) -> impl Iterator<Item = (usize, Vec<u64>)> {
        std::mem::replace(&mut self.pieces, std::array::from_fn(|_| Vec::new()))
            .into_iter()
            .enumerate()
            .filter(|(_, pieces)| !pieces.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_a_bound_by_pieces_by_bytes_and_by_the_memory() {
        let kept = |memory: usize, class: usize| {
            let mut magazine = Magazine::new(memory);
            (0..100)
                .filter(|piece| magazine.keep(class, *piece))
                .count()
        };
        assert_eq!(kept(64 << 20, 6), MOST_PIECES);
        assert_eq!(kept(64 << 20, 12), MOST_PIECES);
        assert_eq!(kept(64 << 20, 15), 2);
        assert_eq!(kept(64 << 20, 17), 0);
        assert_eq!(kept(1 << 20, 10), 1);
        assert_eq!(kept(1 << 20, 11), 0);
        assert_eq!(kept(usize::MAX, CLASSES - 1), 0);
    }

    #[test]
    fn what_was_kept_is_taken_once() {
        let mut magazine = Magazine::new(1 << 20);
        assert!(magazine.keep(6, 64) && magazine.keep(6, 128) && magazine.keep(7, 256));
        assert_eq!(magazine.room(6), MOST_PIECES - 2);
        assert_eq!(magazine.take(6), Some(128));
        let left: Vec<_> = magazine.empty().collect();
        assert_eq!(left, [(6, vec![64]), (7, vec![256])]);
        assert_eq!(magazine.take(6), None);
        assert_eq!(magazine.empty().count(), 0);
    }
}
