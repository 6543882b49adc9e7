//! Scripts that write, and then touch keys that nobody has told of:
//! what they have written is undone, and they run again, so that each has its effect once, whole.

mod support;

use support::Client;
use support::talk::{converse, server};

/// Adds to a key that it may say, and then to as many that it does not say.
const MANY: &str = "redis.call('incr', KEYS[1] or 'first')
    for i = 1, tonumber(ARGV[1]) do
        redis.call('rpush', 'list:' .. i, i) redis.call('hincrby', 'hash:' .. i, 'field', i)
    end
    redis.call('publish', 'news', 'done')
    return redis.call('get', KEYS[1] or 'first')";

#[test]
fn what_a_script_in_a_transaction_touches_late_is_changed_once() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut listener = Client::new(server.local_addr());
    assert!(
        listener
            .say("SUBSCRIBE news __keyevent@0__:incrby")
            .starts_with("[\"subscribe\"")
    );
    listener.reply();
    client.say("CONFIG SET notify-keyspace-events E$");
    client.say("SET counted 5");
    for times in 1..=3 {
        assert_eq!(client.say("MULTI"), "+OK");
        client.say("INCR before");
        client.call(&[b"EVAL", MANY.as_bytes(), b"1", b"counted", b"20"]);
        client.call(&[b"EVAL", MANY.as_bytes(), b"0", b"30"]);
        client.say("DBSIZE");
        let counted = 5 + times;
        assert_eq!(
            client.say("EXEC"),
            format!("[:{times} \"{counted}\" \"{times}\" :63]")
        );
        // Every message once, in the order of what was done, and nothing of what was undone.
        for want in ["before", "counted", "done", "first", "done"] {
            let message = listener.reply();
            assert!(
                message.ends_with(&format!("{want:?}]")),
                "{want}: {message}"
            );
        }
    }
    assert_eq!(client.say("LLEN list:20"), ":6");
    assert_eq!(client.say("LLEN list:30"), ":3");
    assert_eq!(client.say("HGET hash:7 field"), "\"42\"");
    assert_eq!(client.say("PUBLISH news end"), ":1");
    assert!(listener.reply().ends_with("\"end\"]"));
    server.shutdown();
}

#[test]
fn what_is_watched_and_waited_for_sees_one_change() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut waiting = Client::new(server.local_addr());
    let mut other = Client::new(server.local_addr());
    // The transaction itself may change what it watches, another's makes it fail.
    client.say("SET mine 1");
    client.say("WATCH mine list:3");
    other.send(&[b"WATCH", b"hash:9", b"never"]);
    other.reply();
    waiting.send(&[b"BLPOP", b"list:5", b"0"]);
    while !other.say("CLIENT LIST").contains("flags=b") {}
    client.say("MULTI");
    client.say("SET mine 2");
    client.call(&[b"EVAL", MANY.as_bytes(), b"0", b"12"]);
    assert_eq!(client.say("EXEC"), "[+OK \"1\"]");
    assert_eq!(waiting.reply(), "[\"list:5\" \"5\"]");
    assert_eq!(client.say("EXISTS list:5 list:6"), ":1");
    converse(
        &mut other,
        "> MULTI\n< +OK\n> GET mine\n< +QUEUED\n> EXEC\n< nil",
    );
    // What was only undone is no change: the script fails before it writes to it again.
    let fickle = "if redis.call('exists', 'told') == 0 then redis.call('set', 'told', 1) end
        redis.call('incr', 'late') redis.call('incr', 'later')
        return redis.call('incr', 'mine:' .. ARGV[1])";
    for at in 0..20 {
        assert_eq!(other.say(&format!("WATCH mine:{at} absent")), "+OK");
        client.say("MULTI");
        client.call(&[b"EVAL", fickle.as_bytes(), b"0", b"x"]);
        assert!(client.say("EXEC").starts_with("[:"));
        other.say("MULTI");
        other.say("PING");
        assert_eq!(other.say("EXEC"), "[+PONG]", "{at}");
    }
    assert_eq!(client.say("GET mine:x"), "\"20\"");
    assert_eq!(client.say("GET late"), "\"20\"");
    server.shutdown();
}

#[test]
fn what_a_script_sorts_by_is_held_as_well() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    client.say("RPUSH list 2 1 3");
    client.say("MSET v1 a v2 b v3 c by1 3 by2 2 by3 1");
    let sort = "redis.call('set', 'written', 1)
        return redis.call('sort', 'list', 'by', 'by*', 'get', 'v*')";
    assert_eq!(
        client.call(&[b"EVAL", sort.as_bytes(), b"0"]),
        "[\"c\" \"b\" \"a\"]"
    );
    client.say("MULTI");
    client.call(&[b"EVAL", sort.as_bytes(), b"0"]);
    assert_eq!(client.say("EXEC"), "[[\"c\" \"b\" \"a\"]]");
    server.shutdown();
}

#[test]
fn a_flush_in_between_is_the_end_of_undoing() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    client.say("SET old 1");
    client.say("MULTI");
    client.call(&[b"EVAL", b"redis.call('set', 'a', 1) redis.call('flushall') redis.call('set', 'b', 2) return redis.call('keys', '*')", b"0"]);
    client.call(&[
        b"EVAL",
        b"redis.call('set', 'c', 3) return redis.call('set', 'd', 4)",
        b"0",
    ]);
    assert_eq!(client.say("EXEC"), "[[\"b\"] +OK]");
    assert_eq!(client.say("DBSIZE"), ":3");
    server.shutdown();
}
