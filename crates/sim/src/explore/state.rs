//! A state of a whole rack: the numbers of its parts' states, the packets in flight,
//! and what is left of the budget.

use super::inside::Views;
use super::packet::WORDS;
use super::parts::{PacketId, PartId};
use super::scenario::{Budget, MAX_BLOCKS, MAX_NODES};
use crate::driver::Waiting;

/// Nodes and the switch.
pub const MAX_PARTS: usize = MAX_NODES + 1;

/// A state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The parts: nodes, then the switch.
    pub parts: [PartId; MAX_PARTS],
    /// What was written last to each block: the number of the write.
    pub memory: [u8; MAX_BLOCKS],
    /// What may still go wrong.
    pub left: Budget,
    /// What has failed, where rebuilds are explored packet by packet.
    pub views: Views,
    /// Steps that the rack's groups have made.
    pub groups: u8,
    /// Packets in flight, in order of their numbers; one that is in flight twice is here twice.
    pub packets: Vec<PacketId>,
}

impl State {
    /// Whether a copy holds what was written last.
    pub fn current(&self, block: usize, words: [u8; WORDS]) -> bool {
        words == [self.memory[block]; WORDS]
    }

    /// Appends its form as words.
    pub fn encode(&self, into: &mut Vec<u32>) {
        into.extend_from_slice(&self.parts);
        into.push(u32::from_le_bytes(self.memory));
        into.extend_from_slice(&self.left());
        into.push(self.packets.len() as u32 | u32::from(self.groups) << 24);
        into.extend_from_slice(&self.packets);
    }

    /// Takes it from its words; how many they were.
    pub fn decode(&mut self, words: &[u32]) -> usize {
        let (parts, rest) = words.split_at(MAX_PARTS);
        self.parts.copy_from_slice(parts);
        self.memory = rest[0].to_le_bytes();
        let [losses, duplicates, early, retries] = rest[1].to_le_bytes();
        self.left = Budget {
            losses,
            duplicates,
            early,
            retries,
            moves: rest[2] as u8,
            epochs: (rest[2] >> 8) as u8,
        };
        self.views = Views((rest[2] >> 16) as u16);
        let count = (rest[3] & 0xff_ffff) as usize;
        self.groups = (rest[3] >> 24) as u8;
        self.packets.clear();
        self.packets.extend_from_slice(&rest[4..4 + count]);
        MAX_PARTS + 4 + count
    }

    fn left(&self) -> [u32; 2] {
        let Budget {
            losses,
            duplicates,
            early,
            retries,
            moves,
            epochs,
        } = self.left;
        let first = u32::from_le_bytes([losses, duplicates, early, retries]);
        let rest = u32::from(moves) | u32::from(epochs) << 8;
        [first, rest | u32::from(self.views.0) << 16]
    }
}

impl Waiting for State {
    type Word = u32;

    /// 128 bits that stand for it: two lanes of multiply-and-fold over its words. With `n` states,
    /// two of them share theirs with odds of about `n² / 2^129`: 10^-24 for ten million.
    fn fingerprint(&self) -> u128 {
        let head = self.parts.iter().copied();
        let [first, second] = self.left();
        let memory = u32::from_le_bytes(self.memory);
        let tail = [memory, first, second, self.groups.into()];
        let (mut a, mut b) = (0x243f_6a88_85a3_08d3_u64, 0x1319_8a2e_0370_7344_u64);
        for word in head.chain(tail).chain(self.packets.iter().copied()) {
            let word = u64::from(word);
            a = fold(a ^ word, 0xa076_1d64_78bd_642f);
            b = fold(b ^ (word << 32 | word), 0xe703_7ed1_a0b4_28db);
        }
        u128::from(fold(a, 0x8ebc_6af0_9c88_c6e3)) << 64
            | u128::from(fold(b, 0x5899_65cc_7537_4cc3))
    }

    fn pack(self, into: &mut Vec<u32>) {
        self.encode(into);
    }

    fn unpack<'a>(words: &'a [u32], scratch: &'a mut Self) -> (&'a Self, usize) {
        let taken = scratch.decode(words);
        (scratch, taken)
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        let state = State {
            parts: [7, 8, 9, 0, 3],
            memory: [1, 2, 0, 9],
            left: Budget {
                losses: 1,
                duplicates: 2,
                early: 3,
                retries: 4,
                moves: 5,
                epochs: 6,
            },
            views: Views(0x12),
            groups: 2,
            packets: vec![4, 4, 12],
        };
        let mut words = Vec::new();
        state.encode(&mut words);
        words.push(99);
        let mut back = State::default();
        assert_eq!(back.decode(&words), words.len() - 1);
        assert_eq!(back, state);
        assert_eq!(back.fingerprint(), state.fingerprint());
        back.packets.pop();
        assert_ne!(back.fingerprint(), state.fingerprint());
    }
}
