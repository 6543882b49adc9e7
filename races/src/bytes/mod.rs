//! The room of the shipped cache.

pub mod pages;
pub mod table;
