//! A ring of bounded memory that goes round while another domain reads it: the shipped value
//! (`rackmem_proto::bi`), on words that are loaded and stored as an arena's are.

use crate::Scenario;
use crate::sync::{AtomicU64, Ordering};
use loom::thread;
use rackmem_proto::bi::{
    BoardIn, BoardLayout, BoardWords, Defect, Extent, Queue, RingOwner, RingReader, Tick,
};
use std::sync::Arc;

/// What must hold.
pub const HOLDS: Scenario = ("a ring that goes round under its reader", || {
    goes_round(None, Ordering::Release)
});

/// The same with a rule that is broken: each must be found.
pub const PLANTED: &[Scenario] = &[
    ("a reader says nothing of what it has missed", || {
        goes_round(Some(Defect::NewsGapIgnored), Ordering::Release)
    }),
    ("words of a ring are stored without release", || {
        goes_round(None, Ordering::Relaxed)
    }),
];

/// What is found then.
pub const SAYS: &str = "missed without a word";

/// Entries of the ring.
const ROOM: u64 = 2;
/// What is entered: the first two before the reader looks, the others beside it.
const ENTERED: u64 = 4;

/// Shared memory. Who loads looks past its cache: what is left of that here is the order.
#[derive(Clone)]
struct Words {
    words: Arc<[AtomicU64]>,
    stores: Ordering,
}

impl BoardWords for Words {
    fn load(&self, word: u64) -> u64 {
        self.words[word as usize].load(Ordering::Acquire)
    }

    fn store(&mut self, word: u64, value: u64) {
        self.words[word as usize].store(value, self.stores);
    }
}

fn entry(nth: u64) -> Extent {
    Extent {
        line: 7 + nth,
        lines: 1,
    }
}

/// An owner that enters and stamps, and forgets what is oldest; a reader that looks meanwhile, and
/// again when all is over. It has heard of everything, or says that it has missed something.
fn goes_round(broken: Option<Defect>, stores: Ordering) {
    let layout = BoardLayout {
        domains: 1,
        room: ROOM,
    };
    let words = (0..layout.words()).map(|_| AtomicU64::new(0)).collect();
    let words = Words { words, stores };
    let mut board = BoardIn {
        layout,
        me: 0,
        words,
    };
    board.join(1, Tick(1));
    let (mut ring, mut reader) = (
        RingOwner::new(0, Queue::Modified, None),
        RingReader::default(),
    );
    let (mut heard, mut there) = (Vec::new(), board.clone());
    let mut take = |heard: &mut Vec<Extent>| {
        let domain = (0, Queue::Modified);
        reader.take(domain, &board, broken, heard)
    };
    // Of another life: everything is dropped.
    take(&mut heard);
    let mut enter = move |nth| {
        let entered = ring.push(entry(nth), &mut there);
        let number = entered.expect("the oldest is stamped");
        ring.stamp((number, entry(nth)), Tick(2), &mut there);
    };
    (0..ROOM).for_each(&mut enter);
    let owner = thread::spawn(move || (ROOM..ENTERED).for_each(enter));
    let mut missed = take(&mut heard);
    owner.join().expect("it enters");
    missed |= take(&mut heard);
    let all = (0..ENTERED).all(|nth| heard.contains(&entry(nth)));
    assert!(all || missed, "missed without a word: {heard:?}");
}
