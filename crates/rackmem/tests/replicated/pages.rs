//! Arrays of locks over pages in coherent memory with copies: a page is as the last one left it
//! that was inside, whoever dies, and takes memory at a node while there is room.

use crate::locks::{MORE, die_and_come_back, kill};
use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, MODES, eventually, rack};
use rackmem::locked::{Content, Entered, Reading, RwLockArray, Writing};
use rackmem::{LockError, LockShape, Node, RegionError, RegionSpec, Survives};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

const BLOCK: usize = 4096;
const LEN: usize = 4032;
const ROOM: usize = RwLockArray::room_in_region(LEN);

fn spec(pages: usize) -> RegionSpec {
    let spec = RegionSpec::new("pages", pages * ROOM).copies(3);
    spec.survives(Survives::Writes)
}

fn pages(node: &Node, count: usize) -> RwLockArray {
    let region = node.create_region(&spec(count)).unwrap();
    RwLockArray::in_region(&region, 0, count, LEN).unwrap()
}

fn write(pages: &RwLockArray, nth: usize, word: u64) {
    let mut held = pages.write(nth).unwrap();
    held.view_mut(16).set_u64(8, word);
}

/// A word of a page, zero where the page is shorter, and what its reader is told.
fn read(pages: &RwLockArray, nth: usize) -> (u64, Content) {
    let held = pages.read(nth).unwrap();
    let view = held.view();
    let word = if view.len() < 16 { 0 } else { view.u64(8) };
    (word, held.content())
}

fn enter(pages: &RwLockArray, nth: usize) -> Entered<Writing> {
    pages.enter(nth, LONG).unwrap().unwrap()
}

#[test]
fn they_are_pages_as_of_any_array() {
    for fabric in FABRICS {
        for mode in MODES {
            let case = format!("{fabric:?}, {mode:?}");
            let rack = rack(fabric, mode, 3);
            let arrays: Vec<RwLockArray> = rack.nodes().iter().map(|node| pages(node, 4)).collect();
            std::thread::scope(|scope| {
                for array in &arrays {
                    scope.spawn(move || {
                        for nth in 0..60 {
                            assert_eq!(read(array, 3), (0, Content::Current));
                            let mut held = array.write(nth % 3).unwrap();
                            // Its end as its beginning: all of it goes round.
                            for at in [0, LEN - 8] {
                                let mut view = held.view_mut(LEN);
                                view.set_u64(at, view.u64(at) + 1);
                            }
                        }
                    });
                }
            });
            for array in &arrays {
                for nth in 0..3 {
                    let held = array.read(nth).unwrap();
                    let ends = [0, LEN - 8].map(|at| held.view().u64(at));
                    assert_eq!(ends, [60, 60], "{case}");
                }
            }
            // Of a page that is cut short nothing is left behind, here or with the copies.
            let mut held = arrays[1].write(0).unwrap();
            held.view_mut(8).set_u64(0, 7);
            held.trim(8);
            drop(held);
            let held = arrays[2].read(0).unwrap();
            let view = held.view();
            let words = (0..view.len() / 8).map(|nth| view.u64(8 * nth));
            assert_eq!(words.sum::<u64>(), 7, "{case}");
        }
    }
}

#[test]
fn refusals_say_why() {
    let rack = rack(FABRICS[0], MODES[0], 3);
    let node = rack.node(0);
    let region = node.create_region(&spec(4)).unwrap();
    let shape = |at, count, len| match RwLockArray::in_region(&region, at, count, len) {
        Err(RegionError::Lock(LockError::BadShape { why })) => Some(why),
        Err(RegionError::OutOfBounds { .. }) => None,
        other => panic!("{other:?}"),
    };
    let two = Some(LockShape::TwoBlocks { block: BLOCK });
    for (at, len) in [
        (16, LEN),
        (0, BLOCK - 8),
        (0, 1 << 20),
        (0, usize::MAX & !7),
        (64, 64),
    ] {
        assert_eq!(shape(at, 1, len), two, "{at}, {len}");
    }
    for len in [0, 12] {
        assert_eq!(shape(0, 1, len), Some(LockShape::Unaligned));
    }
    for (at, count) in [(0, 5), (4 * ROOM, 1), (0, usize::MAX)] {
        assert_eq!(shape(at, count, LEN), None, "{at}, {count}");
    }
    assert!(RwLockArray::in_region(&region, 0, 4, BLOCK - 16).is_ok());
    let none = Err(RegionError::Lock(LockError::BadShape {
        why: LockShape::NoCopies,
    }));
    let rest = RegionSpec::new("rest", ROOM)
        .copies(3)
        .survives(Survives::Rest);
    for spec in [rest, RegionSpec::new("plain", ROOM)] {
        let region = node.create_region(&spec).unwrap();
        let made = RwLockArray::in_region(&region, 0, 1, LEN);
        assert_eq!(made.map(drop), none);
    }
}

/// Who leaves a page as it was writes nothing, and who has changed it once; what is kept before it
/// is left is not written again.
#[test]
fn what_was_not_changed_is_not_written() {
    let rack = rack(FABRICS[0], MODES[0], 3);
    let array = pages(&rack.node(1), 1);
    write(&array, 0, 1);
    let home = || rack.node(1).metrics().events.evict_modified;
    let before = home();
    let entered = enter(&array, 0);
    array.leave(entered);
    let entered: Option<Entered<Reading>> = array.enter(0, LONG).unwrap();
    array.leave(entered.unwrap());
    assert_eq!(home(), before);
    let mut entered = enter(&array, 0);
    array.view_mut(&mut entered, 16).set_u64(8, 2);
    array.keep(&mut entered, LONG).unwrap();
    let kept = home();
    assert!(kept > before);
    array.leave(entered);
    assert_eq!(home(), kept);
    let mut entered = enter(&array, 0);
    array.trim(&mut entered, 0);
    array.leave(entered);
    assert!(home() > kept, "to cut it short is a change");
}

/// Nodes die inside and outside, the one that serves the locks among them; each page is as the last
/// one left it that has left.
#[test]
fn a_page_is_as_it_was_left() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("pages", fabric, 4, MORE);
        let (mut racks, mut nodes) = cluster.nodes(4);
        let arrays: Vec<RwLockArray> = nodes.iter().map(|node| pages(node, 6)).collect();
        let [new, handed, sole, inside, shared] = [0, 1, 2, 3, 4];
        write(&arrays[3], handed, 1);
        // It is as long as it was, whatever its end is.
        arrays[0].write(sole).unwrap().view_mut(LEN);
        for (at, node) in [(handed, 0), (sole, 0), (inside, 3), (shared, 0)] {
            write(&arrays[node], at, 10 + at as u64);
        }
        assert_eq!(read(&arrays[2], shared).0, 10 + shared as u64);
        let mut dies_inside = enter(&arrays[0], inside);
        arrays[0].view_mut(&mut dies_inside, 16).set_u64(8, 99);
        kill(&cluster, &mut racks, &nodes, 0);
        for node in [1, 2, 3] {
            let told = |at| read(&arrays[node], at);
            assert_eq!(told(new), (0, Content::Current), "{fabric}");
            for at in [handed, sole, inside, shared] {
                assert_eq!(told(at).0, 10 + at as u64, "{fabric}, {node}, {at}");
            }
            assert_eq!(told(inside).1, Content::OwnerDied, "{fabric}");
            let held = arrays[node].read(sole).unwrap();
            assert_eq!(held.view().len(), LEN, "{fabric}, {node}");
            drop(held);
        }
        for at in 0..6 {
            write(&arrays[2], at, 20 + at as u64);
        }
        // It serves them again, and has seen nothing of what has become of them.
        racks[0] = Some(cluster.node(0));
        nodes[0] = racks[0].as_ref().unwrap().node(0);
        let again = pages(&nodes[0], 6);
        for at in 0..6 {
            let left = (20 + at as u64, Content::Current);
            assert_eq!(read(&again, at), left, "{fabric}");
            assert_eq!(read(&arrays[1], at), left, "{fabric}");
        }
    }
}

/// A node gives pages up that it has no room for, also the one that serves them, and finds them
/// again; those that a thread is inside of stay.
#[test]
fn pages_are_given_up_and_found_again() {
    const PAGES: usize = 1024;
    for fabric in FABRICS {
        let rack = rack(fabric, MODES[0], 3);
        let arrays: Vec<RwLockArray> = rack.nodes().iter().map(|node| pages(node, PAGES)).collect();
        for (id, array) in arrays.iter().enumerate() {
            write(array, 7, 5);
            let held = array.read(7).unwrap();
            for nth in (0..PAGES).filter(|nth| *nth != 7) {
                let mut held = array.write(nth).unwrap();
                held.view_mut(LEN).set_u64(8, (id * PAGES + nth) as u64);
            }
            eventually("there is room again", || {
                // Threads that wait for a lock look for room, and agents where packets are sent.
                read(array, 8);
                let metrics = rack.node(id).lock_metrics();
                metrics.given_up > 0 && metrics.kept < PAGES * ROOM / 2
            });
            assert_eq!(held.view().u64(8), 5, "{fabric:?}, {id}");
        }
        for (id, array) in arrays.iter().enumerate() {
            for nth in (0..PAGES).filter(|nth| *nth != 7) {
                let last = (2 * PAGES + nth) as u64;
                assert_eq!(
                    read(array, nth),
                    (last, Content::Current),
                    "{fabric:?}, {id}"
                );
            }
        }
    }
}

/// Threads of all nodes count in pages while nodes die and come back: the sum is exact.
#[test]
fn counts_are_exact_while_nodes_die() {
    const PAGES: usize = 3;
    for fabric in NETWORKS {
        let cluster = Cluster::new("counted", fabric, 4, MORE);
        let (mut racks, mut nodes) = cluster.nodes(4);
        let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let stop = AtomicBool::new(false);
        let count = |array: RwLockArray, node: Node, dies: bool| {
            for round in 0.. {
                if stop.load(SeqCst) {
                    return;
                }
                begun.fetch_add(1, SeqCst);
                match array.write(round % PAGES) {
                    Ok(mut held) => {
                        let mut view = held.view_mut(8);
                        view.set_u64(0, view.u64(0) + 1);
                    }
                    Err(error) => {
                        assert!(dies, "{fabric}: {error}");
                        return;
                    }
                }
                // A node that is gone has not left the lock.
                if dies && node.confirm().is_err() {
                    return;
                }
                done.fetch_add(1, SeqCst);
            }
        };
        pages(&nodes[3], PAGES);
        std::thread::scope(|scope| {
            for id in [2, 3, 3] {
                let node = nodes[id].clone();
                scope.spawn(|| count(pages(&node, PAGES), node, false));
            }
            let more = |what: &str| {
                let before = done.load(SeqCst);
                eventually(what, || done.load(SeqCst) > before + 60);
            };
            let lives = (&mut racks[..], &mut nodes[..]);
            die_and_come_back((&cluster, "pages"), lives, more, |node| {
                let (count, array) = (&count, pages(&node, PAGES));
                scope.spawn(move || count(array, node, true));
            });
            stop.store(true, SeqCst);
        });
        let array = pages(&nodes[1], PAGES);
        let sum: u64 = (0..PAGES)
            .map(|at| array.read(at).unwrap().view().u64(0))
            .sum();
        let (begun, done) = (begun.load(SeqCst), done.load(SeqCst));
        assert!(
            (done..=begun).contains(&sum) && begun - done <= 3,
            "{fabric}: {done} done and {begun} begun made {sum}"
        );
    }
}
