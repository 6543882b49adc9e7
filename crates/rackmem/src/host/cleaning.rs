//! Free memory of this node becomes zeros in the background, and its pages go back to the system.
//!
//! A home cleans what no cache has anything of, behind its lock and a part at a time; what this
//! node's own cache has goes home before. What other nodes still have in their caches stays used,
//! and is made zeros when it is given out.

use super::access::Access;
use std::time::{Duration, Instant};

/// How long after one round through its memory a node begins the next.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// Blocks that are cleaned behind one lock of the home.
const PART: u64 = 32;
/// Blocks that are looked at in one turn.
const TURN: u64 = 4096;
/// Copies that leave the cache in one turn.
const COPIES: usize = 512;

/// How far a node has come with its memory.
#[derive(Default)]
pub(crate) struct Cleaning {
    /// The next block of its memory to look at.
    at: u64,
    /// When the last round ended.
    rests: Option<Instant>,
}

impl Cleaning {
    /// Cleans a bit. Says whether this round through memory goes on; the next one begins later, so
    /// that memory which comes and goes does not go to the system each time.
    pub fn turn(&mut self, access: &Access) -> bool {
        if self.rests.is_some_and(|since| since.elapsed() < LOOK) {
            return false;
        }
        self.rests = None;
        let agents = &access.agents;
        let (mut looked, mut copies) = (0, 0);
        while looked < TURN && copies < COPIES {
            let part = agents.books(|home| home.used_from(self.at, PART));
            let Some(part) = part else {
                (self.at, self.rests) = (0, Some(Instant::now()));
                return false;
            };
            for nth in part.clone() {
                let tag = agents.books(|home| home.nth_block(nth));
                if let Some(tag) = tag
                    && agents.cache.find(tag).is_some()
                    && let Some(reserved) = access.pending.reserve(&agents.cache, tag)
                {
                    copies += 1;
                    // Somebody may be about to use it: then it stays.
                    let _ = access.evict(&reserved);
                }
            }
            agents.clean(part.start, part.end - part.start);
            looked += part.end - part.start;
            self.at = part.end;
        }
        true
    }
}
