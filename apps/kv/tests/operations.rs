//! What operators ask and set: slow commands, settings, connections, counts.

mod support;

use std::net::SocketAddr;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;
use support::talk::{converse, server};

#[test]
fn slow_commands_are_kept() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        "
        > SLOWLOG LEN
        < :0
        > CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3
        < +OK
        > CLIENT SETNAME me
        < +OK
        > SET secret value
        < +OK
        > AUTH user secret
        < -WRONGPASS invalid username-password pair or user is disabled.
        > SLOWLOG LEN
        < :3
        > SLOWLOG GET x
        < -ERR count should be greater than or equal to -1
        > CONFIG SET slowlog-log-slower-than -1
        < +OK
        ",
    );
    let slow = client.say("SLOWLOG GET -1");
    assert!(slow.contains(r#"["SLOWLOG" "GET" "x"]"#), "{slow}");
    assert!(
        slow.contains(r#""me"]"#) && !slow.contains("secret"),
        "{slow}"
    );
    assert_eq!(client.say("SLOWLOG RESET"), "+OK");
    assert_eq!(client.say("CONFIG SET slowlog-log-slower-than 0"), "+OK");
    assert_eq!(
        client.say("AUTH user secret").split(' ').next(),
        Some("-WRONGPASS")
    );
    let long = "x".repeat(200);
    let many: Vec<&[u8]> = std::iter::once(&b"DEL"[..])
        .chain((0..40).map(|_| long.as_bytes()))
        .collect();
    assert_eq!(client.call(&many), ":0");
    let slow = client.say("SLOWLOG GET 2");
    assert!(
        slow.contains("... (72 more bytes)") && slow.contains("... (10 more arguments)"),
        "{slow}"
    );
    assert!(
        slow.contains(r#"["AUTH" "(redacted)" "(redacted)"]"#),
        "{slow}"
    );
    // Commands of a transaction are kept one by one.
    converse(
        &mut client,
        "> SLOWLOG RESET\n< +OK\n> MULTI\n< +OK\n> GET a\n< +QUEUED\n> EXEC\n< [nil]",
    );
    let slow = client.say("SLOWLOG GET");
    assert!(
        slow.contains(r#"["GET" "a"]"#) && !slow.contains("EXEC"),
        "{slow}"
    );
}

#[test]
fn settings_change_all_or_none() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let failed = |name: &str, why: &str| {
        format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
    };
    for (said, heard) in [
        (
            "maxclients 0",
            failed(
                "maxclients",
                "argument must be between 1 and 4294967295 inclusive",
            ),
        ),
        (
            "maxclients x",
            failed("maxclients", "argument couldn't be parsed into an integer"),
        ),
        (
            "databases 3",
            failed("databases", "can't set immutable config"),
        ),
        (
            "timeout 7 maxclients 0",
            failed(
                "maxclients",
                "argument must be between 1 and 4294967295 inclusive",
            ),
        ),
        (
            "timeout 1 TIMEOUT 2",
            failed("timeout", "duplicate parameter"),
        ),
        (
            "notify-keyspace-events Q",
            failed(
                "notify-keyspace-events",
                "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
            ),
        ),
        (
            "timeout",
            "-ERR wrong number of arguments for 'config|set' command".into(),
        ),
        (
            "timeout 3 nonsense 1",
            "-ERR Unknown option or number of arguments for CONFIG SET - 'nonsense'".into(),
        ),
        ("databases 16", "+OK".into()),
        ("notify-keyspace-events KEA", "+OK".into()),
        ("maxclients 1 slowlog-max-len 5", "+OK".into()),
    ] {
        assert_eq!(client.say(&format!("CONFIG SET {said}")), heard, "{said}");
    }
    assert_eq!(
        client.say("CONFIG GET timeout notify*"),
        r#"["timeout" "0" "notify-keyspace-events" "AKE"]"#
    );
    let mut second = Client::new(server.local_addr());
    assert_eq!(second.reply(), "-ERR max number of clients reached");
    assert_eq!(
        client.say("CONFIG SET maxclients 10 requirepass secret"),
        "+OK"
    );
    assert_eq!(client.say("PING"), "+PONG", "who is in stays in");
    let mut second = Client::new(server.local_addr());
    converse(
        &mut second,
        "
        > PING
        < -NOAUTH Authentication required.
        > AUTH wrong
        < -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH secret
        < +OK
        > CONFIG SET requirepass ''
        < +OK
        > CONFIG SET timeout 1
        < +OK
        ",
    );
    assert_eq!(Client::new(server.local_addr()).say("PING"), "+PONG");
    assert!(second.ended(), "a quiet connection ends");
}

#[test]
fn connections_are_told_apart() {
    let server = server(|config| config.workers = 2);
    let mut client = Client::new(server.local_addr());
    let mut other = Client::new(server.local_addr());
    assert_eq!(client.say("ACL SETUSER bob on nopass +@all ~*"), "+OK");
    converse(
        &mut other,
        "> AUTH bob x\n< +OK\n> CLIENT SETNAME other\n< +OK\n> MULTI\n< +OK\n> GET a\n< +QUEUED",
    );
    let all = client.say("CLIENT LIST");
    let line = |list: &str, id: u64| {
        let line = list.split("\\n").find(|line| {
            line.trim_start_matches('"')
                .starts_with(&format!("id={id} "))
        });
        line.expect("a line").to_owned()
    };
    let own = line(&all, 1);
    for field in [
        "flags=N",
        "multi=-1",
        "cmd=client|list",
        "user=default",
        "db=0",
        "sub=0",
        "resp=2",
        "idle=0",
        "qbuf=13",
    ] {
        assert!(own.contains(&format!(" {field} ")), "{field} in {own}");
    }
    let theirs = line(&all, 2);
    for field in ["name=other", "flags=x", "multi=1", "cmd=multi", "user=bob"] {
        assert!(
            theirs.contains(&format!(" {field} ")),
            "{field} in {theirs}"
        );
    }
    converse(
        &mut client,
        r#"
        > CLIENT LIST TYPE pubsub
        < ""
        > CLIENT LIST TYPE nonsense
        < -ERR Unknown client type 'nonsense'
        > CLIENT LIST ID 77
        < ""
        > CLIENT LIST ID x
        < -ERR Invalid client ID
        > CLIENT KILL ID 0
        < -ERR client-id should be greater than 0
        > CLIENT KILL USER nobody
        < -ERR No such user 'nobody'
        > CLIENT KILL LADDR 1.2.3.4:5
        < :0
        > CLIENT KILL USER bob TYPE normal
        < :1
        "#,
    );
    assert!(other.ended());
}

#[test]
fn a_pause_holds_what_writes() {
    let server = server(|config| config.workers = 2);
    let mut client = Client::new(server.local_addr());
    let mut writer = Client::new(server.local_addr());
    assert_eq!(
        client.say("CLIENT PAUSE x"),
        "-ERR timeout is not an integer or out of range"
    );
    assert_eq!(
        client.say("CLIENT PAUSE 1 x"),
        "-ERR CLIENT PAUSE mode must be WRITE or ALL"
    );
    assert_eq!(writer.say("CLIENT ID"), ":2");
    assert_eq!(client.say("CLIENT PAUSE 1000000 WRITE"), "+OK");
    assert_eq!(writer.say("GET k"), "nil");
    // Scripts that say that they only read are held up as little.
    let reads = b"#!lua flags=no-writes\nreturn 'read'";
    assert_eq!(writer.call(&[b"EVAL", reads, b"0"]), "\"read\"");
    let sha = writer.call(&[b"SCRIPT", b"LOAD", reads]);
    assert_eq!(writer.say(&format!("EVALSHA {sha} 0")), "\"read\"");
    writer.send(&[b"SET", b"k", b"v"]);
    writer.send(&[b"GET", b"k"]);
    while client.say("CLIENT LIST ID 2").contains(" qbuf=0 ") {}
    assert_eq!(client.say("GET k"), "nil");
    assert_eq!(client.say("CLIENT UNPAUSE"), "+OK");
    assert_eq!(
        (writer.reply(), writer.reply()),
        ("+OK".into(), r#""v""#.into())
    );
    assert_eq!(client.say("CLIENT PAUSE 1000000"), "+OK");
    writer.send(&[b"GET", b"k"]);
    while client.say("CLIENT LIST ID 2").contains(" qbuf=0 ") {}
    assert_eq!(client.say("CLIENT UNPAUSE"), "+OK");
    assert_eq!(writer.reply(), r#""v""#);
}

#[test]
fn info_counts_commands_and_errors() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        "
        > SET a x
        < +OK
        > INCR a
        < -ERR value is not an integer or out of range
        > GET
        < -ERR wrong number of arguments for 'get' command
        > AUTH nobody x
        < -WRONGPASS invalid username-password pair or user is disabled.
        > CONFIG GET databases
        < [\"databases\" \"16\"]
        > EVAL \"redis.pcall('incr', 'a') redis.call('llen', 'l') return redis.call('llen', 'l')\" 0
        < :0
        ",
    );
    let counts = client.say("INFO commandstats errorstats");
    for (name, calls, rejected, failed) in [
        ("set", 1, 0, 0),
        ("incr", 2, 0, 2),
        ("llen", 2, 0, 0),
        ("eval", 1, 0, 0),
        ("get", 0, 1, 0),
        ("auth", 1, 0, 1),
        ("config|get", 1, 0, 0),
    ] {
        let line = counts
            .split("\\r\\n")
            .find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        let line = line.unwrap_or_else(|| panic!("{name} in {counts}"));
        assert!(line.contains(&format!("calls={calls},usec=")), "{line}");
        assert!(
            line.ends_with(&format!("rejected_calls={rejected},failed_calls={failed}")),
            "{line}"
        );
    }
    assert!(
        counts.contains("errorstat_ERR:count=3\\r\\nerrorstat_WRONGPASS:count=1"),
        "{counts}"
    );
    let default = client.say("INFO");
    for field in [
        "run_id:",
        "uptime_in_seconds:",
        "connected_clients:1",
        "used_memory_human:",
        "maxmemory_policy:noeviction",
        "instantaneous_ops_per_sec:",
        "keyspace_hits:",
        "role:master",
        "master_replid:",
        "used_cpu_user:",
        "cluster_enabled:0",
        "db0:keys=1",
    ] {
        assert!(default.contains(field), "{field} in {default}");
    }
    assert!(!default.contains("cmdstat_") && client.say("INFO all").contains("cmdstat_info"));
    assert!(
        client
            .say("INFO Replication")
            .contains("connected_slaves:0")
    );
    assert_eq!(client.say("CONFIG RESETSTAT"), "+OK");
    assert!(!client.say("INFO commandstats").contains("cmdstat_set"));
}

#[test]
fn a_server_that_stands_alone() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        r#"
        > WAIT 0 0
        < :0
        > WAIT 0 -1
        < -ERR timeout is negative
        > ROLE
        < ["master" :0 []]
        > REPLICAOF NO ONE
        < +OK
        > REPLICAOF x y
        < -ERR Invalid master port
        > FAILOVER
        < -ERR FAILOVER requires connected replicas.
        > SWAPDB 0 x
        < -ERR invalid second DB index
        > SWAPDB 0 99
        < -ERR DB index is out of range
        > SWAPDB 3 3
        < +OK
        > CLUSTER INFO
        < -ERR This instance has cluster support disabled
        > CLUSTER FOO
        < -ERR unknown subcommand 'FOO'. Try CLUSTER HELP.
        > READONLY
        < -ERR This instance has cluster support disabled
        > MODULE LIST
        < []
        > LATENCY LATEST
        < []
        > LATENCY RESET
        < :0
        > LATENCY GRAPH command
        < -ERR No samples available for event 'command'
        > MEMORY PURGE
        < +OK
        > SHUTDOWN ABORT
        < -ERR No shutdown in progress.
        > SHUTDOWN foo
        < -ERR syntax error
        > COMMAND GETKEYSANDFLAGS COPY a b
        < [["a" [+RO +access]] ["b" [+OW +update]]]
        > OBJECT FREQ nothing
        < nil
        > MULTI
        < +OK
        > HELLO 2 AUTH default x
        < +QUEUED
        > SHUTDOWN
        < -ERR Command not allowed inside a transaction
        > EXEC
        < -EXECABORT Transaction discarded because of previous errors.
        > COPY a b DB 99999999999
        < -ERR value is out of range, value must between -2147483648 and 2147483647
        "#,
    );
    let client_command = client.say("COMMAND INFO client");
    assert!(
        client_command.contains(r#"["client|id" :2 [] :0 :0 :0 [+@slow +@connection]"#),
        "{client_command}"
    );
    assert!(
        client_command.contains(r#"["client|kill" :-3 [+admin]"#),
        "{client_command}"
    );
}

/// A server in 2 MiB of memory, and a client of it.
fn small() -> (Server, Client) {
    let options = Options {
        buckets: 16,
        ..Options::default()
    };
    let store = Store::open(HeapMemory::new(4096, 2 << 20, 1), options).unwrap();
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(
        store,
        ServerConfig {
            addr,
            ..ServerConfig::default()
        },
    )
    .unwrap();
    let client = Client::new(server.local_addr());
    (server, client)
}

/// Sets keys of 8 KiB until `OOM` or so many; how many.
fn fill(client: &mut Client, name: &str, more: &[&[u8]]) -> usize {
    let value = vec![b'v'; 8 << 10];
    for i in 0..1000 {
        let key = format!("{name}:{i}");
        let set: &[&[u8]] = &[b"SET", key.as_bytes(), &value];
        let reply = client.call(&[set, more].concat());
        if reply != "+OK" {
            assert!(reply.starts_with("-OOM "), "{reply}");
            return i;
        }
    }
    1000
}

#[test]
fn full_memory_makes_room_as_the_policy_says() {
    let (_server, mut client) = small();
    let fits = fill(&mut client, "first", &[]);
    assert!((10..1000).contains(&fits), "{fits}");
    assert_eq!(
        client.say("CONFIG SET maxmemory-policy volatile-ttl"),
        "+OK"
    );
    assert!(fill(&mut client, "more", &[]) == 0, "no key has an expiry");
    assert_eq!(
        client.say("CONFIG SET maxmemory-policy allkeys-random"),
        "+OK"
    );
    assert_eq!(fill(&mut client, "second", &[]), 1000);
    assert_eq!(
        client.say("CONFIG SET maxmemory-policy volatile-random"),
        "+OK"
    );
    assert_eq!(client.say("FLUSHALL"), "+OK");
    assert_eq!(client.say("SET kept v"), "+OK");
    assert_eq!(fill(&mut client, "brief", &[b"EX", b"1000"]), 1000);
    assert_eq!(client.say("GET kept"), r#""v""#);
    assert!(client.say("INFO stats").contains("evicted_keys:"));
    let failed = "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be \
                  one of the following: noeviction, allkeys-random, volatile-random, volatile-ttl, \
                  allkeys-lru, volatile-lru, allkeys-lfu, volatile-lfu";
    assert_eq!(
        client.say("CONFIG SET maxmemory-policy allkeys-fifo"),
        failed
    );
}

#[test]
fn what_would_expire_first_goes_first() {
    let (_server, mut client) = small();
    assert_eq!(
        client.say("CONFIG SET maxmemory-policy volatile-ttl"),
        "+OK"
    );
    let late = fill(&mut client, "late", &[b"EX", b"100000"]).min(20);
    assert_eq!(client.say("FLUSHALL"), "+OK");
    let value = vec![b'v'; 8 << 10];
    for i in 0..late {
        let key = format!("late:{i}");
        assert_eq!(
            client.call(&[b"SET", key.as_bytes(), &value, b"EX", b"100000"]),
            "+OK"
        );
    }
    assert_eq!(fill(&mut client, "soon", &[b"EX", b"1000"]), 1000);
    let left = (0..late)
        .filter(|i| client.say(&format!("EXISTS late:{i}")) == ":1")
        .count();
    // Five are looked at for each that goes: the late ones nearly all stay.
    assert!(left * 2 > late, "{left} of {late}");
}

/// Keys of every form: short and long, of collections, with a time, and more than a page holds.
#[test]
fn databases_are_swapped() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut waiting = Client::new(server.local_addr());
    let mut watching = Client::new(server.local_addr());
    for i in 0..300 {
        client.say(&format!("SET many:{i} {i}"));
    }
    let long = "x".repeat(20_000);
    client.say(&format!("SET long {long}"));
    client.say("SET both zero EX 1000");
    client.say("SET gone zero");
    client.say("SELECT 1");
    client.say("SET flushed before");
    client.say("FLUSHDB");
    client.say("HSET hash field value");
    client.say("RPUSH list element");
    client.say("SET both one");
    client.say("SELECT 0");
    watching.say("WATCH both never");
    waiting.send(&[b"BLPOP", b"list", b"0"]);
    while !client.say("CLIENT LIST").contains("flags=b") {}
    assert_eq!(client.say("SWAPDB 0 1"), "+OK");
    assert_eq!(waiting.reply(), "[\"list\" \"element\"]");
    watching.say("MULTI");
    watching.say("SET both watched");
    assert_eq!(watching.say("EXEC"), "nil");
    converse(
        &mut client,
        r#"
        > DBSIZE
        < :2
        > MGET both long flushed
        < ["one" nil nil]
        > HGETALL hash
        < ["field" "value"]
        > TTL both
        < :-1
        > SELECT 1
        < +OK
        > DBSIZE
        < :303
        > MGET both gone many:299
        < ["zero" "zero" "299"]
        > STRLEN long
        < :20000
        "#,
    );
    assert!(
        client
            .say("INFO keyspace")
            .contains("db1:keys=303,expires=1")
    );
    // A flush takes the keys that are the database's now.
    converse(
        &mut client,
        r#"
        > FLUSHDB
        < +OK
        > DBSIZE
        < :0
        > SELECT 0
        < +OK
        > DBSIZE
        < :2
        "#,
    );
    server.shutdown();
}

#[test]
fn databases_are_swapped_in_transactions_and_scripts() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        r#"
        > SET a 0
        < +OK
        > MULTI
        < +OK
        > SET b 0
        < +QUEUED
        > SWAPDB 0 1
        < +QUEUED
        > SET c 0
        < +QUEUED
        > EXEC
        < [+OK +OK +OK]
        > KEYS *
        < ["c"]
        > EVAL "redis.call('swapdb', 0, 1) return redis.call('dbsize')" 0
        < :2
        > SELECT 1
        < +OK
        > KEYS *
        < ["c"]
        "#,
    );
    server.shutdown();
}

#[test]
fn what_takes_long_is_told() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    // Two million rounds take a millisecond anywhere.
    let busy = "for i = 1, 2000000 do end";
    let run = |client: &mut Client| client.call(&[b"EVAL", busy.as_bytes(), b"0"]);
    assert_eq!(run(&mut client), "nil");
    assert_eq!(client.say("LATENCY LATEST"), "[]");
    assert_eq!(client.say("CONFIG SET latency-monitor-threshold 1"), "+OK");
    assert_eq!(run(&mut client), "nil");
    assert!(client.say("LATENCY LATEST").contains("\"command\""));
    assert!(client.say("LATENCY HISTORY command").starts_with("[[:"));
    assert_eq!(client.say("LATENCY HISTORY fork"), "[]");
    assert!(
        client
            .say("LATENCY GRAPH command")
            .contains("command - high ")
    );
    assert!(client.say("LATENCY DOCTOR").contains("command: 1 samples"));
    assert_eq!(client.say("CONFIG SET latency-monitor-threshold 0"), "+OK");
    assert_eq!(client.say("LATENCY RESET fork"), ":0");
    assert_ne!(client.say("LATENCY RESET"), ":0");
    assert_eq!(client.say("LATENCY RESET"), ":0");
    client.say("CONFIG RESETSTAT");
    client.say("SET a 1");
    client.say("SET a 2");
    client.say("CLIENT ID");
    run(&mut client);
    let told = client.say("LATENCY HISTOGRAM set nothing client");
    assert!(told.contains("\"client|id\" [\"calls\" :1 "), "{told}");
    assert!(
        told.contains("\"set\" [\"calls\" :2 \"histogram_usec\" ["),
        "{told}"
    );
    let told = client.say("LATENCY HISTOGRAM eval");
    let at = told
        .split(" [:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let at: u64 = at.and_then(|at| at.parse().ok()).unwrap_or_default();
    assert!(at >= 1024, "{told}");
    server.shutdown();
}
