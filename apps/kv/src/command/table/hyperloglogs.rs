//! The commands of HyperLogLogs.

use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const HYPERLOGLOG: &'static [Command<M>] = &[];
}
