//! Lines of an arena, as this process has them in its cache.

use super::emulated::PrivateCache;
use super::file::MappedFile;
use super::instructions::{CacheOps, dropped, each_line, written};
use rackmem_proto::bi::{BoardWords, Extent, LINE};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Words of a line.
pub(super) const WORDS: usize = LINE as usize / 8;

/// Whose cache it is.
pub(super) enum LineCache {
    /// The processor's.
    Processor(CacheOps),
    /// This process's.
    Emulated(PrivateCache),
}

/// See the module. A word outside is 0, and stores nowhere.
pub(super) struct Lines {
    pub file: MappedFile,
    pub cache: LineCache,
}

impl Lines {
    #[inline]
    fn memory(&self) -> &[AtomicU64] {
        self.file.words()
    }

    /// A word, from the cache.
    #[inline]
    pub fn load(&self, word: usize) -> u64 {
        match &self.cache {
            LineCache::Processor(_) => {
                let word = self.memory().get(word);
                word.map_or(0, |word| word.load(Acquire))
            }
            LineCache::Emulated(cache) => cache.load(self.memory(), word),
        }
    }

    /// Stores a word, in the cache.
    pub fn store(&self, word: usize, value: u64) {
        match &self.cache {
            LineCache::Processor(_) => {
                if let Some(word) = self.memory().get(word) {
                    word.store(value, Release);
                }
            }
            LineCache::Emulated(cache) => cache.store(self.memory(), word, value),
        }
    }

    /// The words of lines, as far as they are there.
    fn words(&self, lines: Range<u64>) -> &[AtomicU64] {
        let at = |line: u64| {
            usize::try_from(line)
                .unwrap_or(usize::MAX)
                .saturating_mul(WORDS)
        };
        let end = at(lines.end).min(self.memory().len());
        self.memory().get(at(lines.start)..end).unwrap_or_default()
    }

    /// The lines of a range that are there.
    fn within(&self, lines: Range<u64>) -> Range<usize> {
        let first = usize::try_from(lines.start).unwrap_or(usize::MAX);
        first..first.saturating_add(self.words(lines).len().div_ceil(WORDS))
    }

    /// Writes lines back, and waits for that.
    pub fn write_back(&self, extent: Extent) {
        match &self.cache {
            LineCache::Processor(ops) => {
                each_line(ops.write_back, self.words(extent.all()));
                written();
            }
            LineCache::Emulated(cache) => {
                for line in self.within(extent.all()) {
                    cache.write_back(self.memory(), line, true);
                }
            }
        }
    }

    /// Drops lines, and waits for that once.
    pub fn drop_all(&self, ranges: impl IntoIterator<Item = Range<u64>>) {
        match &self.cache {
            LineCache::Processor(ops) => {
                for lines in ranges {
                    each_line(ops.drop, self.words(lines));
                }
                dropped();
            }
            LineCache::Emulated(cache) => {
                for line in ranges.into_iter().flat_map(|lines| self.within(lines)) {
                    cache.write_back(self.memory(), line, false);
                }
            }
        }
    }

    /// Drops the lines of an object.
    pub fn drop_one(&self, extent: Extent) {
        self.drop_all([extent.all()]);
    }

    /// A word as memory has it.
    pub fn load_past(&self, word: usize) -> u64 {
        let line = (word / WORDS) as u64;
        self.drop_one(Extent { line, lines: 1 });
        self.load(word)
    }

    /// Stores a word, and waits until memory has it.
    pub fn store_through(&self, word: usize, value: u64) {
        self.store(word, value);
        let line = (word / WORDS) as u64;
        self.write_back(Extent { line, lines: 1 });
    }
}

/// What stands in front, of all domains.
#[derive(Clone, Copy)]
pub(super) struct BoardLines<'a>(pub &'a Lines);

impl BoardWords for BoardLines<'_> {
    fn load(&self, word: u64) -> u64 {
        self.0
            .load_past(usize::try_from(word).unwrap_or(usize::MAX))
    }

    fn store(&mut self, word: u64, value: u64) {
        self.0
            .store_through(usize::try_from(word).unwrap_or(usize::MAX), value);
    }
}
