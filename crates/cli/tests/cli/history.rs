//! Histories from the benches to the verdict.

use crate::process::{TempFile, run, stderr, stdout};
use serde_json::Value;

/// A file's verdict, and whether the exit code says that all is well.
fn judge(path: &str) -> (Value, bool) {
    let output = run(&["--json", "history", "check", path]);
    let told = serde_json::from_str(&stdout(&output)).expect("one object");
    (told, output.status.success())
}

#[test]
fn benches_record_histories_that_are_linearizable() {
    let benches: [(&[&str], &[&str]); 4] = [
        (
            &["micro", "--fabric", "udp"],
            &["--sharing", "100", "--modes", "switch,delegate"],
        ),
        (
            &["micro", "--fabric", "shm"],
            &["--sharing", "100", "--modes", "switch"],
        ),
        (&["kv", "--vs", "nothing"], &["--keys", "1000"]),
        (&["loss", "--runs", "1"], &["--nodes", "3"]),
    ];
    for (bench, options) in benches {
        let file = TempFile::new("");
        let common = ["--duration", "60", "--history", file.path()];
        let output = run(&[&["--json", "bench"], bench, options, &common].concat());
        assert!(output.status.success(), "{bench:?}: {}", stderr(&output));
        let (told, well) = judge(file.path());
        assert!(well, "{told}");
        assert_eq!(told["verdict"], "linearizable");
        assert!(told["ok"].as_u64() > Some(100), "{bench:?}: {told}");
        assert_eq!(told["cut_off_line"], Value::Null);
    }
}

const STALE: &str = r#"{"client":0,"op":"set","key":"a","value":"1","invoke":100,"return":180,"outcome":"ok"}
{"client":0,"op":"set","key":"a","value":"2","invoke":200,"return":280,"outcome":"ok"}
{"client":2,"op":"get","key":"b","invoke":200,"return":280,"outcome":"ok"}
{"client":1,"op":"get","key":"a","result":"1","invoke":300,"return":320,"outcome":"ok"}
"#;

#[test]
fn a_stale_read_is_shown_and_exits_with_one() {
    let file = TempFile::new(STALE);
    let (told, well) = judge(file.path());
    assert!(!well && told["verdict"] == "violation", "{told}");
    assert_eq!(told["detail"]["key"], "a");
    assert_eq!(
        told["detail"]["operations"].as_array().map(Vec::len),
        Some(2)
    );
    let output = run(&["history", "check", file.path()]);
    let text = stdout(&output);
    assert!(text.contains("get -> \"1\""), "{text}");
    assert!(stderr(&output).contains("next: "), "{}", stderr(&output));
}

#[test]
fn a_record_that_was_cut_off_is_judged_as_far_as_it_goes() {
    let file = TempFile::new(&STALE[..STALE.len() - 30]);
    let (told, well) = judge(file.path());
    assert!(well && told["verdict"] == "linearizable", "{told}");
    assert_eq!((&told["ok"], &told["cut_off_line"]), (&3.into(), &4.into()));
}

#[test]
fn what_is_no_history_is_an_error_with_the_line() {
    let file = TempFile::new("{\"client\":0}\n");
    let output = run(&["history", "check", file.path()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("line 1"), "{}", stderr(&output));
}

#[test]
fn a_history_that_says_nothing_is_an_error_and_not_linearizable() {
    let unanswered = r#"{"client":0,"op":"set","key":"a","value":"1","invoke":1,"outcome":"unknown"}
{"client":0,"op":"del","key":"a","invoke":3,"return":4,"outcome":"fail"}
"#;
    let cut_off = &STALE[..30];
    for text in ["", "\n\n", cut_off, unanswered] {
        let file = TempFile::new(text);
        let output = run(&["history", "check", file.path()]);
        assert_eq!(output.status.code(), Some(1), "{text:?}");
        let (said, error) = (stdout(&output), stderr(&output));
        assert!(!said.contains("linearizable"), "{text:?}: {said}");
        assert!(error.contains("nothing to judge"), "{text:?}: {error}");
        assert!(error.contains("next: record operations"), "{error}");
    }
}

#[test]
fn a_history_is_exported_as_events_of_processes() {
    let (file, to) = (TempFile::new(STALE), TempFile::new(""));
    let output = run(&[
        "--json",
        "history",
        "export",
        file.path(),
        "--to",
        to.path(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(
        (&told["operations"], &told["events"]),
        (&4.into(), &8.into())
    );
    let written = std::fs::read_to_string(to.path()).unwrap();
    let output = run(&["history", "export", file.path()]);
    assert_eq!(stdout(&output), written);
    let events: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event"))
        .collect();
    let last = &events[7];
    assert_eq!((&last["type"], &last["f"]), (&"ok".into(), &"read".into()));
    assert_eq!(last["value"], serde_json::json!(["a", "1"]));
    let missing = run(&["history", "export", "/nowhere/at/all"]);
    assert!(!missing.status.success() && stderr(&missing).contains("next: "));
}
