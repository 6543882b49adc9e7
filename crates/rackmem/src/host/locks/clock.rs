//! The clock by which locks ask again for what has not come.

use std::sync::OnceLock;
use std::time::Instant;

/// Milliseconds since the first call; wraps after 49 days.
pub(crate) fn now() -> u32 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_millis() as u32
}
