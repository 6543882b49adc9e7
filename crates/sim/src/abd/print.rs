//! Fingerprints: 128 bits that stand for a state, quickly made.

use std::hash::{Hash, Hasher};

/// One of 64 bits.
pub fn hash(of: &impl Hash) -> u64 {
    let mut hasher = Print::default();
    of.hash(&mut hasher);
    hasher.finish()
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
        const BY: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
        for (half, by) in self.0.iter_mut().zip(BY) {
            let product = u128::from(*half ^ word) * u128::from(by);
            *half = (product as u64) ^ (product >> 64) as u64 ^ by.rotate_left(word as u32 & 63);
        }
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0[0] ^ self.0[1]
    }
}
