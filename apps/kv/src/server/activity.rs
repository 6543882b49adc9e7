//! What a connection does at the moment, for CLIENT LIST: kept by its worker, read by any.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// No command yet.
pub(crate) const NO_COMMAND: u32 = u32::MAX;

/// A connection's state at its last command.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The socket's number in the process.
    pub fd: AtomicI32,
    /// When it sent something last, in ms since it came.
    pub seen: AtomicU64,
    /// The last command, a unit of the catalog.
    pub unit: AtomicU32,
    /// Commands in its transaction, -1 outside of one.
    pub queued: AtomicI32,
    /// It waits for a key.
    pub blocked: AtomicBool,
    /// Its command waits for the end of a pause.
    pub paused: AtomicBool,
    /// It is shown what others do.
    pub monitors: AtomicBool,
    /// Channels, patterns and channels of shards that it has subscribed to.
    pub subscribed: [AtomicU32; 3],
    /// Bytes that wait for it, bytes of it that wait, and bytes kept for it in all.
    pub output: AtomicU64,
    pub input: AtomicU64,
    pub held: AtomicU64,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            fd: AtomicI32::new(-1),
            seen: AtomicU64::new(0),
            unit: AtomicU32::new(NO_COMMAND),
            queued: AtomicI32::new(-1),
            blocked: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            monitors: AtomicBool::new(false),
            subscribed: Default::default(),
            output: AtomicU64::new(0),
            input: AtomicU64::new(0),
            held: AtomicU64::new(0),
        }
    }
}

impl Activity {
    /// Whether its command is held up.
    pub fn waits(&self) -> bool {
        self.blocked.load(Relaxed) || self.paused.load(Relaxed)
    }

    /// Whether it has subscribed to anything.
    pub fn subscribes(&self) -> bool {
        self.subscribed.iter().any(|count| count.load(Relaxed) != 0)
    }
}
