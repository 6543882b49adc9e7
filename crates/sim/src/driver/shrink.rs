//! From a way that breaks a promise to a short one that breaks the same.

use super::system::{Complaint, System};

/// Moves made in all to find out which of them are needed.
const MOST_MOVES: usize = 2_000_000;

/// Moves, one after the other.
pub type Way<S> = Vec<<S as System>::Move>;

/// The first candidate, a smaller system with its seed, whose way breaks the same promise.
/// What is smaller is another way altogether, so candidates come with several seeds each.
pub fn smallest<C, M>(
    candidates: impl Iterator<Item = C>,
    promise: &str,
    mut go: impl FnMut(&C) -> Option<(Complaint, M)>,
) -> Option<(C, Complaint, M)> {
    let mut found = candidates.filter_map(|candidate| {
        let (complaint, way) = go(&candidate)?;
        (complaint.0 == promise).then_some((candidate, complaint, way))
    });
    found.next()
}

/// Leaves moves out, many at once and then fewer, as long as the rest breaks the same promise.
/// `None`: it does not break it.
pub fn shorten<S: System>(
    system: &mut S,
    promise: &str,
    way: &[S::Move],
) -> Option<(Complaint, Way<S>)> {
    let mut breaks = |way: &[S::Move]| replay(system, way).filter(|(found, _)| found.0 == promise);
    let (mut complaint, mut best) = breaks(way)?;
    let (mut size, mut made) = (best.len().div_ceil(2), 0);
    loop {
        let (before, mut at) = (best.len(), 0);
        while at < best.len() && made < MOST_MOVES {
            let end = best.len().min(at + size);
            let rest: Vec<S::Move> = best[..at].iter().chain(&best[end..]).copied().collect();
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

/// Goes a way, without the moves that are not possible when it is their turn. The first promise
/// that it breaks, and the moves to there.
fn replay<S: System>(system: &mut S, way: &[S::Move]) -> Option<(Complaint, Way<S>)> {
    let mut state = system.first();
    let mut made = Vec::new();
    for &step in way {
        if !system.moves(&state).contains(&step) {
            continue;
        }
        made.push(step);
        let broken = system.apply(&mut state, step).err();
        if let Some(complaint) = broken.or_else(|| system.broken(&state)) {
            return Some((complaint, made));
        }
    }
    let stuck = !system.done(&state) && system.moves(&state).is_empty();
    stuck.then(|| (system.stuck(&state), made))
}

/// A way as a story, as far as its last `most` lines.
pub fn story<S: System>(system: &mut S, way: &[S::Move], most: usize) -> Vec<String> {
    let mut state = system.first();
    let mut lines = Vec::new();
    for step in way {
        lines.extend(system.tell(&state, step));
        // The last one is what breaks the promise.
        let _ = system.apply(&mut state, *step);
    }
    lines.split_off(lines.len().saturating_sub(most))
}
