//! The bytes behind a header, wherever they lie.

use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::words;

/// A packet's body. Blocks are arrays of atomic words, because caches and home memory are read and
/// written by several threads; a body that came through a socket is plain bytes.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    /// None.
    None,
    /// A whole block in place: the inline fabric moves it without a copy of its own.
    Block(&'a [AtomicU64]),
    /// A segment or an operand.
    Bytes(&'a [u8]),
}

impl Body<'_> {
    /// How many bytes.
    pub fn len(&self) -> usize {
        match self {
            Body::None => 0,
            Body::Block(words) => words.len() * 8,
            Body::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the body into `block` from byte `offset`, which is a multiple of eight.
    /// What would not fit is left out: the roles have checked offset and length before anything
    /// gets here.
    pub fn copy_to(&self, block: &[AtomicU64], offset: usize) {
        let Some(target) = block.get(offset / 8..) else {
            return;
        };
        match self {
            Body::None => {}
            Body::Block(from) => words::copy(target, from),
            Body::Bytes(from) => words::write(target, from),
        }
    }

    /// The body's first two words; zero where it is shorter.
    pub fn operands(&self) -> [u64; 2] {
        let word = |at: usize| match self {
            Body::None => 0,
            Body::Block(words) => words.get(at).map_or(0, |w| w.load(Relaxed)),
            Body::Bytes(bytes) => bytes.get(at * 8..at * 8 + 8).map_or(0, |b| {
                u64::from_ne_bytes(b.try_into().expect("eight bytes"))
            }),
        };
        [word(0), word(1)]
    }
}

/// Puts the bytes of `block` at the end of `out`.
pub(crate) fn append(out: &mut Vec<u8>, block: &[AtomicU64]) {
    let at = out.len();
    out.resize(at + block.len() * 8, 0);
    words::read(&mut out[at..], block);
}

/// The body of a packet that came as bytes.
pub(crate) fn as_body(bytes: &[u8]) -> Body<'_> {
    if bytes.is_empty() {
        Body::None
    } else {
        Body::Bytes(bytes)
    }
}
