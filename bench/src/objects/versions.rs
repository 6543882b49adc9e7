//! A version in each cache line, as FaRM has it: 8 of 64 bytes are overhead, a writer writes every
//! line, and a reader, local ones too, compares and strips.

use super::{Layout, zeros};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Words of data in a line of eight.
const DATA: usize = 7;
const LINE: usize = 8;

/// See the module. A line is a version and seven words; the version of the first line is odd while
/// a writer is in.
pub struct Versions {
    lines: Box<[AtomicU64]>,
}

impl Layout for Versions {
    fn new(len: usize) -> Self {
        let lines = (len / 8).div_ceil(DATA);
        Versions {
            lines: zeros(lines * LINE),
        }
    }

    #[inline]
    fn read(&self, out: &mut [u8]) -> bool {
        let version = self.lines[0].load(Acquire);
        if version & 1 == 1 {
            return false;
        }
        let mut lines = self.lines.chunks_exact(LINE);
        let mut whole = out.chunks_exact_mut(DATA * 8);
        let mut same = true;
        for (to, line) in (&mut whole).zip(&mut lines) {
            same &= line[0].load(Relaxed) == version;
            for (to, word) in to.chunks_exact_mut(8).zip(&line[1..]) {
                to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
            }
        }
        if let Some(line) = lines.next() {
            same &= line[0].load(Relaxed) == version;
            let rest = whole.into_remainder().chunks_exact_mut(8);
            for (to, word) in rest.zip(&line[1..]) {
                to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
            }
        }
        // A remote reader's lines come whole, which loads of a processor do not.
        fence(Acquire);
        same && self.lines[0].load(Relaxed) == version
    }

    fn write(&self, bytes: &[u8]) {
        let version = self.lines[0].load(Relaxed);
        self.lines[0].store(version + 1, Relaxed);
        fence(Release);
        for (nth, (part, line)) in bytes
            .chunks(DATA * 8)
            .zip(self.lines.chunks_exact(LINE))
            .enumerate()
        {
            if nth > 0 {
                line[0].store(version + 2, Relaxed);
            }
            for (word, part) in line[1..].iter().zip(part.chunks_exact(8)) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(part);
                word.store(u64::from_ne_bytes(bytes), Relaxed);
            }
        }
        self.lines[0].store(version + 2, Release);
    }
}
