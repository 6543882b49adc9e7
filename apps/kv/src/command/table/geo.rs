//! The commands of geo indexes.

use super::*;
use crate::command::geo as g;

/// The first word, and the one behind STORE or STOREDIST.
const STORED: KeyWords = KeyWords::Stored;

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const GEO: &'static [Command<M>] = commands! { "geo":
        "geoadd"               -5 WRITE KEY      "3.2.0"  g::geoadd,               "Adds places, or moves them.";
        "geopos"               -2 READ  KEY      "3.2.0"  g::geopos,               "Returns the coordinates of places.";
        "geodist"              -4 READ  KEY      "3.2.0"  g::geodist,              "Returns the distance between two places.";
        "geohash"              -2 READ  KEY      "3.2.0"  g::geohash,              "Returns the geohashes of places.";
        "geosearch"            -7 READ  KEY      "6.2.0"  g::geosearch,            "Returns the places in a circle or a box.";
        "geosearchstore"       -8 WRITE TWO_KEYS "6.2.0"  g::geosearchstore,       "Stores the places in a circle or a box.";
        "georadius"            -6 WRITE STORED   "3.2.0"  g::georadius,            "Returns or stores the places around a point.";
        "georadius_ro"         -6 READ  KEY      "3.2.10" g::georadius_ro,         "Returns the places around a point.";
        "georadiusbymember"    -5 WRITE STORED   "3.2.0"  g::georadiusbymember,    "Returns or stores the places around another.";
        "georadiusbymember_ro" -5 READ  KEY      "3.2.10" g::georadiusbymember_ro, "Returns the places around another.";
    };
}
