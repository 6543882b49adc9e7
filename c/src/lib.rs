//! rackmem for C: every function of `include/rackmem.h`, which is made of this.
//!
//! Handles are opaque. No panic leaves a function, and no pointer that is null is followed.
#![allow(non_camel_case_types)]

pub mod bounded;
pub mod condition;
mod handle;
pub mod lock;
pub mod object;
pub mod pages;
pub mod rack;
pub mod region;
pub mod rwlock;
pub mod status;
pub mod transaction;
pub mod word;
