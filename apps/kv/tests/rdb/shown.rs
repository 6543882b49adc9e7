//! Keys and values as text, the same that `make.py` makes of a server's answers.

use std::fmt::Write;

use rackmem_kv::rdb::{Entry, Stream, StreamId, Value};

/// All keys, sorted.
pub fn all(mut keys: Vec<(u64, Entry)>) -> String {
    keys.sort_by(|a, b| (a.0, &a.1.key).cmp(&(b.0, &b.1.key)));
    let mut text = String::new();
    for (database, entry) in &keys {
        let expiry = entry.expiry.map_or("-".into(), |at| at.to_string());
        let (key, kind) = (bytes(&entry.key), entry.value.type_name());
        writeln!(text, "{database} {key} {expiry} {kind}").unwrap();
        text += &of(&entry.value);
    }
    text
}

/// A value.
pub fn of(value: &Value) -> String {
    let mut lines = Vec::new();
    match value {
        Value::String(string) => lines.push(bytes(string)),
        Value::List(list) => lines.extend(list.iter().map(|one| bytes(one))),
        Value::Set(set) => lines.extend(sorted(set).iter().map(|one| bytes(one))),
        Value::Hash(pairs) => {
            let line =
                |(field, value): &(Vec<u8>, Vec<u8>)| format!("{}={}", bytes(field), bytes(value));
            lines.extend(sorted(pairs).iter().map(line));
        }
        Value::SortedSet(pairs) => {
            let mut pairs = pairs.clone();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            let line = |(member, score): &(Vec<u8>, f64)| {
                format!("{}={:016x}", bytes(member), score.to_bits())
            };
            lines.extend(pairs.iter().map(line));
        }
        Value::Stream(all) => stream(all, &mut lines),
    }
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn sorted<T: Ord + Clone>(some: &[T]) -> Vec<T> {
    let mut some = some.to_vec();
    some.sort();
    some
}

fn stream(stream: &Stream, lines: &mut Vec<String>) {
    for entry in &stream.entries {
        let pair =
            |(field, value): &(Vec<u8>, Vec<u8>)| format!(" {}={}", bytes(field), bytes(value));
        let pairs: Vec<_> = entry.fields.iter().map(pair).collect();
        lines.push(format!("{}{}", id(entry.id), pairs.concat()));
    }
    let tail = stream.tail.as_ref().unwrap();
    let (last, deleted, added) = (id(tail.last), id(tail.max_deleted), tail.added);
    lines.push(format!("last {last} deleted {deleted} added {added}"));
    for group in &tail.groups {
        let read = group.read.map_or("-".into(), |read| read.to_string());
        let (name, last) = (bytes(&group.name), id(group.last));
        lines.push(format!("group {name} last {last} read {read}"));
        for one in &group.pending {
            let consumer = bytes(&group.consumers[one.consumer].name);
            let (id, when, count) = (id(one.id), one.delivered, one.deliveries);
            lines.push(format!("  pending {id} {consumer} {when} {count}"));
        }
        for consumer in &group.consumers {
            let active = consumer.active.map_or("-".into(), |at| at.to_string());
            let (name, seen) = (bytes(&consumer.name), consumer.seen);
            lines.push(format!("  consumer {name} {seen} {active}"));
        }
    }
}

fn id(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

/// Bytes that can be read; of many, how many and a mix of them.
fn bytes(bytes: &[u8]) -> String {
    if bytes.len() > 40 {
        let mix = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |mix, byte| {
            (mix ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        return format!("#{}:{mix:016x}", bytes.len());
    }
    let one = |byte: &u8| match byte {
        b'-' | b'_' | b'.' | b':' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    let text: String = bytes.iter().map(one).collect();
    format!("'{text}'")
}

/// Fails at the first line that differs.
pub fn assert_same(have: &str, want: &str, name: &str) {
    for (number, (have, want)) in have.lines().zip(want.lines()).enumerate() {
        assert_eq!(have, want, "{name}, line {}", number + 1);
    }
    assert_eq!(have.lines().count(), want.lines().count(), "{name}");
}
