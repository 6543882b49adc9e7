//! What objects are measured against: the ways in which others tell a torn read, each with its own
//! layout of one object in memory that readers copy while writers write.
//!
//! | layout | of | a reader |
//! |---|---|---|
//! | [`Plain`] | the floor | copies, and knows nothing: **not atomic** |
//! | [`Versions`] | FaRM: a version in each cache line | compares the lines' versions and strips them out |
//! | [`Crc64`] | Pilaf: a checksum in the header | computes it of what it has copied |
//! | [`Locked`] | DrTM: a lock in the header | takes it, copies, lets it go |
//!
//! [`rpc`] is HERD's and RAMCloud's way: the home's thread reads.
//!
//! Words are atomic, so that no race of theirs breaks the language's rules.

mod crc64;
pub mod rpc;
mod versions;

pub use crc64::{Crc64, checksum};
pub use versions::Versions;

use rackmem_fabric::words;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// One object of a fixed length, which is a multiple of eight bytes.
pub trait Layout: Send + Sync {
    /// Of so many bytes, zeros.
    fn new(len: usize) -> Self
    where
        Self: Sized;
    /// Copies it, as one write has left it; false: a writer was in its way.
    fn read(&self, out: &mut [u8]) -> bool;
    /// Replaces it. One writer at a time.
    fn write(&self, bytes: &[u8]);
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Memory and nothing else.
pub struct Plain(Box<[AtomicU64]>);

impl Layout for Plain {
    fn new(len: usize) -> Self {
        Plain(zeros(len / 8))
    }

    #[inline]
    fn read(&self, out: &mut [u8]) -> bool {
        words::read(out, &self.0);
        true
    }

    fn write(&self, bytes: &[u8]) {
        words::write(&self.0, bytes);
    }
}

/// A lock word, and memory.
pub struct Locked {
    lock: AtomicU64,
    bytes: Box<[AtomicU64]>,
}

impl Locked {
    fn enter(&self) {
        let free = |lock: &AtomicU64| lock.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        let mut looks = 0u32;
        while !free(&self.lock) {
            looks += 1;
            match looks % 64 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

impl Layout for Locked {
    fn new(len: usize) -> Self {
        Locked {
            lock: AtomicU64::new(0),
            bytes: zeros(len / 8),
        }
    }

    #[inline]
    fn read(&self, out: &mut [u8]) -> bool {
        self.enter();
        words::read(out, &self.bytes);
        self.lock.store(0, Release);
        true
    }

    fn write(&self, bytes: &[u8]) {
        self.enter();
        fence(Release);
        words::write(&self.bytes, bytes);
        self.lock.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<L: Layout>() {
        for len in [8, 48, 56, 64, 128, 1000, 8192, 65_520] {
            let object = L::new(len);
            for nth in 0..3u8 {
                let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 ^ nth).collect();
                object.write(&bytes);
                let mut out = vec![0; len];
                assert!(object.read(&mut out));
                assert_eq!(out, bytes, "{len}");
            }
        }
    }

    #[test]
    fn what_was_written_is_read() {
        comes_back::<Plain>();
        comes_back::<Versions>();
        comes_back::<Crc64>();
        comes_back::<Locked>();
    }

    fn never_torn<L: Layout>() {
        const LEN: usize = 1024;
        let object = L::new(LEN);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut nth = 0u8;
                while !over.load(Relaxed) {
                    nth = nth.wrapping_add(1);
                    object.write(&[nth; LEN]);
                    std::thread::yield_now();
                }
            });
            let (mut out, mut whole) = (vec![0; LEN], 0);
            while whole < 20_000 {
                if object.read(&mut out) {
                    whole += 1;
                    assert!(out.iter().all(|byte| *byte == out[0]));
                }
            }
            over.store(true, Relaxed);
        });
    }

    /// A baseline that gave torn objects would be compared for nothing.
    #[test]
    fn baselines_that_promise_it_are_not_torn() {
        never_torn::<Versions>();
        never_torn::<Crc64>();
        never_torn::<Locked>();
    }
}
