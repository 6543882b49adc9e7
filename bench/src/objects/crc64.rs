//! A checksum in the header, as Pilaf has it: a reader computes it of what it has copied.

use super::{Layout, zeros};
use rackmem_fabric::words;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The polynomial of CRC-64/XZ, from its lowest bit.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

/// For eight bytes at a time: the checksum of each byte at each of eight distances.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u64, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut distance = 1;
    while distance < 8 {
        let mut byte = 0;
        while byte < 256 {
            let nearer = tables[distance - 1][byte];
            tables[distance][byte] = (nearer >> 8) ^ tables[0][(nearer & 0xff) as usize];
            byte += 1;
        }
        distance += 1;
    }
    tables
}

/// CRC-64/XZ.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut crc = !0;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = (mixed.iter().zip(TABLES.iter().rev()))
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)]);
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

/// See the module.
pub struct Crc64 {
    sum: AtomicU64,
    bytes: Box<[AtomicU64]>,
}

impl Layout for Crc64 {
    fn new(len: usize) -> Self {
        Crc64 {
            sum: AtomicU64::new(checksum(&vec![0; len])),
            bytes: zeros(len / 8),
        }
    }

    fn read(&self, out: &mut [u8]) -> bool {
        let sum = self.sum.load(Acquire);
        words::read(out, &self.bytes);
        checksum(out) == sum
    }

    fn write(&self, bytes: &[u8]) {
        self.sum.store(checksum(bytes), Relaxed);
        std::sync::atomic::fence(Release);
        words::write(&self.bytes, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
        assert_eq!(checksum(b""), 0);
        let long: Vec<u8> = (0..100).collect();
        let split = |at: usize| checksum(&long[..at]);
        assert!((1..100).all(|at| split(at) != split(at - 1)));
    }
}
