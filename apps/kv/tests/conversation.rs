//! Conversations with a server: what is said, and what must come back, word for word as from Redis.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Clock, Options, Server, ServerConfig, Store};
use support::Client;

/// The time at which the conversations take place: 2001-09-09, in ms.
const NOW: u64 = 1_000_000_000_000;

fn server(config: impl FnOnce(&mut ServerConfig)) -> Server {
    let clock = Clock::manual(Arc::new(AtomicU64::new(NOW)));
    let options = Options {
        buckets: 16,
        clock,
        ..Options::default()
    };
    let store = Store::open(HeapMemory::new(4096, 512 << 20, 1), options).unwrap();
    let mut settings = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    config(&mut settings);
    Server::bind(store, settings).unwrap()
}

/// Holds a conversation: lines that begin with `>` are said, those with `<` must come back.
fn converse(client: &mut Client, script: &str) {
    let mut last = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        match line.split_at(1) {
            (">", said) => {
                last = said.trim().to_owned();
                client.stream.write_all_line(&last);
            }
            ("<", want) => assert_eq!(client.reply(), want.trim(), "after: {last}"),
            _ => panic!("neither said nor heard: {line}"),
        }
    }
}

trait WriteLine {
    fn write_all_line(&mut self, line: &str);
}

impl WriteLine for std::net::TcpStream {
    fn write_all_line(&mut self, line: &str) {
        use std::io::Write;
        self.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }
}

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
        < -ERR unknown subcommand or wrong number of arguments for 'WHAT'
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
        > CONFIG GET maxmemory databases
        < {\"databases\" \"16\" \"maxmemory\" \"0\"}
        > CONFIG SET maxmemory 0
        < +OK
        > CONFIG SET maxmemory 1
        < -ERR CONFIG SET failed - 'maxmemory' cannot be changed while running
        > CONFIG SET nonsense 1
        < -ERR Unknown option or number of arguments for CONFIG SET - 'nonsense'
        > COMMAND COUNT
        < :63
        > COMMAND INFO get nonsense
        < [[\"get\" :2 [+readonly +fast] :1 :1 :1 [+@read +@fast] [] [] []] nil]
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
    server.shutdown();
    assert!(client.ended());
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
