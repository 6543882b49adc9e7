//! The commands of geo indexes.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const GEO: &'static [Command<M>] = &[];
}
