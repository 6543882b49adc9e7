//! Sorted sets.

use super::check;

#[test]
fn members_are_added_by_the_rules() {
    check(
        r#"
        > ZADD z 1 a 2 b
        < :2
        > ZADD z CH 5 a 2 b 3 c
        < :2
        > ZADD z NX 9 a 9 d
        < :1
        > ZADD z XX 7 a 9 e
        < :0
        > ZADD z GT CH 1 a 8 b
        < :1
        > ZADD z LT CH 1 a 100 b
        < :1
        > ZADD z INCR 0.5 a
        < "1.5"
        > ZADD z NX INCR 1 a
        < nil
        > ZINCRBY z -1.5 a
        < "0"
        > ZADD z inf i -inf j -0 n
        < :3
        > ZSCORE z n
        < "0"
        > ZINCRBY z -inf i
        < -ERR resulting score is not a number (NaN)
        > ZRANGE z 0 -1 WITHSCORES
        < ["j" "-inf" "a" "0" "n" "0" "c" "3" "b" "8" "d" "9" "i" "inf"]
        > ZADD z nan a
        < -ERR value is not a valid float
        > ZADD z 1 a x b
        < -ERR value is not a valid float
        > ZADD z NX XX 1 a
        < -ERR XX and NX options at the same time are not compatible
        > ZADD z GT LT 1 a
        < -ERR GT, LT, and/or NX options at the same time are not compatible
        > ZADD z INCR 1 a 2 b
        < -ERR INCR option supports a single increment-element pair
        > ZADD z 1 a 2
        < -ERR syntax error
        > SET s x
        < +OK
        > ZADD s 1 a
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZADD none XX 1 a
        < :0
        > EXISTS none
        < :0
        > TYPE z
        < +zset
        > ZREM z a j x i n
        < :4
        > ZREM z c b d
        < :3
        > EXISTS z
        < :0
        "#,
    );
}

#[test]
fn ranges_are_read_and_removed() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c 4 d
        < :4
        > ZRANGE z 1 -2
        < ["b" "c"]
        > ZRANGE z 0 1 REV WITHSCORES
        < ["d" "4" "c" "3"]
        > ZREVRANGE z -2 100
        < ["b" "a"]
        > ZRANGE z (1 +inf BYSCORE LIMIT 1 1
        < ["c"]
        > ZRANGEBYSCORE z 0.5 (3 WITHSCORES
        < ["a" "1" "b" "2"]
        > ZREVRANGEBYSCORE z 3 (1
        < ["c" "b"]
        > ZRANGE z 3 1 BYSCORE REV LIMIT 1 -1
        < ["b" "a"]
        > ZRANGEBYSCORE z 0 x
        < -ERR min or max is not a float
        > ZRANGE z 0 1 LIMIT 0 1
        < -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        > ZCOUNT z (1 3
        < :2
        > ZRANK z c
        < :2
        > ZREVRANK z c WITHSCORE
        < [:1 "3"]
        > ZRANK z x
        < nil
        > ZMSCORE z a x
        < ["1" nil]
        > ZADD l 0 a 0 b 0 bb 0 c
        < :4
        > ZRANGEBYLEX l [b (c
        < ["b" "bb"]
        > ZREVRANGEBYLEX l + (b
        < ["c" "bb"]
        > ZRANGE l - [b BYLEX
        < ["a" "b"]
        > ZLEXCOUNT l (b +
        < :2
        > ZRANGEBYLEX l b c
        < -ERR min or max not valid string range item
        > ZREMRANGEBYLEX l [bb +
        < :2
        > ZRANGESTORE t z (1 4 BYSCORE LIMIT 0 2
        < :2
        > ZRANGE t 0 -1 WITHSCORES
        < ["b" "2" "c" "3"]
        > ZRANGESTORE t none 0 -1
        < :0
        > EXISTS t
        < :0
        > ZREMRANGEBYSCORE z -inf (2
        < :1
        > ZREMRANGEBYRANK z -1 -1
        < :1
        > ZRANGE z 0 -1
        < ["b" "c"]
        "#,
    );
}

#[test]
fn the_lowest_and_the_highest_are_popped() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c 4 d 5 e
        < :5
        > ZPOPMIN z
        < ["a" "1"]
        > ZPOPMAX z 2
        < ["e" "5" "d" "4"]
        > ZPOPMIN z 0
        < []
        > ZPOPMIN z -1
        < -ERR value is out of range, must be positive
        > ZMPOP 2 none z MAX COUNT 1
        < ["z" [["c" "3"]]]
        > ZMPOP 1 none MIN
        < nil
        > ZMPOP 0 z MIN
        < -ERR numkeys should be greater than 0
        > BZPOPMIN none z 1
        < ["z" "b" "2"]
        > EXISTS z
        < :0
        > BZPOPMAX z x
        < -ERR timeout is not a float or out of range
        > HELLO 3
        < {"server" "redis" "version" "7.0.0" "proto" :3 "id" :1 "mode" "standalone" "role" "master" "modules" []}
        > ZADD z 1.5 a 2 b
        < :2
        > ZRANGE z 0 -1 WITHSCORES
        < [["a" ,1.5] ["b" ,2]]
        > ZPOPMIN z 1
        < [["a" ,1.5]]
        > ZPOPMIN z
        < ["b" ,2]
        "#,
    );
}

#[test]
fn sets_of_both_kinds_are_combined() {
    check(
        r#"
        > ZADD x 1 a 2 b
        < :2
        > ZADD y 3 b 4 c
        < :2
        > SADD s b d
        < :2
        > ZUNION 2 x y WITHSCORES
        < ["a" "1" "c" "4" "b" "5"]
        > ZUNION 2 x s WEIGHTS 2 3 AGGREGATE MAX WITHSCORES
        < ["a" "2" "d" "3" "b" "4"]
        > ZINTER 3 x y s WITHSCORES
        < ["b" "6"]
        > ZDIFF 2 x y WITHSCORES
        < ["a" "1"]
        > ZINTERCARD 2 x y LIMIT 1
        < :1
        > ZINTERCARD 2 x y LIMIT -1
        < -ERR LIMIT can't be negative
        > ZUNIONSTORE s 2 x y AGGREGATE MIN
        < :3
        > ZRANGE s 0 -1 WITHSCORES
        < ["a" "1" "b" "2" "c" "4"]
        > ZDIFFSTORE s 2 x x
        < :0
        > EXISTS s
        < :0
        > SET s x
        < +OK
        > ZINTER 2 x s WHAT
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZINTERSTORE s 2 x y
        < :1
        > TYPE s
        < +zset
        > ZUNION 0 x
        < -ERR at least 1 input key is needed for 'zunion' command
        > ZUNION 3 x y
        < -ERR syntax error
        > ZDIFF 1 x WEIGHTS 1
        < -ERR syntax error
        "#,
    );
}
