//! The parts of the library that know no rack: the table of files, and locked bytes.

#[path = "../src/spans.rs"]
mod spans;
#[path = "../src/table.rs"]
mod table;

use rackmem::{Window, WindowMut};
use spans::{MOST, Span, changed, in_the_way};
use std::sync::atomic::AtomicU64;
use table::State;

fn words(bytes: usize) -> Vec<AtomicU64> {
    (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect()
}

fn span(owner: u32, start: u64, end: u64, alone: bool) -> Span {
    Span {
        start,
        end,
        alone,
        owner: (7, owner),
        pid: owner,
    }
}

#[test]
fn readers_go_together_and_writers_alone() {
    let held = [span(1, 10, 20, false), span(2, 30, 40, true)];
    let way = |wanted| in_the_way(&held, &wanted).map(|span| span.owner.1);
    assert_eq!(way(span(3, 0, 30, false)), None);
    assert_eq!(way(span(3, 15, 16, true)), Some(1));
    assert_eq!(way(span(3, 39, 50, false)), Some(2));
    assert_eq!(way(span(3, 20, 30, true)), None, "between the two");
    assert_eq!(way(span(2, 30, u64::MAX, true)), None, "its own");
}

#[test]
fn a_part_is_unlocked_or_changed_and_the_rest_stays() {
    let held = [span(1, 10, 40, true), span(2, 50, 60, false)];
    let left = changed(&held, &span(1, 20, 30, true), false);
    assert_eq!(
        left,
        [span(1, 10, 20, true), span(1, 30, 40, true), held[1]]
    );
    let other = changed(&held, &span(1, 20, 30, false), true);
    let whole = [
        span(1, 10, 20, true),
        span(1, 30, 40, true),
        held[1],
        span(1, 20, 30, false),
    ];
    assert_eq!(other, whole);
    assert_eq!(
        changed(&held, &span(1, 0, u64::MAX, false), false),
        [held[1]]
    );
}

#[test]
fn neighbours_of_one_owner_are_one() {
    let mut held = Vec::new();
    for start in 0..MOST as u64 * 2 {
        held = changed(&held, &span(1, start, start + 1, true), true);
    }
    assert_eq!(held, [span(1, 0, MOST as u64 * 2, true)]);
}

#[test]
fn spans_are_of_one_file() {
    let page = words(64 << 10);
    let mut view = WindowMut::new(&page, 0, 64 << 10);
    let held = [span(1, 10, 20, false), span(2, 30, u64::MAX, true)];
    assert!(spans::store(&mut view, 3, &held));
    assert_eq!(spans::load(&view, 3), held);
    assert_eq!(spans::load(&view, 4), [], "the next file of this row");
    let version = view.u64(spans::VERSION);
    assert!(!spans::store(&mut view, 3, &vec![held[0]; MOST + 1]));
    assert_eq!(spans::load(&view, 3), held);
    assert_eq!(view.u64(spans::VERSION), version);
}

#[test]
fn a_table_has_as_many_files_as_it_says() {
    let page = words(table::TABLE);
    let mut view = WindowMut::new(&page, 0, table::TABLE);
    const { assert!(table::TABLE <= 64 << 10) };
    for nth in 0..table::FILES {
        let at = table::free(&view, 0).unwrap();
        let name = format!("{nth:0>width$}", width = table::NAME);
        let row = table::make(&mut view, at, &name, 0o600);
        assert_eq!(row.number, nth as u64 + 1, "numbers differ");
        assert_eq!(table::find(&view, &name), Some(at));
    }
    assert_eq!(table::free(&view, 0), None);
    let name = "0".repeat(table::NAME);
    let at = table::find(&view, &name).unwrap();
    let mut row = table::row(&view, at);
    (row.state, row.users) = (State::Unlinked, 0b100);
    table::put(&mut view, at, &row);
    assert_eq!(table::find(&view, &name), None);
    assert_eq!(table::free(&view, 0b100), None, "a live node has it open");
    assert_eq!(table::free(&view, 0b011), Some(at));
    let again = table::make(&mut view, at, "again", 0);
    assert_eq!(again.life, row.life + 1);
}

#[test]
fn a_node_that_comes_again_uses_nothing() {
    let page = words(table::TABLE);
    let mut view = WindowMut::new(&page, 0, table::TABLE);
    table::enter(&mut view, 2, (100, 1));
    table::enter(&mut view, 5, (200, 1));
    let mut row = table::make(&mut view, 0, "file", 0);
    (row.users, row.mappers) = (0b10_0100, 0b100);
    table::put(&mut view, 0, &row);
    let live = |view: &Window<'_>| table::live(view, |node, life| (node, life) != (5, 1));
    assert_eq!(live(&view), 0b100, "that life of node 5 is over");
    assert_eq!(table::same_pid(&view, (3, 100), 0b100), Some(2));
    assert_eq!(table::same_pid(&view, (2, 100), 0b100), None, "its own");
    assert_eq!(table::same_pid(&view, (3, 200), 0b100), None, "dead");
    table::enter(&mut view, 2, (101, 2));
    let row = table::row(&view, 0);
    assert_eq!((row.users, row.mappers), (0b10_0000, 0));
}
