//! Where a key belongs: the same in every process of the rack, of whatever build.

/// Odd numbers with as many ones as zeros, each of which spreads the bits of a word.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const WORD: u64 = 0xd6e8_feb8_6659_fd93;
const LAST: u64 = 0xa076_1d64_78bd_642f;

/// Both halves of a product, so that every bit of either factor counts.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Under a seed that a map has for itself: who does not know it cannot choose keys that meet.
#[inline]
pub fn hash(seed: u64, key: &[u8]) -> u64 {
    let mut state = fold(seed ^ FIRST, key.len() as u64 ^ LAST);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), WORD);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        state = fold(state ^ u64::from_le_bytes(word), WORD);
    }
    fold(state ^ seed, LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is in memory that processes of several builds share, so it must stay what it is.
    #[test]
    fn a_key_stays_where_it_is() {
        let pinned = [
            hash(0, b""),
            hash(7, b"a"),
            hash(7, b"rackmem."),
            hash(u64::MAX, b"nine byte"),
        ];
        assert_eq!(pinned, PINNED);
    }

    #[test]
    fn keys_spread_over_buckets_and_entries() {
        const BUCKETS: usize = 64;
        for seed in [0, 1, u64::MAX] {
            let mut counts = [0u32; BUCKETS];
            let mut low = std::collections::BTreeSet::new();
            for nth in 0..6400u32 {
                let hash = hash(seed, format!("user{nth}").as_bytes());
                counts[((u128::from(hash) * BUCKETS as u128) >> 64) as usize] += 1;
                low.insert(hash as u32);
            }
            assert!(
                counts.iter().all(|count| (50..160).contains(count)),
                "{counts:?}"
            );
            assert!(low.len() > 6390);
        }
        assert_ne!(hash(1, b"a"), hash(2, b"a"));
        assert_ne!(hash(1, b"a"), hash(1, b"a\0"));
    }

    const PINNED: [u64; 4] = [
        12_831_393_996_198_557_739,
        9_419_242_425_047_928_726,
        11_196_525_161_243_794_644,
        5_334_844_077_661_691_446,
    ];
}
