//! Keys to and from Redis' files: a value of the store as a value of [`crate::rdb`], and back.

mod export;
mod import;
mod stream;
