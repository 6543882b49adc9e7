//! The commands of sorted sets.

use super::*;
use crate::command::sorted_set as z;

/// The word behind the name says how many keys follow.
const NUMBERED: KeyWords = KeyWords::Counted { first: 0, count: 1 };
/// The same behind a first key.
const KEY_AND_NUMBERED: KeyWords = KeyWords::Counted { first: 1, count: 2 };
/// The same behind a timeout.
const NUMBERED_THIRD: KeyWords = KeyWords::Counted { first: 0, count: 2 };
/// All but the last word.
const KEYS_AND_TIMEOUT: KeyWords = KeyWords::Fixed {
    first: 1,
    last: -2,
    step: 1,
};

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const SORTED_SET: &'static [Command<M>] = commands! { "sorted-set":
        "zadd"             -4 WRITE_FAST KEY              "1.2.0"  z::zadd,             "Adds members, or changes their scores.";
        "zincrby"           4 WRITE_FAST KEY              "1.2.0"  z::zincrby,          "Adds to a member's score.";
        "zrem"             -3 LESS_FAST  KEY              "1.2.0"  z::zrem,             "Removes members.";
        "zcard"             2 READ_FAST  KEY              "1.2.0"  z::zcard,            "Counts the members.";
        "zscore"            3 READ_FAST  KEY              "1.2.0"  z::zscore,           "Returns a member's score.";
        "zmscore"          -3 READ_FAST  KEY              "6.2.0"  z::zmscore,          "Returns the scores of members.";
        "zrank"            -3 READ_FAST  KEY              "2.0.0"  z::zrank,            "Counts the members with lower scores than one.";
        "zrevrank"         -3 READ_FAST  KEY              "2.0.0"  z::zrevrank,         "Counts the members with higher scores than one.";
        "zcount"            4 READ_FAST  KEY              "2.0.0"  z::zcount,           "Counts the members in a range of scores.";
        "zlexcount"         4 READ_FAST  KEY              "2.8.9"  z::zlexcount,        "Counts the members in a range of members.";
        "zrange"           -4 READ       KEY              "1.2.0"  z::zrange,           "Returns members in a range.";
        "zrevrange"        -4 READ       KEY              "1.2.0"  z::zrevrange,        "Returns members in a range of ranks, highest first.";
        "zrangebyscore"    -4 READ       KEY              "1.0.5"  z::zrangebyscore,    "Returns members in a range of scores.";
        "zrevrangebyscore" -4 READ       KEY              "2.2.0"  z::zrevrangebyscore, "Returns members in a range of scores, highest first.";
        "zrangebylex"      -4 READ       KEY              "2.8.9"  z::zrangebylex,      "Returns members in a range of members.";
        "zrevrangebylex"   -4 READ       KEY              "2.8.9"  z::zrevrangebylex,   "Returns members in a range of members, highest first.";
        "zrangestore"      -5 WRITE      TWO_KEYS         "6.2.0"  z::zrangestore,      "Stores members in a range.";
        "zpopmin"          -2 LESS_FAST  KEY              "5.0.0"  z::zpopmin,          "Takes out the members with the lowest scores.";
        "zpopmax"          -2 LESS_FAST  KEY              "5.0.0"  z::zpopmax,          "Takes out the members with the highest scores.";
        "zmpop"            -4 LESS       NUMBERED         "7.0.0"  z::zmpop,            "Takes members out of the first key that has any.";
        "bzpopmin"         -3 TAKES_FAST KEYS_AND_TIMEOUT "5.0.0"  z::bzpopmin,         "Takes out the member with the lowest score, or waits for one.";
        "bzpopmax"         -3 TAKES_FAST KEYS_AND_TIMEOUT "5.0.0"  z::bzpopmax,         "Takes out the member with the highest score, or waits for one.";
        "bzmpop"           -5 LESS       NUMBERED_THIRD   "7.0.0"  z::bzmpop,           "Takes members out of the first key that has any, or waits for one.";
        "zremrangebyrank"   4 LESS       KEY              "2.0.0"  z::zremrangebyrank,  "Removes members in a range of ranks.";
        "zremrangebyscore"  4 LESS       KEY              "1.2.0"  z::zremrangebyscore, "Removes members in a range of scores.";
        "zremrangebylex"    4 LESS       KEY              "2.8.9"  z::zremrangebylex,   "Removes members in a range of members.";
        "zrandmember"      -2 READ       KEY              "6.2.0"  z::zrandmember,      "Returns members chosen at random.";
        "zscan"            -3 READ       KEY              "2.8.0"  z::zscan,            "Returns the members step by step.";
        "zunion"           -3 READ       NUMBERED         "6.2.0"  z::zunion,           "Returns the members of any of the keys.";
        "zinter"           -3 READ       NUMBERED         "6.2.0"  z::zinter,           "Returns the members that all keys have.";
        "zdiff"            -3 READ       NUMBERED         "6.2.0"  z::zdiff,            "Returns the members that only the first key has.";
        "zunionstore"      -4 WRITE      KEY_AND_NUMBERED "2.0.0"  z::zunionstore,      "Stores the members of any of the keys.";
        "zinterstore"      -4 WRITE      KEY_AND_NUMBERED "2.0.0"  z::zinterstore,      "Stores the members that all keys have.";
        "zdiffstore"       -4 WRITE      KEY_AND_NUMBERED "6.2.0"  z::zdiffstore,       "Stores the members that only the first key has.";
        "zintercard"       -3 READ       NUMBERED         "7.0.0"  z::zintercard,       "Counts the members that all keys have.";
    };
}
