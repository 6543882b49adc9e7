//! Hashes.

use std::collections::HashSet;

use super::support::Client;
use super::support::talk::server;
use super::{check, sorted};

#[test]
fn fields_are_set_read_and_deleted() {
    check(
        r#"
        > HSET h f 1
        < :1
        > HSET h f 2 g 3
        < :1
        > HSET h f
        < -ERR wrong number of arguments for 'hset' command
        > HSET h f 1 g
        < -ERR wrong number of arguments for 'hset' command
        > HGET h f
        < "2"
        > HGET h x
        < nil
        > HGET x x
        < nil
        > HMSET h i 4
        < +OK
        > HMGET h f x i
        < ["2" nil "4"]
        > HMGET x x
        < [nil]
        > HSETNX h f 5
        < :0
        > HSETNX h j 5
        < :1
        > HLEN h
        < :4
        > HEXISTS h j
        < :1
        > HEXISTS h k
        < :0
        > HSTRLEN h j
        < :1
        > HDEL h j k j
        < :1
        > HDEL h f g i
        < :3
        > EXISTS h
        < :0
        > HGETALL h
        < []
        > TYPE h
        < +none
        > HSET h f 1
        < :1
        > TYPE h
        < +hash
        > OBJECT ENCODING h
        < "listpack"
        > EXPIRE h 100
        < :1
        > HSET h f 2
        < :0
        > TTL h
        < :100
        > GET h
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > MGET h
        < [nil]
        > SADD h x
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET h string
        < +OK
        > HGET h f
        < -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn numbers_in_fields_are_added_to() {
    check(
        r#"
        > HINCRBY h n 5
        < :5
        > HINCRBY h n -7
        < :-2
        > HSET h s text
        < :1
        > HINCRBY h s 1
        < -ERR hash value is not an integer
        > HINCRBY h n x
        < -ERR value is not an integer or out of range
        > HINCRBY h n -9223372036854775807
        < -ERR increment or decrement would overflow
        > HINCRBYFLOAT h n 2.5
        < "0.5"
        > HINCRBYFLOAT h s 1
        < -ERR hash value is not a float
        > HINCRBYFLOAT h n x
        < -ERR value is not a valid float
        > HGET h n
        < "0.5"
        "#,
    );
}

#[test]
fn fields_are_chosen_at_random() {
    check(
        r#"
        > HRANDFIELD h
        < nil
        > HRANDFIELD h 2
        < []
        > HSET h f 1
        < :1
        > HRANDFIELD h
        < "f"
        > HRANDFIELD h 5
        < ["f"]
        > HRANDFIELD h -3
        < ["f" "f" "f"]
        > HRANDFIELD h 1 WITHVALUES
        < ["f" "1"]
        > HRANDFIELD h 0
        < []
        > HRANDFIELD h x
        < -ERR value is not an integer or out of range
        > HRANDFIELD h 1 2
        < -ERR syntax error
        "#,
    );
}

#[test]
fn a_large_hash_is_scanned_whole_while_it_changes() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    for i in 0..3000 {
        client.say(&format!("HSET h field:{i} {i}"));
    }
    assert_eq!(client.say("HLEN h"), ":3000");
    assert_eq!(client.say("HGET h field:1234"), "\"1234\"");
    let (mut cursor, mut seen, mut steps) = ("0".to_owned(), HashSet::new(), 0);
    loop {
        let reply = client.say(&format!("HSCAN h {cursor} COUNT 50"));
        let words: Vec<String> = reply
            .replace(['[', ']', '"'], " ")
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        cursor = words[0].clone();
        for pair in words[1..].chunks(2) {
            if let Some(number) = pair[0].strip_prefix("field:") {
                assert_eq!(number, pair[1]);
                assert!(seen.insert(pair[1].clone()), "a field came twice");
            }
        }
        steps += 1;
        client.say(&format!("HSET h other:{steps} x"));
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 3000);
    assert!(steps > 30, "{steps} steps");
    let matched = client.say("HSCAN h 0 COUNT 100000 MATCH field:77?");
    assert_eq!(sorted(&matched).len(), 1 + 20);
    assert_eq!(client.say("OBJECT ENCODING h"), "\"hashtable\"");
    assert_eq!(client.say("DEL h"), ":1");
    server.shutdown();
}
