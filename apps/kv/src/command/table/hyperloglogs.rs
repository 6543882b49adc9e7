//! The commands of HyperLogLogs.

use super::super::hyperloglogs;
use super::*;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const HYPERLOGLOG: &'static [Command<M>] = commands! { "hyperloglog":
        "pfadd"   -2 WRITE_FAST KEY  "2.8.9" hyperloglogs::pfadd,   "Adds elements to a HyperLogLog.";
        "pfcount" -2 READ       KEYS "2.8.9" hyperloglogs::pfcount, "Estimates how many different elements were added.";
        "pfmerge" -2 WRITE      KEYS "2.8.9" hyperloglogs::pfmerge, "Merges HyperLogLogs into one.";
    };
}
