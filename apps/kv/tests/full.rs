//! Full memory: what does not fit is refused with `OutOfMemory`, and what was there before stays.

use rackmem_kv::memory::{HeapMemory, Memory, MemoryError};
use rackmem_kv::{Error, Options, Store};

const BLOCK: usize = 256;
const KEY: &[u8] = b"grows";

type Heap = Store<HeapMemory>;

/// A store of one bucket, whose head page has a short value and several others.
fn store() -> (HeapMemory, Heap) {
    let memory = HeapMemory::new(BLOCK, 1 << 20, 1);
    let options = Options {
        buckets: 1,
        ..Options::default()
    };
    let store = Store::open(memory.clone(), options).unwrap();
    store.set(KEY, b"short").unwrap();
    for name in [b"a", b"b"] {
        store.set(name, b"in the same page").unwrap();
    }
    (memory, store)
}

/// Takes every block that is left.
fn fill(memory: &HeapMemory) {
    loop {
        match memory.alloc(BLOCK) {
            Ok(_) => {}
            Err(MemoryError::OutOfMemory) => break,
            Err(error) => panic!("{error}"),
        }
    }
}

fn get(store: &Heap, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    store.get(key, &mut value).unwrap().then_some(value)
}

/// Makes a value of so many bytes of the key's, and says what it is then.
type Grow = fn(&Heap, usize) -> Result<Vec<u8>, Error>;

const WAYS: [(&str, Grow); 5] = [
    ("set", |store, len| {
        store.set(KEY, &vec![b'x'; len]).map(|()| vec![b'x'; len])
    }),
    ("set_many", |store, len| {
        let long = vec![b'x'; len];
        let pairs: [(&[u8], &[u8]); 2] = [(b"a", b"other"), (KEY, &long)];
        store.first().set_many(&pairs, false).map(|_| long)
    }),
    ("append", |store, len| {
        let more = vec![b'x'; len - 5];
        let appended = store.first().append(KEY, &more);
        appended.map(|_| [b"short".as_slice(), &more].concat())
    }),
    ("set_range", |store, len| {
        let more = vec![b'x'; len - 5];
        let set = store.first().set_range(KEY, 5, &more);
        set.map(|_| [b"short".as_slice(), &more].concat())
    }),
    ("rename", |store, len| {
        let long = vec![b'x'; len];
        store.set(b"b", &long)?;
        store.first().rename(b"b", KEY, true).map(|_| long)
    }),
];

#[test]
fn a_value_that_cannot_grow_stays_as_it_was() {
    let mut grown_in_all = 0;
    for (name, grow) in WAYS {
        // Inline, where the record must move to another page, and in memory of its own.
        let (mut kept, mut grown) = (0, 0);
        for len in 6..=3 * BLOCK {
            let (memory, store) = store();
            fill(&memory);
            let live = memory.live_bytes();
            match grow(&store, len) {
                Ok(value) => {
                    grown += 1;
                    assert_eq!(get(&store, KEY), Some(value), "{name} {len}");
                }
                Err(Error::Memory(MemoryError::OutOfMemory)) => {
                    kept += 1;
                    assert_eq!(get(&store, KEY), Some(b"short".to_vec()), "{name} {len}");
                    let other = get(&store, b"a");
                    assert_eq!(other, Some(b"in the same page".to_vec()), "{name} {len}");
                }
                Err(error) => panic!("{name} {len}: {error}"),
            }
            assert_eq!(
                store.first().len().unwrap(),
                expected(&store),
                "{name} {len}"
            );
            assert_eq!(memory.live_bytes(), live, "{name} {len}: memory has leaked");
        }
        assert!(kept > BLOCK, "{name}: {kept} kept, {grown} grown");
        grown_in_all += grown;
    }
    assert!(grown_in_all > 8, "{grown_in_all}");
}

/// The keys that are there, one by one.
fn expected(store: &Heap) -> usize {
    let names: [&[u8]; 3] = [KEY, b"a", b"b"];
    names
        .iter()
        .filter(|name| get(store, name).is_some())
        .count()
}

#[test]
fn a_record_that_has_no_page_to_move_to_is_refused_before_it_is_taken_out() {
    let (memory, store) = store();
    fill(&memory);
    // Short enough for a page, too long for what is left of this one.
    let len = (6..BLOCK).find(|len| store.set(KEY, &vec![b'x'; *len]).is_err());
    let len = len.expect("the page is full at some length");
    assert_eq!(get(&store, KEY), Some(vec![b'x'; len - 1]));
    assert!(store.remove(b"a").unwrap());
    store.set(KEY, &vec![b'y'; len]).expect("there is room now");
    assert_eq!(get(&store, KEY), Some(vec![b'y'; len]));
}
