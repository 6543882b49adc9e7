//! A barrier in shared memory: one word, which every node's thread adds one to.

use super::halt::{Halt, Played, wrong};
use crate::stop::Stop;
use rackmem::{Node, Shared};
use std::time::{Duration, Instant};

/// How long the last thread may be behind the first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Looks at the word, each a hit in the node's own cache, before the core is given to somebody
/// else.
const SPINS: u32 = 64;

/// One thread's end of the barrier.
pub struct Barrier<'a> {
    arrived: Shared<u64>,
    threads: u64,
    round: u64,
    stop: &'a Stop,
}

impl<'a> Barrier<'a> {
    /// The barrier whose word, zero at first, is at this address.
    pub fn attach(node: &Node, addr: u64, threads: usize, stop: &'a Stop) -> Played<Self> {
        Ok(Barrier {
            arrived: node.attach(addr)?,
            threads: threads as u64,
            round: 0,
            stop,
        })
    }

    /// Waits until all threads have come here as often as this one.
    pub fn wait(&mut self) -> Played<()> {
        self.round += 1;
        let all = self.round * self.threads;
        if self.arrived.fetch_add(1)? + 1 >= all {
            return Ok(());
        }
        let end = Instant::now() + PATIENCE;
        let mut spins = 0;
        while self.arrived.read()? < all {
            spins += 1;
            if spins % SPINS != 0 {
                std::hint::spin_loop();
                continue;
            }
            if self.stop.requested() {
                return Err(Halt::Stopped);
            }
            if Instant::now() > end {
                return Err(wrong("a thread did not come to the barrier for a minute"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn nobody_is_a_round_ahead() {
        const THREADS: usize = 3;
        let rack = Rack::local(THREADS).unwrap();
        let word = rack.node(0).alloc_isolated(0u64).unwrap().addr();
        let stop = Stop::default();
        let entered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for node in rack.nodes() {
                let (stop, entered) = (&stop, &entered);
                scope.spawn(move || {
                    let Ok(mut barrier) = Barrier::attach(node, word, THREADS, stop) else {
                        panic!("no barrier");
                    };
                    for round in 1..=50 {
                        entered.fetch_add(1, Ordering::SeqCst);
                        assert!(barrier.wait().is_ok());
                        assert!(entered.load(Ordering::SeqCst) >= round * THREADS as u64);
                    }
                });
            }
        });
    }
}
