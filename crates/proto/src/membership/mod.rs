//! Who belongs to the rack, as pure values.
//!
//! Everybody agrees on a [`View`], kept with those who hold its places in a [`Roster`] that a store
//! outside the rack changes by compare-and-set. A [`Member`] is one process' part: it asks to be
//! admitted, shows that it is alive, watches the others, and knows when it must stop serving.
//! Beside it [`Groups`] say which members keep copies of which region.
//! `docs/membership.md` has the rules and why they hold.

mod group;
mod groups;
mod lease;
mod links;
mod member;
mod missed;
mod places;
mod roster;
mod term;
mod verdict;
mod view;
mod watch;

pub use group::{Asked, Group, KeptAs, MAX_GROUP_NAME, Survives};
pub use groups::{Groups, Unchanged};
pub use links::Links;
pub use member::{Acts, Member, Observed, Standing, Timing};
pub use places::Places;
pub use roster::{Beat, Beats, Role, Roster};
pub use term::{Telling, Term};
pub use view::{View, host};
