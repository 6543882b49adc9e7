//! Conversations about the connection itself: transactions, settings, passwords, leaving.

mod support;

use std::io::{Read, Write};
use std::net::SocketAddr;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;
use support::talk::{converse, server};

#[test]
fn transactions() {
    let server = server(|_| {});
    let mut other = Client::new(server.local_addr());
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        "
        > EXEC
        < -ERR EXEC without MULTI
        > DISCARD
        < -ERR DISCARD without MULTI
        > MULTI
        < +OK
        > MULTI
        < -ERR MULTI calls can not be nested
        > WATCH a
        < -ERR WATCH inside MULTI is not allowed
        > SET a 1
        < +QUEUED
        > INCR a
        < +QUEUED
        > SET b abc
        < +QUEUED
        > INCR b
        < +QUEUED
        > MGET a b
        < +QUEUED
        > EXEC
        < [+OK :2 +OK -ERR value is not an integer or out of range [\"2\" \"abc\"]]
        > MULTI
        < +OK
        > SET a 5
        < +QUEUED
        > DISCARD
        < +OK
        > GET a
        < \"2\"
        > MULTI
        < +OK
        > MEMORY FOO
        < -ERR unknown subcommand 'FOO'. Try MEMORY HELP.
        > SET a 5
        < +QUEUED
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > MULTI
        < +OK
        > MEMORY USAGE
        < -ERR wrong number of arguments for 'memory|usage' command
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > MULTI
        < +OK
        > NOSUCH a 'b c'
        < -ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b c'
        > SET a 5
        < +QUEUED
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > MULTI
        < +OK
        > GET
        < -ERR wrong number of arguments for 'get' command
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > MULTI
        < +OK
        > SELECT 2
        < +QUEUED
        > SET a two
        < +QUEUED
        > FLUSHDB
        < +QUEUED
        > SET c three
        < +QUEUED
        > KEYS *
        < +QUEUED
        > EXEC
        < [+OK +OK +OK +OK [\"c\"]]
        > GET c
        < \"three\"
        > SELECT 0
        < +OK
        > GET a
        < \"2\"
        > WATCH a nothing
        < +OK
        ",
    );
    assert_eq!(other.say("SET unrelated 1"), "+OK");
    converse(
        &mut client,
        "> MULTI\n< +OK\n> GET a\n< +QUEUED\n> EXEC\n< [\"2\"]\n> WATCH a\n< +OK",
    );
    assert_eq!(other.say("SET a 2"), "+OK");
    converse(
        &mut client,
        "> MULTI\n< +OK\n> GET a\n< +QUEUED\n> EXEC\n< nil\n> WATCH nothing\n< +OK",
    );
    assert_eq!(other.say("SET nothing 1"), "+OK");
    assert_eq!(other.say("DEL nothing"), ":1");
    converse(
        &mut client,
        "> MULTI\n< +OK\n> PING\n< +QUEUED\n> EXEC\n< nil\n> WATCH a\n< +OK",
    );
    assert_eq!(other.say("DEL a"), ":1");
    converse(
        &mut client,
        "> UNWATCH\n< +OK\n> MULTI\n< +OK\n> PING\n< +QUEUED\n> EXEC\n< [+PONG]",
    );
    server.shutdown();
}

#[test]
fn connections() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    // The list has the subcommands too.
    let names = client.say("COMMAND LIST");
    let commands = names.split(' ').filter(|name| !name.contains('|')).count();
    assert_eq!(client.say("COMMAND COUNT"), format!(":{commands}"));
    converse(
        &mut client,
        "
        > PING
        < +PONG
        > ping hello
        < \"hello\"
        > PING a b
        < -ERR wrong number of arguments for 'ping' command
        > ECHO 'a b'
        < \"a b\"
        > HELLO 4
        < -NOPROTO unsupported protocol version
        > HELLO x
        < -ERR Protocol version is not an integer or out of range
        > HELLO 3 SETNAME me
        < {\"server\" \"redis\" \"version\" \"7.0.0\" \"proto\" :3 \"id\" :1 \"mode\" \"standalone\" \"role\" \"master\" \"modules\" []}
        > GET nothing
        < nil
        > CLIENT GETNAME
        < \"me\"
        > CLIENT SETNAME 'a b'
        < -ERR Client names cannot contain spaces, newlines or special characters.
        > CLIENT SETINFO LIB-NAME test
        < +OK
        > CLIENT ID
        < :1
        > CONFIG GET maxmemory-clients
        < {\"maxmemory-clients\" \"0\"}
        > CONFIG GET maxmemory databases
        < {\"databases\" \"16\" \"maxmemory\" \"0\"}
        > CONFIG SET maxmemory 0
        < +OK
        > CONFIG SET databases 17
        < -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
        > CONFIG SET nonsense 1
        < -ERR Unknown option or number of arguments for CONFIG SET - 'nonsense'
        > COMMAND INFO get nonsense
        < [[\"get\" :2 [+readonly +fast] :1 :1 :1 [+@read +@string +@fast] [] [{\"flags\" [+RO +access] \"begin_search\" {\"type\" \"index\" \"spec\" {\"index\" :1}} \"find_keys\" {\"type\" \"range\" \"spec\" {\"lastkey\" :0 \"keystep\" :1 \"limit\" :0}}}] []] nil]
        > COMMAND GETKEYS MSET a 1 b 2
        < [\"a\" \"b\"]
        > COMMAND LIST FILTERBY PATTERN msetn*
        < [\"msetnx\"]
        > COMMAND DOCS ping
        < {\"ping\" {\"summary\" \"Answers.\" \"since\" \"1.0.0\" \"group\" \"connection\"}}
        > AUTH x
        < -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
        > TIME
        < [\"1000000000\" \"0\"]
        > CLIENT REPLY SKIP
        > SET quiet 1
        > GET quiet
        < \"1\"
        > CLIENT REPLY SKIP
        > CLIENT ID
        > CLIENT ID
        < :1
        > CLIENT REPLY SKIP
        > CLIENT REPLY ON
        < +OK
        > CLIENT REPLY SKIP
        > CLIENT REPLY SKIP
        > CLIENT ID
        > CLIENT ID
        < :1
        > CLIENT REPLY OFF
        > SET quiet 2
        > CLIENT REPLY ON
        < +OK
        > GET quiet
        < \"2\"
        > RESET
        < +RESET
        > CLIENT GETNAME
        < nil
        > QUIT
        < +OK
        ",
    );
    assert!(client.ended());
    let mut client = Client::new(server.local_addr());
    assert!(client.say("INFO").contains("db0:keys=1,expires=0"));
    assert!(client.say("INFO stats").contains("keyspace_hits:2"));
    let mut victim = Client::new(server.local_addr());
    assert_eq!(victim.say("CLIENT ID"), ":3");
    assert!(client.say("CLIENT LIST").contains("id=3"));
    assert_eq!(client.say("CLIENT KILL ID 3"), ":1");
    assert!(victim.ended());
    // Filters spare the caller, unless they say that they do not.
    assert_eq!(client.say("CLIENT KILL TYPE normal"), ":0");
    assert_eq!(client.say("CLIENT KILL TYPE pubsub SKIPME no"), ":0");
    assert_eq!(client.say("CLIENT KILL SKIPME maybe"), "-ERR syntax error");
    assert_eq!(client.say("CLIENT KILL SKIPME NO"), ":1");
    assert!(client.ended());
    // An error repeats the bytes that came, whatever they are.
    let mut client = Client::new(server.local_addr());
    client.stream.write_all(b"nosuch\xff \xfe\xfd\r\n").unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        client.stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    assert_eq!(
        line,
        b"-ERR unknown command 'nosuch\xff', with args beginning with: '\xfe\xfd' \r\n"
    );
    server.shutdown();
    assert!(client.ended());
}

#[test]
fn commands_tell_about_themselves_what_those_of_redis_do() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        r#"
        > COMMAND LIST FILTERBY PATTERN config|g*
        < ["config|get"]
        > COMMAND LIST FILTERBY MODULE any
        < []
        > COMMAND LIST FILTERBY NAME any
        < -ERR syntax error
        > COMMAND GETKEYSANDFLAGS SET k v
        < [["k" [+OW +update]]]
        > COMMAND GETKEYSANDFLAGS SET k v GET
        < [["k" [+RW +access +update]]]
        > COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT
        < [["a" [+RW +access +delete]] ["b" [+RW +insert]]]
        > COMMAND GETKEYSANDFLAGS DEL a
        < [["a" [+RM +delete]]]
        > COMMAND GETKEYSANDFLAGS STRLEN a
        < [["a" [+RO]]]
        > CLIENT REPLY OFF
        > SUBSCRIBE news
        < ["subscribe" "news" :1]
        > PING
        > UNSUBSCRIBE
        < ["unsubscribe" "news" :0]
        > CLIENT REPLY ON
        < +OK
        > ACL CAT read write
        < -ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.
        > ACL WHOAMI x
        < -ERR wrong number of arguments for 'acl|whoami' command
        > FUNCTION LOAD REPLACE now x
        < -ERR Unknown option given: now
        > ZADD z 1 a1 2 a2 3 a3
        < :3
        > ZRANGE z [a2 (a3 BYLEX
        < ["a2"]
        > ZLEXCOUNT z (a1 [a3
        < :2
        "#,
    );
    let publish = client.say("COMMAND INFO publish");
    assert!(publish.contains("+pubsub"), "{publish}");
    let pop = client.say("COMMAND INFO blpop");
    assert!(pop.contains("+blocking"), "{pop}");
}

#[test]
fn who_monitors_is_shown_each_command_as_it_runs() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut watches = Client::new(server.local_addr());
    let peer = client.stream.local_addr().unwrap();
    assert_eq!(watches.say("MONITOR"), "+OK");
    assert!(client.say("CLIENT LIST").contains("flags=O"));
    for command in [
        "SELECT 1",
        "CONFIG GET timeout",
        "AUTH secret",
        "MULTI",
        "SET a \"x\\xff\"",
        "EXEC",
        "EVAL \"return redis.call('get', KEYS[1])\" 1 a",
        "BLPOP none 0.001",
        "NOSUCH",
        "PING",
    ] {
        client.say(command);
    }
    for (from, shown) in [
        (format!("1 {peer}"), r#""SELECT" "1""#),
        (format!("1 {peer}"), r#""AUTH" "(redacted)""#),
        (format!("1 {peer}"), r#""MULTI""#),
        (format!("1 {peer}"), r#""SET" "a" "x\xff""#),
        (format!("1 {peer}"), r#""EXEC""#),
        (
            format!("1 {peer}"),
            r#""EVAL" "return redis.call('get', KEYS[1])" "1" "a""#,
        ),
        ("1 lua".to_owned(), r#""get" "a""#),
        (format!("1 {peer}"), r#""BLPOP" "none" "0.001""#),
        (format!("1 {peer}"), r#""PING""#),
    ] {
        let line = watches.reply();
        let want = format!(" [{from}] {shown}");
        assert!(line.ends_with(&want), "{line}, not {want}");
    }
    assert_eq!(watches.say("RESET"), "+RESET");
    assert!(!client.say("CLIENT LIST").contains("flags=O"));
}

/// Waits until so many commands stand aside.
fn held_up(client: &mut Client, count: usize) {
    let shown = format!("blocked_clients:{count}\r\n");
    while !client.say("INFO clients").contains(shown.trim()) {
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_waits_to_move_an_element_is_told_of_a_target_that_is_no_list() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut waits = Client::new(server.local_addr());
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    for command in [
        &["BRPOPLPUSH", "from", "to", "0"][..],
        &["BLMOVE", "from", "to", "LEFT", "RIGHT", "0"],
    ] {
        client.say("SET to value");
        let words: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        waits.send(&words);
        held_up(&mut client, 1);
        // A source of another type is not what it waits for.
        client.say("SET from value");
        client.say("DEL from");
        client.say("RPUSH from a b");
        assert_eq!(waits.reply(), wrong, "{command:?}");
        assert_eq!(
            client.say("LRANGE from 0 -1"),
            "[\"a\" \"b\"]",
            "{command:?}"
        );
        client.say("DEL from to");
    }
}

#[test]
fn a_reader_of_a_group_does_not_wait_for_a_stream_that_is_gone() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut waits = Client::new(server.local_addr());
    for change in ["SET s 1", "DEL s", "FLUSHALL"] {
        client.say("DEL s");
        client.say("XGROUP CREATE s group $ MKSTREAM");
        waits.send(&[
            b"XREADGROUP",
            b"GROUP",
            b"group",
            b"me",
            b"BLOCK",
            b"0",
            b"STREAMS",
            b"s",
            b">",
        ]);
        held_up(&mut client, 1);
        client.say(change);
        let gone = "-UNBLOCKED the stream key no longer exists";
        assert_eq!(waits.reply(), gone, "{change}");
        held_up(&mut client, 0);
    }
    // A command that a pause holds up counts as one that waits.
    assert_eq!(client.say("CLIENT PAUSE 1000000 WRITE"), "+OK");
    waits.send(&[b"SET", b"a", b"1"]);
    held_up(&mut client, 1);
    assert_eq!(client.say("CLIENT UNPAUSE"), "+OK");
    assert_eq!(waits.reply(), "+OK");
    held_up(&mut client, 0);
}

#[test]
fn a_password_keeps_strangers_out() {
    let server = server(|config| config.password = Some("secret".into()));
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        "
        > GET a
        < -NOAUTH Authentication required.
        > NOSUCH
        < -ERR unknown command 'NOSUCH', with args beginning with:
        > MULTI
        < -NOAUTH Authentication required.
        > HELLO 3 AUTH default wrong
        < -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH other secret
        < -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH secret
        < +OK
        > GET a
        < nil
        > RESET
        < +RESET
        > GET a
        < -NOAUTH Authentication required.
        > AUTH default secret
        < +OK
        > SET a 1
        < +OK
        ",
    );
    let mut stranger = Client::new(server.local_addr());
    stranger.send(&[b"AUTH", &[b'x'; 20_000]]);
    assert_eq!(stranger.reply(), "-ERR Protocol error: invalid bulk length");
    assert!(stranger.ended());
    server.shutdown();
}

#[test]
fn an_open_door_needs_a_password() {
    let store = Store::open(
        HeapMemory::new(4096, 1 << 20, 1),
        Options {
            buckets: 1,
            ..Options::default()
        },
    );
    let addr = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Server::bind(
        store.unwrap(),
        ServerConfig {
            addr,
            ..ServerConfig::default()
        },
    );
    assert!(
        refused
            .err()
            .unwrap()
            .to_string()
            .contains("set a password")
    );
}

/// Bytes that the server's connections keep for what has come in and is to go out.
fn buffered(client: &mut Client) -> usize {
    let info = client.say("INFO clients");
    let (_, rest) = info.split_once("client_buffer_bytes:").unwrap();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// Waits until they keep no more than this: a turn may end a moment after its replies have been
/// sent.
fn await_buffered(client: &mut Client, most: usize) {
    let enough = (0..5000).any(|_| {
        let enough = buffered(client) <= most;
        if !enough {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        enough
    });
    assert!(enough, "{} bytes, not {most}", buffered(client));
}

#[test]
fn connections_keep_memory_for_what_is_under_way_only() {
    const CLIENTS: usize = 100;
    /// Of a connection that has said all: where the words of a usual command were.
    const QUIET: usize = 512;
    /// Of half a command.
    const HALF: usize = 30_000;
    let server = server(|_| {});
    let connect = |_| Client::new(server.local_addr());
    let mut clients: Vec<Client> = (0..CLIENTS).map(connect).collect();
    let value = vec![b'x'; 20_000];
    let many = vec![&b"word"[..]; 1001];
    for client in &mut clients {
        assert_eq!(client.call(&[b"SET", b"key", &value]), "+OK");
        assert_eq!(client.call(&[b"GET", b"key"]).len(), value.len() + 2);
        client.send(&many);
        assert!(client.reply().starts_with("-ERR unknown command"));
        assert_eq!(client.say("SET a 'b c'"), "+OK");
    }
    let mut asks = Client::new(server.local_addr());
    await_buffered(&mut asks, (CLIENTS + 1) * QUIET);
    // What has come of a command stays.
    let half = support::encode(&[b"ECHO", &vec![b'y'; HALF]]);
    for client in &mut clients {
        std::io::Write::write_all(&mut client.stream, &half[..half.len() - 9]).unwrap();
    }
    let begun = (0..5000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        buffered(&mut asks) >= CLIENTS * (half.len() - 9)
    });
    assert!(begun && buffered(&mut asks) <= CLIENTS * (2 * HALF + QUIET));
    for client in &mut clients {
        std::io::Write::write_all(&mut client.stream, &half[half.len() - 9..]).unwrap();
        assert_eq!(client.reply().len(), HALF + 2);
    }
    await_buffered(&mut asks, (CLIENTS + 1) * QUIET);
    drop(clients);
    await_buffered(&mut asks, QUIET);
    server.shutdown();
}
