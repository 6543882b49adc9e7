//! What stands in for `crates/fabric/src/words.rs`: copies word by word, where the shipped one has
//! a string move, which moves aligned words whole and in any order.

use crate::sync::{AtomicU64, Ordering::Relaxed};

pub(crate) fn copy(to: &[AtomicU64], from: &[AtomicU64]) {
    for (to, from) in to.iter().zip(from) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

pub(crate) fn read(out: &mut [u8], from: &[AtomicU64]) {
    for (to, from) in out.chunks_exact_mut(8).zip(from) {
        to.copy_from_slice(&from.load(Relaxed).to_ne_bytes());
    }
}

pub(crate) fn write(to: &[AtomicU64], bytes: &[u8]) {
    for (to, from) in to.iter().zip(bytes.chunks_exact(8)) {
        let word: [u8; 8] = from.try_into().expect("eight bytes");
        to.store(u64::from_ne_bytes(word), Relaxed);
    }
}
