//! An entry has one owner, home agent or switch (§5.2).

use super::{BlockState, Invariant};

/// Never two, and none only while it is on its way.
pub const INVARIANT: Invariant = Invariant {
    name: "one owner",
    section: "§5.2",
    always: false,
    broken,
};

fn broken(block: &BlockState) -> Option<String> {
    let owners = block.owners;
    match (owners.home, owners.switch) {
        (true, true) => Some("the home agent and the switch both serve the entry".into()),
        (false, false) if !owners.moving => Some("nobody serves the entry".into()),
        _ => None,
    }
}
