//! The commands of bitmaps.

use super::super::bitmaps;
use super::*;

const KEYS_FROM_SECOND: KeyWords = KeyWords::Fixed {
    first: 2,
    last: -1,
    step: 1,
};

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const BITMAP: &'static [Command<M>] = commands! { "bitmap":
        "setbit"       4 WRITE     KEY              "2.2.0"  bitmaps::setbit,      "Sets a bit and returns what it was.";
        "getbit"       3 READ_FAST KEY              "2.2.0"  bitmaps::getbit,      "Returns a bit.";
        "bitcount"    -2 READ      KEY              "2.6.0"  bitmaps::bitcount,    "Counts the bits that are 1.";
        "bitpos"      -3 READ      KEY              "2.8.7"  bitmaps::bitpos,      "Finds the first bit that is 1, or 0.";
        "bitop"       -4 WRITE     KEYS_FROM_SECOND "2.6.0"  bitmaps::bitop,       "Combines the bits of strings.";
        "bitfield"    -2 WRITE     KEY              "3.2.0"  bitmaps::bitfield,    "Reads and changes integers in a string.";
        "bitfield_ro" -2 READ_FAST KEY              "6.0.0"  bitmaps::bitfield_ro, "Reads integers in a string.";
    };
}
