//! States while they wait for their turn.

/// A state that a search keeps until it is its turn.
pub trait Waiting: Clone {
    /// What it is kept as.
    type Word;

    /// 128 bits that stand for it.
    fn fingerprint(&self) -> u128;

    /// Puts it behind others that wait.
    fn pack(self, into: &mut Vec<Self::Word>);

    /// The first of those that wait, and how many words it takes.
    /// `scratch` is for one that has to be put together.
    fn unpack<'a>(words: &'a [Self::Word], scratch: &'a mut Self) -> (&'a Self, usize);
}

/// A state that is kept as it is.
pub trait Unpacked: Clone {
    /// See [`Waiting::fingerprint`].
    fn fingerprint(&self) -> u128;
}

impl<U: Unpacked> Waiting for U {
    type Word = U;

    fn fingerprint(&self) -> u128 {
        Unpacked::fingerprint(self)
    }

    fn pack(self, into: &mut Vec<U>) {
        into.push(self);
    }

    fn unpack<'a>(words: &'a [U], _: &'a mut U) -> (&'a U, usize) {
        (&words[0], 1)
    }
}
