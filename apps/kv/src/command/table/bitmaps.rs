//! The commands of bitmaps.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const BITMAP: &'static [Command<M>] = &[];
}
