//! The commands of sets.

use super::*;
use crate::command::{set_algebra, sets};

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const SET: &'static [Command<M>] = commands! { "set":
        "sadd"        -3 WRITE_FAST KEY      "1.0.0" sets::sadd,               "Adds members to a set.";
        "srem"        -3 LESS_FAST  KEY      "1.0.0" sets::srem,               "Takes members out of a set.";
        "sismember"    3 READ_FAST  KEY      "1.0.0" sets::sismember,          "Tells whether a member is in a set.";
        "smismember"  -3 READ_FAST  KEY      "6.2.0" sets::smismember,         "Tells which of several members are in a set.";
        "scard"        2 READ_FAST  KEY      "1.0.0" sets::scard,              "Counts the members of a set.";
        "smembers"     2 READ       KEY      "1.0.0" sets::smembers,           "Returns all members of a set.";
        "spop"        -2 LESS_FAST  KEY      "1.0.0" sets::spop,               "Takes out members chosen at random.";
        "srandmember" -2 READ       KEY      "1.0.0" sets::srandmember,        "Returns members chosen at random.";
        "smove"        4 LESS_FAST  TWO_KEYS "1.0.0" sets::smove,              "Moves a member from one set to another.";
        "sscan"       -3 READ       KEY      "2.8.0" sets::sscan,              "Returns the members of a set step by step.";
        "sinter"      -2 READ       KEYS     "1.0.0" set_algebra::sinter,      "Returns the members that are in all of the sets.";
        "sintercard"  -3 READ       COUNTED  "7.0.0" set_algebra::sintercard,  "Counts the members that are in all of the sets.";
        "sinterstore" -3 WRITE      KEYS     "1.0.0" set_algebra::sinterstore, "Stores the members that are in all of the sets.";
        "sunion"      -2 READ       KEYS     "1.0.0" set_algebra::sunion,      "Returns the members that are in any of the sets.";
        "sunionstore" -3 WRITE      KEYS     "1.0.0" set_algebra::sunionstore, "Stores the members that are in any of the sets.";
        "sdiff"       -2 READ       KEYS     "1.0.0" set_algebra::sdiff,       "Returns the members of the first set that are in no other.";
        "sdiffstore"  -3 WRITE      KEYS     "1.0.0" set_algebra::sdiffstore,  "Stores the members of the first set that are in no other.";
    };
}
