//! The commands of lists.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const LIST: &'static [Command<M>] = &[];
}
