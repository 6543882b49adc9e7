//! Threads that wait for other nodes.
//!
//! A call of this library that needs something of another node returns when it has it. A program
//! with more to do than threads may learn just before one of them sleeps, and go on in another one.
//!
//! On a machine whose processors more threads want than there are, who waits has its turn at once
//! when it is answered, and so has who answers ([`short_turns`]).

pub use rackmem_fabric::awake::{Awake, BeforeSleep, SPIN, before_sleep, sleeps, waits};
pub use rackmem_fabric::short_turns;
