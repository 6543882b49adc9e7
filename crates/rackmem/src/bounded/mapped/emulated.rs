//! A cache that no hardware keeps coherent, in a process: so processes of one host are as
//! incoherent as machines with one memory, and what forgets to write back or to drop is seen.
//!
//! A line is filled when it is read, and the other one of its pair with it, as processors do. What
//! is stored stays here until it is written back. Nothing leaves by itself.

use super::file::MappedFile;
use crate::error::ArenaError;
use rackmem_fabric::words;
use rackmem_proto::bi::LINE;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use std::sync::atomic::{Ordering::Relaxed, Ordering::Release, fence};

const WORDS: usize = LINE as usize / 8;

/// A line is not there; a thread moves it; it is as it was read; it was stored to.
const ABSENT: u8 = 0;
const BUSY: u8 = 1;
const CLEAN: u8 = 2;
const DIRTY: u8 = 3;

/// See the module.
pub(super) struct PrivateCache {
    held: MappedFile,
    states: Box<[AtomicU8]>,
}

impl PrivateCache {
    /// An empty one for so many words.
    pub fn new(words: usize) -> Result<Self, ArenaError> {
        let states = (0..words.div_ceil(WORDS)).map(|_| AtomicU8::new(ABSENT));
        Ok(PrivateCache {
            held: MappedFile::private(words * 8)?,
            states: states.collect(),
        })
    }

    fn line<'a>(&self, of: &'a [AtomicU64], line: usize) -> &'a [AtomicU64] {
        let end = ((line + 1) * WORDS).min(of.len());
        of.get(line * WORDS..end).unwrap_or_default()
    }

    /// Waits until no other thread moves the line, and moves it. What it was.
    fn take(&self, line: usize) -> u8 {
        loop {
            let state = self.states[line].load(Acquire);
            let taken = state != BUSY
                && self.states[line]
                    .compare_exchange(state, BUSY, AcqRel, Relaxed)
                    .is_ok();
            if taken {
                return state;
            }
            std::thread::yield_now();
        }
    }

    fn fill(&self, memory: &[AtomicU64], line: usize) {
        words::copy(self.line(self.held.words(), line), self.line(memory, line));
        fence(Acquire);
    }

    /// Reads a word, and has its line from then on.
    pub fn load(&self, memory: &[AtomicU64], word: usize) -> u64 {
        let line = word / WORDS;
        if self.states.get(line).is_none() {
            return 0;
        }
        while self.states[line].load(Acquire) < CLEAN {
            for line in [line, line ^ 1] {
                let absent = self.states.get(line).is_some_and(|state| {
                    state
                        .compare_exchange(ABSENT, BUSY, AcqRel, Relaxed)
                        .is_ok()
                });
                if absent {
                    self.fill(memory, line);
                    self.states[line].store(CLEAN, Release);
                }
            }
            std::hint::spin_loop();
        }
        self.held.words()[word].load(Acquire)
    }

    /// Stores a word, here only.
    pub fn store(&self, memory: &[AtomicU64], word: usize, value: u64) {
        let line = word / WORDS;
        if self.states.get(line).is_some() {
            if self.take(line) == ABSENT {
                self.fill(memory, line);
            }
            self.held.words()[word].store(value, Release);
            self.states[line].store(DIRTY, Release);
        }
    }

    /// Writes a line back if it was stored to: all of it, whatever is in memory. `keep`: it stays.
    pub fn write_back(&self, memory: &[AtomicU64], line: usize, keep: bool) {
        if self.states.get(line).is_none() {
            return;
        }
        let state = self.take(line);
        if state == DIRTY {
            fence(Release);
            words::copy(self.line(memory, line), self.line(self.held.words(), line));
        }
        let kept = keep && state != ABSENT;
        self.states[line].store(if kept { CLEAN } else { ABSENT }, Release);
    }

    /// Whether a line is there.
    #[cfg(test)]
    pub fn has(&self, line: usize) -> bool {
        self.states[line].load(Acquire) != ABSENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_or_goes_but_by_a_miss_or_when_it_is_told() {
        let memory: Vec<AtomicU64> = (0..32).map(|_| AtomicU64::new(1)).collect();
        let [a, b] = [(); 2].map(|()| PrivateCache::new(32).unwrap());
        assert_eq!((a.load(&memory, 3), b.load(&memory, 3)), (1, 1));
        assert!(a.has(0) && a.has(1) && !a.has(2));
        a.store(&memory, 3, 7);
        assert_eq!((a.load(&memory, 3), b.load(&memory, 3)), (7, 1));
        assert_eq!(memory[3].load(Relaxed), 1);
        a.write_back(&memory, 0, true);
        assert_eq!((memory[3].load(Relaxed), b.load(&memory, 3)), (7, 1));
        b.write_back(&memory, 0, false);
        assert_eq!((b.has(0), b.load(&memory, 3)), (false, 7));
        // The other word of the line is written back, too: of two writers one undoes the other.
        b.store(&memory, 4, 9);
        a.store(&memory, 3, 8);
        b.write_back(&memory, 0, false);
        a.write_back(&memory, 0, false);
        assert_eq!((memory[3].load(Relaxed), memory[4].load(Relaxed)), (8, 1));
        // Outside nothing happens.
        a.store(&memory, 99, 1);
        a.write_back(&memory, 99, false);
        assert_eq!(a.load(&memory, 99), 0);
    }
}
