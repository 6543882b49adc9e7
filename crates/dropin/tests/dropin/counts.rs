//! What several programs count together is exact, wherever they run.

use crate::support::{ALL, Files, Where, compiled, python};

/// Runs a program as so many nodes; each prints the same.
fn all(name: &str, place: Where, programs: usize, words: &[&str], rounds: usize, told: &str) {
    let Some(files) = Files::new(name, place, programs) else {
        return;
    };
    let start = |who: usize| {
        let (who_text, all, rounds) = (who.to_string(), programs.to_string(), rounds.to_string());
        let mut words = words.to_vec();
        words.extend([who_text.as_str(), all.as_str(), rounds.as_str()]);
        files.start(who + 1, &words)
    };
    let running: Vec<_> = (0..programs).map(start).collect();
    let ended: Vec<_> = running.into_iter().map(|program| program.wait()).collect();
    for (who, program) in ended.iter().enumerate() {
        assert_eq!(
            program.code,
            Some(0),
            "{place:?}, program {who}: {ended:#?}"
        );
        assert_eq!(
            program.out.trim(),
            told,
            "{place:?}, program {who}: {ended:#?}"
        );
    }
}

#[test]
fn a_mutex_and_an_atomic_count() {
    let Some(program) = compiled("counter.c", &[]) else {
        return;
    };
    for place in ALL {
        let (programs, rounds) = (3, 400);
        let count = programs * rounds;
        let told = format!("{count} {count}");
        all(
            "counter",
            place,
            programs,
            &[program.to_str().unwrap()],
            rounds,
            &told,
        );
    }
}

#[test]
fn lmdb_counts() {
    let Some(program) = compiled("lmdb.c", &["-llmdb"]) else {
        return;
    };
    for place in ALL {
        let (programs, rounds) = (2, 200);
        let told = (programs * rounds).to_string();
        all(
            "lmdb",
            place,
            programs,
            &[program.to_str().unwrap()],
            rounds,
            &told,
        );
    }
}

#[test]
fn boost_interprocess_takes_turns() {
    let Some(program) = compiled("interprocess.cpp", &["-lrt"]) else {
        return;
    };
    for place in ALL {
        let (programs, rounds) = (2, 200);
        let sum = programs * rounds;
        let told = format!("{sum} {sum}");
        all(
            "interprocess",
            place,
            programs,
            &[program.to_str().unwrap()],
            rounds,
            &told,
        );
    }
}

#[test]
fn numpy_arrays_in_shared_memory() {
    let Some(python) = python() else {
        return;
    };
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/arrays.py");
    for place in ALL {
        let (programs, rounds, words) = (2, 20, 1 << 15);
        let turns = programs * rounds;
        let told = format!("{turns} {}", turns * (words - 64));
        all(
            "arrays",
            place,
            programs,
            &[python.to_str().unwrap(), program],
            rounds,
            &told,
        );
    }
}
