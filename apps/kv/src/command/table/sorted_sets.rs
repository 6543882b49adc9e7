//! The commands of sorted sets.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const SORTED_SET: &'static [Command<M>] = &[];
}
