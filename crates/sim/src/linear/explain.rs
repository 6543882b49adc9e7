//! From "there is no order" to the few operations that show it.
//!
//! First the shortest beginning of the history is found that has no order:
//! what comes after it plays no part. Of this the latest stretch is kept that contradicts itself
//! even when the value before it could have been anything; then reads that are not needed are
//! dropped. Each step only takes constraints away, so a contradiction among what is left is one of
//! the whole history. The same makes it possible to find one in a history that is too hard as a
//! whole.

use std::collections::HashSet;
use std::fmt;

use super::Limits;
use super::model::{Effect, Model};
use super::problem::{Timed, solve};
use super::register::{Register, RegisterOp, RegisterState};
use super::search::Answer;
use crate::history::Operation;

/// The stretches that are tried begin with this many operations, then twice as many, and so on.
const FIRST_STRETCH: usize = 4;
/// The longest stretch that is tried.
const LONGEST_STRETCH: usize = 4096;
/// The stretches that are tried of a history that is too hard, overlapping by a half.
const SWEEP: usize = 256;
/// What each try may spend.
const TRY: Limits = Limits {
    configurations: 200_000,
};
/// Stretches longer than this are shown with all their reads.
const LONGEST_THINNED: usize = 256;
/// Lines shown at most: the last ones.
const SHOWN: usize = 40;

/// Operations on one key that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The key.
    pub key: String,
    /// Whether it takes that there was no value in the beginning; otherwise nothing is taken for
    /// granted of the value before the first of the operations.
    pub from_start: bool,
    /// The operations, by time of invocation.
    pub operations: Vec<Operation>,
    /// The one of them whose return no order gets beyond.
    pub culprit: usize,
}

/// A stretch of a key's operations.
struct Stretch {
    from_start: bool,
    /// Operations by their places among all of the key.
    items: Vec<(usize, Timed<RegisterOp>)>,
}

/// Looks for a contradiction in short stretches of operations.
pub(super) fn suspected(
    model: &mut Register,
    operations: &[&Operation],
    timed: &[Timed<RegisterOp>],
) -> Option<Counterexample> {
    let returns = returns(timed);
    for first in (0..returns.len()).step_by(SWEEP / 2) {
        let window = &returns[first..returns.len().min(first + SWEEP)];
        let (start, end) = (Some(window[0]), window[window.len() - 1]);
        if Stretch::new(model, timed, start, end).contradicts(model, TRY) {
            let end = first_end(model, timed, start, window, TRY);
            let stretch = latest(model, timed, end);
            let stretch = stretch.unwrap_or_else(|| Stretch::new(model, timed, start, end));
            return Some(show(model, operations, stretch, end));
        }
    }
    None
}

/// Shows why there is no order for operations that are known to have none.
pub(super) fn proved(
    model: &mut Register,
    operations: &[&Operation],
    timed: &[Timed<RegisterOp>],
    limits: Limits,
) -> Counterexample {
    let end = first_end(model, timed, None, &returns(timed), limits);
    let stretch = latest(model, timed, end);
    let stretch = stretch.unwrap_or_else(|| Stretch::new(model, timed, None, end));
    show(model, operations, stretch, end)
}

/// The times of all returns, in order.
fn returns(timed: &[Timed<RegisterOp>]) -> Vec<u64> {
    let mut returns: Vec<u64> = timed.iter().filter_map(|timed| timed.by).collect();
    returns.sort_unstable();
    returns
}

/// The first of some ends at which the stretch from `start` contradicts itself,
/// where it does at the last of them. Bisection: what has no order has none however it goes on.
fn first_end(
    model: &mut Register,
    timed: &[Timed<RegisterOp>],
    start: Option<u64>,
    ends: &[u64],
    limits: Limits,
) -> u64 {
    let (mut low, mut high) = (0, ends.len().saturating_sub(1));
    while low < high {
        let middle = low.midpoint(high);
        let stretch = Stretch::new(model, timed, start, ends[middle]);
        match stretch.contradicts(model, limits) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    ends.get(high).copied().unwrap_or(u64::MAX)
}

fn show(
    model: &mut Register,
    operations: &[&Operation],
    mut stretch: Stretch,
    end: u64,
) -> Counterexample {
    stretch.drop_unseen(model);
    if stretch.items.len() <= LONGEST_THINNED {
        stretch.thin(model);
    }
    let from_start = stretch.from_start;
    let mut places: Vec<usize> = stretch.items.iter().map(|item| item.0).collect();
    places.sort_by_key(|&place| operations[place].invoke);
    let shown: Vec<Operation> = places
        .iter()
        .map(|&place| operations[place].clone())
        .collect();
    let last = shown
        .iter()
        .rposition(|shown| shown.returned() == Some(end));
    Counterexample {
        key: operations
            .first()
            .map_or_else(String::new, |first| first.key.clone()),
        from_start,
        culprit: last.unwrap_or(shown.len().saturating_sub(1)),
        operations: shown,
    }
}

/// The latest stretch up to `end` that contradicts itself.
fn latest(model: &mut Register, timed: &[Timed<RegisterOp>], end: u64) -> Option<Stretch> {
    let mut starts: Vec<u64> = timed
        .iter()
        .filter(|timed| timed.by.is_some() && timed.invoke <= end)
        .map(|timed| timed.invoke)
        .collect();
    starts.sort_unstable_by(|a, b| b.cmp(a));
    let mut contradicts = |length: usize| {
        let start = *starts.get(length.checked_sub(1)?)?;
        let stretch = Stretch::new(model, timed, Some(start), end);
        stretch.contradicts(model, TRY).then_some(stretch)
    };
    // A longer stretch has all the constraints of a shorter one, so bisection finds the shortest.
    let longest = starts.len().min(LONGEST_STRETCH);
    let (mut fits, mut length) = (0, FIRST_STRETCH.min(longest));
    let mut found = loop {
        match contradicts(length) {
            Some(stretch) => break stretch,
            None if length == longest => return None,
            None => (fits, length) = (length, (length * 2).min(longest)),
        }
    };
    while fits + 1 < length {
        let middle = fits.midpoint(length);
        match contradicts(middle) {
            Some(stretch) => (found, length) = (stretch, middle),
            None => fits = middle,
        }
    }
    Some(found)
}

impl Stretch {
    /// The operations between two times. What was under way at the start may have happened before
    /// it, and what was under way at the end may happen after it.
    fn new(model: &Register, timed: &[Timed<RegisterOp>], start: Option<u64>, end: u64) -> Self {
        let mut stretch = Stretch {
            from_start: start.is_none(),
            items: Vec::new(),
        };
        let start = start.unwrap_or(0);
        for (place, &whole) in timed.iter().enumerate() {
            let is_before = whole.by.is_some_and(|by| by < start);
            if is_before || whole.invoke > end {
                continue;
            }
            let is_inside = whole.invoke >= start && whole.by.is_some_and(|by| by <= end);
            let by = if is_inside { whole.by } else { None };
            if is_inside || model.effect(whole.op) != Effect::Reads {
                stretch.items.push((place, Timed { by, ..whole }));
            }
        }
        stretch
    }

    fn contradicts(&self, model: &mut Register, limits: Limits) -> bool {
        let start = match self.from_start {
            true => RegisterState::ABSENT,
            false => RegisterState::ANYTHING,
        };
        let timed: Vec<_> = self.items.iter().map(|item| item.1).collect();
        let solved = solve(model, &timed, start, limits);
        solved.answer == Answer::Impossible
    }

    /// Drops what nobody needs to see: writes that only may have happened,
    /// where all else only reads values and overwrites them. An order stays one without such a
    /// write.
    fn drop_unseen(&mut self, model: &Register) {
        if let Some(seen) = self.seen(model) {
            self.items
                .retain(|item| item.1.by.is_some() || !is_unseen(item.1.op, &seen));
        }
    }

    /// Drops reads, and writes that nobody saw, one by one as long as a contradiction is left.
    fn thin(&mut self, model: &mut Register) {
        let seen = self.seen(model);
        let mut at = 0;
        while at < self.items.len() {
            let op = self.items[at].1.op;
            let unseen = seen.as_ref().is_some_and(|seen| is_unseen(op, seen));
            if !unseen && model.effect(op) != Effect::Reads {
                at += 1;
                continue;
            }
            let item = self.items.remove(at);
            if !self.contradicts(model, TRY) {
                self.items.insert(at, item);
                at += 1;
            }
        }
    }

    /// The states that were read, where all else overwrites.
    fn seen(&self, model: &Register) -> Option<HashSet<RegisterState>> {
        let mut states = HashSet::new();
        for (_, timed) in &self.items {
            match timed.op {
                RegisterOp::Get(Some(state)) => drop(states.insert(state)),
                op if model.effect(op) == Effect::Overwrites => {}
                _ => return None,
            }
        }
        Some(states)
    }
}

/// Whether an operation overwrites, and with what is not among the states seen.
fn is_unseen(op: RegisterOp, seen: &HashSet<RegisterState>) -> bool {
    match op {
        RegisterOp::Set(value) | RegisterOp::Swap(value, None) => !seen.contains(&value),
        RegisterOp::Del(None) => !seen.contains(&RegisterState::ABSENT),
        _ => false,
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match self.from_start {
            true => "from no value at first",
            false => "whatever the value before them",
        };
        let count = self.operations.len();
        let key = &self.key;
        writeln!(
            f,
            "key {key:?}: no order explains these {count} operations, {before}"
        )?;
        writeln!(
            f,
            "    client      invoked     returned  operation (times in ns)"
        )?;
        let hidden = count.saturating_sub(SHOWN);
        if hidden > 0 {
            writeln!(f, "    ... {hidden} more before these")?;
        }
        let zero = self.operations.first().map_or(0, |first| first.invoke);
        for (place, operation) in self.operations.iter().enumerate().skip(hidden) {
            let mark = if place == self.culprit { "  >" } else { "   " };
            let returned = operation
                .returned()
                .map_or("never".into(), |at| format!("+{}", at.saturating_sub(zero)));
            let invoked = format!("+{}", operation.invoke.saturating_sub(zero));
            let client = operation.client;
            writeln!(
                f,
                "{mark} {client:>6} {invoked:>12} {returned:>12}  {operation}"
            )?;
        }
        Ok(())
    }
}
