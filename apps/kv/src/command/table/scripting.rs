//! The commands of scripts.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const SCRIPTING: &'static [Command<M>] = &[];
}
