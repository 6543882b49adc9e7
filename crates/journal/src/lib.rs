//! The files of a durable member of a replicated group.
//!
//! What bytes mean, what a damaged file says and when a member may acknowledge is decided in
//! [`rackmem_proto::abd::journal`]. Here are files: a [`Store`] in a folder, which is written
//! through a [`Disk`], so that tests can cut writes off and let syncs fail ([`faulty`]).
//!
//! | file | written | has |
//! |---|---|---|
//! | `lock` | when the store is opened | nothing: one process has the store |
//! | `journal-N` | appended to, and synced after each batch | records from number N on |
//! | `checkpoint-N` | in pieces, with batches between | what the records before N say, or later ones |
//! | `new`, `new-checkpoint` | synced, then renamed | one of these that is not whole yet |
//!
//! A failed write or sync of a journal, or a failed sync of anything, ends the store: a system may
//! drop what it could not write, and then say that all is well. When a store is opened, its last
//! journal is written anew: what a process before has not synced may be in the page cache only.

mod checkpoint;
mod committer;
mod disk;
mod error;
pub mod faulty;
mod files;
mod store;

pub use committer::{Committer, Member, Written};
pub use disk::{Disk, Folder};
pub use error::StoreError;
pub use files::{FRONT, PUBLISHED};
pub use store::{Limits, Restored, Store, Wanted};
