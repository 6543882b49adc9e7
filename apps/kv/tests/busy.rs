//! Scripts that run for long: what others are told meanwhile, and how they end.

mod support;

use support::Client;
use support::talk::server;

const BUSY: &str =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const BUSY_FUNCTION: &str =
    "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// A script that never ends, and catches whatever it can.
const ENDLESS: &str = "while true do pcall(function() while true do end end) end";

/// Tries to kill a script until it has begun; what is said in the end.
fn kill(killer: &mut Client, command: &str) -> String {
    loop {
        let reply = killer.say(command);
        if !reply.starts_with("-NOTBUSY") {
            return reply;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_script_without_an_end_is_killed_and_others_are_served_meanwhile() {
    let server = server(|config| config.workers = 2);
    // Connections go to the two workers in turn.
    let mut slow = Client::new(server.local_addr());
    assert_eq!(slow.say("PING"), "+PONG");
    let mut other = Client::new(server.local_addr());
    assert_eq!(other.say("CONFIG SET busy-reply-threshold 0"), "+OK");
    assert!(other.say("SCRIPT KILL").starts_with("-NOTBUSY"));
    for text in [
        ENDLESS.to_owned(),
        format!("coroutine.wrap(function() {ENDLESS} end)()"),
        format!("redis.call('get', KEYS[1]) xpcall(function() {ENDLESS} end, print)")
            .replace("print", "tostring"),
    ] {
        slow.send(&[b"EVAL", text.as_bytes(), b"1", b"held"]);
        // Some keys share its bucket.
        let mut served = (0..4).map(|i| other.say(&format!("SET another:{i} 1")));
        assert!(served.any(|reply| reply == "+OK"));
        assert_eq!(kill(&mut other, "SCRIPT KILL"), "+OK", "{text}");
        let reply = slow.reply();
        assert!(reply.contains("killed by user"), "{text}: {reply}");
        assert_eq!(slow.say("SET held 1"), "+OK");
    }
    let library = format!("#!lua name=l\nredis.register_function('f', function() {ENDLESS} end)");
    assert_eq!(
        other.call(&[b"FUNCTION", b"LOAD", library.as_bytes()]),
        "\"l\""
    );
    slow.send(&[b"FCALL", b"f", b"0"]);
    assert_eq!(kill(&mut other, "FUNCTION KILL"), "+OK");
    assert!(slow.reply().contains("killed by user"));

    // What has written is not killed, but ends with the server.
    let text = format!("redis.call('set', KEYS[1], 1) {ENDLESS}");
    slow.send(&[b"EVAL", text.as_bytes(), b"1", b"held"]);
    let mut reply = kill(&mut other, "SCRIPT KILL");
    while reply == "+OK" {
        // It had not written yet.
        slow.reply();
        slow.send(&[b"EVAL", text.as_bytes(), b"1", b"held"]);
        reply = kill(&mut other, "SCRIPT KILL");
    }
    assert!(reply.starts_with("-UNKILLABLE"), "{reply}");
    server.shutdown();
}

/// Says something until the worker is busy, which it tells.
fn until_busy(client: &mut Client) -> String {
    loop {
        let reply = client.say("PING");
        if reply != "+PONG" {
            return reply;
        }
    }
}

#[test]
fn the_only_worker_says_that_it_is_busy_and_lets_the_script_be_killed() {
    let server = server(|config| config.workers = 1);
    let mut slow = Client::new(server.local_addr());
    let mut other = Client::new(server.local_addr());
    let mut queueing = Client::new(server.local_addr());
    assert_eq!(other.say("CONFIG SET busy-reply-threshold 1"), "+OK");
    assert!(other.say("SCRIPT KILL").starts_with("-NOTBUSY"));
    assert_eq!(queueing.say("MULTI"), "+OK");
    assert_eq!(queueing.say("SET a 1"), "+QUEUED");
    slow.send(&[b"EVAL", ENDLESS.as_bytes(), b"1", b"held"]);
    // What it says behind is answered behind.
    slow.send(&[b"GET", b"a"]);
    assert_eq!(until_busy(&mut other), BUSY);
    for (line, want) in [
        ("GET a", BUSY),
        ("GET held", BUSY),
        ("SUBSCRIBE x", BUSY),
        ("EVAL \"return 1\" 0", BUSY),
        ("FUNCTION KILL", BUSY),
        ("FUNCTION STATS", BUSY),
        (
            "NOSUCH",
            "-ERR unknown command 'NOSUCH', with args beginning with: ",
        ),
        ("MULTI", "+OK"),
        ("GET a", BUSY),
        (
            "EXEC",
            "-EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. \
             You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        ),
        ("UNWATCH", "+OK"),
        ("RESET", "+RESET"),
        ("GET a", BUSY),
    ] {
        let got = other.say(line);
        assert_eq!(got.trim_end(), want.trim_end(), "{line}");
    }
    assert_eq!(queueing.say("GET b"), BUSY);
    assert!(queueing.say("EXEC").starts_with("-EXECABORT"));
    // Who comes now is heard as well, several commands at once, and may go.
    let mut late = Client::new(server.local_addr());
    late.send(&[b"HELLO", b"3"]);
    late.send(&[b"GET", b"a"]);
    late.send(&[b"QUIT"]);
    assert!(late.reply().starts_with('{'));
    assert_eq!(late.reply(), BUSY);
    assert_eq!(late.reply(), "+OK");
    assert!(late.ended());
    let mut killer = Client::new(server.local_addr());
    assert_eq!(killer.say("SCRIPT KILL"), "+OK");
    let reply = slow.reply();
    assert!(
        reply.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "),
        "{reply}"
    );
    assert!(reply.ends_with(", on @user_script:1."), "{reply}");
    assert_eq!(slow.reply(), "nil");
    for client in [&mut other, &mut queueing, &mut killer, &mut slow] {
        assert_eq!(client.say("SET held 1"), "+OK");
    }
    assert_eq!(queueing.say("EXEC"), "-ERR EXEC without MULTI");
    server.shutdown();
}

#[test]
fn a_function_is_killed_as_one_and_told_of() {
    let server = server(|config| config.workers = 1);
    let mut slow = Client::new(server.local_addr());
    let mut other = Client::new(server.local_addr());
    assert_eq!(other.say("CONFIG SET lua-time-limit 1"), "+OK");
    let library = format!("#!lua name=l\nredis.register_function('f', function() {ENDLESS} end)");
    other.call(&[b"FUNCTION", b"LOAD", library.as_bytes()]);
    slow.send(&[b"FCALL", b"f", b"0", b"word"]);
    assert_eq!(until_busy(&mut other), BUSY_FUNCTION);
    assert_eq!(other.say("SCRIPT KILL"), BUSY_FUNCTION);
    let stats = other.say("FUNCTION STATS");
    let called = "[\"running_script\" [\"name\" \"f\" \"command\" [\"FCALL\" \"f\" \"0\" \"word\"]";
    assert!(stats.starts_with(called), "{stats}");
    assert_eq!(other.say("FUNCTION KILL"), "+OK");
    assert!(slow.reply().contains("killed by user"));
    assert_eq!(other.say("PING"), "+PONG");

    // What has written is not killed, but ends with the server.
    let text = format!("redis.call('set', KEYS[1], 1) {ENDLESS}");
    slow.send(&[b"EVAL", text.as_bytes(), b"1", b"held"]);
    assert_eq!(until_busy(&mut other), BUSY);
    let unkillable = "-UNKILLABLE Sorry the script already executed write commands";
    assert!(other.say("SCRIPT KILL").starts_with(unkillable));
    assert_eq!(other.say("GET held"), BUSY);
    server.shutdown();
}
