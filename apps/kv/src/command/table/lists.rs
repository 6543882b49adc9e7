//! The commands of lists.

use super::super::lists;
use super::*;

const WAITS: Flags = Flags::WRITE.and(Flags::NOSCRIPT);
const TAKES: Flags = WAITS.and(Flags::SHRINKS);
const KEYS_BEFORE_LAST: KeyWords = KeyWords::Fixed {
    first: 1,
    last: -2,
    step: 1,
};
const COUNTED: KeyWords = KeyWords::Counted { first: 0, count: 1 };
const COUNTED_SECOND: KeyWords = KeyWords::Counted { first: 0, count: 2 };

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const LIST: &'static [Command<M>] = commands! { "list":
        "lpush"      -3 WRITE_FAST KEY              "1.0.0"  lists::lpush,      "Puts elements before a list.";
        "rpush"      -3 WRITE_FAST KEY              "1.0.0"  lists::rpush,      "Puts elements behind a list.";
        "lpushx"     -3 WRITE_FAST KEY              "2.2.0"  lists::lpushx,     "Puts elements before a list that exists.";
        "rpushx"     -3 WRITE_FAST KEY              "2.2.0"  lists::rpushx,     "Puts elements behind a list that exists.";
        "lpop"       -2 LESS_FAST  KEY              "1.0.0"  lists::lpop,       "Takes the first elements of a list.";
        "rpop"       -2 LESS_FAST  KEY              "1.0.0"  lists::rpop,       "Takes the last elements of a list.";
        "llen"        2 READ_FAST  KEY              "1.0.0"  lists::llen,       "Returns the length of a list.";
        "lrange"      4 READ       KEY              "1.0.0"  lists::lrange,     "Returns elements from one position to another.";
        "lindex"      3 READ       KEY              "1.0.0"  lists::lindex,     "Returns the element at a position.";
        "lset"        4 WRITE      KEY              "1.0.0"  lists::lset,       "Sets the element at a position.";
        "linsert"     5 WRITE      KEY              "2.2.0"  lists::linsert,    "Puts an element before or behind another.";
        "lrem"        4 LESS       KEY              "1.0.0"  lists::lrem,       "Takes elements out that are equal to one.";
        "ltrim"       4 LESS       KEY              "1.0.0"  lists::ltrim,      "Takes all elements out that are outside of a range.";
        "lpos"       -3 READ       KEY              "6.0.6"  lists::lpos,       "Returns positions of elements that are equal to one.";
        "lmove"       5 WRITE      TWO_KEYS         "6.2.0"  lists::lmove,      "Moves an element from one end of a list to one of another.";
        "rpoplpush"   3 WRITE      TWO_KEYS         "1.2.0"  lists::rpoplpush,  "Moves the last element of a list before another list.";
        "lmpop"      -4 LESS       COUNTED          "7.0.0"  lists::lmpop,      "Takes elements of the first list that has any.";
        "blpop"      -3 TAKES      KEYS_BEFORE_LAST "2.0.0"  lists::blpop,      "Takes the first element of the first list that has any, or waits for one.";
        "brpop"      -3 TAKES      KEYS_BEFORE_LAST "2.0.0"  lists::brpop,      "Takes the last element of the first list that has any, or waits for one.";
        "blmove"      6 WAITS      TWO_KEYS         "6.2.0"  lists::blmove,     "Moves an element from one list to another, or waits for one.";
        "brpoplpush"  4 WAITS      TWO_KEYS         "2.2.0"  lists::brpoplpush, "Moves the last element of a list before another list, or waits for one.";
        "blmpop"     -5 LESS       COUNTED_SECOND   "7.0.0"  lists::blmpop,     "Takes elements of the first list that has any, or waits for some.";
    };
}
