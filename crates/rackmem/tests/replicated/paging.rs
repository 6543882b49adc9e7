//! Regions with copies, mapped: pages that come and leave under loads and stores.

use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, eventually, rack};
use rackmem::membership::Store;
use rackmem::{AccessError, Mapped, Mode, Node, RackError, Region, RegionError, RegionSpec};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const PAGE: usize = 4096;
/// Words of a page.
const WORDS: usize = PAGE / 8;
const PATIENT: &str = "patience = '60s'\nlease = '20s'\n";

const IMPATIENT: &str = "patience = '3s'\nlease = '30s'\n";

fn spec(name: &str, pages: usize) -> RegionSpec {
    RegionSpec::new(name, pages * PAGE).line(4096).copies(3)
}

/// None, and that is said: the system does not allow it.
fn map(region: &Region, pages: usize) -> Option<Mapped> {
    match region.map_exclusive(pages) {
        Err(error @ RegionError::NoPaging { .. }) => {
            let _ = writeln!(std::io::stdout(), "skipped: {error}");
            None
        }
        mapped => Some(mapped.unwrap()),
    }
}

/// A word of a region, as the copies have it.
fn copied(node: &Node, spec: &RegionSpec, word: usize) -> u64 {
    let mut bytes = [0; 8];
    let region = node.open_region(spec).unwrap();
    region.read(word * 8, &mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}

#[test]
fn what_is_stored_outlives_a_buffer_far_smaller_than_the_region() {
    for fabric in FABRICS {
        for line in [64, 4096, 16_384] {
            let rack = rack(fabric, Mode::HomeOnly, 4);
            let len = 40 * PAGE + usize::from(line == 64) * 192;
            let spec = RegionSpec::new("grid", len).line(line).copies(3);
            let Some(pages) = map(&rack.node(0).create_region(&spec).unwrap(), 5) else {
                return;
            };
            assert_eq!(pages.page(), PAGE.max(line as usize));
            let words = pages.words();
            assert_eq!(words.len(), len / 8);
            for round in 1..=2 {
                for (nth, word) in words.iter().enumerate() {
                    let before = word.swap(round * 1_000_000 + nth as u64, Relaxed);
                    let expected = (round - 1) * 1_000_000 + (round - 1) * nth as u64;
                    assert_eq!(before, expected, "{fabric:?} {line} {nth}");
                }
                assert!(pages.resident() <= 5);
            }
            let counts = pages.counts();
            assert!(
                counts.fetched >= 2 * (len / pages.page()) as u64,
                "{counts:?}"
            );
            pages.close().unwrap();
            let mut bytes = vec![0; len];
            let same = rack.node(2).open_region(&spec).unwrap();
            same.read(0, &mut bytes).unwrap();
            for (nth, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
                assert_eq!(
                    u64::from_ne_bytes(*bytes),
                    2_000_000 + nth as u64,
                    "{fabric:?}"
                );
            }
        }
    }
}

/// Stores race with pages that leave and with flushes, and each is in the copies at the end.
#[test]
fn threads_lose_no_store_to_pages_that_leave_or_are_flushed() {
    const THREADS: usize = 3;
    const PAGES: usize = 24;
    const EACH: u64 = 6_000;
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let spec = spec("counts", PAGES);
        let Some(pages) = map(&rack.node(1).create_region(&spec).unwrap(), 12) else {
            return;
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flusher = scope.spawn(|| {
                while !over.load(Relaxed) {
                    let before = pages.words()[0].load(Relaxed);
                    pages.flush().unwrap();
                    let copied = copied(&rack.node(2), &spec, 0);
                    assert!(copied >= before, "{fabric:?}: {copied} after {before}");
                }
            });
            let workers: Vec<_> = (0..THREADS as u64)
                .map(|thread| {
                    let words = pages.words();
                    scope.spawn(move || {
                        let mut at = fastrand::Rng::with_seed(thread);
                        for _ in 0..EACH {
                            // Mostly two pages, which are flushed again and again; at times
                            // any, so that pages leave.
                            let all = at.u8(..) < 20;
                            let page = at.usize(..if all { PAGES } else { 2 });
                            words[page * WORDS].fetch_add(1, Relaxed);
                        }
                    })
                })
                .collect();
            workers
                .into_iter()
                .for_each(|worker| worker.join().unwrap());
            over.store(true, Relaxed);
            flusher.join().unwrap();
        });
        pages.close().unwrap();
        let sum: u64 = (0..PAGES)
            .map(|page| copied(&rack.node(0), &spec, page * WORDS))
            .sum();
        assert_eq!(sum, THREADS as u64 * EACH, "{fabric:?}");
    }
}

#[test]
fn a_copy_that_dies_delays_no_page() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("paging", fabric, 4, PATIENT);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = spec("grid", 32).on(1);
        let Some(pages) = map(&nodes[0].create_region(&spec).unwrap(), 6) else {
            return;
        };
        for round in 0..4u64 {
            if round == 1 {
                racks[3] = None;
            }
            for word in pages.words().iter().step_by(WORDS / 2) {
                assert_eq!(word.fetch_add(1, Relaxed), round, "{fabric}");
            }
        }
        pages.flush().unwrap();
        for word in (0..32 * WORDS).step_by(WORDS / 2) {
            assert_eq!(copied(&nodes[2], &spec, word), 4, "{fabric}");
        }
    }
}

#[test]
fn a_region_is_mapped_by_one_at_a_time() {
    let rack = rack(rackmem::Fabric::Udp, Mode::HomeOnly, 3);
    let spec = spec("log", 8);
    let first = rack.node(0).create_region(&spec).unwrap();
    let second = rack.node(1).open_region(&spec).unwrap();
    let Some(pages) = map(&first, 4) else { return };
    for region in [&first, &second] {
        let refused = region.map_exclusive(4).unwrap_err();
        assert!(
            matches!(&refused, RegionError::Mapped { name, node: 0 } if name == "log"),
            "{refused}"
        );
    }
    // It is of the pages, and of nothing else.
    let other = self::spec("other", 8);
    drop(map(&rack.node(1).create_region(&other).unwrap(), 4));
    pages.words()[3].store(7, Relaxed);
    drop(pages);
    let pages = second.map_exclusive(4).unwrap();
    assert_eq!(pages.words()[3].load(Relaxed), 7);
    drop(pages);
    first.map_exclusive(4).unwrap().close().unwrap();
}

#[test]
fn the_pages_of_a_dead_process_go_to_the_next() {
    let few = "patience = '60s'\nlease = '1500ms'\n";
    let cluster = Cluster::new("heir", "udp", 4, few);
    let (mut racks, nodes) = cluster.nodes(4);
    let spec = spec("log", 8).on(1);
    let Some(pages) = map(&nodes[0].create_region(&spec).unwrap(), 4) else {
        return;
    };
    pages.words()[0].store(7, Relaxed);
    pages.flush().unwrap();
    pages.words()[0].store(8, Relaxed);
    let heir = nodes[2].open_region(&spec).unwrap();
    assert!(matches!(
        heir.map_exclusive(4),
        Err(RegionError::Mapped { node: 0, .. })
    ));
    // It says nothing to the others, as one that was killed.
    racks[0] = None;
    let mut next = None;
    eventually("its pages are free", || {
        next = heir.map_exclusive(4).ok();
        next.is_some()
    });
    let lost = pages.flush().unwrap_err();
    assert_eq!(lost, AccessError::Rack(RackError::Closed));
    let next = next.unwrap();
    assert_eq!(next.words()[0].load(Relaxed), 7, "what was flushed");
    let config = nodes[2].groups()[0].config;
    assert!(config > 1, "what it may have sent is of an earlier one");
}

/// A process that the rack has gone on without, and that does not know it yet: another has its
/// pages, and what it writes back changes nothing.
#[test]
fn pages_that_another_has_are_not_written_back() {
    let cluster = Cluster::new("fenced", "udp", 4, PATIENT);
    let (_racks, nodes) = cluster.nodes(4);
    let spec = spec("log", 8).on(1);
    let Some(pages) = map(&nodes[0].create_region(&spec).unwrap(), 4) else {
        return;
    };
    pages.words()[0].store(7, Relaxed);
    pages.flush().unwrap();
    let store = cluster.store();
    eventually("the next mapper is written down", || {
        let groups = store.groups(LONG).unwrap().unwrap();
        let view = store.load(LONG).unwrap().roster.unwrap().view;
        let without = view.exclude(0).unwrap();
        let next = groups.map(0, 2, &without).unwrap();
        store.propose_groups(&next, LONG).unwrap()
    });
    eventually("it is known", || nodes[1].groups()[0].config > 1);
    pages.words()[0].store(8, Relaxed);
    let refused = pages.flush().unwrap_err();
    assert_eq!(refused, AccessError::Rack(RackError::Fenced));
    assert_eq!(copied(&nodes[3], &spec, 0), 7);
    assert!(matches!(
        nodes[3].open_region(&spec).unwrap().map_exclusive(4),
        Err(RegionError::Mapped { node: 2, .. })
    ));
}

#[test]
fn without_a_majority_calls_say_so_and_lose_nothing() {
    let cluster = Cluster::new("few", "udp", 4, IMPATIENT);
    let (mut racks, nodes) = cluster.nodes(4);
    let spec = spec("log", 8).on(1);
    let Some(pages) = map(&nodes[0].create_region(&spec).unwrap(), 4) else {
        return;
    };
    eventually("a majority answers", || pages.touch(0, 1).is_ok());
    pages.words()[0].store(7, Relaxed);
    racks[2] = None;
    racks[3] = None;
    let none = |error: RegionError| {
        let of_copies = matches!(
            error,
            RegionError::Access(AccessError::NoQuorum {
                answered: 1,
                needed: 2,
                ..
            })
        );
        assert!(of_copies, "{error}");
    };
    none(pages.touch(PAGE, 1).unwrap_err());
    none(pages.read(PAGE, &mut [0]).unwrap_err());
    none(pages.write(PAGE, &[0]).unwrap_err());
    none(pages.flush().unwrap_err().into());
    // It is still there, and dirty.
    let mut bytes = [0; 8];
    pages.read(0, &mut bytes).unwrap();
    assert_eq!(u64::from_ne_bytes(bytes), 7);
    pages.words()[0].store(8, Relaxed);
    none(pages.close().unwrap_err());
}

const AS_A_CHILD: &str = "RACKMEM_TEST_LOAD_WITHOUT_A_MAJORITY";

/// A load has nothing to return. The child is this test again, and ends by the signal.
#[test]
fn a_load_without_a_majority_ends_by_a_signal() {
    if std::env::var_os(AS_A_CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "paging::a_load_without_a_majority_ends_by_a_signal",
        ]);
        let ended = child.env(AS_A_CHILD, "1").output().unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        if ended.status.success() {
            let skipped = told.lines().find(|line| line.starts_with("skipped"));
            let _ = writeln!(std::io::stdout(), "{}", skipped.expect("a signal"));
            return;
        }
        assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{told}");
        return;
    }
    let cluster = Cluster::new("signal", "udp", 4, IMPATIENT);
    let (mut racks, nodes) = cluster.nodes(4);
    let spec = spec("log", 8).on(1);
    let Some(pages) = map(&nodes[0].create_region(&spec).unwrap(), 4) else {
        return;
    };
    eventually("a majority answers", || pages.touch(0, 1).is_ok());
    pages.words()[0].store(7, Relaxed);
    racks[2] = None;
    racks[3] = None;
    // The folders of a process that is killed would stay.
    drop(cluster);
    pages.words()[WORDS].load(Relaxed);
    unreachable!("a load that nothing has answered");
}

/// A child by `fork` has no handler for its faults: it must not read zeros instead.
#[test]
fn a_child_does_not_have_the_mapping() {
    let rack = rack(rackmem::Fabric::Udp, Mode::HomeOnly, 3);
    let spec = spec("log", 8);
    let Some(pages) = map(&rack.node(0).create_region(&spec).unwrap(), 4) else {
        return;
    };
    pages.words()[0].store(7, Relaxed);
    for touched in [0, WORDS] {
        // SAFETY: the child loads from memory and ends, and allocates nothing.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let found = pages.words()[touched].load(Relaxed);
            // SAFETY: it ends the child, without what the parent's threads have to say about it.
            unsafe { libc::_exit(100 + found as i32) };
        }
        let mut status = 0;
        // SAFETY: the pointer is to a local.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(
            libc::WIFSIGNALED(status),
            "it has read: {}",
            libc::WEXITSTATUS(status)
        );
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
    }
    // SAFETY: the child drops what it has copied, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(pages);
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to a local.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "a child drops the handle");
    assert_eq!(pages.words()[0].fetch_add(1, Relaxed), 7);
    pages.close().unwrap();
    assert_eq!(copied(&rack.node(1), &spec, 0), 8);
}

/// From now on threads of this name run only when nobody else wants the processor: how many.
fn starve(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of_name = tasks.filter(|task| {
        let its = std::fs::read_to_string(task.path().join("comm"));
        its.is_ok_and(|its| its.trim() == name)
    });
    let starved = of_name.filter(|task| {
        let id = task.file_name().to_string_lossy().parse().unwrap();
        let idle = libc::sched_param { sched_priority: 0 };
        // SAFETY: a thread of this process, and a pointer to a local.
        unsafe { libc::sched_setscheduler(id, libc::SCHED_IDLE, &raw const idle) == 0 }
    });
    starved.count()
}

/// The thread that handles faults gets the processor only when nobody else wants it.
#[test]
fn a_starved_pager_loses_nothing() {
    let rack = rack(rackmem::Fabric::Udp, Mode::HomeOnly, 3);
    let spec = spec("log", 16);
    let Some(pages) = map(&rack.node(0).create_region(&spec).unwrap(), 4) else {
        return;
    };
    // A thread gives itself its name.
    eventually("it is starved", || starve("rackmem-pager") > 0);
    let (over, spun) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    spun.fetch_add(1, Relaxed);
                }
            });
        }
        for round in 0..2 {
            for word in pages.words().iter().step_by(WORDS) {
                assert_eq!(word.fetch_add(1, Relaxed), round);
            }
        }
        over.store(true, Relaxed);
    });
    pages.close().unwrap();
    let word = |page| copied(&rack.node(1), &spec, page * WORDS);
    assert!((0..16).all(|page| word(page) == 2));
}

/// A program, or the system, may take pages out of the mapping.
#[test]
fn pages_that_are_taken_out_of_the_mapping_come_back() {
    let rack = rack(rackmem::Fabric::Inline, Mode::HomeOnly, 3);
    let spec = spec("log", 8);
    let Some(pages) = map(&rack.node(0).create_region(&spec).unwrap(), 4) else {
        return;
    };
    let take_out = |page: usize| {
        // SAFETY: a page of the mapping, of which there are no references but to atomics.
        let done = unsafe {
            let at = pages.as_ptr().add(page * PAGE);
            libc::madvise(at.cast(), PAGE, libc::MADV_DONTNEED)
        };
        assert_eq!(done, 0);
    };
    let words = pages.words();
    for page in [0, 1] {
        words[page * WORDS].store(7, Relaxed);
    }
    pages.flush().unwrap();
    words[0].store(8, Relaxed);
    // A dirty one and a clean one, which is noticed when it is written again.
    for page in [0, 1] {
        take_out(page);
    }
    assert_eq!((words[0].load(Relaxed), words[WORDS].load(Relaxed)), (8, 7));
    take_out(1);
    words[WORDS].store(9, Relaxed);
    words[0].store(10, Relaxed);
    pages.close().unwrap();
    let copied = |page| copied(&rack.node(1), &spec, page * WORDS);
    assert_eq!((copied(0), copied(1)), (10, 9));
}

#[test]
fn system_calls_take_pages_where_that_is_said() {
    let rack = rack(rackmem::Fabric::Udp, Mode::HomeOnly, 3);
    let spec = spec("log", 8);
    let Some(pages) = map(&rack.node(0).create_region(&spec).unwrap(), 4) else {
        return;
    };
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: bytes of the mapping, which nobody changes meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts(pages.as_ptr().add(PAGE), PAGE) };
    let written = (&writer).write(bytes);
    drop(writer);
    match pages.takes_system_calls() {
        true => {
            assert_eq!(written.unwrap(), PAGE);
            let mut all = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut all).unwrap();
            assert_eq!(all, [0; PAGE]);
        }
        false => assert_eq!(written.unwrap_err().raw_os_error(), Some(libc::EFAULT)),
    }
}

#[test]
fn what_cannot_be_mapped_is_said() {
    let rack = rack(rackmem::Fabric::Inline, Mode::HomeOnly, 3);
    let region = rack.node(0).create_region(&spec("log", 2)).unwrap();
    let small = region.map_exclusive(3).unwrap_err();
    assert_eq!(small, RegionError::SmallBuffer { pages: 3, least: 4 });
    let plain = RegionSpec::new("plain", PAGE);
    let plain = rack.node(0).create_region(&plain).unwrap().map_exclusive(4);
    let wrong = matches!(
        plain,
        Err(RegionError::Access(AccessError::WrongContract { .. }))
    );
    assert!(wrong, "{plain:?}");
    let Some(pages) = map(&region, 4) else { return };
    for (at, len) in [(2 * PAGE, 1), (PAGE, PAGE + 1), (usize::MAX, 2)] {
        let outside = pages.touch(at, len).unwrap_err();
        assert!(
            matches!(outside, RegionError::OutOfBounds { .. }),
            "{outside}"
        );
        let outside = pages.read(at, &mut vec![0; len]).unwrap_err();
        assert!(
            matches!(outside, RegionError::OutOfBounds { .. }),
            "{outside}"
        );
    }
    pages.write(2 * PAGE - 3, b"end").unwrap();
    let mut end = [0; 3];
    pages.read(2 * PAGE - 3, &mut end).unwrap();
    assert_eq!(&end, b"end");
    drop(rack);
    let closed = pages.touch(0, 1).unwrap_err();
    assert_eq!(closed, RegionError::Rack(RackError::Closed));
}
