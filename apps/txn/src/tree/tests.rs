//! A tree beside the standard library's.

use super::{Coming, Shape, Tree, pages_for};
use crate::access::{Access, Step};
use crate::layout::{Cell, Part};
use std::collections::{BTreeMap, HashMap};

/// Cells of this process.
#[derive(Default)]
struct Heap(HashMap<u64, Vec<u8>>);

impl Heap {
    fn of(&mut self, cell: Cell) -> &mut Vec<u8> {
        let zeros = || vec![0; cell.bytes as usize];
        self.0.entry(cell.key()).or_insert_with(zeros)
    }
}

impl Access for Heap {
    fn read(&mut self, cell: Cell) -> Step<&[u8]> {
        Ok(self.of(cell))
    }

    fn claim(&mut self, cell: Cell) -> Step<&[u8]> {
        Ok(self.of(cell))
    }

    fn change(&mut self, cell: Cell) -> Step<&mut [u8]> {
        Ok(self.of(cell))
    }

    fn kept(&self, cell: Cell) -> Option<&[u8]> {
        self.0.get(&cell.key()).map(Vec::as_slice)
    }

    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>> {
        Ok(self.of(cell).clone())
    }
}

fn tree(rows: u64) -> Tree {
    let shape = Shape { key: 36, value: 56 };
    let space = Part::default().of_pages(pages_for(shape, rows, Coming::Anyhow));
    Tree {
        table: "rows",
        space,
        shape,
    }
}

fn key(number: u32) -> [u8; 36] {
    let mut key = [7; 36];
    key[32..].copy_from_slice(&number.to_be_bytes());
    key
}

fn all(tree: &Tree, heap: &mut Heap, from: u32, to: u32) -> Vec<(u32, u8)> {
    let mut all = Vec::new();
    let (from, to) = (key(from), key(to));
    let number = |key: &[u8]| u32::from_be_bytes(key[32..].try_into().unwrap());
    tree.scan(heap, (&from, &to), &mut |key, value| {
        all.push((number(key), value[0]));
        true
    })
    .unwrap();
    all
}

#[test]
fn rows_come_and_go_as_in_a_map() {
    let (tree, mut heap) = (tree(20_000), Heap::default());
    let (mut map, mut rng) = (BTreeMap::new(), fastrand::Rng::with_seed(5));
    for round in 0..60_000_u32 {
        let number = rng.u32(0..9_000);
        // At first more rows come than go, then more go than come.
        let comes = rng.u32(0..60_000) > round;
        let is_there = map.contains_key(&number);
        if comes && !is_there {
            tree.insert(&mut heap, &key(number), &[round as u8; 56])
                .unwrap();
            map.insert(number, round as u8);
        } else if !comes {
            let was_there = tree.remove(&mut heap, &key(number)).unwrap();
            assert_eq!(was_there, map.remove(&number).is_some());
        } else {
            let value = tree.get(&mut heap, &key(number)).unwrap().unwrap();
            assert_eq!(Some(&value[0]), map.get(&number));
        }
        if round % 2_000 == 0 {
            let (from, to) = (rng.u32(0..9_000), rng.u32(0..9_000));
            let range = map.range(from..to.max(from));
            let range: Vec<_> = range.map(|(key, value)| (*key, *value)).collect();
            assert_eq!(all(&tree, &mut heap, from, to.max(from)), range);
        }
    }
    for number in map.into_keys() {
        assert!(tree.remove(&mut heap, &key(number)).unwrap());
    }
    assert!(all(&tree, &mut heap, 0, u32::MAX).is_empty());
    tree.insert(&mut heap, &key(3), &[3; 56]).unwrap();
    assert_eq!(all(&tree, &mut heap, 0, u32::MAX), [(3, 3)]);
}

#[test]
fn a_queue_uses_its_pages_again() {
    let (tree, mut heap) = (tree(200), Heap::default());
    for number in 0..20_000 {
        tree.insert(&mut heap, &key(number), &[1; 56]).unwrap();
        if let Some(oldest) = number.checked_sub(150) {
            let first = tree.first(&mut heap, (&key(0), &key(u32::MAX)));
            assert_eq!(first.unwrap().unwrap().0, key(oldest));
            assert!(tree.remove(&mut heap, &key(oldest)).unwrap());
        }
    }
    assert_eq!(all(&tree, &mut heap, 0, u32::MAX).len(), 150);
}

#[test]
fn a_range_is_changed() {
    let (tree, mut heap) = (tree(1_000), Heap::default());
    for number in 0..1_000 {
        tree.insert(&mut heap, &key(number), &[0; 56]).unwrap();
    }
    let changed = tree.update(&mut heap, (&key(100), &key(400)), &mut |value| {
        value[0] = 9;
        Ok(())
    });
    assert_eq!(changed.unwrap(), 300);
    let nines = all(&tree, &mut heap, 0, 1_000);
    let nines = nines.iter().filter(|(_, value)| *value == 9);
    assert!(nines.map(|(number, _)| *number).eq(100..400));
}

#[test]
fn a_full_tree_says_so() {
    let (tree, mut heap) = (tree(10), Heap::default());
    let mut some = (0..10_000).map(|number| tree.insert(&mut heap, &key(number), &[1; 56]));
    let full = some.find_map(Result::err);
    assert!(format!("{full:?}").contains("Full"), "{full:?}");
}
