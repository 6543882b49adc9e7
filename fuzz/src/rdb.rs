//! Any bytes as a file of Redis, and as a value that it has dumped.

use rackmem_kv::rdb::dump::{self, Payload};
use rackmem_kv::rdb::{Body, Entry, Item, NEWEST, Reader, Value, Writer, checksum};

const FILES: [&[u8]; 4] = [
    include_bytes!("../../apps/kv/tests/rdb/oldest.rdb"),
    include_bytes!("../../apps/kv/tests/rdb/redis-6.rdb"),
    include_bytes!("../../apps/kv/tests/rdb/redis-7.rdb"),
    include_bytes!("../../apps/kv/tests/rdb/valkey.rdb"),
];
/// Bytes of the longest piece of a file that is a seed.
const MAX_SEED: usize = 2048;
/// What a file begins with that may have all that is read.
const HEAD: &[u8] = b"REDIS0011";
/// What ends a file whose checksum nobody compares.
const END: &[u8] = b"\xff\0\0\0\0\0\0\0\0";

/// What is read can be written, and reads as the same; nothing else happens.
pub fn fuzz(input: &[u8]) {
    for file in [input.to_vec(), [HEAD, input, END].concat()] {
        for (key, value) in keys(&file) {
            let body = Body::from(&value);
            let mut writer = Writer::new(Vec::new()).expect("memory takes all");
            let written = writer
                .key(0, &key, None, &body)
                .and_then(|()| writer.finish());
            let again = keys(&written.expect("memory takes all"));
            assert_eq!(again, [(key, plain(value.clone()))]);
            assert_eq!(payload(&dump::payload(body)), Some(plain(value)));
        }
    }
    let mut dumped = [input, &(NEWEST as u16).to_le_bytes()].concat();
    dumped.extend(checksum(0, &dumped).to_le_bytes());
    payload(&dumped);
}

/// The keys up to the first error.
fn keys(file: &[u8]) -> Vec<(Vec<u8>, Value)> {
    let (mut keys, mut whole) = (Vec::<(Vec<u8>, Value)>::new(), true);
    if let Ok(mut reader) = Reader::new(file) {
        while let Ok(Some(item)) = reader.next_item() {
            match item {
                Item::Key(Entry {
                    key, value, more, ..
                }) => {
                    keys.push((key, value));
                    whole = !more;
                }
                Item::Part { value, more } => {
                    let last = keys.last_mut().expect("a part follows a key");
                    last.1.extend(value);
                    whole = !more;
                }
                _ => {}
            }
        }
    }
    if !whole {
        keys.pop();
    }
    keys
}

fn payload(bytes: &[u8]) -> Option<Value> {
    let mut payload = Payload::new(bytes).ok()?;
    let mut value = payload.next_part().ok()??;
    while let Some(part) = payload.next_part().ok()? {
        value.extend(part);
    }
    Some(value)
}

/// Without what is in no file that is written.
fn plain(mut value: Value) -> Value {
    if let Value::Stream(stream) = &mut value {
        let groups = stream.tail.iter_mut().flat_map(|tail| &mut tail.groups);
        groups
            .flat_map(|group| &mut group.consumers)
            .for_each(|consumer| consumer.active = None);
    }
    value
}

/// The short items of files that servers saved, each by itself.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for file in FILES {
        let mut reader = Reader::new(file).expect("servers of Redis wrote these");
        let mut start = reader.offset() as usize;
        while let Ok(Some(_)) = reader.next_item() {
            let end = reader.offset() as usize;
            if end - start <= MAX_SEED {
                seeds.push(file[start..end].to_vec());
            }
            start = end;
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_read() {
        let read = |seed: &Vec<u8>| !keys(&[HEAD, seed, END].concat()).is_empty();
        let seeds = seeds();
        assert!(seeds.iter().filter(|seed| read(seed)).count() > 50);
        seeds.iter().for_each(|seed| fuzz(seed));
    }
}
