//! One side is killed, and the other goes on.

use crate::support::{ALL, Files, Running, Where, compiled, is_there};
use std::time::Duration;

#[test]
fn a_robust_mutex_says_so_and_locks_are_free() {
    let Some(program) = compiled("robust.c", &[]) else {
        return;
    };
    let program = program.to_str().unwrap();
    for place in ALL {
        let Some(files) = Files::new("robust", place, 2) else {
            continue;
        };
        let mut victim = files.start(1, &[program, "victim"]);
        let mut survivor = files.start(2, &[program, "survivor"]);
        assert_eq!(survivor.line().as_deref(), Some("kill it"), "{place:?}");
        kill(&files, &mut victim);
        let ended = survivor.wait();
        assert_eq!(ended.code(), Some(0), "{place:?}: {ended:#?}");
        assert_eq!(ended.out, "EOWNERDEAD\n42\n", "{place:?}: {ended:#?}");
    }
}

#[test]
fn a_process_that_ends_inside_is_as_good_as_dead() {
    let Some(program) = compiled("robust.c", &[]) else {
        return;
    };
    let program = program.to_str().unwrap();
    let Some(files) = Files::new("leaver", Where::Udp, 2) else {
        return;
    };
    let leaver = files.start(1, &[program, "leaver"]);
    let survivor = files.start(2, &[program, "survivor"]);
    let ended = [leaver.wait(), survivor.wait()];
    assert!(
        ended.iter().all(|program| program.code() == Some(0)),
        "{ended:#?}"
    );
    assert_eq!(ended[1].out, "kill it\nEOWNERDEAD\n42\n", "{ended:#?}");
}

fn kill(files: &Files, victim: &mut Running) {
    files.kill_all_of(1);
    victim.kill();
}

/// What a program has synced outlives it, as it was then; what it has not is as if it were not.
#[test]
fn what_is_synced_outlives_its_writer() {
    let Some(program) = compiled("synced.c", &[]) else {
        return;
    };
    for place in ALL {
        let Some(files) = Files::new("synced", place, 2) else {
            continue;
        };
        let start = |node, who| {
            let mut command = files.command(node, &program);
            command.arg(who).env("RACKMEM_FILES_KEEP", "unlock");
            Running::start(command)
        };
        let mut victim = start(1, "victim");
        assert_eq!(victim.line().as_deref(), Some("kill it"), "{place:?}");
        kill(&files, &mut victim);
        let ended = start(2, "survivor").wait();
        assert_eq!(ended.out, "1 0 whole\n", "{place:?}: {ended:#?}");
    }
}

/// Who makes a file longer has copied it, and dies before anything says so.
#[test]
fn what_is_synced_outlives_who_makes_the_file_longer() {
    let Some(program) = compiled("synced.c", &[]) else {
        return;
    };
    let program = program.to_str().unwrap();
    for place in ALL {
        let Some(files) = Files::new("grown", place, 2) else {
            continue;
        };
        let writer = files.start(2, &[program, "writer"]).wait();
        assert_eq!(writer.out, "written\n", "{place:?}: {writer:#?}");
        let mut victim = files.start(1, &[program, "grower"]);
        assert_eq!(victim.line().as_deref(), Some("kill it"), "{place:?}");
        kill(&files, &mut victim);
        let reader = files.start(2, &[program, "reader"]).wait();
        assert_eq!(reader.out, "whole\n", "{place:?}: {reader:#?}");
    }
}

/// The dead one's transactions are at home, and what it had begun is as if it had not.
#[test]
fn lmdb_goes_on_where_pages_are_kept() {
    let Some(program) = compiled("lmdb.c", &["-llmdb"]) else {
        return;
    };
    let program = program.to_str().unwrap();
    for place in [Where::Shm, Where::Hosts] {
        let Some(files) = Files::new("kept", place, 2) else {
            continue;
        };
        let start = |node, words: &[&str]| {
            let mut command = files.command(node, program);
            command.args(words).env("RACKMEM_FILES_KEEP", "unlock");
            Running::start(command)
        };
        // It never comes to its end.
        let mut victim = start(1, &["0", "2", "1000000", "sync"]);
        let survivor = start(2, &["1", "1", "400", "sync"]);
        // Somewhere in the middle: a transaction takes a millisecond or two.
        std::thread::sleep(Duration::from_millis(1500));
        kill(&files, &mut victim);
        let ended = survivor.wait();
        assert_eq!(ended.code(), Some(0), "{place:?}: {ended:#?}");
        let count: u64 = ended.out.trim().parse().unwrap();
        assert!(count >= 400, "{place:?}: {ended:#?}");
    }
}

/// What SQLite has said to be done is there after each kill of who did it, and the file is whole:
/// what was not synced yet is as it was before, as on a disk.
#[test]
fn sqlite_goes_on_after_each_kill() {
    if !is_there("sqlite3", "sqlite3") {
        return;
    }
    for journal in ["delete", "wal"] {
        let Some(files) = Files::new("sqlite-killed", Where::Udp, 2) else {
            continue;
        };
        let start = |node: usize, sql: &str| {
            let mut command = files.command(node, "sqlite3");
            command
                .args(["-cmd", ".timeout 60000", "-cmd", "pragma synchronous=full"])
                .args(["/dev/shm/rack.kills", sql])
                .env("RACKMEM_FILES_KEEP", "unlock");
            Running::start(command)
        };
        let made = start(
            2,
            &format!("pragma journal_mode={journal}; create table t(a blob);"),
        );
        assert_eq!(made.wait().out.trim(), journal);
        let mut before = 0;
        for kills in 1..=2 {
            // More than it comes to.
            let inserts = "insert into t values(randomblob(600)); select 'done';".repeat(1500);
            let mut victim = start(1, &inserts);
            for _ in 0..50 * kills {
                assert_eq!(victim.line().as_deref(), Some("done"), "{journal}");
            }
            kill(&files, &mut victim);
            let ended = start(2, "pragma integrity_check; select count(*) from t;").wait();
            let lines: Vec<&str> = ended.out.lines().collect();
            let count: u64 = match lines[..] {
                ["ok", count] => count.parse().unwrap(),
                _ => panic!("{journal}, kill {kills}: {ended:#?}"),
            };
            assert!(count >= before + 50 * kills, "{journal}: {count}");
            before = count;
        }
    }
}
