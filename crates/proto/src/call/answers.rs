//! What was answered, so that a copy of a call is answered as the call was.

use super::executed::Executed;
use super::per_requester::PerRequester;
use crate::wire::RequesterId;
use core::hash::{Hash, Hasher};

/// Which call of which stream this is, for calls that outlive their epoch, and so their sequence
/// number: what `Alloc` and `Free` carry in `offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Which of the node's streams to this home, `0..64`.
    pub stream: u16,
    /// Its number there, modulo 2^26.
    pub number: u32,
}

impl Call {
    const BITS: u32 = 26;
    const MASK: u32 = (1 << Self::BITS) - 1;

    /// As a packet carries it.
    pub const fn to_offset(self) -> u32 {
        (self.stream as u32) << Self::BITS | self.number & Self::MASK
    }

    /// From a packet.
    pub const fn from_offset(offset: u32) -> Self {
        Call {
            stream: (offset >> Self::BITS) as u16,
            number: offset & Self::MASK,
        }
    }

    /// The call after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Call {
            stream: self.stream,
            number: self.number.wrapping_add(1) & Self::MASK,
        }
    }
}

/// The last call of a stream.
#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
struct Row<A> {
    /// Of the node that called; 0 before the first call.
    incarnation: u32,
    number: u32,
    answer: A,
}

/// The last call of each stream of each node, with its answer. They outlive epochs.
#[derive(Clone, Debug, Default)]
pub struct Answers<A> {
    rows: PerRequester<Row<A>>,
}

impl<A: Copy + Default> Answers<A> {
    /// How a call relates to the last one of its stream. A new one begins with the default answer:
    /// [`Answers::put`] follows.
    pub fn enter(&mut self, caller: RequesterId, incarnation: u32, call: Call) -> Executed {
        let row = self.row(caller, call);
        if incarnation != row.incarnation {
            if incarnation < row.incarnation {
                return Executed::Old;
            }
        } else {
            match call.number.wrapping_sub(row.number) & Call::MASK {
                0 => return Executed::Again,
                ahead if ahead <= Call::MASK / 2 => {}
                _ => return Executed::Old,
            }
        }
        *row = Row {
            incarnation,
            number: call.number,
            answer: A::default(),
        };
        Executed::New
    }

    /// What the last call of this stream was answered.
    pub fn get(&mut self, caller: RequesterId, call: Call) -> A {
        self.row(caller, call).answer
    }

    /// Answers the call that has been entered last.
    pub fn put(&mut self, caller: RequesterId, call: Call, answer: A) {
        self.row(caller, call).answer = answer;
    }

    fn row(&mut self, caller: RequesterId, call: Call) -> &mut Row<A> {
        self.rows.row(RequesterId {
            slot: call.stream,
            ..caller
        })
    }
}

impl<A: Default + PartialEq + Hash> Answers<A> {
    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: RequesterId = RequesterId { node: 3, slot: 5 };

    fn call(number: u32) -> Call {
        Call { stream: 9, number }
    }

    #[test]
    fn a_copy_is_answered_as_the_first_was_and_an_older_call_is_not() {
        let mut answers = Answers::<u8>::default();
        assert_eq!(answers.enter(WHO, 1, call(1)), Executed::New);
        answers.put(WHO, call(1), 7);
        assert_eq!(answers.enter(WHO, 1, call(1)), Executed::Again);
        assert_eq!(answers.get(WHO, call(1)), 7);
        assert_eq!(answers.enter(WHO, 1, call(2)), Executed::New);
        assert_eq!(answers.enter(WHO, 1, call(1)), Executed::Old);
        // The node has died and is back: its streams begin anew, and late packets of its last life
        // are late.
        assert_eq!(answers.enter(WHO, 2, call(1)), Executed::New);
        assert_eq!(answers.enter(WHO, 1, call(9)), Executed::Old);
    }

    #[test]
    fn numbers_of_a_stream_wrap() {
        let mut answers = Answers::<u8>::default();
        assert_eq!(answers.enter(WHO, 1, call(Call::MASK)), Executed::New);
        let next = call(Call::MASK).next();
        assert_eq!(next.number, 0);
        assert_eq!(answers.enter(WHO, 1, next), Executed::New);
        assert_eq!(answers.enter(WHO, 1, call(Call::MASK)), Executed::Old);
    }
}
