//! What INFO counts: errors of scripts once, wherever they come from; scripts; values that are
//! large; keys that expire; channels; and what monitors look for.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rackmem_kv::memory::HeapMemory;

use rackmem_kv::{Clock, Options, Server, ServerConfig, Store};
use support::Client;
use support::talk::{NOW, converse, server};

/// The value of a field of INFO; `-`: there is none.
fn field(client: &mut Client, name: &str) -> String {
    let info = client.say("INFO everything").replace("\\r\\n", "\n");
    let mut lines = info.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("-").to_owned()
}

/// Calls, refusals and failures of a command.
fn calls(client: &mut Client, command: &str) -> [String; 3] {
    let counts = field(client, &format!("cmdstat_{command}"));
    ["calls=", "rejected_calls=", "failed_calls="].map(|name| {
        let count = counts.split(',').find_map(|part| part.strip_prefix(name));
        count.unwrap_or("0").to_owned()
    })
}

#[test]
fn an_error_in_a_script_is_counted_once() {
    let server = server(|config| config.workers = 1);
    let mut client = Client::new(server.local_addr());
    client.say("SET text 1");
    for (script, code, errors, of_script, (command, of_command)) in [
        (
            "return redis.call('select', 99)",
            "ERR",
            "1",
            ["1", "0", "1"],
            ("select", ["1", "0", "1"]),
        ),
        (
            "redis.pcall('select', 99)",
            "ERR",
            "1",
            ["1", "0", "0"],
            ("select", ["1", "0", "1"]),
        ),
        (
            "return redis.pcall('select', 99)",
            "ERR",
            "1",
            ["1", "0", "1"],
            ("select", ["1", "0", "1"]),
        ),
        (
            "return {redis.pcall('lpop', 'text')}",
            "WRONGTYPE",
            "1",
            ["1", "0", "0"],
            ("lpop", ["1", "0", "1"]),
        ),
        (
            "return redis.call('get')",
            "ERR",
            "1",
            ["1", "0", "1"],
            ("get", ["0", "1", "0"]),
        ),
        (
            "return redis.call('multi')",
            "ERR",
            "1",
            ["1", "0", "1"],
            ("multi", ["0", "1", "0"]),
        ),
        (
            "return redis.call('nothing')",
            "ERR",
            "1",
            ["1", "0", "1"],
            ("get", ["0", "0", "0"]),
        ),
        (
            "return redis.error_reply('MINE is this')",
            "MINE",
            "1",
            ["1", "0", "1"],
            ("get", ["0", "0", "0"]),
        ),
        (
            "return nil + 1",
            "ERR",
            "1",
            ["1", "0", "1"],
            ("get", ["0", "0", "0"]),
        ),
        (
            "redis.error_reply('MINE is this')",
            "MINE",
            "-",
            ["1", "0", "0"],
            ("get", ["0", "0", "0"]),
        ),
    ] {
        client.say("CONFIG RESETSTAT");
        client.call(&[b"EVAL", script.as_bytes(), b"0"]);
        let want = if errors == "-" {
            "-".into()
        } else {
            format!("count={errors}")
        };
        assert_eq!(
            field(&mut client, &format!("errorstat_{code}")),
            want,
            "{script}"
        );
        let all = if errors == "-" { "0" } else { errors };
        assert_eq!(field(&mut client, "total_error_replies"), all, "{script}");
        assert_eq!(calls(&mut client, "eval"), of_script, "{script}");
        assert_eq!(calls(&mut client, command), of_command, "{script}");
    }
    // Writing in a script that only reads is a refusal.
    client.say("CONFIG RESETSTAT");
    client.call(&[b"EVAL_RO", b"return redis.call('set', 'a', 'b')", b"0"]);
    assert_eq!(field(&mut client, "errorstat_ERR"), "count=1");
    assert_eq!(calls(&mut client, "set"), ["0", "1", "0"]);
}

#[test]
fn scripts_are_counted_until_they_are_flushed() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    for n in 0..5 {
        client.call(&[b"SCRIPT", b"LOAD", format!("return {n}").as_bytes()]);
    }
    client.call(&[b"EVAL", b"return 0", b"0"]);
    client.call(&[b"EVAL", b"return 5", b"0"]);
    assert_eq!(field(&mut client, "number_of_cached_scripts"), "6");
    client.say("SCRIPT FLUSH");
    assert_eq!(field(&mut client, "number_of_cached_scripts"), "0");
    client.call(&[b"EVAL", b"return 0", b"0"]);
    assert_eq!(field(&mut client, "number_of_cached_scripts"), "1");
}

#[test]
fn values_that_are_large_are_counted_when_they_are_unlinked() {
    let server = server(|config| config.workers = 1);
    let mut client = Client::new(server.local_addr());
    for n in 0..100 {
        client.say(&format!("RPUSH large {n}"));
    }
    client.say("XADD stream * a b");
    client.say("SET text 1");
    converse(&mut client, "> UNLINK stream text absent\n< :2");
    assert_eq!(field(&mut client, "lazyfreed_objects"), "0");
    converse(&mut client, "> UNLINK stream large\n< :1");
    assert_eq!(field(&mut client, "lazyfreed_objects"), "1");
}

#[test]
fn keys_whose_time_is_over_are_counted_when_they_are_removed() {
    let time = Arc::new(AtomicU64::new(NOW));
    let options = Options {
        buckets: 16,
        clock: Clock::manual(time.clone()),
        ..Options::default()
    };
    let store = Store::open(HeapMemory::new(4096, 8 << 20, 1), options).unwrap();
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    let server = Server::bind(store, config).unwrap();
    let mut client = Client::new(server.local_addr());
    client.say("SET flushed 1 PX 1");
    client.say("FLUSHALL");
    client.say("MSET stays 1 removed 1");
    client.say("SET brief 1 PX 1");
    client.say("HSET also f v");
    client.say("PEXPIRE also 1");
    client.say("DEL removed");
    assert_eq!(field(&mut client, "expired_keys"), "0");
    time.store(NOW + 1, SeqCst);
    let end = Instant::now() + Duration::from_secs(60);
    while field(&mut client, "expired_keys") != "2" {
        let now = field(&mut client, "expired_keys");
        assert!(Instant::now() < end, "{now} have been removed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(client.say("DBSIZE"), ":1");
    client.say("CONFIG RESETSTAT");
    assert_eq!(field(&mut client, "expired_keys"), "0");
}

#[test]
fn a_command_that_waits_is_called_once() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut waits = Client::new(server.local_addr());
    client.say("XGROUP CREATE stream group $ MKSTREAM");
    client.say("CONFIG RESETSTAT");
    let words = "XREADGROUP GROUP group me BLOCK 0 STREAMS stream >";
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    waits.send(&words);
    while field(&mut client, "blocked_clients") != "1" {}
    client.say("XADD other * a b");
    client.say("XGROUP DESTROY stream group");
    assert!(waits.reply().starts_with("-NOGROUP"));
    assert_eq!(calls(&mut client, "xreadgroup"), ["1", "0", "1"]);
    assert_eq!(field(&mut client, "errorstat_NOGROUP"), "count=1");
    waits.send(&[b"BLPOP", b"list", b"0"]);
    while field(&mut client, "blocked_clients") != "1" {}
    client.say("RPUSH list a");
    assert_eq!(waits.reply(), "[\"list\" \"a\"]");
    assert_eq!(calls(&mut client, "blpop"), ["1", "0", "0"]);
}

#[test]
fn channels_and_patterns_are_counted_while_somebody_has_subscribed() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut subscriber = Client::new(server.local_addr());
    for (command, names, want) in [
        ("SUBSCRIBE", ["a", "b"].as_slice(), ["2", "0", "0"]),
        ("PSUBSCRIBE", &["a*"], ["2", "1", "0"]),
        ("SSUBSCRIBE", &["a"], ["2", "1", "1"]),
        ("UNSUBSCRIBE", &["a"], ["1", "1", "1"]),
        ("PUNSUBSCRIBE", &["a*"], ["1", "0", "1"]),
        ("SUNSUBSCRIBE", &["a"], ["1", "0", "0"]),
    ] {
        for name in names {
            subscriber.say(&format!("{command} {name}"));
        }
        let found = ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"]
            .map(|name| field(&mut client, name));
        assert_eq!(found, want, "after {command}");
    }
}

#[test]
fn what_programs_look_for_is_there_in_the_form_of_redis() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let share = field(&mut client, "used_memory_peak_perc");
    let number = share.strip_suffix('%').map(str::parse::<f64>);
    assert!(
        matches!(number, Some(Ok(number)) if number >= 0.0),
        "{share}"
    );
    for (name, want) in [
        ("aof_rewrite_in_progress", "0"),
        ("aof_rewrite_scheduled", "0"),
        ("aof_last_bgrewrite_status", "ok"),
        ("aof_last_write_status", "ok"),
    ] {
        assert_eq!(field(&mut client, name), want, "{name}");
    }
}
