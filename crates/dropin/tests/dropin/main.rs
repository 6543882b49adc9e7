//! Programs that share memory by files, `mmap` and pthreads, unmodified, as nodes of a rack.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod counts;
mod deaths;
mod refused;
mod support;
