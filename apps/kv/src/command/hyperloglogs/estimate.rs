//! Where an element is noted, and what the registers say together.
//!
//! The hash is MurmurHash64A with Redis's seed, since registers are exchanged. The estimate is that
//! of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), section 4,
//! which needs no table of corrections.

use super::form::REGISTERS;

const SEED: u64 = 0xadc8_3b19;
/// Bits of a hash that choose the register.
const CHOOSE: u32 = REGISTERS.trailing_zeros();
/// Bits in which leading zeros are counted: the greatest value of a register is one more.
const COUNTED: usize = 64 - CHOOSE as usize;

fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = chunk
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        word = word.wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let word = rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// An element's register, and what that must at least be.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = hash(element);
    let zeros = (hash >> CHOOSE | 1 << COUNTED).trailing_zeros();
    ((hash % REGISTERS as u64) as usize, zeros as u8 + 1)
}

pub(super) fn estimate(registers: &[u8]) -> u64 {
    let mut counts = [0u32; 64];
    for value in registers {
        counts[usize::from(value & 63)] += 1;
    }
    let m = REGISTERS as f64;
    let full = f64::from(counts[COUNTED + 1]);
    let mut sum = m * tau((m - full) / m);
    for count in counts[1..=COUNTED].iter().rev() {
        sum = (sum + f64::from(*count)) * 0.5;
    }
    sum += m * sigma(f64::from(counts[0]) / m);
    (m * m / (2.0 * std::f64::consts::LN_2) / sum).round() as u64
}

/// x + x² + 2x⁴ + 4x⁸ + ...
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut factor, mut sum) = (1.0, x);
    loop {
        let before = sum;
        x *= x;
        sum += x * factor;
        factor += factor;
        if sum == before {
            return sum;
        }
    }
}

/// A third of 1 - x - (1 - √x)²/2 - (1 - ⁴√x)²/4 - ...
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut factor, mut sum) = (1.0, 1.0 - x);
    loop {
        let before = sum;
        x = x.sqrt();
        factor *= 0.5;
        sum -= (1.0 - x).powi(2) * factor;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_nothing_and_all_full_is_no_panic() {
        assert_eq!(estimate(&vec![0; REGISTERS]), 0);
        assert!(estimate(&vec![51; REGISTERS]) > 1 << 60);
        assert!(estimate(&vec![63; REGISTERS]) > 0);
    }
}
