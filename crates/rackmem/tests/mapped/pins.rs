//! Pages that are pinned for system calls.

use super::{A_WHILE, BLOCK, FABRICS, mapped, rack, spec};
use rackmem::{CoherentPages, Mode, RegionError};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long a page is kept at most.
const PINNED: Duration = Duration::from_secs(1);

/// A pipe with the system's calls: whatever it is given is an address of the mapping.
pub(super) struct Pipe {
    from: libc::c_int,
    to: libc::c_int,
}

impl Pipe {
    pub fn new() -> Pipe {
        let mut ends = [0; 2];
        // SAFETY: room for two numbers.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        Pipe {
            from: ends[0],
            to: ends[1],
        }
    }

    /// `write(2)` from the mapping.
    pub fn write(&self, pages: &CoherentPages, at: usize, len: usize) -> io::Result<()> {
        let from = pages.as_ptr().wrapping_add(at);
        // SAFETY: the kernel reads mapped memory, which is shared by its nature.
        done(unsafe { libc::write(self.to, from.cast(), len) }, len)
    }

    /// `read(2)` into the mapping.
    pub fn read(&self, pages: &CoherentPages, at: usize, len: usize) -> io::Result<()> {
        let into = pages.as_ptr().wrapping_add(at);
        // SAFETY: the kernel writes to mapped memory, which is shared by its nature.
        done(unsafe { libc::read(self.from, into.cast(), len) }, len)
    }

    pub fn put(&self, bytes: &[u8]) {
        // SAFETY: so many bytes of a slice.
        let put = unsafe { libc::write(self.to, bytes.as_ptr().cast(), bytes.len()) };
        done(put, bytes.len()).unwrap();
    }

    pub fn get(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: room for so many bytes.
        let got = unsafe { libc::read(self.from, bytes.as_mut_ptr().cast(), len) };
        done(got, len).unwrap();
        bytes
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // SAFETY: both are its own.
        unsafe { libc::close(self.from) };
        // SAFETY: the same.
        unsafe { libc::close(self.to) };
    }
}

fn done(done: isize, len: usize) -> io::Result<()> {
    match done {
        -1 => Err(io::Error::last_os_error()),
        done => {
            assert_eq!(done, len as isize);
            Ok(())
        }
    }
}

fn is_fault(done: &io::Result<()>) -> bool {
    done.as_ref().err().and_then(io::Error::raw_os_error) == Some(libc::EFAULT)
}

/// A page that another node has: no system call finds it before it is pinned.
#[test]
fn system_calls_find_what_is_pinned() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, 4 * BLOCK);
        let (pipe, len) = (Pipe::new(), 2 * BLOCK);
        all[2].bytes().iter().for_each(|byte| byte.store(7, SeqCst));
        assert!(is_fault(&pipe.write(&all[1], 100, len)), "{fabric:?}");
        let pinned = all[1].pin(100..100 + len, false).unwrap();
        pipe.write(&all[1], 100, len).unwrap();
        assert_eq!(pipe.get(len), vec![7; len]);
        drop(pinned);

        all[2].bytes().iter().for_each(|byte| byte.store(8, SeqCst));
        pipe.put(&vec![9; len]);
        assert!(is_fault(&pipe.read(&all[1], 100, len)));
        let pinned = all[1].pin(100..100 + len, true).unwrap();
        pipe.read(&all[1], 100, len).unwrap();
        assert!(pinned.is_kept());
        drop(pinned);
        for (at, byte) in all[2].bytes().iter().enumerate() {
            let read = (100..100 + len).contains(&at);
            assert_eq!(
                byte.load(SeqCst),
                if read { 9 } else { 8 },
                "{fabric:?} {at}"
            );
        }
    }
}

/// Who wants a pinned page has it when it is unpinned, and not before.
#[test]
fn other_nodes_wait_for_what_is_pinned() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, BLOCK);
        for stores in [false, true] {
            let began = Instant::now();
            let pinned = all[1].pin(0..8, stores).unwrap();
            let stored = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    all[2].words()[0].fetch_add(1, SeqCst);
                    stored.store(true, SeqCst);
                });
                std::thread::sleep(A_WHILE);
                // A machine that stood still for a second took it away.
                let stored = stored.load(SeqCst);
                assert!(!stored || began.elapsed() > PINNED, "{fabric:?}");
                drop(pinned);
            });
        }
        assert_eq!(all[0].words()[0].load(SeqCst), 2);
    }
}

/// A page that is pinned to load goes to nodes that load.
#[test]
fn readers_share_what_is_pinned_to_load() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, BLOCK);
        all[1].words()[0].store(5, SeqCst);
        let pinned = all[1].pin(0..8, false).unwrap();
        assert_eq!(all[2].words()[0].load(SeqCst), 5);
        assert!(pinned.is_kept());
    }
}

/// Nobody waits for ever: a pin that is forgotten ends by itself, however often it is renewed.
#[test]
fn a_pin_ends() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, BLOCK);
        let pins: Vec<_> = (0..3)
            .map(|_| all[1].pin(0..BLOCK, true).unwrap())
            .collect();
        all[2].words()[0].store(3, SeqCst);
        assert!(!pins[0].is_kept());
        drop(pins);
        // It was not the first one that ended twice.
        let again = all[1].pin(0..BLOCK, true).unwrap();
        assert!(again.is_kept());
        assert_eq!(all[1].words()[0].load(SeqCst), 3);
    }
}

#[test]
fn so_many_pages_are_pinned_and_no_more() {
    const BLOCKS: usize = 400;
    let rack = rack(rackmem::Fabric::Inline, Mode::HomeOnly, 64 * BLOCK);
    let all = mapped(&rack, BLOCKS * BLOCK);
    let most = match all[1].pin(0..BLOCKS * BLOCK, false) {
        Err(RegionError::TooManyPinned { most }) => most,
        other => panic!("{other:?}"),
    };
    // None of those is pinned any more.
    let pinned = all[1].pin(0..most * BLOCK, true).unwrap();
    // They make no room for others.
    for nth in 0..BLOCKS {
        all[1].words()[nth * BLOCK / 8].fetch_add(1, SeqCst);
    }
    assert!(pinned.is_kept());
    drop(pinned);
    let last = BLOCKS - most;
    drop(all[1].pin(last * BLOCK..BLOCKS * BLOCK, true).unwrap());
    let outside = all[1].pin(0..BLOCKS * BLOCK + 1, false).unwrap_err();
    assert!(matches!(outside, RegionError::OutOfBounds { .. }));
    // For callers that keep no guard.
    std::mem::forget(all[1].pin(0..BLOCK, true).unwrap());
    all[1].unpin(0..BLOCK, true).unwrap();
    all[1].unpin(0..BLOCK, true).unwrap();
    all[2].words()[0].fetch_add(1, SeqCst);
}

/// Calls of this node take a pinned page for a moment, and give it back.
#[test]
fn what_is_pinned_is_there_after_calls() {
    let rack = rack(rackmem::Fabric::Shm, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, 4 * BLOCK);
    let region = rack.node(1).open_region(&spec(4 * BLOCK)).unwrap();
    let (pipe, pinned) = (Pipe::new(), all[1].pin(0..4 * BLOCK, true).unwrap());
    let calls: [&dyn Fn(); 4] = [
        &|| {
            let view = rack.node(1).snapshot(region.addr(), 64, |view| view.u64(8));
            assert_eq!(view.unwrap(), 0);
        },
        &|| assert_eq!(rack.node(1).load(region.addr()).unwrap(), 0),
        &|| rack.node(1).store(region.addr(), 0).unwrap(),
        &|| region.write(0, &[0; 4 * BLOCK]).unwrap(),
    ];
    for call in calls {
        call();
        assert!(pinned.is_kept());
        pipe.put(b"read");
        pipe.read(&all[1], 16, 4).unwrap();
    }
}

/// Pins that meet from both ends, and misses between them: all get on.
#[test]
fn pins_of_several_nodes_get_on() {
    const ROUNDS: usize = 60;
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, 4 * BLOCK);
        std::thread::scope(|scope| {
            for (nth, pages) in all.iter().enumerate() {
                scope.spawn(move || {
                    let pipe = Pipe::new();
                    for round in 0..ROUNDS {
                        let block = (nth + round) % 3;
                        let bytes = block * BLOCK..(block + 2) * BLOCK;
                        let at = bytes.start + 8 * nth;
                        let began = Instant::now();
                        let pinned = pages.pin(bytes, true).unwrap();
                        pipe.put(&(round as u64).to_ne_bytes());
                        let read = pipe.read(pages, at, 8);
                        // A machine that stood still for a second took it away.
                        assert!(read.is_ok() || began.elapsed() > PINNED, "{fabric:?}");
                        drop(pinned);
                        pages.words()[511].fetch_add(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(all[0].words()[511].load(SeqCst), 3 * ROUNDS as u64);
    }
}
