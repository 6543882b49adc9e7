//! Functions of the C library about files and memory.

pub mod descriptor;
pub mod io;
pub mod lock;
pub mod map;
pub mod open;
pub mod process;
pub mod stat;
