//! Pages that come before a load or a store asks for them.

use super::{BLOCK, FABRICS, mapped, mapped_with, rack};
use rackmem::{CoherentPages, Fabric, FaultMode, Mode};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

const PAGES: usize = 60;
const WORDS: usize = BLOCK / 8;
/// Of a program that goes through so many pages: 0, 1, 3, 6, 11, 20, 37, 54.
const FAULTS: u64 = 8;

fn fill(pages: &CoherentPages) {
    // From the end, so that each of them is asked for.
    for page in (0..PAGES).rev() {
        pages.words()[page * WORDS].store(page as u64 + 1, SeqCst);
    }
    assert_eq!(pages.counts().ahead, 0);
}

#[test]
fn who_goes_through_memory_has_pages_before_it_asks() {
    for mode in FaultMode::ALL {
        for fabric in FABRICS {
            let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
            let all = mapped_with(&rack, PAGES * BLOCK, mode);
            fill(&all[1]);
            for page in 0..PAGES {
                let word = all[2].words()[page * WORDS].load(SeqCst);
                assert_eq!(word, page as u64 + 1, "{mode:?} {fabric:?}");
            }
            let counts = all[2].counts();
            // Where threads bring pages the program goes on meanwhile, and may ask for them first.
            if mode != FaultMode::Thread {
                assert_eq!(counts.faults, FAULTS, "{mode:?} {fabric:?}");
                assert_eq!(counts.ahead, PAGES as u64 - FAULTS);
            }
            // Nobody has lost a page by it, and each has lost the right to store.
            assert_eq!(all[1].counts().taken, PAGES as u64, "{mode:?} {fabric:?}");
        }
    }
}

/// What a node may store to is lost with it, so it has nothing that it has not asked for.
#[test]
fn who_stores_from_end_to_end_has_no_page_before_it_asks() {
    let rack = rack(Fabric::Shm, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, PAGES * BLOCK);
    fill(&all[1]);
    for page in 0..PAGES {
        let word = &all[2].words()[page * WORDS];
        assert_eq!(word.fetch_add(7, SeqCst), page as u64 + 1);
    }
    let counts = all[2].counts();
    assert_eq!((counts.faults, counts.ahead), (PAGES as u64, 0));
}

/// What it has named has come, for what it has named it for.
#[test]
fn who_touches_pages_has_no_fault_there() {
    for mode in FaultMode::ALL {
        for fabric in FABRICS {
            let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
            let all = mapped_with(&rack, PAGES * BLOCK, mode);
            for stores in [false, true] {
                fill(&all[1]);
                let pages = &all[2];
                let before = pages.counts().faults;
                pages.touch(0..PAGES * BLOCK, stores).unwrap();
                for page in 0..PAGES {
                    let word = &pages.words()[page * WORDS];
                    assert_eq!(word.load(SeqCst), page as u64 + 1);
                    if stores {
                        word.store(0, SeqCst);
                    }
                }
                assert_eq!(
                    pages.counts().faults,
                    before,
                    "{mode:?} {fabric:?} {stores}"
                );
            }
        }
    }
}

#[test]
fn who_jumps_has_what_it_asks_for() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, PAGES * BLOCK);
    for page in (0..PAGES).map(|nth| nth * 7 % PAGES) {
        all[1].words()[page * WORDS].store(1, SeqCst);
    }
    let counts = all[1].counts();
    assert_eq!((counts.faults, counts.ahead), (PAGES as u64, 0));
}

/// Readers that go through memory again and again, while another node stores there from end to end.
#[test]
fn what_comes_ahead_is_no_older_than_what_was_seen() {
    const ROUNDS: u64 = 300;
    /// For readers that a busy machine keeps from running.
    const AT_MOST: Duration = Duration::from_secs(60);
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, PAGES * BLOCK);
        let over = AtomicBool::new(false);
        let came = || all.iter().map(|pages| pages.counts().ahead).sum::<u64>();
        let until = Instant::now() + AT_MOST;
        std::thread::scope(|scope| {
            let pages = [&all[0], &all[2]];
            for pages in pages {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        // From the page on that is stored to first, nothing is newer.
                        let seen = (0..PAGES).rev();
                        let seen = seen.map(|page| pages.words()[page * WORDS].load(SeqCst));
                        assert!(seen.is_sorted(), "{fabric:?}");
                        let last = &pages.words()[(PAGES - 1) * WORDS];
                        let (before, first) = (last.load(SeqCst), &pages.words()[0]);
                        assert!(first.load(SeqCst) >= before, "{fabric:?}");
                        // And from the first one on, which brings the others.
                        for page in 0..PAGES {
                            let _ = pages.words()[page * WORDS].load(SeqCst);
                        }
                    }
                });
            }
            for round in 1.. {
                if round > ROUNDS && (came() > 0 || Instant::now() > until) {
                    break;
                }
                for page in 0..PAGES {
                    all[1].words()[page * WORDS].store(round, SeqCst);
                }
            }
            over.store(true, Relaxed);
        });
        assert!(came() > 0, "{fabric:?}");
    }
}
