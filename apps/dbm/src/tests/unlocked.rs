//! What a lock keeps from happening is noticed where it happens.

use super::{Heap, NoLock};
use crate::{Database, DbmError, Kind};
use std::sync::atomic::Ordering::Relaxed;

fn two(kind: Kind) -> (Heap, [Database<Heap, NoLock>; 2]) {
    let heap = Heap::new(64);
    let one = Database::create(heap.clone(), NoLock, kind).unwrap();
    let other = Database::open(heap.clone(), NoLock).unwrap();
    (heap, [one, other])
}

#[test]
fn a_lock_that_does_not_exclude_is_noticed() {
    for (kind, _) in Kind::ALL {
        let (_, [one, other]) = two(kind);
        one.set(b"key", b"before").unwrap();
        // Somebody writes while this one reads.
        let told = one.view(|section| {
            other.set(b"key", b"between").unwrap();
            section.get(b"key")
        });
        assert!(matches!(told.unwrap_err(), DbmError::Torn));
        // Somebody writes while this one does: what was written first is not overwritten.
        let told = one.change(|section| {
            section.set(b"key", b"after")?;
            other.set(b"key", b"meanwhile").unwrap();
            Ok(())
        });
        assert!(matches!(told.unwrap_err(), DbmError::Torn));
        assert_eq!(one.get(b"key").unwrap().as_deref(), Some(&b"meanwhile"[..]));
        // Beside each other readers may be.
        let told = one.view(|section| {
            other.get(b"key").unwrap();
            section.get(b"key")
        });
        assert!(told.unwrap().is_some());
    }
}

#[test]
fn a_database_that_was_not_written_to_the_end_is_not_used() {
    for (kind, _) in Kind::ALL {
        let (heap, [one, other]) = two(kind);
        for number in 0..200u8 {
            one.set(&[number; 30], &[number; 200]).unwrap();
        }
        heap.writes.store(1, Relaxed);
        // Two pages are to be written at least, and one is.
        let told = one.change(|section| {
            section.set(&[0; 30], &[1; 300])?;
            section.set(&[199; 30], &[1; 300])
        });
        assert!(matches!(told.unwrap_err(), DbmError::Rack(_)));
        heap.writes.store(i64::MAX, Relaxed);
        assert!(matches!(other.get(&[0; 30]).unwrap_err(), DbmError::Torn));
        assert!(matches!(other.set(b"", b"").unwrap_err(), DbmError::Torn));
    }
}
