//! What a lock protects, as a node has it. Of a page there are as many bytes as its writers have
//! asked for; the rest is zeros, and takes no memory.

use super::slab::{self, Piece};
use rackmem_fabric::{Body, words};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What is current. It is changed by who holds the lock's state, while no thread is inside,
/// or by the writer inside.
pub(crate) struct Content {
    piece: AtomicU64,
    /// Bytes that locks of this kind keep at the node; this one's are among them.
    kept: Arc<AtomicUsize>,
}

/// What comes together beside it.
#[derive(Default)]
pub(crate) struct Beside {
    piece: Piece,
    /// Words that come.
    words: u32,
}

impl Content {
    /// Nothing, which stands for zeros.
    pub fn new(kept: Arc<AtomicUsize>) -> Self {
        Content {
            piece: AtomicU64::new(Piece::NONE.to_word()),
            kept,
        }
    }

    #[inline]
    fn piece(&self) -> Piece {
        Piece::from_word(self.piece.load(Relaxed))
    }

    /// The words that there are; those behind them are zeros.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.piece().words()
    }

    fn take(&self, words: usize) -> Piece {
        let piece = slab::take(words);
        self.kept.fetch_add(piece.bytes(), Relaxed);
        piece
    }

    fn drop_piece(&self, piece: Piece) {
        self.kept.fetch_sub(piece.bytes(), Relaxed);
        slab::give_back(piece);
    }

    fn put(&self, piece: Piece) {
        let old = Piece::from_word(self.piece.swap(piece.to_word(), Relaxed));
        self.drop_piece(old);
    }

    /// Makes room for so many words, and for more if that takes no more memory.
    #[cold]
    pub fn grow(&self, words: usize) {
        if words > self.words().len() {
            let piece = self.take(slab::round(words));
            words::copy(piece.words(), self.words());
            self.put(piece);
        }
    }

    /// Keeps no more than so many words, if that takes less memory.
    pub fn trim(&self, words: usize) {
        if slab::round(words) < self.words().len() {
            let piece = self.take(slab::round(words));
            words::copy(piece.words(), self.words());
            self.put(piece);
        }
    }

    /// So many words of zeros take the place of what there was.
    pub fn renew(&self, words: usize) {
        self.put(self.take(words));
    }

    /// Nothing is kept any more.
    pub fn clear(&self) {
        self.put(Piece::NONE);
    }

    /// Keeps a part of what comes for it, of `words` words in all.
    pub fn store(&self, beside: &mut Beside, words: usize, part: Body<'_>, offset: usize) {
        // What is left of something shorter or longer would stand behind it, or in its place.
        if beside.words as usize != words {
            self.forget(beside);
            *beside = Beside {
                piece: self.take(words),
                words: words as u32,
            };
        }
        part.copy_to(beside.piece.words(), offset);
    }

    /// What has come takes the place of what there was; `inside`: threads that read the same bytes
    /// there are inside, who go on.
    pub fn install(&self, beside: &mut Beside, inside: bool) {
        let piece = std::mem::take(beside).piece;
        match inside {
            true => self.drop_piece(piece),
            false => self.put(piece),
        }
    }

    /// So many bytes that were counted with it are no more.
    pub fn release(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Relaxed);
    }

    /// What has come is not wanted any more.
    pub fn forget(&self, beside: &mut Beside) {
        self.drop_piece(std::mem::take(beside).piece);
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.clear();
    }
}
