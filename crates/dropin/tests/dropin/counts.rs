//! What several programs count together is exact, wherever they run.

use crate::support::{ALL, Files, Where, compiled, is_there, python};

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
            program.code(),
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

/// The same wherever programs run.
fn everywhere(name: &str, programs: usize, words: &[&str], rounds: usize, told: &str) {
    for place in ALL {
        all(name, place, programs, words, rounds, told);
    }
}

#[test]
fn a_mutex_and_an_atomic_count() {
    let Some(program) = compiled("counter.c", &[]) else {
        return;
    };
    let (programs, rounds) = (3, 400);
    let count = programs * rounds;
    let told = format!("{count} {count}");
    let words = &[program.to_str().unwrap()];
    everywhere("counter", programs, words, rounds, &told);
}

#[test]
fn lmdb_counts() {
    let Some(program) = compiled("lmdb.c", &["-llmdb"]) else {
        return;
    };
    let (programs, rounds) = (2, 200);
    let told = (programs * rounds).to_string();
    let words = &[program.to_str().unwrap()];
    everywhere("lmdb", programs, words, rounds, &told);
}

#[test]
fn boost_interprocess_takes_turns() {
    let Some(program) = compiled("interprocess.cpp", &["-lrt"]) else {
        return;
    };
    let (programs, rounds) = (2, 200);
    let sum = programs * rounds;
    let told = format!("{sum} {sum}");
    let words = &[program.to_str().unwrap()];
    everywhere("interprocess", programs, words, rounds, &told);
}

#[test]
fn numpy_arrays_in_shared_memory() {
    let Some(python) = python() else {
        return;
    };
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/arrays.py");
    let (programs, rounds, elements) = (2, 20, 1 << 15);
    let turns = programs * rounds;
    let told = format!("{turns} {}", turns * (elements - 64));
    let words = &[python.to_str().unwrap(), program];
    everywhere("arrays", programs, words, rounds, &told);
}

#[test]
fn every_kind_of_object_excludes_and_waits() {
    let Some(program) = compiled("objects.c", &[]) else {
        return;
    };
    for place in [
        Where::Hosts,
        Where::Shm,
        Where::Hosts,
        Where::Udp,
        Where::Hosts,
    ] {
        let (programs, rounds) = (3, 50);
        let told = vec![(programs * rounds).to_string(); 5].join(" ");
        all(
            "objects",
            place,
            programs,
            &[program.to_str().unwrap()],
            rounds,
            &told,
        );
    }
}

/// Runs a program as a node, to its end: what it prints.
fn told(files: &Files, node: usize, words: &[&str]) -> String {
    let ended = files.start(node, words).wait();
    assert_eq!(ended.code(), Some(0), "{words:?}: {ended:#?}");
    ended.out.trim().into()
}

/// What one node has written by `fopen`, `std::ofstream` and `sendmsg` another reads.
#[test]
fn streams_renames_and_messages_go_from_node_to_node() {
    for (source, options) in [("streams.c", &[][..]), ("streams.cpp", &["-std=c++17"])] {
        let Some(program) = compiled(source, options) else {
            continue;
        };
        let program = program.to_str().unwrap();
        for place in [Where::Shm, Where::Hosts] {
            let Some(files) = Files::new("streams", place, 2) else {
                continue;
            };
            assert_eq!(told(&files, 1, &[program, "writes"]), "written");
            assert_eq!(told(&files, 2, &[program, "reads"]), "one 2 three end");
        }
    }
}

/// A file's region is replaced while others write to it, and its end moves while they append.
#[test]
fn what_several_programs_write_to_a_file_that_grows_is_in_it() {
    let Some(program) = compiled("growing.c", &[]) else {
        return;
    };
    let (programs, rounds) = (3, 150);
    let words = &[program.to_str().unwrap()];
    let told = (programs * rounds).to_string();
    everywhere("growing", programs, words, rounds, &told);
}

/// They take no more of their home's memory than they are long, but for a rest.
#[test]
fn small_files_take_little_memory() {
    let Some(program) = compiled("small.c", &[]) else {
        return;
    };
    let Some(files) = Files::new("small", Where::Udp, 1) else {
        return;
    };
    assert_eq!(told(&files, 1, &[program.to_str().unwrap()]), "200000");
}

/// Rollback journals, which are files that come and go, and a WAL, whose index is mapped.
#[test]
fn sqlite_counts() {
    if !is_there("sqlite3", "sqlite3") {
        return;
    }
    for (place, journal) in [(Where::Hosts, "wal"), (Where::Udp, "delete")] {
        let Some(files) = Files::new("sqlite", place, 2) else {
            continue;
        };
        let sql = |sql: &str| -> Vec<String> {
            let words = [
                "sqlite3",
                "-cmd",
                ".timeout 60000",
                "/dev/shm/rack.sqlite",
                sql,
            ];
            words.map(String::from).into()
        };
        let run = |node: usize, text: &str| {
            let words = sql(text);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            told(&files, node, &words)
        };
        let made = run(
            1,
            &format!("pragma journal_mode={journal}; create table t(a integer);"),
        );
        assert_eq!(made, journal);
        let rounds = 50;
        let inserts: String = (0..rounds)
            .map(|n| format!("insert into t values({n});"))
            .collect();
        std::thread::scope(|scope| {
            for node in [1, 2] {
                let (run, inserts) = (&run, &inserts);
                scope.spawn(move || run(node, inserts));
            }
        });
        let sum = 2 * (rounds * (rounds - 1) / 2);
        let all = run(2, "select count(*), sum(a) from t; pragma integrity_check;");
        assert_eq!(
            all,
            format!("{}|{sum}\nok", 2 * rounds),
            "{place:?} {journal}"
        );
    }
}

/// A database file of Kyoto Cabinet, which one process at a time has open, goes from node to node.
#[test]
fn kyoto_cabinet_goes_from_node_to_node() {
    if !is_there("kchashmgr", "kyotocabinet-utils") {
        return;
    }
    let Some(files) = Files::new("kyoto", Where::Udp, 2) else {
        return;
    };
    for (manager, path) in [
        ("kchashmgr", "/dev/shm/rack.kyoto.kch"),
        ("kctreemgr", "/dev/shm/rack.kyoto.kct"),
    ] {
        told(&files, 1, &[manager, "create", path]);
        for (node, value) in [(1, "one"), (2, "two")] {
            told(&files, node, &[manager, "set", path, value, value]);
        }
        assert_eq!(told(&files, 1, &[manager, "get", path, "two"]), "two");
        assert_eq!(told(&files, 2, &[manager, "get", path, "one"]), "one");
    }
}
