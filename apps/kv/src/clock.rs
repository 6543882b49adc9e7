//! Where the time of day comes from. Expiry is the only thing that depends on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of milliseconds since 1970.
#[derive(Clone, Default)]
pub struct Clock {
    /// Set by hand in tests; the system's clock when absent.
    manual: Option<Arc<AtomicU64>>,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that shows what `time` holds.
    pub fn manual(time: Arc<AtomicU64>) -> Self {
        Self { manual: Some(time) }
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        match &self.manual {
            Some(time) => time.load(Ordering::Relaxed),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |t| t.as_millis() as u64),
        }
    }
}
