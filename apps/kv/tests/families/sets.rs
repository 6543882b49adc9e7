//! Sets.

use super::support::Client;
use super::support::talk::server;
use super::{check, sorted};

#[test]
fn members_are_added_once_and_taken_out() {
    check(
        r#"
        > SADD s a b a
        < :2
        > SADD s a
        < :0
        > SCARD s
        < :2
        > SISMEMBER s a
        < :1
        > SISMEMBER s c
        < :0
        > SMISMEMBER s a c b
        < [:1 :0 :1]
        > SMISMEMBER x a
        < [:0]
        > SREM s a c
        < :1
        > SMEMBERS s
        < ["b"]
        > TYPE s
        < +set
        > SMOVE s t b
        < :1
        > SMOVE s t b
        < :0
        > EXISTS s t
        < :1
        > SET k v
        < +OK
        > SMOVE t k b
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > SPOP t
        < "b"
        > SPOP t
        < nil
        > SPOP t 3
        < []
        > SPOP t -1
        < -ERR value is out of range, must be positive
        > SADD n 1 2 3
        < :3
        > OBJECT ENCODING n
        < "intset"
        > SRANDMEMBER n 0
        < []
        "#,
    );
}

#[test]
fn sets_are_combined_and_stored() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    client.say("SADD a 1 2 3 4");
    client.say("SADD b 2 3 5");
    client.say("SADD c 3");
    let cases: [(&str, &[&str]); 9] = [
        ("SINTER a b", &["2", "3"]),
        ("SINTER a b c", &["3"]),
        ("SINTER a none", &[]),
        ("SUNION a b none", &["1", "2", "3", "4", "5"]),
        ("SDIFF a b", &["1", "4"]),
        ("SDIFF a", &["1", "2", "3", "4"]),
        ("SDIFF a b none c", &["1", "4"]),
        ("SDIFF none a", &[]),
        ("SRANDMEMBER a 10", &["1", "2", "3", "4"]),
    ];
    for (said, want) in cases {
        let want: Vec<String> = want.iter().map(|member| format!("{member:?}")).collect();
        assert_eq!(sorted(&client.say(said)), want, "{said}");
    }
    let counts = [
        ("SINTERSTORE d a b", ":2"),
        ("SCARD d", ":2"),
        ("SUNIONSTORE d a b", ":5"),
        ("SDIFFSTORE a a b", ":2"),
        ("SCARD a", ":2"),
        ("SINTERSTORE d none a", ":0"),
        ("EXISTS d", ":0"),
        ("SINTERCARD 2 a b", ":0"),
        ("SINTERCARD 2 b c LIMIT 5", ":1"),
        ("SINTERCARD 1 b LIMIT 2", ":2"),
        ("SINTERCARD 0 b", "-ERR numkeys should be greater than 0"),
        (
            "SINTERCARD 3 b c",
            "-ERR Number of keys can't be greater than number of args",
        ),
        ("SINTERCARD 1 b LIMIT -1", "-ERR LIMIT can't be negative"),
        ("SET k v", "+OK"),
        (
            "SINTER none k",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("SUNIONSTORE k b c", ":3"),
        ("TYPE k", "+set"),
    ];
    for (said, want) in counts {
        assert_eq!(client.say(said), want, "{said}");
    }
    server.shutdown();
}

#[test]
fn a_large_set_pops_each_member_once() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    for i in 0..4000 {
        client.say(&format!("SADD s member:{i}"));
    }
    let mut popped = Vec::new();
    while client.say("SCARD s") != ":0" {
        popped.extend(sorted(&client.say("SPOP s 333")));
        popped.extend(sorted(&client.say("SPOP s")));
    }
    popped.retain(|member| member != "nil");
    popped.sort();
    let before = popped.len();
    popped.dedup();
    assert_eq!((before, popped.len()), (4000, 4000));
    assert_eq!(client.say("EXISTS s"), ":0");
    server.shutdown();
}
