//! The commands of streams.

use super::*;
use crate::command::stream;

const READ_STREAMS: KeyWords = KeyWords::Streams { from: 1 };

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const STREAM: &'static [Command<M>] = commands! { "stream":
        "xadd"       -5 WRITE_FAST KEY          "5.0.0" stream::xadd,       "Adds an entry to a stream.";
        "xlen"        2 READ_FAST  KEY          "5.0.0" stream::xlen,       "Counts the entries of a stream.";
        "xrange"     -4 READ       KEY          "5.0.0" stream::xrange,     "Returns the entries of an interval.";
        "xrevrange"  -4 READ       KEY          "5.0.0" stream::xrevrange,  "Returns the entries of an interval, the last first.";
        "xdel"       -3 LESS_FAST  KEY          "5.0.0" stream::xdel,       "Deletes entries of a stream.";
        "xtrim"      -4 LESS       KEY          "5.0.0" stream::xtrim,      "Deletes the first entries of a stream.";
        "xsetid"     -3 WRITE_FAST KEY          "5.0.0" stream::xsetid,     "Sets the last number of a stream.";
        "xread"      -4 READ       READ_STREAMS "5.0.0" stream::xread,      "Returns what has come to streams, or waits for it.";
        "xreadgroup" -7 LESS       READ_STREAMS "5.0.0" stream::xreadgroup, "Returns what a group has for a consumer, or waits for it.";
        "xgroup"     -2 WRITE      KEY_SECOND   "5.0.0" subcommand [stream::of_xgroup], "Makes and changes groups of consumers.";
        "xack"       -4 LESS_FAST  KEY          "5.0.0" stream::xack,       "Tells that a group has dealt with entries.";
        "xpending"   -3 READ       KEY          "5.0.0" stream::xpending,   "Returns what was delivered and not acknowledged.";
        "xclaim"     -6 LESS_FAST  KEY          "5.0.0" stream::xclaim,     "Gives pending entries to another consumer.";
        "xautoclaim" -6 LESS_FAST  KEY          "6.2.0" stream::xautoclaim, "Gives old pending entries to another consumer.";
        "xinfo"      -2 READ       KEY_SECOND   "5.0.0" subcommand [stream::of_xinfo], "Tells what is known of a stream.";
    };
}
