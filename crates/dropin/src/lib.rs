//! `librackmem_pthread.so`: programs that share memory by files, `mmap` and pthreads have the
//! rack's memory in their place, unmodified: `LD_PRELOAD` puts this library in front of the C
//! library ([how to use it](../../../docs/dropin.md)).
//!
//! Files whose paths begin with certain words are the rack's (`settings.rs`): rows of a table
//! (`table.rs`), with a region each (`files.rs`). A process joins the rack when it first uses one
//! (`member.rs`). Functions of the C library about files and memory are in `calls`, those about
//! mutexes and the like in `sync`; each is the C library's own for whatever is not the rack's,
//! which takes it a look at some words (`fds.rs`, `ranges.rs`). Threads that are inside of this
//! library or of the rack have all functions as they are (`inside.rs`).
//!
//! Variadic functions (`open`, `fcntl`, `syscall`) are written with all the arguments that they
//! may have: on the machines that Linux' libraries of this project run on, an argument that is a
//! number or a pointer lies in the same place either way.

mod answer;
mod calls;
mod fds;
mod files;
mod inside;
mod member;
mod next;
mod ranges;
mod say;
mod settings;
mod signals;
mod spans;
mod sync;
mod table;
