//! A store's keys in a file of Redis' format, and keys out of such a file.
//!
//! A snapshot of a store that is in use ([`Moment::Each`]) is not one moment of all keys: each key
//! is as it was at one moment between the snapshot's beginning and its end, one that is there all
//! the time is in the snapshot once, and of keys that a transaction changes together some may be
//! in it as they were before, and others as after. [`Moment::All`] is one moment for all keys; the
//! rack waits until it has been written.

mod file;
mod keeper;
mod load;
mod save;

pub use file::save_file;
pub(crate) use keeper::Keeper;
pub use load::{LoadCause, LoadError, LoadInto, Loaded, load};
pub use save::{Moment, SaveError, Saved, save};
