//! The checker against histories whose answer is known: written by hand, taken from a working
//! register, corrupted on purpose, and small enough to try every order.

mod support;

use rackmem_sim::history::{self, Call, Operation, Outcome, Reply};
use rackmem_sim::linear::{Counterexample, Limits, Verdict, check};
use support::{PLAIN, Shape, apply, atomic_history, oracle, rich_call};

/// `client invoke return op`, where a return of `?` makes the outcome unknown.
fn parse(text: &str) -> Vec<Operation> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [client, invoke, returned, op, ref rest @ ..] = words[..] else {
            panic!("{line}");
        };
        let (outcome, returned) = match returned {
            "?" => ("unknown", String::new()),
            at => ("ok", format!("\"return\":{at},")),
        };
        let fields = rest.join(",");
        let comma = if fields.is_empty() { "" } else { "," };
        format!(
            r#"{{"client":{client},"key":"k","op":"{op}","invoke":{invoke},{returned}"outcome":"{outcome}"{comma}{fields}}}"#
        )
    };
    let lines: Vec<String> = text.trim().lines().map(line).collect();
    history::read(lines.join("\n").as_bytes()).unwrap()
}

fn judge(history: &[Operation]) -> bool {
    match check(history, Limits::default()) {
        Verdict::Linearizable(_) => true,
        Verdict::Violation(_) => false,
        Verdict::GaveUp { .. } => panic!("gave up on {} operations", history.len()),
    }
}

fn violation(history: &[Operation]) -> Counterexample {
    match check(history, Limits::default()) {
        Verdict::Violation(counterexample) => *counterexample,
        other => panic!("{other:?}"),
    }
}

#[test]
fn histories_with_an_order() {
    let good = [
        "0 0 10 get",
        "0 0 10 set \"value\":1 \n 1 5 6 get \n 1 7 8 get \"result\":1",
        // Two overlapping writes are seen in either order, if in the same by all.
        "0 0 10 set \"value\":1 \n 1 0 10 set \"value\":2 \n 2 20 30 get \"result\":1",
        "0 0 10 set \"value\":1 \n 1 0 10 set \"value\":2 \n 2 20 30 get \"result\":2",
        // Touching intervals overlap.
        "0 0 10 set \"value\":1 \n 1 10 20 get",
        // A write of unknown outcome is seen late, or never.
        "0 0 ? set \"value\":1 \n 1 10 20 get \n 1 30 40 get \"result\":1",
        "0 0 ? set \"value\":1 \n 1 10 20 get \n 1 30 40 get",
        "0 0 9 incr \"value\":2 \"result\":2 \n 1 0 9 incr \"value\":3 \"result\":5",
        "0 0 9 set \"value\":\"a\" \n 1 20 30 cas \"expected\":\"a\" \"value\":\"b\" \"result\":true \n 2 40 50 del \"result\":true \n 2 51 52 del \"result\":false",
        "0 0 9 append \"value\":\"ab\" \"result\":2 \n 0 10 19 append \"value\":\"c\" \"result\":3 \n 0 20 29 swap \"value\":\"z\" \"result\":\"abc\"",
    ];
    for text in good {
        assert!(judge(&parse(text)), "{text}");
    }
    assert!(judge(&[]));
}

#[test]
fn histories_without_an_order() {
    let bad = [
        "0 0 10 get \"result\":1",
        // A stale read after the write returned.
        "0 0 10 set \"value\":1 \n 1 11 20 get",
        // Seen, and then unseen.
        "0 0 30 set \"value\":1 \n 1 1 5 get \"result\":1 \n 2 6 9 get",
        // Two readers disagree on the order of two writes.
        "0 0 10 set \"value\":1 \n 1 0 10 set \"value\":2 \n 2 20 30 get \"result\":1 \n 3 31 40 get \"result\":2",
        // An unknown write happens once, not twice.
        "0 0 ? set \"value\":1 \n 1 1 2 get \"result\":1 \n 1 3 4 set \"value\":2 \n 1 5 6 get \"result\":1",
        // Seen before it was invoked.
        "0 10 ? set \"value\":1 \n 1 1 5 get \"result\":1",
        // A lost update.
        "0 0 9 incr \"value\":1 \"result\":1 \n 1 0 9 incr \"value\":1 \"result\":1",
        "0 0 9 cas \"value\":\"a\" \"result\":true \n 1 0 9 cas \"value\":\"b\" \"result\":true",
        "0 0 9 set \"value\":\"a\" \n 0 10 19 del \"result\":false",
        "0 0 9 set \"value\":\"a\" \n 0 10 19 append \"value\":\"b\" \"result\":1",
    ];
    for text in bad {
        assert!(!judge(&parse(text)), "{text}");
    }
}

#[test]
fn an_operation_that_failed_has_no_effect() {
    let mut history = parse("0 0 10 set \"value\":1 \n 1 20 30 get");
    assert!(!judge(&history));
    history[0].outcome = Outcome::Fail { at: 10 };
    assert!(judge(&history));
}

#[test]
fn keys_are_independent() {
    let mut history = parse("0 0 10 set \"value\":1 \n 1 20 30 get");
    history[1].key = "other".into();
    assert!(judge(&history));
}

#[test]
fn histories_of_atomic_registers_are_accepted() {
    let shapes = [
        PLAIN,
        Shape { values: 2, ..PLAIN },
        Shape {
            rich: true,
            values: 3,
            ..PLAIN
        },
        Shape {
            one_unknown_in: 20,
            ..PLAIN
        },
        Shape {
            one_unknown_in: 20,
            values: 3,
            ..PLAIN
        },
        Shape {
            one_unknown_in: 40,
            rich: true,
            operations: 200,
            ..PLAIN
        },
        Shape {
            clients: 32,
            ..PLAIN
        },
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        for seed in 0..40 {
            let history = atomic_history(&mut fastrand::Rng::with_seed(seed), shape);
            assert!(judge(&history), "shape {number}, seed {seed}");
        }
    }
}

#[test]
fn one_stale_read_is_found_and_shown_in_a_few_lines() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut history = atomic_history(&mut rng, PLAIN);
        let corrupted = make_stale(&mut history, &mut rng);
        let shown = violation(&history);
        assert_eq!(shown.key, history[corrupted].key, "seed {seed}");
        assert!(
            shown.operations.contains(&history[corrupted]),
            "seed {seed}"
        );
        assert!(shown.operations.len() <= 24, "seed {seed}\n{shown}");
        // What is shown contradicts itself, with the value before it left open: a write of any
        // value that overlaps nothing must not reconcile it.
        if !shown.from_start {
            assert!(!reconciled_by_some_start(&shown), "seed {seed}\n{shown}");
        }
    }
}

/// Lets a late read return a value that had been overwritten long before.
fn make_stale(history: &mut [Operation], rng: &mut fastrand::Rng) -> usize {
    loop {
        let late = rng.usize(history.len() / 2..history.len());
        let is_get = history[late].call == Call::Get;
        let key = history[late].key.clone();
        let old = history.iter().take(history.len() / 4).rev();
        let old = old.clone().find_map(|o| match &o.call {
            Call::Set { value } if o.key == key => Some(value.clone()),
            _ => None,
        });
        if let (true, Some(value), Some(at)) = (is_get, old, history[late].returned()) {
            let reply = Reply::Text(value);
            history[late].outcome = Outcome::Ok { at, reply };
            return late;
        }
    }
}

fn reconciled_by_some_start(shown: &Counterexample) -> bool {
    let values = shown.operations.iter().filter_map(|o| match &o.outcome {
        Outcome::Ok {
            reply: Reply::Text(value),
            ..
        } => Some(value.clone()),
        _ => None,
    });
    let mut starts: Vec<Option<String>> = values.map(Some).collect();
    starts.push(None);
    let zero = 1 << 20;
    starts.into_iter().any(|start| {
        let mut history: Vec<Operation> = shown.operations.clone();
        // What was under way at the start of the stretch may have happened before it.
        for operation in &mut history {
            operation.invoke += zero;
            if let Outcome::Ok { at, .. } = &mut operation.outcome {
                *at += zero;
            }
        }
        if let Some(value) = start {
            history.push(Operation {
                client: 0,
                key: shown.key.clone(),
                call: Call::Set { value },
                invoke: 0,
                outcome: Outcome::Ok {
                    at: 1,
                    reply: Reply::Nil,
                },
            });
        }
        judge(&history)
    })
}

/// Random operations with random answers, mostly wrong: the verdict is that of trying every order.
#[test]
fn small_histories_are_judged_as_by_trying_every_order() {
    let mut accepted = 0;
    const ROUNDS: u64 = 30_000;
    for seed in 0..ROUNDS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let history = noise(&mut rng);
        let expected = oracle(&history);
        assert_eq!(judge(&history), expected, "seed {seed}: {history:#?}");
        accepted += u64::from(expected);
    }
    // Neither answer is rare, so that neither is tested in vain.
    assert!(
        accepted > ROUNDS / 10 && accepted < ROUNDS * 9 / 10,
        "{accepted}"
    );
}

fn noise(rng: &mut fastrand::Rng) -> Vec<Operation> {
    let count = rng.usize(1..7);
    let span = rng.u64(4..40);
    // Answers come from a register that does the operations in the order they are made up, which
    // is an order that their times may forbid.
    let mut register = None;
    let mut history: Vec<Operation> = (0..count)
        .map(|client| {
            let call = rich_call(rng, 3, client);
            let invoke = rng.u64(0..span);
            let at = invoke + rng.u64(0..12);
            let reply = apply(&mut register, &call);
            let outcome = match (reply, rng.u32(0..5)) {
                (_, 0) => Outcome::Unknown,
                (Some(reply), _) => Outcome::Ok { at, reply },
                (None, _) => Outcome::Fail { at },
            };
            Operation {
                client: client as u32,
                key: "k".into(),
                call,
                invoke,
                outcome,
            }
        })
        .collect();
    rng.shuffle(&mut history);
    history
}

#[test]
fn a_violation_among_many_unknown_outcomes_is_found() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let shape = Shape {
            one_unknown_in: 10,
            ..PLAIN
        };
        let mut history = atomic_history(&mut rng, shape);
        let corrupted = make_stale(&mut history, &mut rng);
        let shown = violation(&history);
        assert!(shown.operations.contains(&history[corrupted]), "{shown}");
    }
}

#[test]
fn too_hard_is_said_and_not_guessed() {
    // Blind increments of unknown outcome by powers of two, and a read of a sum they do not reach.
    let mut text: Vec<String> = (0..24)
        .map(|bit| format!("{bit} 0 ? incr \"value\":{}", 1 << bit))
        .collect();
    text.push(format!("99 10 20 get \"result\":{}", (1 << 24) + 1));
    let history = parse(&text.join("\n"));
    let limits = Limits {
        configurations: 1000,
    };
    let verdict = check(&history, limits);
    let Verdict::GaveUp {
        configurations,
        operations,
        ..
    } = verdict
    else {
        panic!("{verdict}");
    };
    assert!(configurations <= 1001);
    assert_eq!(operations, 25);
}

/// With next to nothing to spend the whole is never searched, only short stretches of it,
/// which must not accuse a register that works.
#[test]
fn stretches_of_good_histories_are_never_accused() {
    let shape = Shape {
        operations: 600,
        rich: true,
        one_unknown_in: 30,
        keys: 1,
        ..PLAIN
    };
    let limits = Limits { configurations: 1 };
    for seed in 0..10 {
        let values = if seed % 2 == 0 { 3 } else { u64::MAX };
        let shape = Shape { values, ..shape };
        let history = atomic_history(&mut fastrand::Rng::with_seed(seed), shape);
        let verdict = check(&history, limits);
        assert!(
            matches!(verdict, Verdict::GaveUp { .. }),
            "seed {seed}: {verdict}"
        );
    }
}

#[test]
fn a_counterexample_reads_well() {
    let history = parse(
        "0 0 10 set \"value\":1 \n 1 20 30 set \"value\":2 \n 2 40 50 get \"result\":2 \n 1 60 75 get \"result\":1",
    );
    let text = violation(&history).to_string();
    let expected = "\
key \"k\": no order explains these 2 operations, whatever the value before them
    client      invoked     returned  operation (times in ns)
         2           +0          +10  get -> \"2\"
  >      1          +20          +35  get -> \"1\"
";
    assert_eq!(text, expected);
}

#[test]
fn a_hundred_thousand_operations_take_a_few_steps_each() {
    let spread = Shape {
        operations: 100_000,
        keys: 100,
        ..PLAIN
    };
    let hot = Shape {
        operations: 100_000,
        keys: 1,
        clients: 16,
        ..PLAIN
    };
    for (name, shape) in [("spread", spread), ("hot", hot)] {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut history = atomic_history(&mut rng, shape);
        // Time depends on the machine; configurations do not.
        let few = Limits {
            configurations: 2 * shape.operations,
        };
        let Verdict::Linearizable(summary) = check(&history, few) else {
            panic!("{name}: not accepted within {few:?}");
        };
        make_stale(&mut history, &mut rng);
        let Verdict::Violation(shown) = check(&history, few) else {
            panic!("{name}: not refuted within {few:?}");
        };
        eprintln!("{name}: accepted after {}\n{shown}", summary.configurations);
    }
}

#[test]
fn many_clients_on_one_key_are_no_trouble() {
    let hot = Shape {
        operations: 20_000,
        keys: 1,
        ..PLAIN
    };
    let shapes = [
        Shape { clients: 50, ..hot },
        Shape {
            clients: 50,
            values: 3,
            ..hot
        },
        Shape {
            clients: 16,
            rich: true,
            operations: 4_000,
            ..hot
        },
        Shape {
            clients: 16,
            one_unknown_in: 100,
            ..hot
        },
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        for seed in 0..2 {
            let history = atomic_history(&mut fastrand::Rng::with_seed(seed), shape);
            assert!(judge(&history), "shape {number}, seed {seed}");
        }
    }
}

#[test]
fn a_counter_of_many_clients_is_no_trouble_and_a_lost_update_is_found() {
    let mut rng = fastrand::Rng::with_seed(5);
    let shape = Shape {
        clients: 50,
        operations: 20_000,
        keys: 1,
        ..PLAIN
    };
    let mut history = atomic_history(&mut rng, shape);
    // The order of the answers is one of the order of effects: count in it.
    let mut count = 0;
    for operation in &mut history {
        count += 1;
        operation.call = Call::Incr { by: 1 };
        if let Outcome::Ok { reply, .. } = &mut operation.outcome {
            *reply = Reply::Int(count);
        }
    }
    assert!(judge(&history));
    for operation in &mut history[15_000..] {
        if let Outcome::Ok {
            reply: Reply::Int(count),
            ..
        } = &mut operation.outcome
        {
            *count -= 1;
        }
    }
    let shown = violation(&history);
    assert!(shown.operations.len() < 100, "{shown}");
}
