//! Functions of the C library about files and memory.

pub mod descriptor;
pub mod io;
pub mod lock;
pub mod map;
pub mod messages;
pub mod open;
pub mod process;
pub mod rename;
pub mod reopen;
pub mod stat;
pub mod stream;
