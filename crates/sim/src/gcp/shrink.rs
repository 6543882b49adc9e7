//! From a seeded way that breaks a promise to a short one that breaks the same: first through smaller racks, then without every
//! move that it does not take.

use super::moves::{Line, Move};
use super::mutation::Mutation;
use super::oracle::{Complaint, at_end};
use super::scenario::Failure;
use super::walk::{WalkConfig, go, rack};
use super::world::Rack;
use std::fmt;

/// Seeds tried with each smaller rack: what is smaller is another way altogether.
const SEEDS: u64 = 24;
/// Moves made in all to find out which of them are needed.
const MOST_MOVES: usize = 2_000_000;
/// Moves shown at most: the last ones. Only a way that could not be made short has more.
const SHOWN: usize = 60;

/// A broken promise, and a way there.
#[derive(Clone, Debug)]
pub struct Broken {
    /// What is broken.
    pub complaint: Complaint,
    /// The rack of the way, with its seed.
    pub config: WalkConfig,
    /// A line a move.
    pub story: Vec<String>,
    /// Moves of the way on which it was found at first.
    pub found_after: usize,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (moves, found) = (self.story.len(), self.found_after);
        writeln!(f, "{}", self.complaint)?;
        writeln!(f, "in {:?}", self.config)?;
        writeln!(f, "by these {moves} of {found} moves:")?;
        self.story
            .iter()
            .try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Makes the way short on which a walk has broken a promise.
pub(super) fn shrink(
    config: &WalkConfig,
    mutation: Option<Mutation>,
    (complaint, way): (Complaint, Vec<Move>),
) -> Broken {
    let found_after = way.len();
    let promise = complaint.promise;
    let (config, complaint, way) =
        in_a_smaller_rack(config, mutation, promise).unwrap_or((*config, complaint, way));
    let (rack, _) = rack(&config, mutation);
    let (complaint, way) = without_idle_moves(&rack, promise, &way).unwrap_or((complaint, way));
    Broken {
        story: story(&rack, &way),
        complaint,
        config,
        found_after,
    }
}

/// The smallest rack, by nodes and operations, in which some seed breaks the same promise.
fn in_a_smaller_rack(
    config: &WalkConfig,
    mutation: Option<Mutation>,
    promise: &str,
) -> Option<(WalkConfig, Complaint, Vec<Move>)> {
    let dies = |failure: &Failure| match failure {
        Failure::Node(node) | Failure::Fenced(node) | Failure::Switch(Some(node)) => *node,
        Failure::Nothing | Failure::Switch(None) => 0,
    };
    let dies = config.failures.iter().map(dies).max().unwrap_or(0);
    let operations = |nodes| (1..=config.operations).map(move |operations| (nodes, operations));
    let mut sizes: Vec<(u8, u8)> = (2.max(dies + 1)..=config.nodes)
        .flat_map(operations)
        .collect();
    sizes.sort_by_key(|(nodes, operations)| (u16::from(*nodes) * u16::from(*operations), *nodes));
    for (nodes, operations) in sizes {
        if (nodes, operations) == (config.nodes, config.operations) {
            break;
        }
        for faults in [0, config.faults] {
            for seed in (0..SEEDS).map(|n| config.seed.wrapping_add(n)) {
                let smaller = WalkConfig {
                    seed,
                    nodes,
                    operations,
                    faults,
                    ..*config
                };
                let (_, broken) = go(&smaller, mutation);
                match broken {
                    Some((found, way)) if found.promise == promise => {
                        return Some((smaller, found, way));
                    }
                    _ => {}
                }
            }
        }
    }
    None
}

/// Leaves moves out, many at once and then fewer, as long as the rest breaks the same promise.
fn without_idle_moves(rack: &Rack, promise: &str, way: &[Move]) -> Option<(Complaint, Vec<Move>)> {
    let breaks = |way: &[Move]| replay(rack, way).filter(|(found, _)| found.promise == promise);
    let (mut complaint, mut best) = breaks(way)?;
    let (mut size, mut made) = (best.len().div_ceil(2), 0);
    loop {
        let (before, mut at) = (best.len(), 0);
        while at < best.len() && made < MOST_MOVES {
            let end = best.len().min(at + size);
            let rest: Vec<Move> = best[..at].iter().chain(&best[end..]).copied().collect();
            made += rest.len();
            match breaks(&rest) {
                Some((found, shorter)) if shorter.len() < best.len() => {
                    (complaint, best) = (found, shorter);
                }
                _ => at = end,
            }
        }
        let again = best.len() < before;
        if made >= MOST_MOVES || (size == 1 && !again) {
            return Some((complaint, best));
        }
        size = (size / 2).max(1);
    }
}

/// Goes a way, without the moves that are not possible when it is their turn. The first promise that it breaks, and the moves
/// to there.
fn replay(rack: &Rack, way: &[Move]) -> Option<(Complaint, Vec<Move>)> {
    let mut world = rack.first();
    let mut made = Vec::new();
    for &step in way {
        if !world.moves(rack).contains(&step) {
            continue;
        }
        made.push(step);
        if let Err(complaint) = world.act(rack, step) {
            return Some((complaint, made));
        }
    }
    let complaint = match world.done(rack) {
        true => at_end(&world, rack).err(),
        false if world.moves(rack).is_empty() => {
            Some(Complaint::stuck("nothing can happen".into()))
        }
        false => None,
    };
    Some((complaint?, made))
}

fn story(rack: &Rack, way: &[Move]) -> Vec<String> {
    let mut world = rack.first();
    let mut lines = Vec::new();
    for &step in way {
        lines.push(Line(&world, step).to_string());
        // The last one is what breaks the promise.
        let _ = world.act(rack, step);
    }
    lines.split_off(lines.len().saturating_sub(SHOWN))
}
