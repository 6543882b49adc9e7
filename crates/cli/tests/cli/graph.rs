//! `rackmem graph`.

use crate::process::{TempFile, run, stderr, stdout};
use serde_json::Value;

fn object(args: &[&str]) -> Value {
    let output = run(&[&["graph", "--json"], args].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("one object")
}

#[test]
fn all_engines_are_compared_on_the_packages() {
    let told = object(&["pagerank", "--compare", "--nodes", "3", "--packages"]);
    assert!(told["graph"]["vertices"].as_u64() > Some(1000), "{told}");
    let engines = told["engines"].as_array().expect("a list");
    let names: Vec<_> = engines
        .iter()
        .filter_map(|it| it["engine"].as_str())
        .collect();
    assert_eq!(
        names,
        ["messages", "bi-periodic", "bi-on-demand", "coherent"]
    );
    for engine in engines {
        let (agreement, name) = (&engine["agreement"], &engine["engine"]);
        let is_exact = name != "bi-periodic";
        assert!(agreement["same_bits"] == is_exact || !is_exact, "{engine}");
        assert_eq!(agreement["more_steps"] == 0, is_exact, "{engine}");
        assert!(
            agreement["largest_difference"].as_f64() < Some(1e-9),
            "{engine}"
        );
        assert!(engine["packets"].as_u64() > Some(0), "{engine}");
        let top = engine["top"].as_array().expect("a list");
        assert_eq!(top.len(), 10);
        assert!(top.iter().any(|row| row["vertex"] == "libc6"), "{top:?}");
    }
}

#[test]
fn distances_and_components_of_a_file() {
    let edges = TempFile::new("# a road\na b 5\nb c 2\na c 9\n\nd e\n");
    let file = ["--edges", edges.path(), "--nodes", "2"];
    let told = object(&[&["sssp", "--from", "a"][..], &file].concat());
    let top = &told["engines"][0]["top"];
    assert_eq!(
        (&top[0]["vertex"], &top[0]["value"]),
        (&"c".into(), &7.0.into())
    );
    let told = object(&[&["components"][..], &file].concat());
    let top = &told["engines"][0]["top"];
    assert_eq!(
        (&top[0]["vertex"], &top[0]["value"]),
        (&"a".into(), &3.0.into())
    );
    assert_eq!(told["engines"][0]["summary"], "2 components");
}

#[test]
fn a_person_reads_tables() {
    let output = run(&["graph", "pagerank", "--rmat", "6", "--top", "3"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    for part in [
        "64 vertices",
        "R-MAT of scale 6, seed 1",
        "the same bits, as many steps",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn a_bad_line_is_named_with_what_to_do() {
    let edges = TempFile::new("a b\na b heavy\n");
    let cases = [
        (
            vec!["components", "--edges", edges.path()],
            "line 2: `heavy` is not a weight",
        ),
        (
            vec!["components", "--edges", "/nonexistent/edges"],
            "/nonexistent/edges: ",
        ),
        (
            vec!["sssp", "--from", "no-such", "--rmat", "3"],
            "no vertex `no-such`",
        ),
        (
            vec![
                "pagerank",
                "--engine",
                "bi-periodic",
                "--bound",
                "1ms",
                "--rmat",
                "3",
            ],
            "5ms is the least",
        ),
    ];
    for (args, cause) in cases {
        let output = run(&[&["graph"], &args[..]].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(
            text.contains(cause) && text.contains(" next: "),
            "{args:?}: {text}"
        );
    }
}
