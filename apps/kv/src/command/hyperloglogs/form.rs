//! A HyperLogLog as a string.
//!
//! ```text
//! 0   "HYLL"
//! 4   how the registers are written: 0 dense, 1 sparse; three bytes of no meaning
//! 8   an estimate, from the lowest byte on; the highest bit says that it is outdated
//! 16  the registers
//! ```
//!
//! Dense: 6 bits a register, from the lowest bit of each byte on. Sparse: runs of equal ones.
//!
//! ```text
//! 00nnnnnn            n + 1 zeros
//! 01nnnnnn nnnnnnnn   n + 1 zeros
//! 1vvvvvnn            n + 1 times v + 1
//! ```

use super::estimate;

const MAGIC: &[u8] = b"HYLL";
const HEADER: usize = 16;
const SPARSE: u8 = 1;
/// The byte, and its bit, that says that the estimate is outdated.
const OUTDATED: (usize, u8) = (15, 0x80);
/// Registers: as many as 14 bits of a hash tell apart.
pub(super) const REGISTERS: usize = 1 << 14;
const BITS: usize = 6;
const DENSE: usize = HEADER + REGISTERS * BITS / 8;
/// Bytes of a sparse form at most; a longer one becomes dense for good.
const SPARSE_MAX: usize = HEADER + 3000;
/// The greatest value that the sparse form can write.
const SPARSE_VALUE: u8 = 32;

/// The registers, a byte each, and whether they have been dense.
pub(super) struct Registers {
    values: Vec<u8>,
    dense: bool,
}

/// Why a string is no HyperLogLog.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// It is something else.
    Foreign,
    /// It begins as one.
    Damaged,
}

impl Default for Registers {
    fn default() -> Self {
        Registers {
            values: vec![0; REGISTERS],
            dense: false,
        }
    }
}

impl Registers {
    pub fn decode(bytes: &[u8]) -> Result<Registers, Bad> {
        let form = bytes.get(4).copied().unwrap_or(u8::MAX);
        let dense = form != SPARSE;
        let foreign = bytes.len() < HEADER
            || !bytes.starts_with(MAGIC)
            || form > SPARSE
            || dense && bytes.len() != DENSE;
        if foreign {
            return Err(Bad::Foreign);
        }
        let body = &bytes[HEADER..];
        let values = match dense {
            true => unpack(body),
            false => spread(body).ok_or(Bad::Damaged)?,
        };
        Ok(Registers { values, dense })
    }

    /// Notes an element; says whether that changed anything.
    pub fn add(&mut self, element: &[u8]) -> bool {
        let (register, value) = estimate::place(element);
        let there = &mut self.values[register];
        let more = value > *there;
        *there = value.max(*there);
        more
    }

    pub fn merge(&mut self, other: &Registers) {
        self.dense |= other.dense;
        for (mine, other) in self.values.iter_mut().zip(&other.values) {
            *mine = (*mine).max(*other);
        }
    }

    /// How many different elements were noted, about.
    pub fn estimate(&self) -> u64 {
        estimate::estimate(&self.values)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.resize(HEADER, 0);
        out[OUTDATED.0] |= OUTDATED.1;
        if !self.dense && gather(&self.values, &mut out) {
            out[4] = SPARSE;
            return out;
        }
        out.truncate(HEADER);
        pack(&self.values, &mut out);
        out
    }
}

fn unpack(body: &[u8]) -> Vec<u8> {
    // Three bytes are four registers.
    let registers = |three: &[u8]| {
        let all = u32::from_le_bytes([three[0], three[1], three[2], 0]);
        [0, 6, 12, 18].map(|at| (all >> at & 0x3f) as u8)
    };
    body.chunks_exact(3).flat_map(registers).collect()
}

fn pack(values: &[u8], out: &mut Vec<u8>) {
    for four in values.chunks_exact(4) {
        let shifted = four
            .iter()
            .rev()
            .fold(0, |all, value| all << BITS | u32::from(*value));
        out.extend_from_slice(&shifted.to_le_bytes()[..3]);
    }
}

/// The registers of a sparse form, if it tells of exactly as many as there are.
fn spread(body: &[u8]) -> Option<Vec<u8>> {
    let (mut values, mut rest) = (Vec::with_capacity(REGISTERS), body);
    while let [first, behind @ ..] = rest {
        let low = usize::from(first & 0x3f);
        let (value, count, behind) = match first >> 6 {
            0 => (0, low + 1, behind),
            1 => (
                0,
                (low << 8 | usize::from(*behind.first()?)) + 1,
                &behind[1..],
            ),
            _ => ((first >> 2 & 0x1f) + 1, usize::from(first & 3) + 1, behind),
        };
        if values.len() + count > REGISTERS {
            return None;
        }
        values.resize(values.len() + count, value);
        rest = behind;
    }
    (values.len() == REGISTERS).then_some(values)
}

/// Writes the sparse form; says whether the registers have one that is short enough.
fn gather(values: &[u8], out: &mut Vec<u8>) -> bool {
    for run in values.chunk_by(|a, b| a == b) {
        let mut left = run.len();
        while left != 0 {
            let count = match run[0] {
                0 if left > 64 => {
                    let [high, low] = (left as u16 - 1).to_be_bytes();
                    out.extend_from_slice(&[0x40 | high, low]);
                    left
                }
                0 => {
                    out.push(left as u8 - 1);
                    left
                }
                value => {
                    if value > SPARSE_VALUE {
                        return false;
                    }
                    let count = left.min(4);
                    out.push(0x80 | (value - 1) << 2 | (count as u8 - 1));
                    count
                }
            };
            left -= count;
        }
        if out.len() > SPARSE_MAX {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u32) -> Registers {
        let mut registers = Registers::default();
        for i in 0..count {
            registers.add(format!("element:{i}").as_bytes());
        }
        registers
    }

    #[test]
    fn both_forms_are_read_back() {
        for (count, len) in [
            (0, HEADER + 2),
            (1, HEADER + 5),
            (300, 800),
            (100_000, DENSE),
        ] {
            let registers = filled(count);
            let bytes = registers.encode();
            assert!(bytes.len() <= len, "{count}: {}", bytes.len());
            let back = Registers::decode(&bytes).unwrap();
            assert_eq!(back.values, registers.values);
            assert_eq!(back.encode(), bytes);
        }
        let mut dense = filled(3);
        dense.dense = true;
        assert_eq!(dense.encode().len(), DENSE);
        assert_eq!(
            Registers::decode(&dense.encode()).unwrap().values,
            dense.values
        );
    }

    #[test]
    fn other_strings_are_none() {
        let whole = filled(10).encode();
        let mut longer = whole.clone();
        longer.push(0);
        for (bytes, bad) in [
            (&b""[..], Bad::Foreign),
            (b"HYLL", Bad::Foreign),
            (b"hyll____________", Bad::Foreign),
            (&[b"HYLL\x02", &[0; 11][..]].concat(), Bad::Foreign),
            (&[b"HYLL\x00", &[0; 11][..]].concat(), Bad::Foreign),
            (&[b"HYLL\x01", &[0; 11][..]].concat(), Bad::Damaged),
            (&[b"HYLL\x01", &[0; 11][..], b"\x7f"].concat(), Bad::Damaged),
            (&whole[..whole.len() - 1], Bad::Damaged),
            (&longer, Bad::Damaged),
        ] {
            assert_eq!(Registers::decode(bytes).err(), Some(bad), "{bytes:?}");
        }
    }

    #[test]
    fn estimates_are_near() {
        let mut registers = Registers::default();
        for i in 1..=200_000u32 {
            registers.add(&i.to_le_bytes());
            if [1, 10, 100, 1000, 10_000, 50_000, 200_000].contains(&i) {
                let off = registers.estimate().abs_diff(u64::from(i)) as f64 / f64::from(i);
                assert!(off < 0.03, "{i}: off by {off}");
            }
        }
        let mut other = filled(5000);
        other.merge(&filled(6000));
        assert_eq!(other.estimate(), filled(6000).estimate());
    }
}
