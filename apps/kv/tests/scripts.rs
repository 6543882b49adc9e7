//! Scripts: what they return, word for word as from Redis; that they are one step in the whole
//! rack; that they end.
//!
//! `scripts/*.txt` are conversations with a redis-server 7.0.15, which
//! `tests/e2e/test_scripts.py` holds again.

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rackmem::{Fabric, Mode, Rack};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;
use support::talk::{converse, server};

/// Says what a conversation says, and compares what comes back.
fn compare(client: &mut Client, conversation: &str) {
    let (mut said, mut wrong, mut count) = ("", Vec::new(), 0);
    for line in conversation.lines() {
        match line.split_at(2) {
            ("> ", words) => said = words,
            (_, want) => {
                let got = client.say(said).trim_end().to_owned();
                count += 1;
                if got != want {
                    wrong.push(format!("{said}\n  want {want}\n  got  {got}"));
                }
            }
        }
    }
    let (lines, many) = (wrong.join("\n"), wrong.len());
    assert!(wrong.is_empty(), "{many} of {count} are wrong:\n{lines}");
}

#[test]
fn scripts_answer_as_in_redis() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    compare(&mut client, include_str!("scripts/resp2.txt"));
    client.say("HELLO 3");
    compare(&mut client, include_str!("scripts/resp3.txt"));
    server.shutdown();
}

#[test]
fn functions_answer_as_in_redis() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    compare(&mut client, include_str!("scripts/functions.txt"));
    server.shutdown();
}

#[test]
fn nothing_a_script_does_is_left_for_the_next() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut eval = |text: &str| client.call(&[b"EVAL", text.as_bytes(), b"0"]);
    for attempt in [
        "string.upper = nil",
        "redis.call = nil",
        "_G.foo = 1",
        "rawset(_G, 'foo', 1)",
        "rawset(string, 'upper', 1)",
        "setmetatable(_G, nil)",
        "setmetatable(string, nil)",
        "getmetatable(_G).__index = nil",
        "getmetatable('').__index.upper = nil",
        "getmetatable('').__index = nil",
        "KEYS = 1",
        "cjson.null = 1",
        "local f = loadstring('foo = 1') f()",
        "setfenv(1, {})",
        "collectgarbage('stop') error('x')",
        "coroutine.resume = nil",
        "math.random = nil",
        "loadstring('\\27Lua')()",
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end",
        "local function f() return 1 + f() end return f()",
        "local function f() local _, problem = pcall(f) error(problem, 0) end f()",
        "return string.rep('x', 1e9)",
        "redis.call('select', 5) error('x')",
    ] {
        let reply = eval(attempt);
        assert!(reply.starts_with('-'), "{attempt}: {reply}");
    }
    let all = "return {string.upper('a'), ('b'):upper(), cjson.encode({1}), type(redis.call), \
               tostring(rawget(_G, 'foo')), type(coroutine.resume), type(math.random()), #KEYS}";
    assert_eq!(
        eval(all),
        r#"["A" "B" "[1]" "function" "nil" "function" "number" :0]"#
    );
    let found = eval("return redis.call('exists', 'only-in-5')");
    assert_eq!(found, ":0");
    server.shutdown();
}

/// Servers at three nodes of a rack.
fn rack() -> (Rack, Vec<Server>) {
    let builder = Rack::builder(3).mode(Mode::Switch).fabric(Fabric::Inline);
    let rack = builder.block_size(1024).cache(4 << 20).memory(1 << 30);
    let rack = rack.build().unwrap();
    let serve = |node: &rackmem::Node| {
        let options = Options {
            buckets: 64,
            ..Options::default()
        };
        let store = Store::open(node.clone(), options).unwrap();
        let config = ServerConfig {
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..ServerConfig::default()
        };
        Server::bind(store, config).unwrap()
    };
    let servers = rack.nodes().iter().map(serve).collect();
    (rack, servers)
}

#[test]
fn what_one_node_is_told_every_node_runs() {
    let (_rack, servers) = rack();
    let mut clients: Vec<_> = servers
        .iter()
        .map(|s| Client::new(s.local_addr()))
        .collect();
    let sha = clients[0].say(r#"SCRIPT LOAD "return redis.call('incr', KEYS[1])""#);
    let sha = sha.trim_matches('"').to_owned();
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(
            client.say(&format!("EVALSHA {sha} 1 n")),
            format!(":{}", i + 1)
        );
        assert_eq!(client.say(&format!("SCRIPT EXISTS {sha}")), "[:1]");
    }
    // All of them are forgotten everywhere at once.
    assert_eq!(clients[2].say("SCRIPT FLUSH"), "+OK");
    for client in &mut clients {
        let reply = client.say(&format!("EVALSHA {sha} 1 n"));
        assert!(reply.starts_with("-NOSCRIPT"), "{reply}");
    }
    assert_eq!(clients[0].say("GET n"), "\"3\"");

    let library = |n: u32| {
        format!(
            "#!lua name=l\nredis.register_function('f', function(keys) return redis.call('incrby', keys[1], {n}) end)"
        )
    };
    let load = library(10);
    assert_eq!(
        clients[0].call(&[b"FUNCTION", b"LOAD", load.as_bytes()]),
        "\"l\""
    );
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.say("FCALL f 1 n"), format!(":{}", 13 + 10 * i));
    }
    let load = library(100);
    let replaced = clients[1].call(&[b"FUNCTION", b"LOAD", b"REPLACE", load.as_bytes()]);
    assert_eq!(replaced, "\"l\"");
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.say("FCALL f 1 n"), format!(":{}", 133 + 100 * i));
    }
    assert_eq!(clients[2].say("FUNCTION FLUSH"), "+OK");
    for client in &mut clients {
        assert_eq!(client.say("FCALL f 1 n"), "-ERR Function not found");
    }
    drop(servers);
}

/// Moves one from a key to another if there is any; the keys may not be declared.
const MOVE: &str = "local from, to = ARGV[1], ARGV[2]
    local there, here = tonumber(redis.call('get', from)), tonumber(redis.call('get', to))
    if from == to or there < 1 then return 0 end
    redis.call('set', from, there - 1)
    redis.call('set', to, here + 1)
    return 1";

/// The same, writing before it touches the second key.
const GIVE: &str = "local from, to = ARGV[1], ARGV[2]
    if redis.call('decr', from) < 0 then redis.call('incr', from) return 0 end
    redis.call('incr', to)
    return 1";

/// The sum of what there is, by keys that are not declared.
const SUM: &str = "local sum = 0
    for i = 0, tonumber(ARGV[1]) - 1 do sum = sum + (redis.call('get', 'account:' .. i) or 0) end
    return sum";

/// At all nodes at once, scripts move between accounts, and others see the same sum at every
/// moment. `declared`: they say beforehand which keys they touch. `queued`: in a transaction.
fn accounts(script: &'static str, declared: bool, queued: bool) {
    const ACCOUNTS: usize = 5;
    const MOVES: usize = 150;
    let (_rack, servers) = rack();
    let mut first = Client::new(servers[0].local_addr());
    for i in 0..ACCOUNTS {
        first.say(&format!("SET account:{i} 100"));
    }
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for server in &servers {
            let addr = server.local_addr();
            let done = &done;
            for _ in 0..2 {
                scope.spawn(move || {
                    let mut client = Client::new(addr);
                    for _ in 0..MOVES {
                        let (from, to) = (fastrand::usize(..ACCOUNTS), fastrand::usize(..ACCOUNTS));
                        let (from, to) = (format!("account:{from}"), format!("account:{to}"));
                        let (from, to) = (from.as_bytes(), to.as_bytes());
                        let move_one: &[&[u8]] = match declared {
                            true => &[b"EVAL", script.as_bytes(), b"2", from, to, from, to],
                            false => &[b"EVAL", script.as_bytes(), b"0", from, to],
                        };
                        if queued {
                            assert_eq!(client.say("MULTI"), "+OK");
                            assert_eq!(client.say("GET account:0"), "+QUEUED");
                            assert_eq!(client.call(move_one), "+QUEUED");
                            let reply = client.say("EXEC");
                            assert!(
                                reply.ends_with(" :1]") || reply.ends_with(" :0]"),
                                "{reply}"
                            );
                            continue;
                        }
                        let reply = client.call(move_one);
                        assert!(reply == ":1" || reply == ":0", "{reply}");
                    }
                    done.fetch_add(1, Relaxed);
                });
            }
            scope.spawn(move || {
                let mut client = Client::new(addr);
                while done.load(Relaxed) < 6 {
                    let count = ACCOUNTS.to_string();
                    let sum = client.call(&[b"EVAL", SUM.as_bytes(), b"0", count.as_bytes()]);
                    assert_eq!(sum, ":500");
                }
            });
        }
    });
    drop(servers);
}

#[test]
fn scripts_at_all_nodes_are_one_after_the_other() {
    accounts(MOVE, true, false);
}

#[test]
fn so_are_those_that_do_not_say_which_keys_they_touch() {
    accounts(MOVE, false, false);
}

#[test]
fn so_are_those_in_transactions() {
    accounts(MOVE, false, true);
}

#[test]
fn so_are_those_that_write_before_they_touch_what_they_do_not_say() {
    accounts(GIVE, false, false);
}

#[test]
fn so_are_those_in_transactions_that_do() {
    accounts(GIVE, false, true);
}

#[test]
fn a_script_in_a_transaction_touches_what_it_likes() {
    let server = server(|_| {});
    converse(
        &mut Client::new(server.local_addr()),
        "
        > SET z 1
        < +OK
        > MULTI
        < +OK
        > SELECT 3
        < +QUEUED
        > SET a 1
        < +QUEUED
        > EVAL \"redis.call('select', 0) redis.call('mget', 'y', 'z') return redis.call('incr', 'z') + redis.call('incr', 'y')\" 0
        < +QUEUED
        > EVAL \"return redis.call('keys', '*')\" 0
        < +QUEUED
        > EVAL \"redis.call('exists', 'b', ARGV[1]) redis.call('set', 'b', 1) return redis.call('incr', ARGV[1])\" 0 c
        < +QUEUED
        > EXEC
        < [+OK +OK :3 [\"a\"] :1]
        > DBSIZE
        < :3
        > MULTI
        < +OK
        > GET a
        < +QUEUED
        > EVAL \"redis.call('flushall') return redis.call('dbsize')\" 0
        < +QUEUED
        > EXEC
        < [\"1\" :0]
        > SELECT 0
        < +OK
        > DBSIZE
        < :0
        ",
    );
}

#[test]
fn as_many_words_as_a_command_has_go_in_and_out() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let words: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
    let mut call: Vec<&[u8]> = vec![b"EVAL", b"return {#ARGV, ARGV[20000]}", b"0"];
    call.extend(words.iter().map(|word| word.as_bytes()));
    assert_eq!(client.call(&call), "[:20000 \"19999\"]");
    call[1] = b"return ARGV";
    let all = client.call(&call);
    assert_eq!(all.len(), client.call(&call).len());
    assert!(all.ends_with("\"19999\"]"));
    call[1] =
        b"redis.call('rpush', 'list', unpack(ARGV, 1, 7000)) return redis.call('llen', 'list')";
    assert_eq!(client.call(&call), ":7000");
    call[1] = b"return #redis.call('lrange', 'list', 0, -1)";
    assert_eq!(client.call(&call), ":7000");
    // More than Lua itself can have on its stack is an error, and the next script runs.
    call[1] = b"return redis.call('rpush', 'list', unpack(ARGV, 1, 7990))";
    let reply = client.call(&call);
    assert!(reply.starts_with('-') || reply.starts_with(':'), "{reply}");
    call[1] = b"return {unpack(ARGV)}";
    assert!(client.call(&call).starts_with('-'));
    call[1] = b"return #ARGV";
    assert_eq!(client.call(&call), ":20000");
    server.shutdown();
}

#[test]
fn what_a_script_sorts_and_may_publish_and_how_long_a_library_loads() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    converse(
        &mut client,
        "
        > SADD set d b a c
        < :4
        > EVAL \"return redis.call('sort', 'set', 'by', '_')\" 0
        < [\"a\" \"b\" \"c\" \"d\"]
        > EVAL \"return redis.call('sort', 'set', 'by', '_', 'get', '#', 'get', '_:*')\" 0
        < [\"a\" nil \"b\" nil \"c\" nil \"d\" nil]
        > EVAL_RO \"return redis.call('publish', 'channel', 'message')\" 0
        < -ERR Write commands are not allowed from read-only scripts. script: 933347706ff4a0f0b2807ab67d6162a362558431, on @user_script:1.
        ",
    );
    let library = b"#!lua name=slow\nwhile true do end";
    let reply = client.call(&[b"FUNCTION", b"LOAD", library]);
    assert_eq!(
        reply,
        "-ERR Error registering functions: ERR FUNCTION LOAD timeout"
    );
    server.shutdown();
}
