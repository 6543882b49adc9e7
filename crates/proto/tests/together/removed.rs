//! Regions that are removed, and those that have their numbers next.

use crate::rack::{LINE, OBJECTS, Rack, object};
use rackmem_proto::abd::Layout;
use rackmem_proto::sabre::{Laid, Outcome, SLAB, bytes_with_rows};
use rackmem_proto::wire::Reason;

/// A region may have been removed, and another made in its place, of which the keeper has yet to
/// hear: until then it cannot say what is wrong with a transaction that has read both.
#[test]
fn a_transaction_waits_until_its_keeper_has_heard_of_its_objects() {
    let mut rack = Rack::new(None);
    let next = SLAB / u64::from(LINE);
    let sent = rack.begin(&[1, next], 3);
    assert_eq!(rack.ends(&sent), None);
    let laid = Laid {
        first: 2,
        base: SLAB,
        layout: Layout::new(LINE, bytes_with_rows(OBJECTS * u64::from(LINE), LINE)),
    };
    assert!(rack.keeper.sabre.kept.lay_out(0, laid));
    let gone = Outcome::Aborted(Reason::Gone, object(1).tag);
    assert_eq!(rack.ends(&sent), Some(gone));
}
