//! One coherent memory for a rack of machines.
#![warn(missing_docs)]

pub mod view;
