//! Judging what a rack did.
//!
//! [`history`] is the record of what clients asked for and were told, with the times of asking and
//! of answering. [`linear`] decides whether such a record could have come from one memory that does
//! one operation at a time, which is the promise of coherent memory, and shows the few operations
//! that contradict each other where it could not.

pub mod history;
pub mod linear;
pub mod world;
