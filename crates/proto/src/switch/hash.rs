//! The hash unit of a switch: CRC-32 as Ethernet and zlib compute it, over eight bytes.
//!
//! Programmable switches have no multiplier and no division, but every one of them has this
//! function. So has BMv2, and an XDP program does it with the same table as this one. Both hashes
//! of the program are made of it.

use crate::wire::{Copyset, Header, NodeId, Tag};

const POLYNOMIAL: u32 = 0xedb8_8320;

/// `TABLES[k][b]`: what byte `b`, with `k` more bytes after it, contributes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut after = 1;
    while after < 8 {
        let mut byte = 0;
        while byte < 256 {
            let one = tables[after - 1][byte];
            tables[after][byte] = one >> 8 ^ tables[0][(one & 0xff) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

/// CRC-32 over the big-endian bytes of a word.
#[inline]
pub fn crc32(word: u64) -> u32 {
    // The register starts with all ones, so the first four bytes go in inverted.
    let bytes = (word ^ 0xffff_ffff_0000_0000).to_be_bytes();
    let crc = bytes
        .iter()
        .zip(TABLES.iter().rev())
        .fold(0, |crc, (&byte, table)| crc ^ table[usize::from(byte)]);
    !crc
}

/// The set of a tag, in a table of `sets` of them, a power of two. The shadow node computes it,
/// too.
#[inline]
pub fn set_of(tag: Tag, sets: usize) -> usize {
    crc32(tag.0) as usize & (sets - 1)
}

/// Which member of a copyset provides the data: the first one from a place on that only the event
/// decides. The place is looked up as a mask, and the first member is a priority encoder,
/// so it takes no arithmetic.
#[inline]
pub fn provider(header: &Header, copyset: Copyset, seed: u32) -> Option<NodeId> {
    let (node, slot) = (header.requester.node, header.requester.slot);
    let event = u64::from(node) << 48 | u64::from(slot) << 32 | u64::from(header.seq.low());
    let from = (crc32(event) ^ seed) % 32;
    copyset.first_from(from as NodeId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Kind, RequesterId, Seq};

    #[test]
    fn it_is_the_crc_that_everybody_knows() {
        assert_eq!(crc32(u64::from_be_bytes(*b"12345678")), 0x9ae0_daaf);
        assert_eq!(crc32(0), 0x6522_df69);
        assert_eq!(crc32(u64::MAX), 0x2144_df1c);
    }

    #[test]
    fn blocks_at_the_same_offsets_of_many_homes_spread_over_the_sets() {
        for sets in [64, 1024, 32_768] {
            let mut load = alloc::vec![0u32; sets];
            for home in 0..32 {
                for block in 0..(sets / 16) as u64 {
                    load[set_of(Tag(home << 48 | block << 12), sets)] += 1;
                }
            }
            // Two a set on average: were they random, one set in ten thousand would have more than
            // eight.
            let full = load.iter().filter(|&&blocks| blocks > 8).count();
            assert!(full <= sets / 1000, "{full} of {sets}");
        }
    }

    #[test]
    fn every_sharer_provides_and_only_sharers_do() {
        let sharers = Copyset::of(3).with(4).with(17).with(31);
        let mut provided = [0u32; 32];
        for seq in 1..=3200 {
            let requester = RequesterId { node: 1, slot: 2 };
            let header = Header::request(Kind::ReadMiss, 1, Tag(0), requester, Seq(seq));
            provided[usize::from(provider(&header, sharers, 7).unwrap())] += 1;
        }
        for node in 0..32 {
            assert_eq!(sharers.contains(node), provided[usize::from(node)] > 0);
        }
        // A member's share is the gap before it: 4 stands alone after 3.
        assert!(provided[4] > 50, "{}", provided[4]);
    }
}
