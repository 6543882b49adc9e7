use super::{Heap, NoLock};
use crate::error::DbmError;
use crate::{Database, Kind, MAX_KEY, MAX_VALUE};
use std::collections::BTreeMap;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn database(kind: Kind, pages: usize) -> Database<Heap, NoLock> {
    Database::create(Heap::new(pages), NoLock, kind).unwrap()
}

/// Keys that many are asked for, most of them short.
fn key(rng: &mut fastrand::Rng) -> Vec<u8> {
    let number = rng.u32(0..2000);
    let long = if number.is_multiple_of(50) {
        MAX_KEY
    } else {
        0
    };
    let mut key = format!("{number:04}").into_bytes();
    key.resize(key.len().max(long), b'k');
    key
}

fn value(rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = match rng.u8(0..8) {
        0 => rng.usize(0..=MAX_VALUE),
        _ => rng.usize(0..40),
    };
    vec![rng.u8(..); len]
}

fn all(database: &Database<Heap, NoLock>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let each = &mut |key: &[u8], value: &[u8]| {
        all.push((key.to_vec(), value.to_vec()));
        true
    };
    database.view(|section| section.scan(b"", each)).unwrap();
    all
}

fn agrees(database: &Database<Heap, NoLock>, map: &Map) {
    let mut told = all(database);
    if database.kind() == Kind::Hash {
        told.sort();
    }
    assert!(told.iter().map(|(key, value)| (key, value)).eq(map.iter()));
    assert_eq!(database.check().unwrap().records, map.len() as u64);
}

/// Few buckets and long chains, many leaves and several levels: records come and go until all are
/// gone, and are where the map has them.
#[test]
fn records_come_and_go_as_in_a_map() {
    for (kind, _) in Kind::ALL {
        let (database, mut map) = (database(kind, 1200), Map::new());
        let mut rng = fastrand::Rng::with_seed(7);
        for round in 0..12_000 {
            let key = key(&mut rng);
            // It grows at first, and shrinks later.
            if rng.u32(0..12_000) > round {
                let value = value(&mut rng);
                let had = database.set(&key, &value).unwrap();
                assert_eq!(had, map.insert(key.clone(), value).is_some());
            } else {
                let had = database.remove(&key).unwrap();
                assert_eq!(had, map.remove(&key).is_some());
            }
            let asked = self::key(&mut rng);
            assert_eq!(database.get(&asked).unwrap(), map.get(&asked).cloned());
            if round % 1000 == 0 {
                agrees(&database, &map);
            }
        }
        agrees(&database, &map);
        for key in std::mem::take(&mut map).into_keys() {
            assert!(database.remove(&key).unwrap());
        }
        agrees(&database, &map);
    }
}

#[test]
fn a_tree_is_read_from_any_key_on() {
    let database = database(Kind::Tree, 400);
    for number in (0..4000u32).rev() {
        database.set(&(2 * number).to_be_bytes(), b"value").unwrap();
    }
    for from in [0u32, 1, 4321, 7998, 7999] {
        let mut next = from.div_ceil(2) * 2;
        let each = &mut |key: &[u8], _: &[u8]| {
            assert_eq!(key, next.to_be_bytes());
            next += 2;
            true
        };
        database
            .view(|it| it.scan(&from.to_be_bytes(), each))
            .unwrap();
        assert_eq!(next, 8000);
    }
}

/// A full database says so, and is as it was; room that is given back is used again.
#[test]
fn a_full_database_says_so_and_changes_nothing() {
    for (kind, _) in Kind::ALL {
        let (database, mut map) = (database(kind, 40), Map::new());
        let mut rng = fastrand::Rng::with_seed(3);
        let mut sizes = Vec::new();
        for _ in 0..3 {
            loop {
                let (key, value) = (rng.u64(..).to_le_bytes().to_vec(), vec![1; 400]);
                let more = [9; MAX_VALUE];
                // The second record of a section does not fit: the first one is not there, either.
                let told = database.change(|section| {
                    section.set(&key, &value)?;
                    section.set(b"other", &more)?;
                    section.remove(b"other")
                });
                match told {
                    Ok(_) => map.insert(key, value),
                    Err(DbmError::Full) => break,
                    Err(error) => panic!("{error}"),
                };
            }
            agrees(&database, &map);
            sizes.push(map.len());
            for key in std::mem::take(&mut map).into_keys() {
                assert!(database.remove(&key).unwrap());
            }
            agrees(&database, &map);
        }
        // A hash is full when one chain cannot grow; but it is never much emptier than before.
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least > 40 && least * 2 > *most, "{sizes:?}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    for (kind, _) in Kind::ALL {
        let heap = Heap::new(8);
        let open = || Database::open(heap.clone(), NoLock);
        let create = || Database::create(heap.clone(), NoLock, kind);
        assert!(matches!(open().unwrap_err(), DbmError::NoDatabase));
        let database = create().unwrap();
        assert!(matches!(create().unwrap_err(), DbmError::Exists));
        assert_eq!(open().unwrap().kind(), kind);
        let (key, value) = ([1; MAX_KEY + 1], [1; MAX_VALUE + 1]);
        for told in [database.set(&key, b""), database.set(b"", &value)] {
            assert!(matches!(told.unwrap_err(), DbmError::TooLong { .. }));
        }
        assert!(!database.set(&key[1..], &value[1..]).unwrap());
        let small = Database::create(Heap::new(3), NoLock, kind);
        assert!(matches!(
            small.unwrap_err(),
            DbmError::TooSmall { least: 4 }
        ));
    }
}
