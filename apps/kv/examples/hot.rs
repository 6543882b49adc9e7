//! What a hot operation on the store costs, without a server or a rack.
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::time::Instant;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Store};

const ROUNDS: u32 = 3_000_000;

fn measure(name: &str, mut f: impl FnMut(u32)) {
    let start = Instant::now();
    (0..ROUNDS).for_each(&mut f);
    println!(
        "{name:12} {:6.1} ns",
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(HeapMemory::new(4096, 1 << 30, 1), Options::default())?;
    let keys: Vec<_> = (0..1024).map(|i| format!("key:{i:012}")).collect();
    for key in &keys {
        store.set(key.as_bytes(), b"12345678")?;
    }
    let key = |i: u32| keys[i as usize % 1024].as_bytes();
    let mut value = Vec::new();
    measure("get 1 key", |_| {
        assert!(store.get(key(1), &mut value).unwrap_or(false))
    });
    measure("get", |i| {
        assert!(store.get(key(i), &mut value).unwrap_or(false))
    });
    measure("set", |i| assert!(store.set(key(i), b"abcdefgh").is_ok()));
    measure("incr", |i| {
        assert!(store.increment(&key(i)[..3], i64::from(i)).is_ok())
    });
    Ok(())
}
