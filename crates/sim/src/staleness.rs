//! Is every value that was read of a bounded age?
//!
//! Bounded memory promises less than one order of all operations, so [`linear`](crate::linear) does
//! not judge it. It promises that what a section reads was current within the bound before it
//! began. A value is current from its write to the next one; where a write took effect is known
//! only to lie between its invocation and its return, and where writes overlap, the judge takes the
//! order that excuses most:
//!
//! | of a write | |
//! |---|---|
//! | it may be current from | its invocation on |
//! | it has taken effect before | its return, or the first return of a read of its value |
//! | it may be current until | the first such moment of a write that was invoked after it had taken effect |
//!
//! | promise | judged by |
//! |---|---|
//! | what is read was written | a value of no write, of a failed one, or of a later one |
//! | it was current within the bound before the read was invoked | [`Fault::Old`] |
//! | what a client reads of a key never goes back, and it sees its own writes | [`Fault::Back`], where it is promised |
//!
//! Values that were written several times count as whichever write excuses most. The judge is
//! linear in the history but for sorting, and never gives up.

use crate::history::{Call, Operation, Outcome, Reply};
use std::collections::BTreeMap;
use std::fmt;

/// What is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgePromise {
    /// Nanoseconds.
    pub bound: u64,
    /// How long a section lasts at most, where reads are recorded without delay: at its end, a
    /// value is older by this much at most.
    pub section: Option<u64>,
    /// Whether a client's reads of a key never go back.
    pub onward: bool,
}

/// What was judged, where the promise is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ages {
    /// Keys.
    pub keys: usize,
    /// Reads with an answer.
    pub reads: usize,
    /// Writes that have taken effect or may have.
    pub writes: usize,
    /// Reads of what had certainly been superseded when they were invoked: a history without any
    /// shows nothing.
    pub old: usize,
    /// The oldest of these, in nanoseconds.
    pub oldest: u64,
}

/// What is wrong with a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// No write can have made its value.
    Unwritten,
    /// The value was superseded so many nanoseconds before the read was invoked.
    Old(u64),
    /// Its client knew of a later value.
    Back,
}

/// A read that breaks the promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    /// What is wrong with it.
    pub fault: Fault,
    /// The read.
    pub read: Operation,
    /// The write of its value, the one that superseded it, or the operation of its client that knew
    /// better: as far as there are any.
    pub others: Vec<Operation>,
}

/// Why a history has no verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoVerdict {
    /// The promise is broken.
    Broken(Box<Breach>),
    /// Only reads, writes and removals without an answer can be judged.
    OtherCall(Box<Operation>),
}

/// A write of a key, or what was there before all of them.
#[derive(Clone, Copy)]
struct Written<'a> {
    /// Nothing: what was there before.
    by: Option<&'a Operation>,
    invoke: u64,
    /// It has taken effect before this, as far as is known.
    done: u64,
    /// It may be current until then, and which write ends that.
    until: u64,
    ended: Option<&'a Operation>,
}

/// Judges a history; failed operations count as not done.
///
/// # Errors
/// The first read, by the time of its invocation within its key, that breaks the promise.
pub fn check(history: &[Operation], promise: AgePromise) -> Result<Ages, NoVerdict> {
    let mut keys: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in history {
        if !matches!(operation.call, Call::Get | Call::Set { .. } | Call::Clear) {
            return Err(NoVerdict::OtherCall(Box::new(operation.clone())));
        }
        if !matches!(operation.outcome, Outcome::Fail { .. }) {
            keys.entry(&operation.key).or_default().push(operation);
        }
    }
    let mut ages = Ages::default();
    for (_, mut operations) in keys {
        operations.sort_by_key(|operation| operation.invoke);
        key(&operations, promise, &mut ages).map_err(NoVerdict::Broken)?;
    }
    Ok(ages)
}

/// What a write leaves.
fn left(call: &Call) -> Option<&str> {
    match call {
        Call::Set { value } => Some(value),
        _ => None,
    }
}

/// What a read was told, and when.
fn read(operation: &Operation) -> Option<(Option<&str>, u64)> {
    match (&operation.call, &operation.outcome) {
        (Call::Get, Outcome::Ok { at, reply }) => match reply {
            Reply::Text(text) => Some((Some(text), *at)),
            _ => Some((None, *at)),
        },
        _ => None,
    }
}

/// By value: its writes, with the times between which each may be current.
fn written<'a>(operations: &[&'a Operation]) -> BTreeMap<Option<&'a str>, Vec<Written<'a>>> {
    let first = Written {
        by: None,
        invoke: 0,
        done: 0,
        until: u64::MAX,
        ended: None,
    };
    let mut all: BTreeMap<Option<&str>, Vec<Written<'_>>> = BTreeMap::from([(None, vec![first])]);
    for operation in operations.iter().filter(|one| one.call != Call::Get) {
        let written = Written {
            by: Some(operation),
            invoke: operation.invoke,
            done: operation.returned().unwrap_or(u64::MAX),
            ..first
        };
        all.entry(left(&operation.call)).or_default().push(written);
    }
    // A read says that the one write of its value has taken effect.
    for (value, at) in operations.iter().filter_map(|one| read(one)) {
        if let Some([written]) = all.get_mut(&value).map(Vec::as_mut_slice) {
            written.done = written.done.min(at.max(written.invoke));
        }
    }
    // By invocation; and of all writes from each on, the first to have taken effect.
    let mut next: Vec<(u64, u64, &Operation)> = all
        .values()
        .flatten()
        .filter_map(|written| Some((written.invoke, written.done, written.by?)))
        .collect();
    next.sort_by_key(|(invoke, done, _)| (*invoke, *done));
    for nth in (1..next.len()).rev() {
        if next[nth].1 < next[nth - 1].1 {
            (next[nth - 1].1, next[nth - 1].2) = (next[nth].1, next[nth].2);
        }
    }
    for written in all.values_mut().flatten() {
        let after = match written.by {
            None => 0,
            Some(_) => next.partition_point(|(invoke, ..)| *invoke <= written.done),
        };
        if let Some((_, done, by)) = next.get(after) {
            (written.until, written.ended) = (*done, (*done < u64::MAX).then_some(*by));
        }
    }
    all
}

/// Judges the operations of a key.
fn key(operations: &[&Operation], promise: AgePromise, ages: &mut Ages) -> Result<(), Box<Breach>> {
    let written = written(operations);
    let reads = operations.iter().filter(|one| read(one).is_some());
    ages.keys += 1;
    ages.reads += reads.count();
    ages.writes += operations
        .iter()
        .filter(|one| one.call != Call::Get)
        .count();
    // By client: when it learned of a value, when that was made at the earliest, and by what.
    let mut known: BTreeMap<u32, Vec<(u64, u64, &Operation)>> = BTreeMap::new();
    for operation in operations {
        let Some((value, returned)) = read(operation) else {
            if let Some(at) = operation.returned() {
                let all = known.entry(operation.client).or_default();
                all.push((at, operation.invoke, operation));
            }
            continue;
        };
        let breach = |fault, others: &[Option<&Operation>]| {
            let others = others.iter().flatten().map(|one| (*one).clone());
            Box::new(Breach {
                fault,
                read: (*operation).clone(),
                others: others.collect(),
            })
        };
        let all = written.get(&value).map_or(&[][..], Vec::as_slice);
        let all = all.iter().filter(|written| written.invoke <= returned);
        // Of several writes of one value, the one that was current last.
        let Some(written) = all.clone().max_by_key(|written| written.until) else {
            return Err(breach(Fault::Unwritten, &[]));
        };
        let made = all.clone().map(|written| written.invoke).min().unwrap_or(0);
        let done = all.map(|written| written.done).max().unwrap_or(u64::MAX);
        let age = operation.invoke.saturating_sub(written.until);
        let at_end = returned.saturating_sub(written.until);
        let most = promise
            .section
            .map(|most| promise.bound.saturating_add(most));
        if age > promise.bound || most.is_some_and(|most| at_end > most) {
            return Err(breach(Fault::Old(age), &[written.by, written.ended]));
        }
        if age > 0 {
            ages.old += 1;
            ages.oldest = ages.oldest.max(age);
        }
        if !promise.onward {
            continue;
        }
        let all = known.entry(operation.client).or_default();
        // It knew of a value whose write was invoked after that of this one had taken effect.
        let before = all.iter().filter(|(at, ..)| *at < operation.invoke);
        if let Some((_, _, knew)) = before.clone().find(|(_, knew, _)| *knew > done) {
            return Err(breach(Fault::Back, &[written.by, Some(knew)]));
        }
        all.push((returned, made, operation));
        // Only the latest of those that have returned counts from now on.
        if let Some(latest) = before_last(all, operation.invoke) {
            all.retain(|(at, made, _)| *at >= operation.invoke || *made >= latest);
        }
    }
    Ok(())
}

/// When the latest value that had been learned before was made.
fn before_last(all: &[(u64, u64, &Operation)], invoke: u64) -> Option<u64> {
    let before = all.iter().filter(|(at, ..)| *at < invoke);
    before.map(|(_, made, _)| *made).max()
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach {
            fault,
            read,
            others,
        } = self;
        write!(f, "key {:?}: ", read.key)?;
        match fault {
            Fault::Unwritten => writeln!(f, "a value that was not written is read")?,
            Fault::Old(age) => writeln!(
                f,
                "a value is read that was superseded {:.3} ms before",
                *age as f64 / 1e6
            )?,
            Fault::Back => writeln!(f, "a client reads what is older than what it knew")?,
        }
        for operation in others.iter().chain([read]) {
            let (client, invoke) = (operation.client, operation.invoke);
            let until = operation.returned().map_or("?".into(), |at| at.to_string());
            writeln!(f, "  client {client}, {invoke} to {until}: {operation}")?;
        }
        Ok(())
    }
}

impl fmt::Display for NoVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoVerdict::Broken(breach) => breach.fmt(f),
            NoVerdict::OtherCall(operation) => write!(
                f,
                "`{operation}` of key {:?}: ages are judged of get, set and clear only",
                operation.key
            ),
        }
    }
}

impl std::error::Error for NoVerdict {}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    fn operation(client: u32, call: Call, (invoke, at): (u64, u64), reply: Reply) -> Operation {
        Operation {
            client,
            key: "a".into(),
            call,
            invoke,
            outcome: match at {
                NEVER => Outcome::Unknown,
                at => Outcome::Ok { at, reply },
            },
        }
    }

    fn set(value: &str, times: (u64, u64)) -> Operation {
        let value = value.into();
        operation(0, Call::Set { value }, times, Reply::Nil)
    }

    fn get(client: u32, value: &str, times: (u64, u64)) -> Operation {
        let reply = match value {
            "" => Reply::Nil,
            value => Reply::Text(value.into()),
        };
        operation(client, Call::Get, times, reply)
    }

    fn judged(history: &[Operation]) -> Result<Ages, Fault> {
        let promise = AgePromise {
            bound: 100,
            section: None,
            onward: true,
        };
        check(history, promise).map_err(|why| match why {
            NoVerdict::Broken(breach) => breach.fault,
            NoVerdict::OtherCall(_) => panic!("{why}"),
        })
    }

    #[test]
    fn what_was_current_within_the_bound_may_be_read() {
        let history = |times| [set("1", (10, 20)), set("2", (200, 220)), get(1, "1", times)];
        // Until the second write has returned the first value may be there.
        let ages = judged(&history((320, 330))).unwrap();
        assert_eq!(
            (ages.old, ages.oldest, ages.reads, ages.writes),
            (1, 100, 1, 2)
        );
        assert_eq!(judged(&history((321, 330))), Err(Fault::Old(101)));
        assert_eq!(judged(&history((220, 900))).unwrap().old, 0);
    }

    #[test]
    fn what_was_there_at_first_is_superseded_by_the_first_write() {
        let history = |times| [set("1", (10, 20)), get(1, "", times)];
        assert_eq!(judged(&history((120, 121))).unwrap().oldest, 100);
        assert_eq!(judged(&history((121, 122))), Err(Fault::Old(101)));
    }

    #[test]
    fn what_nobody_has_written_is_not_read() {
        let mut failed = set("2", (10, 20));
        failed.outcome = Outcome::Fail { at: 20 };
        let history = |value| [set("1", (50, 60)), failed.clone(), get(1, value, (20, 40))];
        assert_eq!(judged(&history("1")), Err(Fault::Unwritten));
        assert_eq!(judged(&history("2")), Err(Fault::Unwritten));
        assert_eq!(judged(&history("3")), Err(Fault::Unwritten));
    }

    /// Writes that overlap may have taken effect in either order.
    #[test]
    fn of_writes_that_overlap_either_may_be_the_last() {
        let writes = [set("1", (10, 50)), set("2", (20, 40))];
        for value in ["1", "2"] {
            let history = [&writes[..], &[get(1, value, (900, 910))]].concat();
            assert!(judged(&history).is_ok(), "{value}");
        }
    }

    /// One without an answer supersedes nothing until its value is read.
    #[test]
    fn a_write_without_an_answer_counts_from_when_it_is_read() {
        let history = [
            set("1", (10, 20)),
            set("2", (30, NEVER)),
            get(1, "1", (900, 910)),
        ];
        assert!(judged(&history).is_ok());
        let seen = [&history[..], &[get(2, "2", (700, 710))]].concat();
        assert_eq!(judged(&seen), Err(Fault::Old(190)));
        let late = [&history[..], &[get(2, "2", (990, 999))]].concat();
        assert!(judged(&late).is_ok());
    }

    #[test]
    fn a_client_does_not_go_back_and_sees_its_own_writes() {
        let writes = [set("1", (10, 20)), set("2", (30, 40))];
        let reads = |client| [get(1, "2", (50, 60)), get(client, "1", (70, 80))];
        assert_eq!(
            judged(&[writes.clone(), reads(1)].concat()),
            Err(Fault::Back)
        );
        assert!(judged(&[writes.clone(), reads(2)].concat()).is_ok());
        // Its own write, at 40.
        let own = [&writes[..], &[get(0, "1", (50, 60))]].concat();
        assert_eq!(judged(&own), Err(Fault::Back));
        let promise = AgePromise {
            bound: 100,
            section: Some(50),
            onward: false,
        };
        assert!(check(&own, promise).is_ok());
        // Until 40 it was there: a section that ends 151 after that has lasted too long.
        let ends = |at| [&writes[..], &[get(0, "1", (50, at))]].concat();
        assert!(check(&ends(190), promise).is_ok());
        assert!(check(&ends(191), promise).is_err());
        // Reads that overlap may be in either order.
        let both = [get(1, "2", (50, 75)), get(1, "1", (70, 80))];
        assert!(judged(&[writes, both].concat()).is_ok());
    }

    #[test]
    fn a_value_of_several_writes_is_that_which_excuses_most() {
        let writes = [set("1", (10, 20)), set("2", (30, 40)), set("1", (500, 510))];
        let history = [&writes[..], &[get(1, "1", (700, 710))]].concat();
        assert!(judged(&history).is_ok());
        let early = [&writes[..], &[get(1, "1", (200, 210))]].concat();
        assert_eq!(judged(&early), Err(Fault::Old(160)));
    }

    #[test]
    fn what_is_no_register_is_refused() {
        let history = [operation(0, Call::Del, (1, 2), Reply::Bool(true))];
        let promise = AgePromise {
            bound: 1,
            section: None,
            onward: true,
        };
        let why = check(&history, promise).unwrap_err();
        assert!(matches!(why, NoVerdict::OtherCall(_)));
    }
}
