//! Lists.

use super::check;
use super::support::Client;
use super::support::talk::{converse, server};

#[test]
fn ends() {
    check(
        r#"
        > RPUSH l a b c
        < :3
        > LPUSH l z y
        < :5
        > LRANGE l 0 -1
        < ["y" "z" "a" "b" "c"]
        > LPUSHX none x
        < :0
        > RPUSHX l d e
        < :7
        > EXISTS none
        < :0
        > LLEN l
        < :7
        > LLEN none
        < :0
        > TYPE l
        < +list
        > OBJECT ENCODING l
        < "quicklist"
        > LPOP l
        < "y"
        > RPOP l
        < "e"
        > LPOP l 2
        < ["z" "a"]
        > RPOP l 2
        < ["d" "c"]
        > LPOP l 0
        < []
        > LPOP none
        < nil
        > LPOP none 1
        < nil
        > LPOP l -1
        < -ERR value is out of range, must be positive
        > LPOP l x
        < -ERR value is out of range, must be positive
        > LPOP l 1 2
        < -ERR wrong number of arguments for 'lpop' command
        > RPOP l 10
        < ["b"]
        > EXISTS l
        < :0
        > SET s x
        < +OK
        > LPUSH s x
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > RPOP s
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > RPUSH l a
        < :1
        > GET l
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET l x
        < +OK
        > GET l
        < "x"
        "#,
    );
}

#[test]
fn positions() {
    check(
        r#"
        > RPUSH l a b c a b a
        < :6
        > LINDEX l 0
        < "a"
        > LINDEX l -5
        < "b"
        > LINDEX l 6
        < nil
        > LINDEX none x
        < nil
        > LINDEX l x
        < -ERR value is not an integer or out of range
        > LSET l -4 C
        < +OK
        > LSET l 6 x
        < -ERR index out of range
        > LSET none 0 x
        < -ERR no such key
        > LINSERT l BEFORE C x
        < :7
        > LINSERT l after C y
        < :8
        > LINSERT l BEFORE none y
        < :-1
        > LINSERT none BEFORE a y
        < :0
        > LINSERT l NEAR a y
        < -ERR syntax error
        > LRANGE l 0 -1
        < ["a" "b" "x" "C" "y" "a" "b" "a"]
        > LRANGE l -3 100
        < ["a" "b" "a"]
        > LRANGE l 5 2
        < []
        > LRANGE l 0 -100
        < []
        > LPOS l a
        < :0
        > LPOS l a RANK -1
        < :7
        > LPOS l a RANK 2
        < :5
        > LPOS l a COUNT 0
        < [:0 :5 :7]
        > LPOS l a COUNT 2 RANK -1
        < [:7 :5]
        > LPOS l a MAXLEN 3 COUNT 0 RANK -1
        < [:7 :5]
        > LPOS l q
        < nil
        > LPOS l q COUNT 1
        < []
        > LPOS none q COUNT 1
        < []
        > LPOS l a RANK 0
        < -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        > LPOS l a COUNT -1
        < -ERR COUNT can't be negative
        > LPOS l a MAXLEN -1
        < -ERR MAXLEN can't be negative
        > LPOS l a COUNT
        < -ERR syntax error
        > LREM l -2 a
        < :2
        > LRANGE l 0 -1
        < ["a" "b" "x" "C" "y" "b"]
        > LREM l 1 b
        < :1
        > LREM l 0 q
        < :0
        > LTRIM l 1 -2
        < +OK
        > LRANGE l 0 -1
        < ["x" "C" "y"]
        > LTRIM l 5 6
        < +OK
        > EXISTS l
        < :0
        > LTRIM l 0 0
        < +OK
        "#,
    );
}

#[test]
fn several_lists() {
    check(
        r#"
        > RPUSH a 1 2 3
        < :3
        > LMOVE a b LEFT RIGHT
        < "1"
        > LMOVE a b RIGHT LEFT
        < "3"
        > RPOPLPUSH a a
        < "2"
        > LRANGE b 0 -1
        < ["3" "1"]
        > RPOPLPUSH a b
        < "2"
        > EXISTS a
        < :0
        > LMOVE b b LEFT RIGHT
        < "2"
        > LRANGE b 0 -1
        < ["3" "1" "2"]
        > SET s x
        < +OK
        > RPOPLPUSH a s
        < nil
        > RPOPLPUSH b s
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > RPOPLPUSH s b
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > LMOVE b a UP DOWN
        < -ERR syntax error
        > LMPOP 2 a b LEFT COUNT 2
        < ["b" ["3" "1"]]
        > LMPOP 2 a b RIGHT
        < ["b" ["2"]]
        > LMPOP 2 a b RIGHT
        < nil
        > LMPOP 0 a RIGHT
        < -ERR numkeys should be greater than 0
        > LMPOP 3 a RIGHT COUNT 1
        < -ERR syntax error
        > LMPOP 1 a RIGHT COUNT 0
        < -ERR count should be greater than 0
        > LMPOP 1 a RIGHT COUNT 1 COUNT 1
        < -ERR syntax error
        > LMPOP 2 a s RIGHT
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > RPUSH b 1 2 3 4 5
        < :5
        > BLPOP a b 0
        < ["b" "1"]
        > BRPOP b 1
        < ["b" "5"]
        > BLMOVE b a LEFT LEFT 0
        < "2"
        > BRPOPLPUSH b a 0.5
        < "4"
        > BLMPOP 0 2 a b RIGHT COUNT 5
        < ["a" ["2" "4"]]
        > BLPOP b -1
        < -ERR timeout is negative
        > BLPOP b x
        < -ERR timeout is not a float or out of range
        > BLPOP b 1e300
        < -ERR timeout is negative
        > MULTI
        < +OK
        > BLPOP none 0
        < +QUEUED
        > BLMPOP 0 2 none b LEFT
        < +QUEUED
        > LMOVE b b LEFT LEFT
        < +QUEUED
        > EXEC
        < [nil ["b" ["3"]] nil]
        "#,
    );
}

/// A list far longer than a node of its tree, changed at its ends and in its middle, and moved.
#[test]
fn a_long_list() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    for part in 0..20 {
        let elements: Vec<_> = (part * 500..(part + 1) * 500)
            .map(|i| format!("element-{i}"))
            .collect();
        let mut words = vec![&b"RPUSH"[..], b"l"];
        words.extend(elements.iter().map(String::as_bytes));
        assert_eq!(client.call(&words), format!(":{}", (part + 1) * 500));
    }
    converse(
        &mut client,
        r#"
        > LINDEX l 7777
        < "element-7777"
        > LPOS l element-9999 RANK -1
        < :9999
        > LINSERT l AFTER element-5000 new
        < :10001
        > LRANGE l 4999 5002
        < ["element-4999" "element-5000" "new" "element-5001"]
        > LREM l 0 new
        < :1
        > LSET l 5000 new
        < +OK
        > LTRIM l 4998 5001
        < +OK
        > LRANGE l 0 -1
        < ["element-4998" "element-4999" "new" "element-5001"]
        > RENAME l m
        < +OK
        > COPY m n
        < :1
        > LPOP m 4
        < ["element-4998" "element-4999" "new" "element-5001"]
        > LLEN n
        < :4
        "#,
    );
    server.shutdown();
}
