//! The commands of hashes.

use super::*;
use crate::command::hash;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const HASH: &'static [Command<M>] = commands! { "hash":
        "hset"         -4 WRITE_FAST KEY "2.0.0" hash::hset,         "Sets fields of a hash.";
        "hmset"        -4 WRITE_FAST KEY "2.0.0" hash::hmset,        "Sets fields of a hash.";
        "hsetnx"        4 WRITE_FAST KEY "2.0.0" hash::hsetnx,       "Sets a field of a hash if it does not exist.";
        "hget"          3 READ_FAST  KEY "2.0.0" hash::hget,         "Returns the value of a field.";
        "hmget"        -3 READ_FAST  KEY "2.0.0" hash::hmget,        "Returns the values of several fields.";
        "hgetall"       2 READ       KEY "2.0.0" hash::hgetall,      "Returns all fields and values of a hash.";
        "hkeys"         2 READ       KEY "2.0.0" hash::hkeys,        "Returns all fields of a hash.";
        "hvals"         2 READ       KEY "2.0.0" hash::hvals,        "Returns all values of a hash.";
        "hlen"          2 READ_FAST  KEY "2.0.0" hash::hlen,         "Counts the fields of a hash.";
        "hdel"         -3 LESS_FAST  KEY "2.0.0" hash::hdel,         "Deletes fields of a hash.";
        "hexists"       3 READ_FAST  KEY "2.0.0" hash::hexists,      "Tells whether a field exists.";
        "hstrlen"       3 READ_FAST  KEY "3.2.0" hash::hstrlen,      "Returns the length of a field's value.";
        "hincrby"       4 WRITE_FAST KEY "2.0.0" hash::hincrby,      "Adds to an integer in a field.";
        "hincrbyfloat"  4 WRITE_FAST KEY "2.6.0" hash::hincrbyfloat, "Adds to a decimal number in a field.";
        "hrandfield"   -2 READ       KEY "6.2.0" hash::hrandfield,   "Returns fields chosen at random.";
        "hscan"        -3 READ       KEY "2.8.0" hash::hscan,        "Returns the fields and values of a hash step by step.";
    };
}
