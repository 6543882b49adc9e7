//! What processes and threads share without locks, in files that `races/` compiles a second time,
//! with the atomics of a checker in place of these.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
