//! The commands of hashes.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const HASH: &'static [Command<M>] = &[];
}
