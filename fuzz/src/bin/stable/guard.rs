//! Limits on what an input may cost: memory, counted by the allocator, and time,
//! watched by a thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that one input may keep allocated at a time.
pub const MAX_MEMORY: usize = 256 << 20;

/// How long one input may take before it counts as hanging.
/// Targets that talk to ports give up earlier, and say more.
pub const MAX_TIME: Duration = Duration::from_secs(40);

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, and how much of it is in use.
pub struct Counting;

// SAFETY: every call goes to the system's allocator with the arguments it came with;
// counting touches nothing but two atomic integers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, and `pointer` came from the system's
        // `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Measures the memory that is allocated from here on.
pub fn begin_memory() -> usize {
    let live = LIVE.load(Ordering::Relaxed);
    PEAK.store(live, Ordering::Relaxed);
    live
}

/// The most that was allocated at a time since `begin`, in bytes.
pub fn peak_memory(begin: usize) -> usize {
    PEAK.load(Ordering::Relaxed).saturating_sub(begin)
}

/// The input that is running, and since when.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Option<Running>>>);

struct Running {
    since: Instant,
    input: Vec<u8>,
}

impl Watch {
    /// Starts a thread that ends the process when an input takes too long,
    /// and keeps the input in `folder`.
    pub fn start(target: &'static str, folder: &Path) -> Watch {
        let watch = Watch::default();
        let (seen, folder) = (watch.clone(), folder.to_owned());
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(MAX_TIME / 8);
                if let Some(input) = seen.overdue() {
                    let place = super::run::keep(&folder, "hang", &input);
                    println!("fuzz {target}: an input takes more than {MAX_TIME:?}; it is {place}");
                    println!("fuzz result: FAILED. 0 passed; 1 failed");
                    std::process::exit(1);
                }
            }
        });
        watch
    }

    /// An input begins.
    pub fn begin(&self, input: &[u8]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running {
            since: Instant::now(),
            input: input.to_vec(),
        });
    }

    /// It is over.
    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn overdue(&self) -> Option<Vec<u8>> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { since, input } = running.as_ref()?;
        (since.elapsed() > MAX_TIME).then(|| input.clone())
    }
}
