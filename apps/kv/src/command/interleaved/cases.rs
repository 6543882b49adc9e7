//! Commands, states in which they begin, and what another client does meanwhile. `LONG` and
//! `LONGER` are values that take an extent of their own.

/// Commands that belong together.
pub(super) struct Cases {
    /// What is there at first.
    pub before: &'static [&'static [&'static str]],
    /// Commands. Of several the one behind `!` is interrupted; those before it come before all, and
    /// those behind it after all.
    pub commands: &'static [&'static str],
    /// What another client does.
    pub others: &'static [&'static [&'static str]],
}

pub(super) const STRINGS: Cases = Cases {
    before: BEFORE,
    commands: COMMANDS,
    others: OTHERS,
};

/// Lists, and strings of bits.
pub(super) const PARTS: Cases = Cases {
    before: &[
        &[],
        &["RPUSH a 1 2 3", "RPUSH b 4"],
        &["RPUSH a LONG 2 LONG", "SET b 2"],
    ],
    commands: &[
        "RPUSH a 5",
        "LPOP a",
        "LMOVE a b LEFT RIGHT",
        "RPOPLPUSH a a",
        "LMPOP 2 b a LEFT COUNT 2",
        "LREM a 0 2",
        "LINSERT a BEFORE 2 9",
        "SORT a BY b* STORE b",
        "SORT a ALPHA GET b GET #",
        "SETBIT b 9 1",
        "BITOP OR a b b",
        "BITFIELD b GET u8 0 INCRBY u8 4 3",
        "PFADD b x",
        "WATCH a; MULTI; LMOVE a b LEFT LEFT; LPOP a; !EXEC",
    ],
    others: &[
        &["RPUSH a 7"],
        &["LPOP a"],
        &["DEL a", "RPUSH b 6"],
        &["LMOVE b a LEFT LEFT"],
        &["LMPOP 2 a b RIGHT"],
        &["SET b 8"],
        &["RENAME a b"],
        &["FLUSHALL", "RPUSH a 8"],
        &["SETBIT b 9 0", "PFADD a x"],
    ],
};

/// Sorted sets, and places in them.
pub(super) const SORTED: Cases = Cases {
    before: &[
        &[],
        &["ZADD a 1 x 2 y 3 z", "ZADD b 5 y"],
        &["ZADD a 1 x 2 LONG 3 LONGER", "SET b 2"],
    ],
    commands: &[
        "ZADD a 5 x",
        "ZADD a GT INCR 1 x",
        "ZINCRBY a 2 y",
        "ZREM a x LONG",
        "ZPOPMIN a",
        "ZMPOP 2 b a MAX",
        "ZRANGE a 0 -1 WITHSCORES",
        "ZINTER 2 a b WITHSCORES",
        "ZUNIONSTORE b 2 a b",
        "ZDIFFSTORE a 2 a b",
        "ZRANGESTORE b a 0 1",
        "ZREMRANGEBYSCORE a 1 2",
        "GEOSEARCHSTORE b a FROMLONLAT 0 0 BYRADIUS 9999 mi",
        "WATCH b; MULTI; ZADD a 4 q; ZPOPMAX b; !EXEC",
    ],
    others: &[
        &["ZADD a 4 w"],
        &["ZREM a x y"],
        &["DEL a", "ZADD b 6 z"],
        &["ZMPOP 2 a b MIN"],
        &["SET b 8"],
        &["RENAME a b"],
        &["FLUSHALL", "ZADD a 9 x"],
    ],
};

const BEFORE: &[&[&str]] = &[
    &[],
    &["SET a 1", "SET b 2"],
    &["SET a 1 EX 100"],
    &["SET a LONG", "SET b 2"],
];

const COMMANDS: &[&str] = &[
    "GET a",
    "SET a 5",
    "SET a LONGER",
    "SET a 5 NX",
    "SET a 5 XX",
    "SET a 5 GET",
    "SET a 5 NX GET",
    "SET a 5 XX GET",
    "SET a 5 KEEPTTL",
    "SETNX a 5",
    "SETEX a 50 5",
    "GETSET a 5",
    "GETDEL a",
    "GETEX a EX 50",
    "GETEX a PERSIST",
    "GETEX a EX -1",
    "MGET a b",
    "MSET a 5 b 6",
    "MSETNX a 5 b 6",
    "MSETNX a LONGER b 6",
    "SWAPDB 0 1",
    "INCR a",
    "DECRBY a 3",
    "INCRBYFLOAT a 1.5",
    "APPEND a yy",
    "APPEND a LONG",
    "STRLEN a",
    "GETRANGE a 0 3",
    "SETRANGE a 2 zz",
    "SETRANGE a 900 zz",
    "DEL a",
    "DEL a b",
    "EXISTS a b",
    "RENAME a b",
    "RENAMENX a b",
    "COPY a b",
    "COPY a b REPLACE",
    "COPY a b DB 1",
    "EXPIRE a 50",
    "EXPIRE a 50 NX",
    "EXPIRE a 50 XX",
    "EXPIRE a 500 GT",
    "EXPIRE a 50 LT",
    "EXPIRE a 0",
    "PERSIST a",
    "TTL a",
    "FLUSHALL",
    "WATCH a; MULTI; SET b 9; INCR b; !EXEC",
    "WATCH a b; MULTI; GET a; !EXEC",
    "!WATCH a; MULTI; GET a; EXEC",
    "MULTI; GET a; GET b; !EXEC",
    "EVAL return{redis.call('incr',KEYS[1]),redis.call('append',KEYS[2],'x')} 2 a b",
    "EVAL return{redis.call('get','a'),redis.call('get','b')} 0",
    "MULTI; INCR a; INCR b; !EXEC",
    "MULTI; MSETNX a 5 b 6; RENAMENX a b; !EXEC",
    "MULTI; SET a 4; FLUSHALL; SET b 7; !EXEC",
];

const OTHERS: &[&[&str]] = &[
    &["SET a 8"],
    &["SET b 8"],
    &["SET a 8 EX 60"],
    &["SET a LONGER"],
    &["DEL a"],
    &["DEL a", "SET a 1"],
    &["SET a 8", "SET b 8"],
    &["GET a", "GET b"],
    &["INCR a"],
    &["APPEND a q"],
    &["MSET a 8 b 9"],
    &["MSETNX a 8 b 9"],
    &["RENAME b a"],
    &["SWAPDB 1 0"],
    &["COPY a b"],
    &["EXPIRE a 70"],
    &["PERSIST a"],
    &["FLUSHALL", "SET b 8"],
    &["MULTI", "SET a 8", "DEL b", "EXEC"],
];
