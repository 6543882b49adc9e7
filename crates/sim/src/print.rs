//! Fingerprints: 128 bits that stand for a state, quickly made.

use std::hash::{Hash, Hasher};

/// One of 64 bits.
pub fn hash(of: &impl Hash) -> u64 {
    let mut hasher = Print::default();
    of.hash(&mut hasher);
    hasher.finish()
}

const BY: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// A fingerprint of 128 bits in the making: each word is multiplied into both halves,
/// and the product folded.
pub struct Print([u64; 2]);

impl Default for Print {
    fn default() -> Self {
        Print([0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f])
    }
}

impl Print {
    /// Many words, two at a time.
    pub fn write_words(&mut self, words: &[u64]) {
        let (pairs, rest) = words.as_chunks::<2>();
        for [a, b] in pairs {
            let [first, second] = &mut self.0;
            *first = folded(*first ^ a, BY[0] ^ b);
            *second = folded(*second ^ b, BY[1] ^ a);
        }
        rest.iter().for_each(|word| self.write_u64(*word));
        self.write_usize(words.len());
    }

    /// All of it.
    pub fn whole(&self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

impl Hasher for Print {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.write_u64(word);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, word: u64) {
        for (half, by) in self.0.iter_mut().zip(BY) {
            *half = folded(*half ^ word, by) ^ by.rotate_left(word as u32 & 63);
        }
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0[0] ^ self.0[1]
    }
}
