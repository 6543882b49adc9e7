//! Redis' file format (RDB) and the payloads of `DUMP`: reading and writing, apart from any store.
//!
//! [`Reader`] reads versions 1 to 11, which Redis 2.4 to 7.2 write, in every encoding that these
//! have for strings, lists, sets, hashes, sorted sets and streams. [`Writer`] writes version 10 in
//! the plainest encodings, which Redis 7 and whatever followed it load. [`dump`] has the same for
//! one value.
//!
//! The bytes may be anybody's: whatever they are, reading ends with values or with an [`Error`]
//! that names the place, and what it allocates is bounded by the bytes that have been read and by
//! [`PART`]. Long collections come in parts.
//!
//! ```
//! use rackmem_kv::rdb::{Body, Item, Reader, Value, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut writer = Writer::new(Vec::new())?;
//! writer.key(0, b"greeting", None, &Body::string(b"hello"))?;
//! let file = writer.finish()?;
//! let mut reader = Reader::new(file.as_slice())?;
//! while let Some(item) = reader.next_item()? {
//!     if let Item::Key(entry) = item {
//!         assert_eq!(entry.value, Value::String(b"hello".to_vec()));
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod body;
mod crc;
pub mod dump;
mod elements;
mod error;
mod listpack;
mod lzf;
mod module;
mod packed;
mod reader;
mod source;
mod stream;
mod value;
mod writer;

pub use body::{Body, StreamBody};
pub use crc::extend as checksum;
pub use error::{Cause, Error, Result};
pub use reader::{Entry, Item, Reader};
pub use value::{Consumer, Group, Pending, Stream, StreamEntry, StreamId, StreamTail, Value};
pub use writer::Writer;

/// The version that is written: that of Redis 7.0.
pub const VERSION: u32 = 10;
/// The newest version that is read: that of Redis 7.2.
pub const NEWEST: u32 = 11;
/// The longest string that is read, in bytes: Redis' own limit.
pub const MAX_STRING: u64 = 512 << 20;
/// Bytes after which a collection goes on in another part; with them count [`ELEMENT`] for each
/// element. One element may be longer than a part.
pub const PART: usize = 1 << 20;
/// What an element is taken to cost beside its bytes.
pub const ELEMENT: usize = 64;

/// Types of values, as files and payloads name them.
mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET_TEXT: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET: u8 = 5;
    pub const MODULE_OLD: u8 = 6;
    pub const MODULE: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_3: u8 = 21;
}

/// What is no key.
mod opcode {
    pub const FUNCTION: u8 = 245;
    pub const FUNCTION_OLD: u8 = 246;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQ: u8 = 249;
    pub const AUX: u8 = 250;
    pub const SIZES: u8 = 251;
    pub const EXPIRY_MS: u8 = 252;
    pub const EXPIRY: u8 = 253;
    pub const DATABASE: u8 = 254;
    pub const END: u8 = 255;
}
