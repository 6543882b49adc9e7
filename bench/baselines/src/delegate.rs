//! Delegation: a word is read or changed where it lives. There are no caches.
//!
//! An operation travels in a packet's 16 own bytes and its operands behind them, and takes effect
//! once: a copy of a request is answered with the first result.

use rackmem_proto::wire::{RequesterId, Seq};
use std::collections::BTreeMap;

/// What is to be done with a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// What is it?
    Read,
    /// It becomes this.
    Write(u64),
    /// This is added to it, wrapping.
    Add(u64),
    /// If it is the first it becomes the second.
    Exchange(u64, u64),
}

impl Operation {
    /// Bytes of an operation on a word.
    pub const LEN: usize = 32;

    /// For the body of a packet, on the `nth` word.
    pub fn to_bytes(self, nth: u64) -> [u8; Self::LEN] {
        let (code, first, second) = match self {
            Operation::Read => (0, 0, 0),
            Operation::Write(word) => (1, word, 0),
            Operation::Add(n) => (2, n, 0),
            Operation::Exchange(old, new) => (3, old, new),
        };
        let mut bytes = [0; Self::LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip([code, nth, first, second]) {
            to.copy_from_slice(&u64::to_le_bytes(word));
        }
        bytes
    }

    /// From the body of a packet, with the word that it is on.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Self, u64)> {
        let (words, _) = bytes.as_chunks::<8>();
        let &[code, nth, first, second] = words.first_chunk::<4>()?;
        let word = u64::from_le_bytes;
        let operation = match word(code) {
            0 => Operation::Read,
            1 => Operation::Write(word(first)),
            2 => Operation::Add(word(first)),
            3 => Operation::Exchange(word(first), word(second)),
            _ => return None,
        };
        Some((operation, word(nth)))
    }

    /// What the word becomes.
    fn apply(self, old: u64) -> u64 {
        match self {
            Operation::Write(word) => word,
            Operation::Add(n) => old.wrapping_add(n),
            Operation::Exchange(expected, new) if old == expected => new,
            Operation::Read | Operation::Exchange(..) => old,
        }
    }
}

/// The words of a home, and the last result of each requester.
#[derive(Clone, Debug, Default)]
pub struct Words {
    words: Vec<u64>,
    results: BTreeMap<RequesterId, (Seq, u64)>,
}

impl Words {
    /// So many words, all zero.
    pub fn new(count: usize) -> Words {
        Words {
            words: vec![0; count],
            results: BTreeMap::new(),
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Carries out an operation of a requester on the `nth` word, unless it has been: what was
    /// there before. Nothing for a word that is not there, and for an operation whose requester has
    /// gone on since.
    pub fn execute(
        &mut self,
        by: RequesterId,
        seq: Seq,
        nth: u64,
        operation: Operation,
    ) -> Option<u64> {
        match self.results.get(&by) {
            Some((last, result)) if *last == seq => return Some(*result),
            Some((last, _)) if last.0 > seq.0 => return None,
            _ => {}
        }
        let word = self.words.get_mut(usize::try_from(nth).ok()?)?;
        let old = *word;
        *word = operation.apply(old);
        self.results.insert(by, (seq, old));
        Some(old)
    }

    /// Forgets what these requesters have done last: their node is dead,
    /// and may come back with new numbers.
    pub fn forget(&mut self, gone: impl Fn(RequesterId) -> bool) {
        self.results.retain(|by, _| !gone(*by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: RequesterId = RequesterId { node: 1, slot: 0 };
    const OTHER: RequesterId = RequesterId { node: 1, slot: 1 };

    #[test]
    fn bytes_lead_back_to_the_operation() {
        let all = [
            Operation::Read,
            Operation::Write(7),
            Operation::Add(u64::MAX),
            Operation::Exchange(1, 2),
        ];
        for operation in all {
            let bytes = operation.to_bytes(9);
            assert_eq!(Operation::from_bytes(&bytes), Some((operation, 9)));
        }
        assert_eq!(Operation::from_bytes(&[4; 32]), None, "no such code");
        assert_eq!(Operation::from_bytes(&[0; 31]), None, "cut short");
    }

    #[test]
    fn a_copy_of_a_request_changes_nothing_and_gets_the_same_answer() {
        let mut words = Words::new(2);
        let add = Operation::Add(5);
        assert_eq!(words.execute(ONE, Seq(1), 1, add), Some(0));
        assert_eq!(words.execute(OTHER, Seq(1), 1, add), Some(5));
        assert_eq!(words.execute(ONE, Seq(1), 1, add), Some(0), "the copy");
        assert_eq!(words.execute(ONE, Seq(2), 1, Operation::Read), Some(10));
        assert_eq!(words.execute(ONE, Seq(1), 1, add), None, "long over");
        assert_eq!(
            words.execute(ONE, Seq(3), 2, Operation::Read),
            None,
            "no such word"
        );
    }

    #[test]
    fn an_exchange_needs_what_it_expects() {
        let mut words = Words::new(1);
        let exchange = Operation::Exchange(0, 3);
        assert_eq!(words.execute(ONE, Seq(1), 0, exchange), Some(0));
        assert_eq!(words.execute(ONE, Seq(2), 0, exchange), Some(3));
        assert_eq!(words.execute(ONE, Seq(3), 0, Operation::Read), Some(3));
    }
}
