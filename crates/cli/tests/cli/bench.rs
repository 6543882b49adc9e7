//! Every bench gives a report of the documented form.

use crate::process::{TempFile, run, stderr, stdout};
use serde_json::Value;

fn report(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("one object")
}

#[test]
fn benches_report_cases() {
    let benches: [&[&str]; 11] = [
        &[
            "objects",
            "--size",
            "64,2K",
            "--duration",
            "5",
            "--runs",
            "1",
        ],
        &[
            "bounded",
            "--sets",
            "4K",
            "--nodes",
            "2",
            "--duration",
            "20",
            "--runs",
            "2",
        ],
        &["hit", "--duration", "20", "--runs", "1"],
        &["mapped", "--scan", "1M", "--duration", "10", "--runs", "1"],
        &["miss", "--duration", "20ms", "--runs", "2"],
        &["evict", "--set", "110", "--duration", "20ms", "--runs", "1"],
        &[
            "micro",
            "--nodes",
            "2",
            "--sharing",
            "100",
            "--duration",
            "50",
            "--modes",
            "switch",
        ],
        &[
            "copies",
            "--fabric",
            "inline",
            "--operations",
            "20",
            "--only-paths",
        ],
        &[
            "lock",
            "--parts",
            "cached,idle,hand-over,counted,contended",
            "--fabric",
            "inline",
            "--rounds",
            "10",
            "--nodes",
            "2",
            "--reads",
            "50",
            "--duration",
            "10",
        ],
        &[
            "kv",
            "--vs",
            "nothing",
            "--nodes",
            "2",
            "--keys",
            "1000",
            "--duration",
            "50",
        ],
        &[
            "kv",
            "--vs",
            "nothing",
            "--nodes",
            "1",
            "--keys",
            "1000",
            "--duration",
            "50",
        ],
    ];
    for bench in benches {
        let told = report(&[&["--json", "bench"], bench].concat());
        assert_eq!(told["bench"], bench[0]);
        assert!(told["commit"].is_string() && told["machine"].is_string());
        assert!(told["version"].is_string() && told["options"]["runs"].is_string());
        // What they say, or once.
        let told_runs = bench.iter().position(|word| *word == "--runs");
        let runs: u64 = told_runs.map_or(1, |at| bench[at + 1].parse().expect("a number"));
        assert_eq!(
            (&told["partial"], &told["runs"]),
            (&false.into(), &runs.into())
        );
        let cases = told["cases"].as_array().expect("a list");
        assert!(cases.len() > 1, "{told}");
        for case in cases {
            assert!(
                case["case"].is_string() && case["unit"].is_string(),
                "{case}"
            );
            assert!(case["value"].is_number(), "{case}");
        }
    }
}

#[test]
fn a_store_of_processes_says_what_an_operation_costs() {
    let history = TempFile::new("");
    let args = ["--json", "bench", "kv", "--processes", "2", "--keys", "200"];
    let more = [
        "--vs",
        "nothing",
        "--duration",
        "100",
        "--ship",
        "--history",
    ];
    let told = report(&[&args[..], &more, &[history.path()]].concat());
    let cases = told["cases"].as_array().expect("a list");
    let value = |name: &str| {
        let case = cases.iter().find(|case| case["case"] == name);
        case.and_then(|case| case["value"].as_f64()).expect(name)
    };
    let a = "rackmem/udp/processes-2-no-ship/ycsb-a/connections-8";
    assert!(value(a) > 0.0 && value(&format!("{a}/p99")) >= value(&format!("{a}/p50")));
    // Half of the operations are writes of keys that the other node writes as well.
    assert!(value(&format!("{a}/packets")) > 0.1);
    assert!(value(&format!("{a}/system-calls")) > value(&format!("{a}/packets")));
    assert!(value(&format!("{a}/server-calls")) > 1.0);
    assert!(value(&format!("{a}/wake-ups")) > 0.0);
    // And a rack whose servers send commands: the record is of both.
    let ships = "rackmem/udp/processes-2";
    assert!(value(&format!("{ships}/ycsb-a/connections-8")) > 0.0);
    assert!(value(&format!("{ships}/recorded")) > 0.0);
    let judged = run(&["history", "check", history.path()]);
    assert!(judged.status.success(), "{}", stderr(&judged));
}

#[test]
fn the_simulation_says_what_the_paper_says_and_what_it_assumes() {
    let args = ["--json", "bench", "micro", "--sim"];
    let told = report(&[&args[..], &["--figure", "2,10", "--scale", "1024"]].concat());
    assert_eq!(
        (&told["bench"], &told["seed"]),
        (&"micro-sim".into(), &1.into())
    );
    let list = |name: &str| told[name].as_array().expect("a list").clone();
    for case in list("cases") {
        assert!(
            case["case"].is_string() && case["value"].is_number(),
            "{case}"
        );
    }
    for claim in list("claims") {
        let verdict = claim["verdict"].as_str().expect("a word");
        assert!(["agrees", "near", "differs"].contains(&verdict), "{claim}");
    }
    assert!(list("parameters").iter().all(|row| row["from"].is_string()));
    assert!(told["speed"]["packets"].as_u64() > Some(0));
}

#[test]
fn what_is_simulated_is_not_measured() {
    for args in [&["--sim", "--threads", "2"][..], &["--figure", "9"]] {
        let output = run(&[&["bench", "micro"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

/// The same options for every bench.
#[test]
fn every_bench_takes_runs_and_a_duration() {
    let text = stdout(&run(&["bench", "--help"]));
    let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let benches = lines.take_while(|line| line.starts_with("  "));
    let benches: Vec<&str> = benches
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(benches.len() >= 9, "{text}");
    for bench in benches {
        let help = stdout(&run(&["bench", bench, "--help"]));
        for option in ["--runs <N>", "--duration <TIME>", "--json"] {
            assert!(help.contains(option), "{bench}: no {option} in\n{help}");
        }
        for wrong in [["--runs", "0"], ["--duration", "0"], ["--duration", "2h"]] {
            let output = run(&["bench", bench, wrong[0], wrong[1]]);
            assert_eq!(output.status.code(), Some(2), "{bench} {wrong:?}");
        }
    }
}

#[test]
fn a_median_is_of_as_many_runs_as_were_asked_for() {
    let told = report(&[
        "--json",
        "bench",
        "miss",
        "--duration",
        "10ms",
        "--runs",
        "3",
    ]);
    assert_eq!(
        (&told["runs"], &told["partial"]),
        (&3.into(), &false.into())
    );
    let output = run(&["bench", "miss", "--duration", "10ms", "--runs", "2"]);
    let text = stdout(&output);
    let mut lines = text.lines();
    let first = lines.next().expect("a header");
    let version = format!("miss · rackmem {}, commit ", env!("CARGO_PKG_VERSION"));
    assert!(
        first.starts_with(&version) && first.contains(env!("RACKMEM_COMMIT")),
        "{first}"
    );
    let second = lines.next().expect("the options");
    for option in ["runs=2", "duration=10ms", "fabric=inline"] {
        assert!(second.contains(option), "{second}");
    }
}

#[test]
fn a_history_is_of_one_run() {
    let file = TempFile::new("");
    let args = ["bench", "micro", "--runs", "2", "--history", file.path()];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("records one run"));
    let output = run(&["bench", "loss", "--history", "/no/such/folder/h"]);
    assert!(stderr(&output).contains("/no/such/folder/h"));
}
