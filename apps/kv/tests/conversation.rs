//! Conversations about data: what is said, and what must come back, word for word as from Redis.

mod support;

use support::Client;
use support::talk::{converse, server};

fn check(script: &str) {
    let server = server(|_| {});
    converse(&mut Client::new(server.local_addr()), script);
    server.shutdown();
}

#[test]
fn strings() {
    check(
        r#"
        > GET a
        < nil
        > SET a 1
        < +OK
        > get A
        < nil
        > Get a
        < "1"
        > SET a 2 NX
        < nil
        > SET a 2 XX GET
        < "1"
        > SET b 2 XX
        < nil
        > SET b 1 GET
        < nil
        > SET b 3 NX GET
        < "1"
        > SET a 1 EX 10 PX 10
        < -ERR syntax error
        > SET a 1 NX XX
        < -ERR syntax error
        > SET a 1 EX
        < -ERR syntax error
        > SET a 1 EX 0
        < -ERR invalid expire time in 'set' command
        > SET a 1 EX 9223372036854775807
        < -ERR invalid expire time in 'set' command
        > SET a 1 EX x
        < -ERR value is not an integer or out of range
        > SETNX a 5
        < :0
        > SETNX c 5
        < :1
        > SETEX c 0 x
        < -ERR invalid expire time in 'setex' command
        > PSETEX c 1500 x
        < +OK
        > PTTL c
        < :1500
        > GETSET c y
        < "x"
        > TTL c
        < :-1
        > GETDEL c
        < "y"
        > GETDEL c
        < nil
        > GETEX a EX 100
        < "2"
        > TTL a
        < :100
        > GETEX a PERSIST
        < "2"
        > TTL a
        < :-1
        > GETEX a WHAT
        < -ERR syntax error
        > MSET x 1 y 2 x 3
        < +OK
        > MGET x y z x
        < ["3" "2" nil "3"]
        > MSET x 1 y
        < -ERR wrong number of arguments for 'mset' command
        > MSETNX q 1 x 1
        < :0
        > MSETNX q 1 r 1
        < :1
        > APPEND q 23
        < :3
        > STRLEN q
        < :3
        > STRLEN nothing
        < :0
        > GETRANGE q 1 -1
        < "23"
        > SUBSTR q 0 0
        < "1"
        > GETRANGE nothing 0 -1
        < ""
        > SETRANGE q 5 xy
        < :7
        > GET q
        < "123\0\0xy"
        > SETRANGE q -1 x
        < -ERR offset is out of range
        > SETRANGE q 67108864 x
        < -ERR string exceeds maximum allowed size (64 MiB)
        > SETRANGE none 5 ""
        < :0
        > EXISTS none
        < :0
        > SET "with spaces" 'and "quotes"'
        < +OK
        > GET "with spaces"
        < "and \"quotes\""
        "#,
    );
}

#[test]
fn numbers() {
    check(
        "
        > INCR n
        < :1
        > INCRBY n 41
        < :42
        > DECR n
        < :41
        > DECRBY n -9
        < :50
        > INCRBYFLOAT n 0.5
        < \"50.5\"
        > INCR n
        < -ERR value is not an integer or out of range
        > SET n 9223372036854775807
        < +OK
        > INCR n
        < -ERR increment or decrement would overflow
        > DECRBY n -9223372036854775808
        < -ERR decrement would overflow
        > INCRBY n x
        < -ERR value is not an integer or out of range
        > SET f 0.1
        < +OK
        > INCRBYFLOAT f 0.2
        < \"0.3\"
        > INCRBYFLOAT f x
        < -ERR value is not a valid float
        > INCRBYFLOAT f 0x10
        < \"16.3\"
        > INCRBYFLOAT f inf
        < -ERR increment would produce NaN or Infinity
        > SET f abc
        < +OK
        > INCRBYFLOAT f 1
        < -ERR value is not a valid float
        ",
    );
}

#[test]
fn keys_and_expiry() {
    check(
        "
        > MSET a 1 b 2 c 3
        < +OK
        > DEL a nothing b
        < :2
        > UNLINK c
        < :1
        > DBSIZE
        < :0
        > RENAME a b
        < -ERR no such key
        > SET a 1 EX 100
        < +OK
        > RENAME a b
        < +OK
        > TTL b
        < :100
        > SET a 2
        < +OK
        > RENAMENX a b
        < :0
        > RENAMENX a a
        < :0
        > RENAME a a
        < +OK
        > COPY b a
        < :0
        > COPY b a REPLACE
        < :1
        > TTL a
        < :100
        > COPY b a DB 16
        < -ERR DB index is out of range
        > COPY b b
        < -ERR source and destination objects are the same
        > COPY b b DB 3
        < :1
        > SELECT 3
        < +OK
        > GET b
        < \"1\"
        > FLUSHDB
        < +OK
        > KEYS *
        < []
        > SELECT 0
        < +OK
        > SELECT 16
        < -ERR DB index is out of range
        > SELECT x
        < -ERR value is not an integer or out of range
        > EXISTS a a b
        < :3
        > TOUCH a zz
        < :1
        > TYPE a
        < +string
        > TYPE zz
        < +none
        > EXPIRE a 10 GT
        < :0
        > EXPIRE a 10 LT
        < :1
        > EXPIRE a 10 NX
        < :0
        > EXPIRE a 20 XX
        < :1
        > EXPIRE a 10 NX XX
        < -ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIRE a 10 GT LT
        < -ERR GT and LT options at the same time are not compatible
        > EXPIRE a 10 WHAT
        < -ERR Unsupported option WHAT
        > EXPIRE a 9223372036854775807
        < -ERR invalid expire time in 'expire' command
        > EXPIRETIME a
        < :1000000020
        > PEXPIRETIME a
        < :1000000020000
        > PEXPIRE a 1
        < :1
        > PERSIST a
        < :1
        > PERSIST a
        < :0
        > EXPIREAT a 1000000001
        < :1
        > PTTL a
        < :1000
        > PEXPIREAT a 999999999999
        < :1
        > EXISTS a
        < :0
        > TTL a
        < :-2
        > EXPIRE zz 10
        < :0
        > EXPIRETIME b
        < :1000000100
        > SET only x
        < +OK
        > DEL b
        < :1
        > RANDOMKEY
        < \"only\"
        > KEYS o?l[a-y]
        < [\"only\"]
        > SCAN 0 MATCH o* COUNT 100 TYPE string
        < [\"0\" [\"only\"]]
        > SCAN 0 TYPE list
        < [\"0\" []]
        > SCAN 0 COUNT 0
        < -ERR syntax error
        > SCAN x
        < -ERR invalid cursor
        > OBJECT ENCODING only
        < \"embstr\"
        > OBJECT WHAT only
        < -ERR unknown subcommand 'WHAT'. Try OBJECT HELP.
        > MEMORY HELP
        < [+MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are: +DOCTOR +    Return a report for people. +MALLOC-STATS +    Return what the allocator tells of itself: nothing here. +PURGE +    Give memory back that is not in use. +STATS +    Return where memory goes. +USAGE <key> [SAMPLES <count>] +    Return the bytes that a key and its value take. +HELP +    Print this.]
        > OBJECT ENCODING
        < -ERR wrong number of arguments for 'object|encoding' command
        > OBJECT
        < -ERR wrong number of arguments for 'object' command
        > COPY only other DB 16 DB 15
        < -ERR DB index is out of range
        > SET \"\" x
        < +OK
        > KEYS **
        < [\"only\"]
        > DEL \"\"
        < :1
        > MEMORY USAGE only
        < :48
        > FLUSHALL ASYNC
        < +OK
        > RANDOMKEY
        < nil
        > DBSIZE
        < :0
        ",
    );
}
