//! One object of two words: readers that copy it while writers write it, and what takes its place.

use super::whole::{meta, read, read_known, release, set_meta, take, version};
use crate::Scenario;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use loom::thread;
use rackmem_proto::sabre::Meta;
use rackmem_proto::sabre::rule::{Refusal, Wanted};
use std::sync::Arc;

pub const ALL: &[Scenario] = &[
    ("a read during a write of an object", a_write),
    ("a short read during a write of an object", a_write_beside_a_short_read),
    ("two writers of an object", two_writers),
    ("a read while an object is freed and another takes its place", another_object),
    ("a short read while an object is freed and another takes its place", another_for_a_short_read),
    ("an object that is read by who keeps writers out", kept_out),
];

const LIVE: Meta = Meta {
    generation: 1,
    class: 1,
    live: true,
    len: 16,
};
const WANTED: Wanted = Wanted {
    generation: 1,
    known: 0,
};

type Words = Arc<[AtomicU64; 4]>;

fn object() -> Words {
    let words = [2, LIVE.to_word(), 10, 10];
    Arc::new(words.map(AtomicU64::new))
}

fn write(words: &Words, change: impl Fn(u64) -> u64) -> bool {
    let before = version(&words[..]);
    let done = take(&words[..], before);
    if done {
        for word in &words[2..] {
            word.store(change(word.load(Relaxed)), Relaxed);
        }
        release(&words[..], before + 2);
    }
    done
}

fn pair(words: &Words) -> Result<(u64, [u64; 2]), Refusal> {
    let copy = |bytes: &[AtomicU64], _| [bytes[0].load(Relaxed), bytes[1].load(Relaxed)];
    read(&words[..], WANTED, copy)
}

/// The same by a reader that knows the header's second word.
fn short_pair(words: &Words) -> Result<(u64, [u64; 2]), Refusal> {
    let mut seen = [0; 2];
    let copy = |bytes: &[AtomicU64]| seen = [bytes[0].load(Relaxed), bytes[1].load(Relaxed)];
    let version = read_known(&words[..], (LIVE.to_word(), 0), copy);
    // Why not is the long read's to say.
    version.map_or_else(|| pair(words), |version| Ok((version, seen)))
}

type Look = fn(&Words) -> Result<(u64, [u64; 2]), Refusal>;

fn a_write() {
    beside_a_write(pair);
}

fn a_write_beside_a_short_read() {
    beside_a_write(short_pair);
}

fn another_object() {
    beside_another_object(pair);
}

fn another_for_a_short_read() {
    beside_another_object(short_pair);
}

fn beside_a_write(look: Look) {
    let words = object();
    let there = words.clone();
    let writer = thread::spawn(move || write(&there, |_| 11));
    if let Ok((version, [first, second])) = look(&words) {
        assert_eq!(first, second, "parts of two writes");
        assert_eq!(first, 9 + version / 2, "another version's bytes");
    }
    assert!(writer.join().expect("it writes"));
    assert_eq!(look(&words), Ok((4, [11, 11])));
}

fn two_writers() {
    let words = object();
    let there = words.clone();
    let writer = thread::spawn(move || write(&there, |word| word + 1));
    let mut made = u64::from(write(&words, |word| word + 1));
    made += u64::from(writer.join().expect("it writes"));
    assert_eq!(pair(&words), Ok((2 + 2 * made, [10 + made; 2])), "a lost write");
}

fn beside_another_object(look: Look) {
    let words = object();
    let there = words.clone();
    let home = thread::spawn(move || {
        // Freed, and given out again.
        for (live, generation, value) in [(false, 2, None), (true, 2, Some(20))] {
            let before = version(&there[..]);
            assert!(take(&there[..], before));
            set_meta(
                &there[..],
                Meta {
                    live,
                    generation,
                    ..meta(&there[..])
                },
            );
            for word in there[2..].iter().filter(|_| value.is_some()) {
                word.store(value.unwrap_or_default(), Relaxed);
            }
            release(&there[..], before + 2);
        }
    });
    if let Ok((_, value)) = look(&words) {
        assert_eq!(value, [10, 10], "another object's bytes");
    }
    home.join().expect("it frees");
    assert_eq!(look(&words), Err(Refusal::Gone));
}

fn kept_out() {
    let words = object();
    let there = words.clone();
    let writer = thread::spawn(move || write(&there, |_| 11));
    let before = version(&words[..]);
    if take(&words[..], before) {
        let value = [words[2].load(Relaxed), words[3].load(Relaxed)];
        release(&words[..], before);
        assert_eq!(value[0], value[1], "parts of two writes");
        assert_eq!(value[0], 9 + before / 2, "another version's bytes");
    }
    writer.join().expect("it writes or not");
}
