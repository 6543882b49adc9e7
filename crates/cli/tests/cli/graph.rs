//! `rackmem graph`.

use crate::process::{Running, TempFile, run, skip, stderr, stdout};
use serde_json::Value;
use std::process::Command;

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

#[test]
fn processes_find_what_one_thread_finds() {
    let cases = [
        (vec!["pagerank", "--nodes", "3"], "udp", "switch"),
        (vec!["components", "--nodes", "2"], "shm", "switch"),
        (
            vec!["sssp", "--from", "0", "--nodes", "2"],
            "udp",
            "home-only",
        ),
    ];
    for (args, fabric, mode) in cases {
        let more = ["--rmat", "7", "--processes", "--compare"];
        let rack = ["--fabric", fabric, "--mode", mode, "--bound", "50ms"];
        let told = object(&[&args[..], &more, &rack].concat());
        let engines = told["engines"].as_array().expect("a list");
        assert_eq!(engines.len(), 4, "{told}");
        for engine in engines {
            let agreement = &engine["agreement"];
            let is_exact = engine["engine"] != "bi-periodic" || args[0] != "pagerank";
            assert!(
                agreement["same_bits"] == true || !is_exact,
                "{args:?}: {engine}"
            );
            let difference = agreement["largest_difference"].as_f64();
            assert!(difference < Some(1e-9), "{args:?}: {engine}");
            assert!(engine["packets"].as_u64() > Some(0), "{args:?}: {engine}");
        }
    }
}

#[test]
fn what_exists_in_one_process_only_is_refused() {
    let args = ["graph", "components", "--rmat", "3", "--processes"];
    let output = run(&[&args[..], &["--mode", "directory"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("one process only"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_picture_has_a_line_an_engine() {
    let file = TempFile::new("");
    object(&[
        "pagerank",
        "--rmat",
        "5",
        "--compare",
        "--picture",
        file.path(),
    ]);
    let picture = file.text();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<polyline").count(), 4);
    assert!(picture.contains("bi-on-demand: "), "{picture}");
}

#[test]
fn networkx_finds_the_same() {
    let python = Command::new("python3")
        .args(["-c", "import networkx"])
        .output();
    if !python.is_ok_and(|python| python.status.success()) {
        skip("python3 has no networkx (pip install networkx)");
        return;
    }
    for program in [&["pagerank"][..], &["sssp", "--from", "3"], &["components"]] {
        let told = object(&[program, &["--rmat", "8", "--vs", "networkx"]].concat());
        let outside = &told["outside"];
        let difference = outside["largest_difference"].as_f64();
        assert!(difference < Some(1e-8), "{program:?}: {outside}");
        let name = outside["name"].as_str().expect("a name");
        assert!(name.starts_with("networkx"), "{outside}");
    }
}

#[test]
fn a_process_that_dies_ends_all() {
    let args = ["graph", "pagerank", "--rmat", "6", "--tolerance", "0"];
    let more = ["--processes", "--nodes", "2", "--no-check"];
    let mut graph = Running::start(&[&args[..], &more].concat());
    // The switch and two nodes.
    graph.until("all processes run", |it| it.children().len() == 3);
    let last = graph.children().into_iter().max().expect("a process");
    let killed = Command::new("kill")
        .args(["-KILL", &last.to_string()])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert_eq!(graph.ended(), Some(1));
}
