//! Bitmaps.

use super::check;

#[test]
fn bits() {
    check(
        r#"
        > SETBIT b 7 1
        < :0
        > SETBIT b 7 1
        < :1
        > SETBIT b 7 0
        < :1
        > STRLEN b
        < :1
        > SETBIT b 100 0
        < :0
        > STRLEN b
        < :13
        > GETBIT b 1000000
        < :0
        > GETBIT none 0
        < :0
        > SETBIT b 1 2
        < -ERR bit is not an integer or out of range
        > SETBIT b -1 1
        < -ERR bit offset is not an integer or out of range
        > SETBIT b 4294967296 1
        < -ERR bit offset is not an integer or out of range
        > SETBIT b 4294967295 1
        < -ERR string exceeds maximum allowed size (64 MiB)
        > SET t foobar
        < +OK
        > BITCOUNT t
        < :26
        > BITCOUNT t 0 0
        < :4
        > BITCOUNT t 1 1
        < :6
        > BITCOUNT t 5 30 BIT
        < :17
        > BITCOUNT t -2 -1
        < :7
        > BITCOUNT t 0
        < -ERR syntax error
        > BITCOUNT t 0 1 WORD
        < -ERR syntax error
        > BITCOUNT t -1 -2 WORD
        < :0
        > BITCOUNT none 0
        < :0
        > BITPOS t 1
        < :1
        > BITPOS t 0 1
        < :8
        > BITPOS t 1 5 -1 BIT
        < :5
        > BITPOS t 2
        < -ERR The bit argument must be 1 or 0.
        > SETRANGE full 0 "\xff\xff"
        < :2
        > BITPOS full 0
        < :16
        > BITPOS full 0 0 -1
        < :-1
        > BITPOS full 0 2
        < :-1
        > BITPOS full 1 9223372036854775807 -1
        < :-1
        > BITPOS full 1 9223372036854775807 9223372036854775807 BIT
        < :-1
        > BITCOUNT full 9223372036854775807 9223372036854775807
        < :0
        > BITPOS none 0
        < :0
        > BITPOS none 1
        < :-1
        > BITOP AND and t full
        < :6
        > GET and
        < "fo\0\0\0\0"
        > BITOP OR or t none
        < :6
        > GET or
        < "foobar"
        > BITOP XOR xor t t
        < :6
        > BITCOUNT xor
        < :0
        > BITOP NOT not full
        < :2
        > GET not
        < "\0\0"
        > BITOP NOT not full t
        < -ERR BITOP NOT must be called with a single source key.
        > BITOP NAND not full t
        < -ERR syntax error
        > BITOP AND not none none
        < :0
        > EXISTS not
        < :0
        > RPUSH l x
        < :1
        > BITOP OR x t l
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > SETBIT l 1 1
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn integers() {
    check(
        r##"
        > BITFIELD f SET u8 0 255 GET u8 0 INCRBY u8 0 10
        < [:0 :255 :9]
        > BITFIELD f OVERFLOW SAT INCRBY u8 0 1000 OVERFLOW FAIL INCRBY u8 0 1
        < [:255 nil]
        > BITFIELD f SET i5 3 -3 GET i5 3 GET u5 3
        < [:-1 :-3 :29]
        > BITFIELD f SET u16 #2 1000 GET u16 32
        < [:0 :1000]
        > STRLEN f
        < :6
        > BITFIELD f GET i64 1000
        < [:0]
        > STRLEN f
        < :6
        > BITFIELD f GET u64 0
        < -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        > BITFIELD f GET i65 0
        < -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        > BITFIELD f GET u8 -1
        < -ERR bit offset is not an integer or out of range
        > BITFIELD f OVERFLOW MAYBE
        < -ERR Invalid OVERFLOW type specified
        > BITFIELD f SET u8 0
        < -ERR syntax error
        > BITFIELD f SET u8 0 x
        < -ERR value is not an integer or out of range
        > BITFIELD f
        < []
        > BITFIELD_RO f GET u16 #2 GET u8 100
        < [:1000 :0]
        > BITFIELD_RO f SET u8 0 1
        < -ERR BITFIELD_RO only supports the GET subcommand
        > BITFIELD none GET u8 0
        < [:0]
        > EXISTS none
        < :0
        "##,
    );
}

/// One bit of a value of many megabytes, in a store that has no room for a second one like it.
#[test]
fn a_bit_of_a_long_value_does_not_move_the_value() {
    check(
        "
        > SETBIT b 536870911 1
        < :0
        > STRLEN b
        < :67108864
        > SETBIT b 1000 1
        < :0
        > BITFIELD b SET u8 268435456 7 INCRBY i32 268435500 1
        < [:0 :1]
        > BITPOS b 1 33554432
        < :268435461
        > BITCOUNT b
        < :6
        > GETBIT b 536870911
        < :1
        ",
    );
}
