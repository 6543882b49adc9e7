//! Nothing of a dead incarnation takes effect (§5.4).
//!
//! When a home dies its memory is gone. Copies that others have of it are nobody's:
//! nobody would invalidate them.

use rackmem_proto::wire::{Copyset, HomeId};

/// Its name in a violation.
pub const NAME: &str = "nothing of the dead";
/// Where the paper promises it.
pub const SECTION: &str = "§5.4";

/// What is wrong, if nodes that serve have copies of a block whose home is not in the rack.
pub fn broken(home: HomeId, holders: Copyset) -> Option<String> {
    let held = !holders.is_empty();
    held.then(|| format!("{:b} use memory of node {home}, which is gone", holders.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_dead_are_noticed() {
        assert_eq!(broken(HomeId::of(1), Copyset::EMPTY), None);
        assert!(broken(HomeId::of(1), Copyset(0b100)).is_some_and(|text| text.contains("node 1")));
    }
}
