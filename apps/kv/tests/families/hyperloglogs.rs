//! HyperLogLogs.

use super::check;

#[test]
fn counting_the_different() {
    check(
        r#"
        > PFADD h
        < :1
        > PFADD h
        < :0
        > PFCOUNT h
        < :0
        > PFADD h a b c
        < :1
        > PFADD h a b
        < :0
        > PFADD other c d
        < :1
        > PFCOUNT h
        < :3
        > PFCOUNT h other none
        < :4
        > PFMERGE h other
        < +OK
        > PFCOUNT h
        < :4
        > PFMERGE new
        < +OK
        > PFCOUNT new
        < :0
        > TYPE h
        < +string
        > EXPIRE h 100
        < :1
        > PFADD h z
        < :1
        > TTL h
        < :100
        > SET s HYLLx
        < +OK
        > PFADD s a
        < -WRONGTYPE Key is not a valid HyperLogLog string value.
        > PFCOUNT h s
        < -WRONGTYPE Key is not a valid HyperLogLog string value.
        > PFMERGE h s
        < -WRONGTYPE Key is not a valid HyperLogLog string value.
        > SET d "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        < +OK
        > PFCOUNT d
        < -INVALIDOBJ Corrupted HLL object detected
        > RPUSH l x
        < :1
        > PFADD l x
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}
