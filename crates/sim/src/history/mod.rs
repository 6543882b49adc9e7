//! The record of operations: what every client called, when, and what it was told.
//!
//! On disk a history is text, one JSON object a line, in any order:
//!
//! ```json
//! {"client":0,"op":"set","key":"a","value":"1","invoke":100,"return":180,"outcome":"ok"}
//! {"client":1,"op":"get","key":"a","result":"1","invoke":150,"return":170,"outcome":"ok"}
//! {"client":1,"op":"incr","key":"a","value":5,"result":6,"invoke":200,"return":260,"outcome":"ok"}
//! {"client":0,"op":"cas","key":"a","expected":"6","value":"7","invoke":210,"outcome":"unknown"}
//! ```
//!
//! Times are nanoseconds on one clock. `outcome` says what the client knows afterwards: `ok`, it
//! happened and `result` is what was returned; `fail`, it did not happen; `unknown`, it may have
//! happened, may happen later, or never (a connection that broke before the answer).
//!
//! | `op` | `value` | `expected` | `result` |
//! |---|---|---|---|
//! | `get` | | | the value, absent or `null` for none |
//! | `set` | the new value | | |
//! | `swap` | the new value | | the value before, or `null` |
//! | `del` | | | `true` where there was a value |
//! | `incr` | the integer to add | | the integer after |
//! | `cas` | the new value | the old value, `null` for none | `true` where it was stored |
//! | `append` | the text to add | | the length after, in bytes |

mod export;
mod line;
mod operation;
mod read;
mod record;

pub use export::export;
pub use line::ShapeError;
pub use operation::{Call, Operation, Outcome, Reply};
pub use read::{MAX_LINE_BYTES, MAX_OPERATIONS, ReadError, ReadErrorKind, Reader, read, write};
pub use record::{ClientLog, Full, MAX_CLIENT_OPERATIONS, Recorder, Ticket};
