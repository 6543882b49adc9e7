//! What a hot operation on the store costs, without a server: over plain memory,
//! and at a node of a rack.
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::error::Error;
use std::time::Instant;

use rackmem::Rack;
use rackmem_kv::memory::{HeapMemory, Memory};
use rackmem_kv::{Options, Store};

const ROUNDS: u32 = 3_000_000;
const KEYS: usize = 1024;

fn measure(name: &str, mut f: impl FnMut(u32)) {
    let start = Instant::now();
    (0..ROUNDS).for_each(&mut f);
    let each = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
    println!("  {name:10} {each:6.1} ns");
}

fn run<M: Memory>(title: &str, memory: M) -> Result<(), Box<dyn Error>> {
    println!("{title}");
    let store = Store::open(memory, Options::default())?;
    let keys: Vec<_> = (0..KEYS).map(|i| format!("key:{i:012}")).collect();
    for key in &keys {
        store.set(key.as_bytes(), b"12345678")?;
    }
    let key = |i: u32| keys[i as usize % KEYS].as_bytes();
    let mut value = Vec::new();
    measure("get 1 key", |_| {
        assert!(store.get(key(1), &mut value).unwrap_or(false))
    });
    measure("get", |i| {
        assert!(store.get(key(i), &mut value).unwrap_or(false))
    });
    measure("set", |i| assert!(store.set(key(i), b"abcdefgh").is_ok()));
    measure("increment", |_| {
        assert!(store.increment(b"counter", 1).is_ok())
    });
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run("plain memory", HeapMemory::new(4096, 1 << 30, 1))?;
    let rack = Rack::local(4)?;
    run("a node of a rack of four", rack.node(0))
}
