//! When to ask again for what has not come: [`call::Pace`], by this process's clock.

use rackmem_proto::call;
use std::sync::OnceLock;
use std::time::Instant;

/// Pauses that grow while nothing comes.
#[derive(Default)]
pub(crate) struct Pace {
    pace: call::Pace,
    /// Whether somebody has been told to look after it.
    pub kept: bool,
}

/// Milliseconds since the first call; wraps after 49 days.
fn now() -> u32 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_millis() as u32
}

impl Pace {
    /// Something has happened, and more is to come.
    pub fn begin(&mut self) {
        self.pace.begin(now);
    }

    /// A packet has come.
    pub fn hurry(&mut self) {
        self.pace.hurry(now);
    }

    /// Nothing is to come.
    pub fn rest(&mut self) {
        self.pace.rest();
    }

    /// Whether it is time to ask again; if so, the next pause begins.
    pub fn due(&mut self) -> bool {
        self.pace.due(now)
    }
}
