//! The journal of a durable member: what it writes down, when it may acknowledge, and what it
//! remembers after a restart.
//!
//! Files are the host's. What their bytes mean, and what follows from bytes that are missing or
//! damaged, is decided here:
//!
//! | question | answered in |
//! |---|---|
//! | what is in a file? | [`FileHeader`], [`Entry`] |
//! | what is written together, and what may be acknowledged when it is durable? | [`Log`] |
//! | is a bad record the end of a write that was cut off, or is something lost that was promised? | [`Recovery`] |
//!
//! A member promises by acknowledging, and may do so when the record's batch is durable. A batch is
//! written when all before it are. So a bad record is the end of a *torn* batch, which has promised
//! nothing, unless a good one follows that began later: then a promise is lost, and the member must
//! not count. A failed write or sync ends a member: what a system says of the same bytes the
//! next time is not to be believed.
//!
//! All numbers are little-endian. A file begins with a header of [`FILE_HEADER`] bytes:
//!
//! ```text
//!  0  magic "RMJOURNL"    8  version u32, kind u32      16  rack u64
//! 24  group u32, line u32 32  bytes of the group u64    40  store u64
//! 48  first record u64    56  zero u32                  60  CRC32C of bytes 0 to 60
//! ```
//!
//! Records follow, each a header of [`RECORD_HEADER`] bytes and a body, padded to eight:
//!
//! ```text
//!  0  magic u32, length u32    8  number u64    16  number of the batch's first record u64
//! 24  a u64   32  b u64       40  kind u32      44  CRC32C u32   48  body
//! ```
//!
//! | kind | a | b | body |
//! |---|---|---|---|
//! | 1 line | address | stamp | the line |
//! | 2 config | number | – | – |
//! | 3 end, of a checkpoint | its records | – | – |
//!
//! A record's checksum also covers the store, its file's first number and its offset there: a
//! record that is elsewhere than where it was written is none, also if a line's bytes look like
//! one.

mod crc;
mod log;
mod record;
mod recovery;

pub use crc::crc32c;
pub use log::{Ended, Log, Number};
pub use record::{
    BLOCK, Entry, FILE_HEADER, FileHeader, FileKind, Identity, RECORD_HEADER, Record, Seed, read,
    write,
};
pub use recovery::{Found, Lost, Recovery, Replay};
