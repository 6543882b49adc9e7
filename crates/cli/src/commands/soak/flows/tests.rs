//! Planted contradictions: each must be noticed, and what may be must not.

use super::channels::{self, Heard, Said};
use super::judge::{Left, Losses, Place};
use super::record::{Ack, Id, Put, Record, Span, Taken};

fn span(begun: u64, ended: u64) -> Span {
    Span {
        begun,
        ended: Some(ended),
    }
}

fn put(place: &str, value: &str, at: u64) -> Put {
    Put {
        place: place.into(),
        value: value.into(),
        span: span(at, at + 5),
        id: super::is_stream(place).then_some((at, 0)),
    }
}

fn taken(place: &str, value: &str, at: u64, id: Option<Id>) -> Taken {
    Taken {
        place: place.into(),
        value: value.into(),
        span: span(at, at + 5),
        id,
        by: "1".into(),
    }
}

const NONE: Losses<'_> = Losses {
    flushes: &[],
    death: false,
};
const DEATH: Losses<'_> = Losses {
    death: true,
    ..NONE
};

/// What is wrong with a queue into which `a`, `b` and `c` were put at 10, 20 and 30, of which these
/// were taken at these times, and these are there.
fn queue(out: &[(&str, u64)], there: &[&str], losses: Losses<'_>) -> Option<String> {
    let puts = [("a", 10), ("b", 20), ("c", 30)];
    let record = Record {
        puts: puts
            .iter()
            .map(|(value, at)| put("queue:0", value, *at))
            .collect(),
        taken: out
            .iter()
            .map(|(value, at)| taken("queue:0", value, *at, None))
            .collect(),
        ..Record::default()
    };
    let values = there
        .iter()
        .map(|value| (None, (*value).to_owned()))
        .collect();
    let left = Left {
        values,
        ..Left::default()
    };
    Place::new("queue:0", &record, &left, losses).judge()
}

#[test]
fn what_is_put_into_a_queue_comes_out_once_and_in_order() {
    assert_eq!(queue(&[("a", 40), ("b", 50)], &["c"], NONE), None);
    // At the same time.
    assert_eq!(queue(&[("b", 40), ("a", 42)], &["c"], NONE), None);
    for (out, there, wrong) in [
        (&[("a", 40), ("a", 50)][..], &["b", "c"][..], "taken by"),
        (&[("a", 40)], &["a", "b", "c"], "is there"),
        (&[("b", 40), ("a", 50)], &["c"], "which is older"),
        (&[("a", 40)], &["c"], "are gone"),
        (&[("x", 40)], &["a", "b", "c"], "nobody"),
        (&[], &["a", "a", "b", "c"], "twice"),
        (&[("c", 12)], &["a", "b"], "before it was put"),
    ] {
        let found = queue(out, there, NONE).unwrap_or_default();
        assert!(found.contains(wrong), "{out:?}, {there:?}: {found:?}");
    }
}

#[test]
fn a_death_or_a_flush_takes_all_that_is_older_or_nothing() {
    assert_eq!(queue(&[], &["c"], DEATH), None);
    assert_eq!(queue(&[], &[], DEATH), None);
    assert!(queue(&[], &["a", "c"], DEATH).is_some(), "a hole");
    let flushed = |begun, ended| {
        let flushes = [span(begun, ended)];
        let losses = Losses {
            flushes: &flushes,
            death: false,
        };
        queue(&[], &["c"], losses)
    };
    assert_eq!(flushed(26, 29), None);
    assert!(flushed(5, 8).is_some(), "flushed before it was put");
}

/// The same for a stream, whose group has these pending.
fn stream(
    there: &[(&str, u64)],
    out: &[&str],
    acks: &[(&str, i64)],
    pending: &[(u64, &str, i64)],
) -> Option<String> {
    let at = |value: &str| match value {
        "a" => 10,
        "b" => 20,
        _ => 30,
    };
    let out = out.iter().enumerate();
    let record = Record {
        puts: ["a", "b", "c"]
            .map(|value| put("stream:0", value, at(value)))
            .into(),
        taken: out
            .map(|(nth, value)| {
                taken(
                    "stream:0",
                    value,
                    40 + 10 * nth as u64,
                    Some((at(value), 0)),
                )
            })
            .collect(),
        acks: acks
            .iter()
            .map(|(value, count)| Ack {
                place: "stream:0".into(),
                value: (*value).into(),
                count: Some(*count),
            })
            .collect(),
        asked: Vec::new(),
    };
    let left = Left {
        values: there
            .iter()
            .map(|(value, ms)| (Some((*ms, 0)), (*value).into()))
            .collect(),
        pending: pending
            .iter()
            .map(|(ms, by, times)| ((*ms, 0), ((*by).into(), *times)))
            .collect(),
    };
    Place::new("stream:0", &record, &left, NONE).judge()
}

#[test]
fn entries_of_a_stream_stay_and_are_given_to_one_consumer_each() {
    let all = [("a", 10), ("b", 20), ("c", 30)];
    let last = (30, super::LAST, 1);
    let good = stream(
        &all,
        &["a", "b"],
        &[("a", 1), ("a", 0)],
        &[(20, "1", 1), last],
    );
    assert_eq!(good, None);
    for (there, out, acks, pending, wrong) in [
        (
            &all[..0],
            &["a", "b"][..],
            &[][..],
            &[(10, "1", 1), (20, "1", 1)][..],
            "are gone",
        ),
        (
            &[("a", 10), ("c", 30)],
            &["a"],
            &[],
            &[(10, "1", 1), last],
            "is gone",
        ),
        (
            &[("a", 10), ("b", 21), ("c", 30)],
            &["a"],
            &[],
            &[],
            "was told",
        ),
        (
            &[("b", 20), ("a", 10), ("c", 30)],
            &["a"],
            &[],
            &[],
            "behind",
        ),
        (&all, &["a", "a"], &[], &[(10, "1", 1)], "taken by"),
        (&all, &["b", "a"], &[], &[(10, "1", 1)], "older"),
        (
            &all,
            &["a", "b"],
            &[("a", 1), ("a", 1)],
            &[(20, "1", 1), last],
            "2 times",
        ),
        (
            &all,
            &["a", "b"],
            &[("a", 1)],
            &[(10, "1", 1), (20, "1", 1), last],
            "is pending",
        ),
        (
            &all,
            &["a", "b"],
            &[],
            &[(20, "1", 1), last],
            "nobody is done",
        ),
        (
            &all,
            &["a", "b"],
            &[],
            &[(10, "2", 1), (20, "1", 1), last],
            "belongs to",
        ),
        (
            &all,
            &["a", "b"],
            &[],
            &[(10, "1", 2), (20, "1", 1), last],
            "given to",
        ),
        (&all, &["a"], &[], &[(10, "1", 1), last], "never delivered"),
        (
            &all,
            &["a"],
            &[],
            &[(10, "1", 1), (20, "2", 1), last],
            "at most",
        ),
    ] {
        let found = stream(there, out, acks, pending).unwrap_or_default();
        assert!(found.contains(wrong), "{wrong}: {found:?}");
    }
}

#[test]
fn messages_are_heard_in_order_and_none_is_missing_in_a_connection_that_goes_on() {
    let said = |number| Said {
        by: "1.0.1".into(),
        number,
        span: span(number * 10, number * 10 + 5),
    };
    let all: Vec<Said> = (1..=4).map(said).collect();
    let judged = |numbers: &[u64], whole| {
        let messages = numbers.iter().map(|n| said(*n).text()).collect();
        channels::judge(&all, &[Heard::new(0, 15, messages, whole)])
    };
    assert_eq!(judged(&[2, 3, 4], true), None);
    assert_eq!(judged(&[1, 2, 3, 4], true), None);
    assert_eq!(judged(&[2, 3], false), None, "the connection has ended");
    for (numbers, whole) in [
        (&[2, 3][..], true),
        (&[2, 4], false),
        (&[2, 3, 3, 4], true),
        (&[3, 2, 4], true),
        (&[2, 3, 4, 9], true),
    ] {
        assert!(judged(numbers, whole).is_some(), "{numbers:?}");
    }
}
