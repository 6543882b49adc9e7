//! Blocks of home's memory that are put together for the answer to a `Fetch`.

use rackmem_fabric::words;
use rackmem_proto::wire::MAX_BODY;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;

/// Words of the longest body.
const ROOM: usize = MAX_BODY / 8;

thread_local! {
    /// Used again by the next answer of this thread: what is in it stays in the processor's cache,
    /// and nothing is made zeros first.
    static SPARE: Cell<Option<Box<[AtomicU64]>>> = const { Cell::new(None) };
}

/// See the module.
#[derive(Default)]
pub(super) struct Gathered {
    words: Option<Box<[AtomicU64]>>,
    len: usize,
}

impl Gathered {
    /// Puts a block behind the others. False: there is no room, which is for so many bytes.
    pub fn add(&mut self, block: &[AtomicU64], room: usize) -> bool {
        let end = self.len + block.len();
        if end * 8 > room.min(MAX_BODY) {
            return false;
        }
        let fresh = || (0..ROOM).map(|_| AtomicU64::new(0)).collect();
        let spare = || SPARE.take().unwrap_or_else(fresh);
        let words = self.words.get_or_insert_with(spare);
        words::copy(&words[self.len..end], block);
        self.len = end;
        true
    }

    /// All of them.
    pub fn blocks(&self) -> &[AtomicU64] {
        self.words
            .as_deref()
            .map_or(&[], |words| &words[..self.len])
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        if let Some(words) = self.words.take() {
            // A thread that ends needs no spare one.
            let _ = SPARE.try_with(|spare| spare.set(Some(words)));
        }
    }
}
