//! The hash of a key: the same at every node, with the seed of the store's creation.
//!
//! A multiply-and-fold over eight bytes at a time. The seed keeps an outsider from choosing keys
//! that all meet in one bucket.

const A: u64 = 0x9e37_79b9_7f4a_7c15;
const B: u64 = 0xd6e8_feb8_6659_fd93;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// The hash of `key` under `seed`.
#[inline]
pub(crate) fn hash(seed: u64, key: &[u8]) -> u64 {
    let mut state = seed ^ A;
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = fold(state ^ word, B);
    }
    let mut last = [0; 8];
    let tail = chunks.remainder();
    last[..tail.len()].copy_from_slice(tail);
    state = fold(state ^ u64::from_le_bytes(last), A ^ key.len() as u64);
    fold(state ^ seed, B)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_spread_evenly_and_seeds_differ() {
        let mut counts = [0u32; 256];
        for i in 0..25_600 {
            counts[(hash(7, format!("key:{i}").as_bytes()) & 255) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (50..160).contains(c)), "{counts:?}");
        assert_ne!(hash(1, b"a"), hash(2, b"a"));
        assert_ne!(hash(1, b"a"), hash(1, b"a\0"));
        assert_ne!(hash(1, b""), hash(1, b"\0\0\0\0\0\0\0\0"));
    }
}
