//! The same memory with faults that come in every way.

use super::pins::Pipe;
use super::{BLOCK, FABRICS, as_a_child, mapped_with, rack, spec};
use rackmem::{Fabric, FaultMode, Mode, Rack, RegionError};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// Threads of all nodes add to shared words and to words of their own in one page.
#[test]
fn no_addition_is_lost_in_any_mode() {
    const ROUNDS: u64 = 1_000;
    for mode in FaultMode::ALL {
        for fabric in FABRICS {
            let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
            let all = mapped_with(&rack, 2 * BLOCK, mode);
            std::thread::scope(|scope| {
                for (nth, pages) in all.iter().enumerate() {
                    for thread in 0..2 {
                        let own = 1 + 2 * nth + thread;
                        scope.spawn(move || {
                            for _ in 0..ROUNDS {
                                pages.words()[0].fetch_add(1, SeqCst);
                                let plain = &pages.words()[own];
                                plain.store(plain.load(Relaxed) + 1, Relaxed);
                                pages.words()[512 + own].fetch_add(1, Relaxed);
                            }
                        });
                    }
                }
            });
            let words = all[0].words();
            assert_eq!(words[0].load(SeqCst), 6 * ROUNDS, "{mode:?} {fabric:?}");
            for own in 1..7 {
                assert_eq!(words[own].load(SeqCst), ROUNDS, "{mode:?} {fabric:?}");
                assert_eq!(words[512 + own].load(SeqCst), ROUNDS);
            }
        }
    }
}

/// However long a page stays with who has got it, all nodes go on.
#[test]
fn no_addition_is_lost_by_any_hold() {
    const ROUNDS: u64 = 1_000;
    let rack = rack(Fabric::Shm, Mode::HomeOnly, 1 << 20);
    let all = mapped_with(&rack, BLOCK, FaultMode::Signal);
    for (round, hold) in (1..).zip([Duration::ZERO, Duration::from_micros(200), Duration::MAX]) {
        std::thread::scope(|scope| {
            for (nth, pages) in all.iter().enumerate() {
                pages.set_hold(hold);
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        pages.words()[0].fetch_add(1, SeqCst);
                        pages.words()[8 + nth].fetch_add(1, Relaxed);
                    }
                });
            }
        });
        let words = all[1].words();
        assert_eq!(words[0].load(SeqCst), round * 3 * ROUNDS, "{hold:?}");
        for nth in 0..3 {
            assert_eq!(words[8 + nth].load(SeqCst), round * ROUNDS, "{hold:?}");
        }
    }
}

/// A hit is an instruction in each.
#[test]
fn hits_cost_no_fault_in_any_mode() {
    for mode in FaultMode::ALL {
        let rack = rack(Fabric::Udp, Mode::HomeOnly, 1 << 20);
        let all = mapped_with(&rack, BLOCK, mode);
        assert_eq!(all[1].mode(), mode);
        all[1].words()[3].store(1, SeqCst);
        let counts = all[1].counts();
        for _ in 0..10_000 {
            all[1].words()[3].fetch_add(1, SeqCst);
        }
        assert_eq!(all[1].counts(), counts);
        assert_eq!(counts.crowded, 0);
    }
}

#[test]
fn pages_make_room_in_any_mode() {
    const BLOCKS: usize = 400;
    for mode in FaultMode::ALL {
        let rack = rack(Fabric::Shm, Mode::HomeOnly, 64 * BLOCK);
        let all = mapped_with(&rack, BLOCKS * BLOCK, mode);
        for (round, pages) in (1..).zip(&all) {
            for nth in 0..BLOCKS {
                pages.words()[nth * 512].fetch_add(round * nth as u64, SeqCst);
            }
            assert!(pages.counts().evicted >= (BLOCKS - 128) as u64);
        }
        for nth in 0..BLOCKS {
            assert_eq!(
                all[1].words()[nth * 512].load(SeqCst),
                6 * nth as u64,
                "{mode:?}"
            );
        }
    }
}

/// The system or the program takes pages out of a mapping, and nothing is lost.
#[test]
fn dropped_pages_come_back_in_any_mode() {
    for mode in FaultMode::ALL {
        let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
        let all = mapped_with(&rack, 4 * BLOCK, mode);
        for round in 1..100 {
            all[1].words()[0].store(round, SeqCst);
            let at = all[1].as_ptr().cast();
            // SAFETY: pages of a mapping that lives; nobody has references to plain memory there.
            let done = unsafe { libc::madvise(at, 4 * BLOCK, libc::MADV_DONTNEED) };
            assert_eq!(done, 0);
            assert_eq!(all[1].words()[0].load(SeqCst), round);
            assert_eq!(all[2].words()[0].load(SeqCst), round);
            all[1].words()[1].store(round, SeqCst);
            assert_eq!(all[2].words()[1].load(SeqCst), round, "{mode:?}");
        }
    }
}

/// System calls wait for pages where faults of theirs may be had, and fail where not; pinned pages
/// are found in each mode.
#[test]
fn system_calls_in_every_mode() {
    for mode in FaultMode::ALL {
        let rack = rack(Fabric::Shm, Mode::HomeOnly, 1 << 20);
        let all = mapped_with(&rack, 2 * BLOCK, mode);
        let pipe = Pipe::new();
        for round in 0..20 {
            all[2]
                .words()
                .iter()
                .for_each(|word| word.store(round, SeqCst));
            let put = pipe.write(&all[1], 8, BLOCK);
            assert_eq!(put.is_ok(), mode.serves_system_calls(), "{mode:?} {put:?}");
            if put.is_ok() {
                let sent = pipe.get(BLOCK);
                assert!(sent.chunks(8).all(|word| word == round.to_ne_bytes()));
            }
            let pinned = all[1].pin(0..2 * BLOCK, true).unwrap();
            pipe.put(&(round + 1).to_ne_bytes());
            pipe.read(&all[1], BLOCK, 8).unwrap();
            drop(pinned);
            assert_eq!(all[2].words()[BLOCK / 8].load(SeqCst), round + 1);
        }
    }
}

#[test]
fn a_mapping_has_one_mode() {
    let rack = Rack::local(1).unwrap();
    let region = rack.node(0).create_region(&spec(BLOCK)).unwrap();
    let pages = region.map_with(FaultMode::Mprotect).unwrap();
    let other = region.map().unwrap_err();
    assert!(matches!(other, RegionError::NotMappable { .. }), "{other}");
    assert_eq!(
        region.map_with(pages.mode()).unwrap().mode(),
        FaultMode::Mprotect
    );
}

const AS_A_CHILD: &str = "RACKMEM_TEST_CROWDED";

/// Blocks whose pages have other rights than their neighbours.
const STRIPES: usize = 400;

/// A process that has nearly as many mappings as the system allows: no load, no store and nothing
/// that is taken away is lost, and the handle says that it was so. The child is this test again.
#[test]
fn a_process_may_have_no_more_mappings() {
    if std::env::var_os(AS_A_CHILD).is_none() {
        let test = "modes::a_process_may_have_no_more_mappings";
        let ended = as_a_child(test, (AS_A_CHILD, "1"));
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{told}");
        return;
    }
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 8 << 20);
    let all = mapped_with(&rack, STRIPES * BLOCK, FaultMode::Mprotect);
    let filler = Filler::until_few_are_left();
    let (evens, odds) = (AtomicU64::new(0), AtomicU64::new(0));
    for round in 1..=3 {
        for nth in 0..STRIPES {
            // One node has every other page, and then the other one has.
            let pages = &all[1 + (nth + round) % 2];
            pages.words()[nth * BLOCK / 8].fetch_add(1, SeqCst);
            let count = if nth % 2 == 0 { &evens } else { &odds };
            count.fetch_add(1, Relaxed);
        }
    }
    let crowded = all[1].counts().crowded + all[2].counts().crowded;
    for nth in 0..STRIPES {
        assert_eq!(all[0].words()[nth * BLOCK / 8].load(SeqCst), 3);
    }
    drop(filler);
    assert!(crowded > 0);
}

/// Memory in as many pieces as the system allows.
struct Filler {
    at: *mut libc::c_void,
    len: usize,
}

/// Mappings that are left for everything else.
const LEFT: usize = 80;

impl Filler {
    fn until_few_are_left() -> Filler {
        let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
        let most: usize = most.trim().parse().unwrap();
        let len = (most + 2) * 4096;
        let (none, kind) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, anywhere.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, none, kind, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let piece = |nth: usize, access| {
            let piece = at.wrapping_byte_add(nth * 4096);
            // SAFETY: a page of this mapping, which nobody uses.
            unsafe { libc::mprotect(piece, 4096, access) == 0 }
        };
        let mut nth = 1;
        while nth * 4096 < len && piece(nth, libc::PROT_READ) {
            nth += 2;
        }
        // Some of them again: two mappings a piece.
        for back in 0..LEFT / 2 {
            piece(nth - 2 - 2 * back, libc::PROT_NONE);
        }
        Filler { at, len }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        // SAFETY: its own.
        unsafe { libc::munmap(self.at, self.len) };
    }
}
