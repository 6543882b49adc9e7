//! Threads that wait for other nodes.
//!
//! A call of this library that needs something of another node returns when it has it. A program
//! with more to do than threads may learn just before one of them sleeps, and go on in another one.

pub use rackmem_fabric::awake::{Awake, BeforeSleep, SPIN, before_sleep, sleeps, waits};
