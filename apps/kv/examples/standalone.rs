//! One server over plain memory, with no rack: `cargo run --release --example standalone -- 6379`.
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::net::SocketAddr;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args()
        .nth(1)
        .map_or(Ok(6379), |word| word.parse())?;
    let store = Store::open(HeapMemory::new(4096, 4 << 30, 1), Options::default())?;
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    let server = Server::bind(
        store,
        ServerConfig {
            addr,
            ..ServerConfig::default()
        },
    )?;
    println!("serving at {}, until a line comes in", server.local_addr());
    std::io::stdin().read_line(&mut String::new())?;
    server.shutdown();
    Ok(())
}
