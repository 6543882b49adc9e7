//! What threads share without locks, in files that `races/` compiles a second time, with the
//! atomics of a checker in place of these: there every order of their steps is gone through, and
//! every value that the memory model lets a load return.

pub(crate) use crate::fences::{heavy_fence, light_fence};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
