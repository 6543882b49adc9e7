//! Which addresses of this process are the rack's: a look at a few words, for every call that is
//! given an address.

use crate::files::File;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that a process maps in its life, at most: as many as the rack lets it.
const MOST: usize = 256;

struct Range {
    /// Zero: nothing.
    start: AtomicUsize,
    len: AtomicUsize,
    /// Kept for ever: a thread may be looking.
    file: AtomicPtr<File>,
}

static RANGES: [Range; MOST] = [const {
    Range {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        file: AtomicPtr::new(std::ptr::null_mut()),
    }
}; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// All of them are in between.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
static CHANGES: Mutex<()> = Mutex::new(());

/// These addresses are a file's from now on, whatever they were before. They stay the rack's: the
/// rack gives them to nothing else. False: there are too many.
pub fn add((start, len): (usize, usize), file: &Arc<File>) -> bool {
    let _turn = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let count = COUNT.load(Relaxed);
    let same = RANGES[..count]
        .iter()
        .position(|range| range.start.load(Relaxed) == start);
    let Some(range) = RANGES.get(same.unwrap_or(count)) else {
        return false;
    };
    range
        .file
        .store(Arc::into_raw(file.clone()).cast_mut(), Release);
    range.len.store(len, Relaxed);
    range.start.store(start, Release);
    LOWEST.fetch_min(start, Relaxed);
    HIGHEST.fetch_max(start + len, Relaxed);
    COUNT.store(same.map_or(count + 1, |_| count), Release);
    true
}

/// Whether an address is the rack's.
#[inline]
pub fn has(at: usize) -> bool {
    at >= LOWEST.load(Relaxed) && at < HIGHEST.load(Relaxed) && find(at).is_some()
}

/// The file that an address is in, and where.
#[inline]
pub fn find(at: usize) -> Option<(&'static File, usize)> {
    if at < LOWEST.load(Relaxed) || at >= HIGHEST.load(Relaxed) {
        return None;
    }
    RANGES[..COUNT.load(Acquire)].iter().find_map(|range| {
        let offset = at.checked_sub(range.start.load(Acquire))?;
        (offset < range.len.load(Relaxed)).then(|| {
            // SAFETY: it came from `Arc::into_raw` and is never given back.
            (unsafe { &*range.file.load(Acquire) }, offset)
        })
    })
}

/// Whether some of these bytes are the rack's.
#[inline]
pub fn meets(at: usize, len: usize) -> bool {
    let end = at.saturating_add(len);
    if end <= LOWEST.load(Relaxed) || at >= HIGHEST.load(Relaxed) {
        return false;
    }
    RANGES[..COUNT.load(Acquire)].iter().any(|range| {
        let start = range.start.load(Acquire);
        at < start + range.len.load(Relaxed) && start < end
    })
}
