//! Who is in the rack, agreed on through a store outside it.
//!
//! The rules are `rackmem_proto::membership`; here is what runs them:
//! a [`Store`] that all processes reach, and a
//! [`Keeper`] in each of them. `docs/membership.md` says what this guarantees.
//!
//! ```
//! use rackmem::membership::{Events, Keeper, Memory, Role, View};
//! use std::{sync::Arc, time::Duration};
//!
//! struct Print;
//! impl Events for Print {
//!     fn view(&self, view: &View) {
//!         println!("version {}", view.version);
//!     }
//!     fn lease(&self, held: bool) {
//!         println!("may serve: {held}");
//!     }
//!     fn fenced(&self) {
//!         println!("the rack goes on without us");
//!     }
//! }
//!
//! # fn main() -> Result<(), rackmem::membership::MembershipError> {
//! let lease = Duration::from_millis(500);
//! let patience = Duration::from_secs(10);
//! let (store, print) = (Arc::new(Memory::default()), Arc::new(Print));
//! let keeper = Keeper::join(store, Role::Node(0), lease, patience, print)?;
//! assert!(keeper.view().live.contains(0));
//! keeper.leave(patience)?;
//! # Ok(())
//! # }
//! ```

pub(crate) mod current_view;
mod duty;
mod etcd;
mod folder;
mod keeper;
mod memory;
mod operator;
pub(crate) mod reach;
mod source;

mod store;
mod term;
mod text;

pub use crate::error::MembershipError;
pub use etcd::Etcd;
pub use folder::Folder;
pub use keeper::{Events, Keeper};
pub use memory::Memory;
pub use operator::{Sign, remove, watch};
pub use rackmem_proto::membership::{Beat, Beats, Links, Places, Role, Roster, Standing, View};
pub use source::{Settings, Source};
pub use store::{Snapshot, Store};
pub(crate) use term::{Term, now};

/// A result about the membership.
pub type Result<T> = std::result::Result<T, MembershipError>;
