//! The compared locks under every interleaving of a few threads: they exclude, no thread is stuck,
//! and defects are noticed.

mod memory;
mod messages;
mod turns;
