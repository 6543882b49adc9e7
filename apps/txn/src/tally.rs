//! What terminals have done, by transaction.

use crate::access::{Cause, Footprint};
use crate::transactions::Kind;
use hdrhistogram::Histogram;
use std::time::Duration;

/// A time that is longer counts as this: more than an hour, in nanoseconds.
const LONGEST: u64 = 1 << 42;
/// Digits of times that are kept.
const DIGITS: u8 = 2;

/// Of one of the five transactions.
#[derive(Clone, Debug)]
pub struct Row {
    /// Those that have committed.
    pub committed: u64,
    /// Those that their users have taken back.
    pub rolled_back: u64,
    /// Districts where a delivery has found no order.
    pub skipped: u64,
    /// Runs that were aborted, and tried again, by the order of [`Cause::ALL`].
    pub aborts: [u64; Cause::ALL.len()],
    /// From the first run to the end of the last one; nanoseconds.
    times: Histogram<u64>,
}

impl Default for Row {
    fn default() -> Self {
        let times = Histogram::new_with_bounds(1, LONGEST, DIGITS);
        Row {
            committed: 0,
            rolled_back: 0,
            skipped: 0,
            aborts: [0; Cause::ALL.len()],
            times: times.expect("bounds that hdrhistogram takes"),
        }
    }
}

impl Row {
    /// A transaction has taken so long.
    pub fn took(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(LONGEST);
        self.times.saturating_record(nanos);
    }

    /// In how much time so many percent were done.
    pub fn within(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.times.value_at_percentile(percent))
    }

    /// How often which times were taken, in nanoseconds.
    pub fn times(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.times.iter_recorded();
        all.map(|it| (it.value_iterated_to(), it.count_at_value()))
    }

    /// That so many transactions have taken this time, in nanoseconds.
    pub fn add_times(&mut self, nanos: u64, count: u64) {
        self.times.saturating_record_n(nanos, count);
    }

    fn add(&mut self, other: &Row) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.skipped += other.skipped;
        for (sum, more) in self.aborts.iter_mut().zip(&other.aborts) {
            *sum += more;
        }
        // Their bounds are the same, so all times have room here.
        let added = self.times.add(&other.times);
        debug_assert!(added.is_ok());
    }
}

/// What has been done to the database since it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Orders that were placed.
    pub orders: u64,
    /// Payments.
    pub payments: u64,
    /// Orders that were delivered.
    pub delivered: u64,
}

impl Counts {
    /// Nothing.
    pub const NONE: Counts = Counts {
        orders: 0,
        payments: 0,
        delivered: 0,
    };

    /// Both together.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            orders: self.orders + other.orders,
            payments: self.payments + other.payments,
            delivered: self.delivered + other.delivered,
        }
    }
}

/// A transaction that has committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed {
    /// When it began; nanoseconds of the run.
    pub invoke: u64,
    /// When it was known to have committed; nothing: nobody knows whether it has.
    pub returned: Option<u64>,
    /// What it has read and changed.
    pub footprint: Footprint,
}

/// All that terminals have done.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    rows: [Row; Kind::ALL.len()],
    /// Orders that were delivered.
    pub delivered: u64,
    /// Transactions that have committed, as many as were asked for.
    pub deeds: Vec<Deed>,
}

impl Tally {
    /// Of one of the five.
    pub fn of(&self, kind: Kind) -> &Row {
        &self.rows[kind as usize]
    }

    /// What it has done to the database.
    pub fn counts(&self) -> Counts {
        Counts {
            orders: self.of(Kind::NewOrder).committed,
            payments: self.of(Kind::Payment).committed,
            delivered: self.delivered,
        }
    }

    /// Of one of the five, to add to it.
    pub fn row(&mut self, kind: Kind) -> &mut Row {
        &mut self.rows[kind as usize]
    }

    /// Adds what others have done.
    pub fn add(&mut self, other: Tally) {
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            row.add(more);
        }
        self.delivered += other.delivered;
        self.deeds.extend(other.deeds);
    }
}
