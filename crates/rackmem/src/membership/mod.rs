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
//! keeper.leave(keeper.view().epoch, patience)?;
//! # Ok(())
//! # }
//! ```

mod beat_file;
pub(crate) mod current_view;
mod duty;
mod etcd;
mod folder;
mod group_text;
mod keeper;
mod memory;
mod operator;
mod pace;
pub(crate) mod reach;
mod source;

mod store;
pub(crate) mod term;
mod text;

pub use crate::error::MembershipError;
pub use etcd::Etcd;
pub use folder::Folder;
pub use keeper::{Events, Keeper};
pub use memory::Memory;
pub use operator::{Sign, grow, remove, replace, watch};
pub use pace::Pace;
pub use rackmem_proto::abd::Layout;
pub(crate) use rackmem_proto::membership::KeptAs;
pub use rackmem_proto::membership::{
    Asked, Beat, Beats, Group, Groups, Links, Places, Role, Roster, Standing, Survives, Unchanged,
    View,
};
pub use source::{Settings, Source};
pub use store::{Snapshot, Store};
pub(crate) use term::{Term, now};

pub use rackmem_proto::wire::Copyset;

/// Who keeps the copies of a group, and who of them counts.
pub type GroupConfig = rackmem_proto::abd::Config;
/// A member of a group: a node in one life.
pub type GroupMember = rackmem_proto::abd::Member;
/// Why a step from one [`GroupConfig`] to the next cannot be taken.
pub type ConfigRefused = rackmem_proto::abd::Refused;

/// A result about the membership.
pub type Result<T> = std::result::Result<T, MembershipError>;
