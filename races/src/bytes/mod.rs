//! The room of the shipped cache.

pub mod pages;
