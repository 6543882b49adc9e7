use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

use super::{Listener, Message};
use crate::memory::{HeapMemory, Memory};
use crate::{ExpireIf, Options, Plan, Store};

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(10);

/// Keeps what it hears.
#[derive(Default)]
struct Diary {
    pages: Mutex<Vec<Message>>,
    more: Condvar,
}

impl Listener for Diary {
    fn hear(&self, message: &Message) {
        self.pages.lock().unwrap().push(message.clone());
        self.more.notify_all();
    }
}

impl Diary {
    /// Waits for a message, and forgets it and those before.
    fn until(&self, wanted: impl Fn(&Message) -> bool) {
        let pages = self.pages.lock().unwrap();
        let not_yet = |pages: &mut Vec<Message>| !pages.iter().any(&wanted);
        let (mut pages, late) = self.more.wait_timeout_while(pages, LONG, not_yet).unwrap();
        assert!(!late.timed_out(), "not among {pages:?}");
        let last = pages.iter().position(wanted).unwrap();
        pages.drain(..=last);
    }

    /// The payloads of what was published, and how often some of it was missed, up to this payload.
    fn up_to(&self, last: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let payload = |message: &Message| match message {
            Message::Published { payload, .. } => Some(payload.clone()),
            _ => None,
        };
        let pages = self.pages.lock().unwrap();
        let not_yet =
            |pages: &mut Vec<Message>| !pages.iter().any(|m| payload(m).as_deref() == Some(last));
        let (mut pages, late) = self.more.wait_timeout_while(pages, LONG, not_yet).unwrap();
        assert!(!late.timed_out(), "not among {pages:?}");
        let missed = pages
            .iter()
            .filter(|message| **message == Message::Missed)
            .count();
        let heard = pages.iter().filter_map(payload).collect();
        pages.clear();
        (heard, missed)
    }

    fn until_key(&self, name: &[u8]) {
        self.until(|message| matches!(message, Message::Key { db: 0, key } if key == name));
    }
}

fn rack(block: usize) -> (Store<HeapMemory>, Store<HeapMemory>, Arc<Diary>) {
    let memory = HeapMemory::new(block, 8 << 20, 3);
    let open = |id| {
        let options = Options {
            buckets: 4,
            ..Options::default()
        };
        Store::open(memory.node(id), options).unwrap()
    };
    let (one, other, diary) = (open(0), open(2), Arc::new(Diary::default()));
    one.listen(Arc::downgrade(&diary) as Weak<dyn Listener>);
    (one, other, diary)
}

#[test]
fn every_kind_of_change_of_a_watched_key_is_told_wherever_it_is_made() {
    let (one, other, diary) = rack(4096);
    let _attention = one.attend().unwrap();
    one.first().watch_changes(b"key", false).unwrap();
    let db = other.first();
    let changes: [&dyn Fn(); 11] = [
        &|| other.set(b"key", b"1").unwrap(),
        &|| assert_eq!(other.increment(b"key", 1).unwrap(), 2),
        &|| assert_eq!(db.append(b"key", b"x").unwrap(), 2),
        &|| assert_eq!(db.append(b"key", &[7; 2000]).unwrap(), 2002),
        &|| assert_eq!(db.set_range(b"key", 5, b"in place").unwrap(), 2002),
        &|| {
            assert!(
                db.expire(b"key", db.now() + 100_000, ExpireIf::default())
                    .unwrap()
            )
        },
        &|| assert!(db.persist(b"key").unwrap()),
        &|| assert!(db.rename(b"key", b"elsewhere", true).unwrap()),
        &|| assert!(db.set_many(&[(b"key", b"1"), (b"b", b"2")], false).unwrap()),
        &|| {
            let all = other.transaction([&b"key"[..]], Plan::default()).unwrap();
            assert!(all.db(0).unwrap().remove(b"key").unwrap());
        },
        &|| one.set(b"key", b"from its own node").unwrap(),
    ];
    for change in changes {
        change();
        diary.until_key(b"key");
    }
    db.flush().unwrap();
    diary.until(|message| *message == Message::Flush { db: Some(0) });
    other.set(b"key", b"after a flush").unwrap();
    diary.until_key(b"key");
}

#[test]
fn a_key_that_expires_is_told_of() {
    let (one, other, diary) = rack(4096);
    let _attention = one.attend().unwrap();
    one.first().watch_changes(b"key", false).unwrap();
    one.set(b"key", b"").unwrap();
    diary.until_key(b"key");
    let soon = one.first().now() + 1;
    assert!(
        other
            .first()
            .expire(b"key", soon, ExpireIf::default())
            .unwrap()
    );
    diary.until_key(b"key");
    while one.first().now() <= soon {
        std::thread::yield_now();
    }
    // As a sweep does at the bucket's home.
    let hash = one.first().id(b"key").unwrap().hash;
    let clean = |bucket: &mut crate::store::bucket::Bucket<'_, HeapMemory>| bucket.clean();
    other
        .core
        .writing_key(crate::store::lock::Scope::ALONE, hash, clean)
        .unwrap();
    diary.until_key(b"key");
}

#[test]
fn who_does_not_take_its_messages_knows_that_it_misses_some() {
    let (one, other, diary) = rack(256);
    one.first().watch_changes(b"key", false).unwrap();
    let attention = one.attend().unwrap();
    // More than a lane holds, and nobody takes anything: the thread that would is kept busy.
    let pages = diary.pages.lock().unwrap();
    for _ in 0..100 {
        other.set(b"key", b"").unwrap();
    }
    drop(pages);
    diary.until(|message| *message == Message::Everything);
    other.set(b"key", b"").unwrap();
    diary.until_key(b"key");
    drop(attention);
}

#[test]
fn published_messages_of_any_length_reach_the_nodes_that_have_subscribers() {
    let (one, other, diary) = rack(256);
    let _attention = one.attend().unwrap();
    assert_eq!(other.first().publish(false, b"news", b"x").unwrap(), 0);
    one.subscribe(super::SubscriptionKind::Channel, b"news", 2)
        .unwrap();
    one.subscribe(super::SubscriptionKind::Pattern, b"n*", 1)
        .unwrap();
    for len in [0, 1, 100, 5000, 100_000] {
        let sent: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        assert_eq!(other.first().publish(false, b"news", &sent).unwrap(), 3);
        diary.until(|message| {
            matches!(message, Message::Published { shard: false, payload, .. } if *payload == sent)
        });
    }
    assert_eq!(other.first().publish(true, b"news", b"").unwrap(), 0);
    assert_eq!(
        other
            .subscribers(super::SubscriptionKind::Channel, &[b"news", b"x"])
            .unwrap(),
        [2, 0]
    );
}

/// Where memory has copies a block may be again what it was, when a node has died with what others
/// had written before it.
#[test]
fn a_lane_that_is_again_what_it_was_brings_nothing_twice_and_says_what_is_missing() {
    let (one, other, diary) = rack(4096);
    let _attention = one.attend().unwrap();
    one.subscribe(super::SubscriptionKind::Channel, b"news", 1)
        .unwrap();
    let say =
        |payload: &[u8]| assert_eq!(other.first().publish(false, b"news", payload).unwrap(), 1);
    let core = &other.core;
    let (lane, memory) = (core.map.lane(core.base, 0, 2), &core.memory);
    let is_empty = || {
        let used = |view: &rackmem::window::Window<'_>| view.u64(8);
        memory.snapshot(lane, 16, used).unwrap() == 0
    };
    say(b"1");
    diary.up_to(b"1");
    let mut empty = vec![0; 4096];
    memory.read(lane, &mut empty).unwrap();

    // Its thread has taken one, and has yet to tell of it.
    let pages = diary.pages.lock().unwrap();
    say(b"2");
    while !is_empty() {
        std::thread::yield_now();
    }
    let far = vec![7; 3000];
    say(&far);
    say(b"3");
    let mut before = vec![0; 4096];
    memory.read(lane, &mut before).unwrap();
    drop(pages);
    let (heard, missed) = diary.up_to(b"3");
    assert_eq!(
        (heard, missed),
        (vec![b"2".to_vec(), far, b"3".to_vec()], 0)
    );
    memory.write(lane, &before).unwrap();
    let given = memory.live_bytes();
    say(b"4");
    assert_eq!(diary.up_to(b"4"), (vec![b"4".to_vec()], 0));
    assert_eq!(memory.live_bytes(), given, "memory was freed twice");

    let pages = diary.pages.lock().unwrap();
    say(b"5");
    while !is_empty() {
        std::thread::yield_now();
    }
    say(b"6");
    memory.write(lane, &empty).unwrap();
    say(b"7");
    drop(pages);
    assert_eq!(diary.up_to(b"7"), (vec![b"5".to_vec(), b"7".to_vec()], 1));
}
