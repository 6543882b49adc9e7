//! SHA-1, by which scripts are called. It names texts; nothing secret depends on it.

/// Bytes of a digest.
const DIGEST: usize = 20;
/// Bytes of a digest in hexadecimal.
pub(crate) const HEX: usize = 2 * DIGEST;
/// Bytes taken in at a time.
const BLOCK: usize = 64;

/// A script's name: its text's digest in lower-case hexadecimal.
pub(crate) type Sha = [u8; HEX];

/// What a word of a command names, in lower case; `None` when it cannot be a name.
pub(crate) fn named(word: &[u8]) -> Option<Sha> {
    let mut sha: Sha = word.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

/// The digest of `text` in lower-case hexadecimal.
pub(crate) fn hex(text: &[u8]) -> Sha {
    let mut state = [
        0x6745_2301u32,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let mut blocks = text.chunks_exact(BLOCK);
    for block in &mut blocks {
        take_in(&mut state, block);
    }
    // The rest, a bit, zeros, and the length in bits at the end of a block.
    let mut tail = [0; 2 * BLOCK];
    let rest = blocks.remainder();
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = 0x80;
    let end = (rest.len() + 9).next_multiple_of(BLOCK);
    tail[end - 8..end].copy_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    for block in tail[..end].chunks_exact(BLOCK) {
        take_in(&mut state, block);
    }
    let mut hex = [0; HEX];
    for (i, digit) in hex.iter_mut().enumerate() {
        let nibble = state[i / 8] >> (28 - 4 * (i % 8)) & 15;
        *digit = b"0123456789abcdef"[nibble as usize];
    }
    hex
}

fn take_in(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for i in 16..80 {
        let mixed = words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16];
        words[i] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (i, word) in words.iter().enumerate() {
        let (f, k) = match i {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e);
        let next = next.wrapping_add(k).wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        for (text, digest) in [
            (&b""[..], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (&[b'a'; 55], "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
            (&[b'a'; 56], "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
            (&[b'a'; 64], "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
            (&[b'a'; 1000], "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
        ] {
            assert_eq!(hex(text), digest.as_bytes(), "{} bytes", text.len());
        }
        assert_eq!(named(&hex(b"x").to_ascii_uppercase()), Some(hex(b"x")));
        assert_eq!(named(b"ab"), None);
    }
}
