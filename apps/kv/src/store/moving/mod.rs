//! Keys to and from Redis' files: a value of the store as a value of [`crate::rdb`], and back.

mod export;
mod import;
mod pass;
mod stream;

pub(crate) use pass::Passed;
