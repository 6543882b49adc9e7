//! Processes of a rack whose members are fixed close: nothing is lost of what they have changed,
//! and nobody waits for those that have gone. Each node here is joined as a process joins.

use rackmem::locked::Mutex;
use rackmem::{Config, LeaveError, Rack, RegionSpec};
use std::sync::Barrier;
use std::time::Duration;

const NODES: usize = 3;

fn config(fabric: &str, patience: &str) -> Config {
    let addresses = rackmem_hosts::addresses(NODES);
    let nodes: Vec<String> = addresses.iter().map(|addr| format!("\"{addr}\"")).collect();
    let text = format!(
        "fabric = \"{fabric}\"\nnodes = [{}]\nmemory = \"64M\"\ncache = \"1M\"\npatience = \"{patience}\"",
        nodes.join(", ")
    );
    Config::parse(&text).unwrap()
}

fn joined<R: Send>(config: &Config, play: impl Fn(usize, Rack) -> R + Sync) -> Vec<R> {
    let play = &play;
    std::thread::scope(|scope| {
        let nodes = (0..NODES)
            .map(|node| scope.spawn(move || play(node, Rack::join(config, node).unwrap())));
        let nodes: Vec<_> = nodes.collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

#[test]
fn what_a_node_has_changed_is_there_when_it_has_closed() {
    for fabric in ["udp", "shm"] {
        let (made, closed) = (Barrier::new(NODES), Barrier::new(NODES));
        joined(&config(fabric, "60s"), |node, rack| {
            let own = rack.node(node);
            let words = (node == 0).then(|| own.create_region(&RegionSpec::new("words", 64 << 10)));
            made.wait();
            let region = match words {
                Some(words) => words.unwrap(),
                None => own
                    .open_region(&RegionSpec::new("words", 64 << 10))
                    .unwrap(),
            };
            // Blocks that the others have nothing of.
            let at = |of: usize| region.addr() + 16_384 * of as u64;
            if node != 0 {
                own.attach::<u64>(at(node))
                    .unwrap()
                    .write(node as u64 + 40)
                    .unwrap();
                rack.close().unwrap();
                closed.wait();
                return;
            }
            closed.wait();
            for of in 1..NODES {
                let read = own.attach::<u64>(at(of)).unwrap().read();
                assert_eq!(read, Ok(of as u64 + 40), "{fabric}");
            }
        });
    }
}

#[test]
fn nodes_close_in_any_order() {
    for fabric in ["udp", "shm"] {
        for round in 0..30 {
            let (made, done) = (Barrier::new(NODES), Barrier::new(NODES));
            joined(&config(fabric, "60s"), |node, rack| {
                let own = rack.node(node);
                // Node 1 has the memory, and node 0 the names.
                let mutex = (node == 1).then(|| Mutex::named(&own, "sum", 0u64).unwrap());
                made.wait();
                let mutex = mutex.unwrap_or_else(|| Mutex::named(&own, "sum", 0u64).unwrap());
                for _ in 0..50 {
                    *mutex.lock().unwrap() += 1;
                }
                done.wait();
                // One after the other, and then all at once.
                let apart = (node as u32 + round) % 3 * u32::from(round < 6);
                std::thread::sleep(Duration::from_millis(30) * apart);
                let closed = rack.close();
                assert!(closed.is_ok(), "{fabric}: node {node}: {closed:?}");
            });
        }
    }
}

#[test]
fn a_home_that_others_use_closes_all_the_same() {
    let (made, closed) = (Barrier::new(NODES), Barrier::new(NODES));
    joined(&config("udp", "300ms"), |node, rack| {
        let own = rack.node(node);
        let spec = RegionSpec::new("words", 4096);
        let words = (node == 2).then(|| own.create_region(&spec).unwrap());
        made.wait();
        if node == 2 {
            drop(words);
            // The others have read it, and stay.
            closed.wait();
            let left = rack.close();
            assert!(matches!(
                left,
                Ok(()) | Err(LeaveError::Access(_) | LeaveError::Rack(_))
            ));
            return;
        }
        let words = own.open_region(&spec).unwrap();
        own.attach::<u64>(words.addr()).unwrap().read().unwrap();
        closed.wait();
        std::thread::sleep(Duration::from_secs(1));
    });
}

/// Nothing of its memory is under way when a home closes, so it waits for nobody; and who has given
/// a block of it away, and asks whether it came, needs no answer.
#[test]
fn who_has_given_a_block_closes_after_its_home() {
    for fabric in ["udp", "shm"] {
        let steps = Barrier::new(NODES);
        joined(&config(fabric, "60s"), |node, rack| {
            let own = rack.node(node);
            let spec = RegionSpec::new("words", 4096);
            // Node 1 has the memory, and node 0 the names, of which all have copies.
            let made = (node == 1).then(|| own.create_region(&spec).unwrap());
            steps.wait();
            let region = made.unwrap_or_else(|| own.open_region(&spec).unwrap());
            let word = own.attach::<u64>(region.addr()).unwrap();
            // Node 2 has the block, and home takes it to write.
            for writer in [2, 1] {
                if node == writer {
                    word.write(writer as u64).unwrap();
                }
                steps.wait();
            }
            if node != 1 {
                steps.wait();
            }
            let closed = rack.close();
            if node == 1 {
                steps.wait();
            }
            assert!(closed.is_ok(), "{fabric}: node {node}: {closed:?}");
        });
    }
}
