//! Keepers that die at each line of a region's record.

use crate::rack::{Rack, object};
use rackmem_proto::sabre::transaction::Used;
use rackmem_proto::sabre::{Defect, Outcome};
use rackmem_proto::wire::{Kind, Reason};

/// How many lines a transaction over four objects stores.
fn whole() -> usize {
    let mut rack = Rack::new(None);
    let sent = rack.begin(&[0, 1, 2, 3], 1);
    assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
    rack.stored.len()
}

/// A keeper dies after each line that a second transaction stores: all of it is there, or nothing.
fn dies_everywhere(broken: Option<Defect>) -> Result<(), Vec<u8>> {
    // A record of four objects takes several lines, and its objects are not all in the first one.
    for stores in 0..=whole() + 4 {
        let mut rack = Rack::new(broken);
        let sent = rack.begin(&[0, 1, 2, 3], 1);
        assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
        rack.stores = stores;
        let sent = rack.begin(&[2, 3, 4, 5], 2);
        let ended = rack.ends(&sent);
        let again = rack.next_keeper();
        let seen = rack.read();
        let (before, after) = ([1, 1, 1, 1, 0, 0], [1, 1, 2, 2, 2, 2]);
        if seen != after && (seen != before || ended.is_some()) {
            return Err(seen);
        }
        if ended.is_none() {
            assert_eq!(rack.ends(&again), Some(Outcome::Committed), "{stores}");
        }
        if rack.read() != after {
            return Err(rack.read());
        }
    }
    Ok(())
}

#[test]
fn a_keeper_that_dies_at_any_line_leaves_all_or_nothing() {
    assert!(whole() > 1 + 4, "a record takes several lines");
    assert_eq!(dies_everywhere(None), Ok(()));
}

/// A transaction that writes what it has read is one with its own outcome, not one that was
/// overtaken: its coordinator asks the next keeper, who finds the objects changed by the record.
#[test]
fn a_transaction_that_has_changed_what_it_read_is_not_in_its_own_way() {
    for stores in 0..=whole() {
        let mut rack = Rack::new(None);
        rack.stores = stores;
        let used = [0, 1, 2, 3].map(|nth| Used {
            object: object(nth),
            read: Some(2),
            write: Some(&[1; 8]),
        });
        let sent = rack.commit(&used);
        // Its answers are lost.
        let whole = sent.iter().all(|packet| rack.serve(packet).is_some());
        assert_eq!(whole, stores == self::whole(), "the keeper died");
        let again = rack.next_keeper();
        assert_eq!(rack.ends(&again), Some(Outcome::Committed), "{stores}");
        assert_eq!(rack.read(), [1, 1, 1, 1, 0, 0]);
    }
}

#[test]
fn the_lines_of_the_last_record_stay_until_the_next_one_is_there() {
    assert!(dies_everywhere(Some(Defect::OneStretch)).is_err());
    assert!(dies_everywhere(Some(Defect::ForgetRecord)).is_err());
}

/// A keeper has some lines of a record when another call is served,
/// which changes an object that the record has: what those lines say of it is no longer so,
/// and they are stored anew.
#[test]
fn lines_of_a_record_that_another_call_has_overtaken_are_stored_anew() {
    // Of the lines that a transaction stores, four are its objects'.
    for first in 0..whole() - 4 {
        for more in 0..=whole() + 1 {
            let mut rack = Rack::new(None);
            rack.stores = first;
            let sent = rack.begin(&[0, 1, 2, 3], 1);
            assert_eq!(rack.ends(&sent), None);
            rack.stores = usize::MAX;
            let other = rack.call(Kind::ObjWrite, (3, 1), object(1).tag, 8);
            assert_eq!(other.0, Reason::None);
            rack.stores = more;
            let ended = rack.ends(&sent);
            let again = rack.next_keeper();
            let (seen, after) = (rack.read(), [1, 1, 1, 1, 0, 0]);
            let none = ended.is_none() && seen == [0, 7, 0, 0, 0, 0];
            assert!(none || seen == after, "{first} {more}: {seen:?}");
            if ended.is_none() {
                assert_eq!(rack.ends(&again), Some(Outcome::Committed));
            }
            assert_eq!(rack.read(), after, "{first} {more}");
        }
    }
}
