//! The commands of publish and subscribe.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const PUBSUB: &'static [Command<M>] = &[];
}
