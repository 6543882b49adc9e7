//! `counter RACK.TOML NODE`: joins a rack of three processes and counts with the others.

#![allow(clippy::print_stdout)]

use rackmem::locked::{Condvar, Mutex};
use rackmem::{Config, Rack};

fn main() -> rackmem::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(node)) = (args.next(), args.next()) else {
        panic!("usage: counter RACK.TOML NODE");
    };
    let node: usize = node.parse().expect("a node number");
    let rack = Rack::join(&Config::load(file.as_ref())?, node)?;

    // A lock and a condition are found by their names, from any process.
    let total = Mutex::named(&rack.node(node), "total", 0u64)?;
    let counted = Condvar::named(&rack.node(node), "total/counted")?;
    for _ in 0..1000 {
        *total.lock()? += 1;
    }
    counted.notify_all()?;
    let all = counted.wait_while(total.lock()?, |total| total < 3000)?;
    println!("node {node}: total is {}", *all);
    drop(all);

    // Its memory is a part of the rack, so it stays until it is killed.
    loop {
        std::thread::park();
    }
}
