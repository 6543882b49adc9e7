//! The commands of streams.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const STREAM: &'static [Command<M>] = &[];
}
