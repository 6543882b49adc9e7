//! What is counted of each command and of each kind of error, for INFO. Kept per worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::shared::Stats;

/// Codes of errors that are told apart.
const MAX_CODES: usize = 128;
/// Bytes of a code.
const MAX_CODE: usize = 32;
/// What further codes count as.
const OTHER: &str = "OTHER";

/// Powers of two of microseconds that calls are counted by; the last has all that took longer.
pub(crate) const POWERS: usize = 32;

/// A command's counts.
#[derive(Debug, Default)]
pub(crate) struct UnitCounts {
    pub calls: AtomicU64,
    pub nanoseconds: AtomicU64,
    /// Not run: too few words, no right to.
    pub rejected: AtomicU64,
    /// Run, and answered with an error.
    pub failed: AtomicU64,
    /// Calls that took at most 2^n microseconds, and longer than the place before has.
    took: [AtomicU64; POWERS],
}

impl UnitCounts {
    /// Calls, nanoseconds, rejected, failed.
    fn sums(&self) -> [&AtomicU64; 4] {
        [&self.calls, &self.nanoseconds, &self.rejected, &self.failed]
    }
}

/// All commands' and errors' counts of a worker.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    units: OnceLock<Box<[UnitCounts]>>,
    codes: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    /// The counts of a unit, of `units` that there are.
    #[inline]
    fn unit(&self, unit: usize, units: usize) -> Option<&UnitCounts> {
        let make = || (0..units).map(|_| UnitCounts::default()).collect();
        self.units.get_or_init(make).get(unit)
    }

    /// A command has run. `calls`: 1, or 0 if it had been called before.
    #[inline]
    pub fn ran(&self, unit: usize, units: usize, calls: u64, took: Duration, failed: bool) {
        if let Some(counts) = self.unit(unit, units) {
            Stats::add(&counts.calls, calls);
            Stats::add(&counts.nanoseconds, took.as_nanos() as u64);
            Stats::add(&counts.failed, u64::from(failed));
            Stats::add(&counts.took[power(took)], calls);
        }
    }

    /// A command has been refused.
    pub fn rejected(&self, unit: usize, units: usize) {
        if let Some(counts) = self.unit(unit, units) {
            Stats::add(&counts.rejected, 1);
        }
    }

    /// An error has been answered.
    pub fn error(&self, code: &[u8]) {
        let code = String::from_utf8_lossy(&code[..code.len().min(MAX_CODE)]);
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let full = codes.len() >= MAX_CODES && !codes.contains_key(&*code);
        let code = if full { OTHER.into() } else { code };
        *codes.entry(code.into_owned()).or_default() += 1;
    }

    /// Adds the counts of each unit: calls, nanoseconds, rejected, failed.
    pub fn add_units(&self, sums: &mut [[u64; 4]]) {
        for (sum, counts) in sums.iter_mut().zip(self.units.get().into_iter().flatten()) {
            for (sum, count) in sum.iter_mut().zip(counts.sums()) {
                *sum += count.load(Relaxed);
            }
        }
    }

    /// Adds a unit's calls by how long they took.
    pub fn add_took(&self, unit: usize, sums: &mut [u64; POWERS]) {
        let counts = self.units.get().and_then(|units| units.get(unit));
        for (sum, count) in sums.iter_mut().zip(counts.iter().flat_map(|one| &one.took)) {
            *sum += count.load(Relaxed);
        }
    }

    /// Adds the counts of each code of errors.
    pub fn add_codes(&self, sums: &mut BTreeMap<String, u64>) {
        for (code, count) in &*self.codes.lock().unwrap_or_else(PoisonError::into_inner) {
            *sums.entry(code.clone()).or_default() += count;
        }
    }

    /// Begins anew.
    pub fn reset(&self) {
        for counts in self.units.get().into_iter().flatten() {
            for count in counts.sums().into_iter().chain(&counts.took) {
                count.store(0, Relaxed);
            }
        }
        self.codes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Where a call is counted that took so long.
fn power(took: Duration) -> usize {
    let micros = u64::try_from(took.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
    let power = u64::BITS - micros.saturating_sub(1).leading_zeros();
    (power as usize).min(POWERS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_powers_of_two() {
        let micros = [0, 1, 2, 3, 4, 5, 1000, 1025, u64::MAX];
        let powers = micros.map(|n| power(Duration::from_micros(n)));
        assert_eq!(powers, [0, 0, 1, 2, 2, 3, 10, 11, POWERS - 1]);
        assert_eq!(power(Duration::from_nanos(1001)), 1);
    }
}
