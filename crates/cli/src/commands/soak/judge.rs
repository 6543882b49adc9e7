//! Judging what clients were told while members died.
//!
//! A run is cut into eras. An era begins and ends with a roll call: nobody writes, the rack is
//! whole, and every node is asked for every key. So all operations of an era have happened by its
//! end or never will, and eras are judged one by one. The death of a *node* may take a key's value
//! with it, once, at any time from then on; nothing else may: neither the death of a switch, nor
//! may an older value ever come back. In the language of histories: each death of a node is one DEL
//! of unknown outcome for every key.

use super::shape::Shape;
use rackmem_sim::history::{Call, Operation, Outcome, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::collections::BTreeMap;

/// The numbers of the clients that stand for what was there before and for deaths.
const BEFORE: u32 = u32::MAX;
const DEATH: u32 = u32::MAX - 1;

/// The keys' values at a roll call; those that are not there are left out.
pub type Values = BTreeMap<String, String>;

/// What is known of an era besides what its clients recorded.
pub struct Era<'a> {
    pub keys: &'a [String],
    /// At its beginning.
    pub before: &'a Values,
    /// When nodes were killed, on the clients' clock.
    pub deaths: &'a [u64],
}

/// Judges what the clients of an era recorded, its closing roll call included.
pub fn judge(era: &Era<'_>, recorded: Vec<Operation>) -> Verdict {
    let mut history = Vec::new();
    for (key, value) in era.before {
        history.push(Operation {
            client: BEFORE,
            key: key.clone(),
            call: Call::Set {
                value: value.clone(),
            },
            invoke: 0,
            outcome: Outcome::Ok {
                at: 0,
                reply: Reply::Nil,
            },
        });
    }
    for (&invoke, key) in era
        .deaths
        .iter()
        .flat_map(|at| era.keys.iter().map(move |key| (at, key)))
    {
        history.push(Operation {
            client: DEATH,
            key: key.clone(),
            call: Call::Del,
            invoke,
            outcome: Outcome::Unknown,
        });
    }
    let halves = recorded.iter().filter(|operation| {
        let unknown = matches!(operation.outcome, Outcome::Unknown);
        unknown && Shape::of(&operation.key).removes_first(&operation.call)
    });
    let halves = halves.map(|operation| Operation {
        call: Call::Del,
        ..operation.clone()
    });
    history.extend(halves);
    history.extend(recorded);
    check(&history, Limits::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(client: u32, call: Call, times: (u64, u64), reply: Reply) -> Operation {
        let (invoke, at) = times;
        Operation {
            client,
            key: "k".into(),
            call,
            invoke,
            outcome: Outcome::Ok { at, reply },
        }
    }

    fn set(value: &str, times: (u64, u64)) -> Operation {
        let value = value.into();
        done(1, Call::Set { value }, times, Reply::Nil)
    }

    fn get(value: Option<&str>, times: (u64, u64)) -> Operation {
        let reply = value.map_or(Reply::Nil, |value| Reply::Text(value.into()));
        done(2, Call::Get, times, reply)
    }

    fn holds(deaths: &[u64], history: Vec<Operation>) -> bool {
        let keys = ["k".to_owned()];
        let before = Values::from([("k".to_owned(), "first".to_owned())]);
        let era = Era {
            keys: &keys,
            before: &before,
            deaths,
        };
        judge(&era, history).is_linearizable()
    }

    #[test]
    fn an_old_value_is_never_excused_by_a_death() {
        let old = |deaths: &[u64]| {
            let history = vec![
                set("a", (10, 20)),
                set("b", (30, 40)),
                get(Some("a"), (60, 70)),
            ];
            holds(deaths, history)
        };
        assert!(!old(&[]));
        assert!(!old(&[50]));
        assert!(!old(&[50, 55]));
        assert!(!holds(
            &[50],
            vec![set("a", (10, 20)), get(Some("first"), (60, 70))]
        ));
    }

    #[test]
    fn a_key_may_be_lost_once_a_death_and_not_before() {
        let lost = |deaths: &[u64]| holds(deaths, vec![set("a", (10, 20)), get(None, (60, 70))]);
        assert!(!lost(&[]), "a switch's death takes nothing with it");
        assert!(lost(&[50]));
        assert!(!lost(&[80]), "lost before anybody died");
        let history = |last: Option<&str>| {
            vec![
                set("a", (10, 20)),
                get(None, (60, 70)),
                set("b", (80, 90)),
                get(last, (100, 110)),
            ]
        };
        assert!(holds(&[50], history(Some("b"))));
        assert!(!holds(&[50], history(None)), "lost twice");
        assert!(holds(&[50, 95], history(None)));
        let back = vec![
            set("a", (10, 20)),
            get(None, (60, 70)),
            get(Some("a"), (80, 90)),
        ];
        assert!(!holds(&[50], back), "came back from the dead");
    }

    #[test]
    fn nothing_survives_a_flush_and_what_comes_after_it_stays() {
        let flush = |times| done(3, Call::Clear, times, Reply::Nil);
        let told = |flushed, read, value| {
            let history = vec![set("a", (10, 20)), flush(flushed), get(value, read)];
            holds(&[], history)
        };
        assert!(told((30, 40), (50, 60), None));
        assert!(!told((30, 40), (50, 60), Some("a")));
        assert!(told((30, 40), (35, 60), Some("a")), "at the same time");
        assert!(!told((5, 8), (50, 60), None), "flushed before it was set");
    }

    #[test]
    fn nodes_that_disagree_at_the_roll_call_are_caught() {
        let history = vec![
            set("a", (10, 20)),
            get(Some("a"), (60, 70)),
            get(Some("first"), (61, 71)),
        ];
        assert!(!holds(&[50], history));
    }
}
