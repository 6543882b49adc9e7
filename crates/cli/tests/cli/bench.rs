//! Every bench gives a report of the documented form.

use crate::process::{run, stderr, stdout};
use serde_json::Value;

fn report(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("one object")
}

#[test]
fn benches_report_cases() {
    let benches: [&[&str]; 5] = [
        &["hit", "--duration", "20", "--runs", "1"],
        &["miss", "--rounds", "2"],
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
    ];
    for bench in benches {
        let told = report(&[&["--json", "bench"], bench].concat());
        assert_eq!(told["bench"], bench[0]);
        assert!(told["commit"].is_string() && told["machine"].is_string());
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
