//! `rackmem repro`.

use crate::process::{TempFile, run, stderr, stdout};
use serde_json::Value;

fn object(more: &[&str]) -> (Value, String) {
    let page = TempFile::new("");
    let output = run(&[&["--json", "repro", "--page", page.path()], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let told = serde_json::from_str(&stdout(&output)).expect("one object");
    (told, page.text())
}

#[test]
fn a_figure_is_modelled_and_put_on_a_page() {
    let (told, page) = object(&["--figure", "sabres-8,concordia-16", "--only", "model"]);
    let [sabres, absent] = [0, 1].map(|nth| &told["figures"][nth]);
    assert_eq!(sabres["figure"], "sabres-8");
    assert_eq!(sabres["model"]["claims"].as_array().map(Vec::len), Some(6));
    assert_eq!(absent["model"], Value::Null);
    for id in ["sabres-8", "concordia-16"] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("<polyline") && page.ends_with("</html>\n"));
}

/// Counts are the same on every machine.
#[test]
fn a_figure_is_measured_here() {
    let (told, page) = object(&["--figure", "soul-9", "--only", "here"]);
    let soul = &told["figures"][0];
    let counts = soul["here"].as_array().expect("a list");
    assert_eq!((counts.len(), &soul["model"]), (4, &Value::Null));
    for (count, expected) in counts.iter().zip([1.0, 5.0, 3.0]) {
        assert_eq!(count["ours"]["least"], expected, "{count}");
        assert_eq!(count["verdict"], "agrees", "{count}");
    }
    assert!(page.contains("This machine, beside the paper"));
}

#[test]
fn figures_are_listed_and_others_refused() {
    let listed = stdout(&run(&["repro", "--list"]));
    assert!(
        listed.contains("concordia-9") && listed.contains("bi-10"),
        "{listed}"
    );
    let refused = run(&["repro", "--figure", "concordia-99"]);
    assert_eq!(refused.status.code(), Some(2));
    let unwritable = run(&[
        "repro",
        "--page",
        "/nowhere/page.html",
        "--figure",
        "soul-8",
    ]);
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(
        stderr(&unwritable).contains("--page"),
        "{}",
        stderr(&unwritable)
    );
}
