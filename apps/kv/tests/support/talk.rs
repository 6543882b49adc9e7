//! Holding conversations with a server whose clock stands still.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Clock, Options, Server, ServerConfig, Store};

use super::Client;

/// The time at which the conversations take place: 2001-09-09, in ms.
pub const NOW: u64 = 1_000_000_000_000;

/// A server on an empty store, with the settings that `config` changes.
pub fn server(config: impl FnOnce(&mut ServerConfig)) -> Server {
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
pub fn converse(client: &mut Client, script: &str) {
    let mut last = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        match line.split_at(1) {
            (">", said) => {
                last = said.trim().to_owned();
                client
                    .stream
                    .write_all(format!("{last}\r\n").as_bytes())
                    .unwrap();
            }
            ("<", want) => assert_eq!(client.reply(), want.trim(), "after: {last}"),
            _ => panic!("neither said nor heard: {line}"),
        }
    }
}
