//! Copies between arrays of atomic words, at the speed of a plain copy.
//!
//! Blocks are read while another thread may write them; who does so validates afterwards.
//! A loop of relaxed atomic accesses is what the language offers for that, but compiles to one word
//! at a time: 5 to 6 times slower than a plain copy of 4 KiB. On x86-64 a string move copies
//! aligned words, each of them atomically, at full width.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words from which on the string move pays for its start.
#[cfg(any(test, all(target_arch = "x86_64", not(miri))))]
const LONG: usize = 24;

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Copies as many words as both have.
#[inline]
pub fn copy(to: &[AtomicU64], from: &[AtomicU64]) {
    let count = to.len().min(from.len());
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if count >= LONG {
        // SAFETY: both ranges are `count` words long and writable (`AtomicU64` is interior
        // mutable).
        return unsafe { string_move(to.as_ptr() as *mut u64, from.as_ptr() as *const u64, count) };
    }
    for (to, from) in to.iter().zip(&from[..count]) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

/// Copies words into `out`, whose length is a multiple of eight and no longer than `from`;
/// little-endian bytes are native bytes here, as everywhere in a block.
#[inline]
pub fn read(out: &mut [u8], from: &[AtomicU64]) {
    let count = (out.len() / 8).min(from.len());
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if count >= LONG {
        // SAFETY: `out` is ours alone and at least `count` words long; `from` likewise,
        // and aligned.
        return unsafe {
            string_move(
                out.as_mut_ptr() as *mut u64,
                from.as_ptr() as *const u64,
                count,
            )
        };
    }
    for (to, from) in out.chunks_exact_mut(8).zip(&from[..count]) {
        to.copy_from_slice(&from.load(Relaxed).to_ne_bytes());
    }
}

/// Copies bytes, a multiple of eight of them, into words.
#[inline]
pub fn write(to: &[AtomicU64], bytes: &[u8]) {
    let count = to.len().min(bytes.len() / 8);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if count >= LONG {
        // SAFETY: `to` is `count` words long, writable and aligned; `bytes` is at least as long.
        return unsafe {
            string_move(to.as_ptr() as *mut u64, bytes.as_ptr() as *const u64, count)
        };
    }
    for (to, from) in to[..count].iter().zip(bytes.chunks_exact(8)) {
        to.store(
            u64::from_ne_bytes(from.try_into().expect("eight bytes")),
            Relaxed,
        );
    }
}

/// Makes words zeros.
#[inline]
pub fn zero(words: &[AtomicU64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if words.len() >= LONG {
        // SAFETY: so many words are there, writable (`AtomicU64` is interior mutable), and may be
        // accessed by other threads meanwhile, atomically: the processor stores aligned words
        // whole. The direction flag is clear by the calling convention.
        unsafe {
            std::arch::asm!(
                "rep stosq",
                inout("rcx") words.len() => _,
                inout("rdi") words.as_ptr() => _,
                in("rax") 0u64,
                options(nostack, preserves_flags),
            );
        }
        return;
    }
    words.iter().for_each(|word| word.store(0, Relaxed));
}

/// # Safety
/// `to` is valid for writes and `from` for reads of `count` words; they do not overlap.
/// Either may be accessed by other threads meanwhile, atomically:
/// the processor moves aligned words whole.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn string_move(to: *mut u64, from: *const u64, count: usize) {
    let alike = to.addr() % LINE == from.addr() % LINE;
    if !alike && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the caller's promise.
        return unsafe { vector_move(to, from, count) };
    }
    // SAFETY: the caller's promise; the direction flag is clear by the calling convention.
    unsafe {
        std::arch::asm!(
            "rep movsq",
            inout("rcx") count => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The same where the two lie differently in their cache lines, as a program's own buffers may:
/// there a string move can take three times as long. From the last word to the first, so that a
/// target just behind its source, modulo a page, does not make loads wait for stores.
///
/// # Safety
/// As of [`string_move`]; the processor has AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn vector_move(to: *mut u64, from: *const u64, count: usize) {
    // Stores that split cost more than loads that do, so vectors end where the target is aligned.
    let tail = ((to.addr() / 8 + count) % 4).min(count);
    let head = (count - tail) % 16;
    // SAFETY: the caller's promise. Moves of 32 bytes split, if they do, between aligned words.
    unsafe {
        for word in count - tail..count {
            move_word(to.add(word), from.add(word));
        }
        std::arch::asm!(
            "test {count}, {count}",
            "jz 3f",
            "2:",
            "vmovups {a}, [{from} + 8*{count} - 32]",
            "vmovups {b}, [{from} + 8*{count} - 64]",
            "vmovups {c}, [{from} + 8*{count} - 96]",
            "vmovups {d}, [{from} + 8*{count} - 128]",
            "vmovups [{to} + 8*{count} - 32], {a}",
            "vmovups [{to} + 8*{count} - 64], {b}",
            "vmovups [{to} + 8*{count} - 96], {c}",
            "vmovups [{to} + 8*{count} - 128], {d}",
            "sub {count}, 16",
            "jnz 2b",
            "vzeroupper",
            "3:",
            count = inout(reg) count - tail - head => _,
            from = in(reg) from.add(head),
            to = in(reg) to.add(head),
            a = out(ymm_reg) _,
            b = out(ymm_reg) _,
            c = out(ymm_reg) _,
            d = out(ymm_reg) _,
            options(nostack),
        );
        for word in 0..head {
            move_word(to.add(word), from.add(word));
        }
    }
}

/// The same of one word; bytes of a program need not be aligned.
///
/// # Safety
/// As of [`string_move`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn move_word(to: *mut u64, from: *const u64) {
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::asm!(
            "mov {word}, [{from}]",
            "mov [{to}], {word}",
            word = out(reg) _,
            from = in(reg) from,
            to = in(reg) to,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_every_length_are_faithful() {
        for len in 0..80usize {
            let from: Vec<AtomicU64> = (0..len as u64)
                .map(|i| AtomicU64::new(i * 77 + 1))
                .collect();
            let to: Vec<AtomicU64> = (0..len + 1).map(|_| AtomicU64::new(9)).collect();
            copy(&to, &from);
            assert!(
                to.iter()
                    .zip(&from)
                    .all(|(a, b)| a.load(Relaxed) == b.load(Relaxed))
            );
            assert_eq!(to[len].load(Relaxed), 9);
            let mut bytes = vec![0; len * 8];
            read(&mut bytes, &from);
            to.iter().for_each(|w| w.store(9, Relaxed));
            write(&to, &bytes);
            assert!(
                to.iter()
                    .zip(&from)
                    .all(|(a, b)| a.load(Relaxed) == b.load(Relaxed))
            );
            assert_eq!(to[len].load(Relaxed), 9);
            zero(&to[..len]);
            assert!(to[..len].iter().all(|word| word.load(Relaxed) == 0));
            assert_eq!(to[len].load(Relaxed), 9);
        }
    }

    #[test]
    fn bytes_at_every_offset_are_copied_faithfully() {
        let words: Vec<AtomicU64> = (1..=64).map(|at| AtomicU64::new(at * 77)).collect();
        let mut bytes = [0u8; 64 * 8 + 80];
        for offset in 0..72 {
            bytes.fill(9);
            read(&mut bytes[offset..offset + 512], &words);
            assert!(bytes[..offset].iter().all(|byte| *byte == 9));
            assert!(bytes[offset + 512..].iter().all(|byte| *byte == 9));
            let back: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
            write(&back, &bytes[offset..offset + 512]);
            let faithful =
                (words.iter().zip(&back)).all(|(a, b)| a.load(Relaxed) == b.load(Relaxed));
            assert!(faithful, "at {offset}");
        }
    }

    #[test]
    fn copies_between_all_places_in_a_line_are_faithful() {
        let words = |value: u64| -> Vec<AtomicU64> {
            (0..256).map(|at| AtomicU64::new(at * value)).collect()
        };
        let (from, to) = (words(77), words(0));
        for (source, target) in (0..8).flat_map(|source| (0..8).map(move |to| (source, to))) {
            for len in [LONG, LONG + 1, 31, 40, 64, 127, 200] {
                zero(&to);
                copy(&to[target..target + len], &from[source..]);
                for (at, word) in to.iter().enumerate() {
                    let copied = at.checked_sub(target).filter(|at| *at < len);
                    let value = copied.map_or(0, |at| (at + source) as u64 * 77);
                    assert_eq!(
                        word.load(Relaxed),
                        value,
                        "{source} to {target}, {len}: {at}"
                    );
                }
            }
        }
    }
}
