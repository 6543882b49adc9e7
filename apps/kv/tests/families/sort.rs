//! SORT.

use super::check;

#[test]
fn orders_and_patterns() {
    check(
        r#"
        > RPUSH l 10 9 100 1
        < :4
        > SORT l
        < ["1" "9" "10" "100"]
        > SORT l DESC LIMIT 1 2
        < ["10" "9"]
        > SORT l ALPHA
        < ["1" "10" "100" "9"]
        > SORT l LIMIT 10 5
        < []
        > SORT l LIMIT -5 -1 ASC
        < ["1" "9" "10" "100"]
        > MSET w1 4 w9 3 w10 2 w100 1 n1 one n9 nine
        < +OK
        > SORT l BY w*
        < ["100" "10" "9" "1"]
        > SORT l BY w* GET # GET n*
        < ["100" nil "10" nil "9" "nine" "1" "one"]
        > HSET h1 f 1
        < :1
        > SORT l BY h*->f DESC GET h*->f
        < ["1" nil nil nil]
        > SORT l BY none
        < ["10" "9" "100" "1"]
        > SORT l BY none DESC LIMIT 0 2
        < ["1" "100"]
        > SORT l BY none GET none
        < [nil nil nil nil]
        > SORT l BY n*
        < -ERR One or more scores can't be converted into double
        > SORT l BY n* ALPHA
        < ["10" "100" "9" "1"]
        > SORT l GET n* STORE out
        < :4
        > LRANGE out 0 -1
        < ["one" "nine" "" ""]
        > SORT none STORE out
        < :0
        > EXISTS out
        < :0
        > SORT l STORE l
        < :4
        > LRANGE l 0 -1
        < ["1" "9" "10" "100"]
        > SORT_RO l DESC
        < ["100" "10" "9" "1"]
        > SORT_RO l STORE l
        < -ERR syntax error
        > SADD s b a c
        < :3
        > SORT s
        < -ERR One or more scores can't be converted into double
        > SORT s ALPHA DESC
        < ["c" "b" "a"]
        > SORT s BY none STORE out
        < :3
        > LRANGE out 0 -1
        < ["a" "b" "c"]
        > SORT h1
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > SORT l BY
        < -ERR syntax error
        > SORT l LIMIT 0
        < -ERR syntax error
        > MULTI
        < +OK
        > SORT l BY w* LIMIT 0 1
        < +QUEUED
        > LPUSH l 5
        < +QUEUED
        > EXEC
        < [["100"] :5]
        "#,
    );
}
