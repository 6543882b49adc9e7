//! The commands of sets.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const SET: &'static [Command<M>] = &[];
}
