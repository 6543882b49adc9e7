//! Errors: one line of cause, one line of what to do next, and the right exit code.

use crate::process::{TempFile, run, stderr};
use std::net::TcpListener;

/// Runs what must fail with code 1, and holds its two lines to what they must say.
fn fails(args: &[&str], cause: &str, next: &str) {
    let output = run(args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{args:?}: {text}");
    assert!(
        lines[0].starts_with("error: ") && lines[0].contains(cause),
        "{args:?}: {text}"
    );
    assert!(
        lines[1].starts_with(" next: ") && lines[1].contains(next),
        "{args:?}: {text}"
    );
}

#[test]
fn settings_that_cannot_be_are_explained() {
    let cases: [(&[&str], &str, &str); 8] = [
        (
            &["kv", "--cache", "18446744073709551615"],
            "this machine does not give",
            "mend",
        ),
        (
            &["demo", "--cache", "9000000000000000"],
            "this machine does not give",
            "mend",
        ),
        (&["kv", "--nodes", "0"], "1 to 32 nodes", "mend"),
        (&["kv", "--nodes", "33"], "1 to 32 nodes", "mend"),
        (&["kv", "--block-size", "1000"], "power of two", "mend"),
        (&["kv", "--cache", "0"], "at least 8 blocks", "mend"),
        (
            &["kv", "--port", "0", "--buckets", "3"],
            "power of two",
            "--buckets",
        ),
        (&["kv", "--port", "65535"], "do not fit", "--port"),
    ];
    for (args, cause, next) in cases {
        fails(args, cause, next);
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let args = ["kv", "--nodes", "1", "--port", &port, "--buckets", "64"];
    fails(&args, &port, "choose another port");
}

#[test]
fn files_that_cannot_be_are_explained() {
    let cases = [
        ("nodes = []", "1 to 32 nodes"),
        ("nodes = ['127.0.0.1:1']\nblok_size = 1", "blok_size"),
        ("nodes = ['127.0.0.1:1', '127.0.0.1:1']", "used twice"),
        ("nodes = ['here']", "nodes"),
        ("nodes = ['127.0.0.1:1']", "`switch` address"),
        ("\0\u{1}", "toml"),
    ];
    for (text, cause) in cases {
        let file = TempFile::new(text);
        let output = run(&["switch", "--rack", file.path()]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}: {error}");
        assert!(error.contains(cause), "{text}: {error}");
        assert_eq!(error.lines().count(), 2, "{text}: {error}");
    }
    fails(
        &["switch", "--rack", "no/such.toml"],
        "no/such.toml",
        "--help",
    );
}

#[test]
fn what_is_no_file_is_explained_and_not_read_for_ever() {
    let folder = std::env::temp_dir();
    let folder = folder.to_str().unwrap();
    for (path, cause) in [("/dev/zero", "longer than"), (folder, "directory")] {
        for command in ["members", "inspect", "switch"] {
            fails(&[command, "--rack", path], cause, "mend the file");
        }
        fails(&["history", "check", path], path, "give a file");
    }
}

#[test]
fn a_node_that_the_file_does_not_have_is_named() {
    let file = TempFile::new("nodes = ['127.0.0.1:1']");
    let kv = [
        "kv",
        "--rack",
        file.path(),
        "--node",
        "9",
        "--listen",
        "127.0.0.1:0",
    ];
    fails(&kv, "node 9 is not in the configuration", "mend");
    fails(
        &["node", "--rack", file.path(), "--node", "9"],
        "node 9",
        "mend",
    );
}

#[test]
fn an_open_address_needs_a_password() {
    let rack = crate::racks::rack_file(1, false);
    let listen = ["--node", "0", "--listen", "0.0.0.0:0", "--buckets", "64"];
    let args = [&["kv", "--rack", rack.path()], &listen[..]].concat();
    fails(&args, "can be reached from outside", "--password");
}

#[test]
fn bad_usage_ends_with_2() {
    let cases: [&[&str]; 17] = [
        &["bench", "hit", "--duration", "0"],
        // A soak that kills nobody, or of no length, would find no fault.
        &["soak", "--kills", "0"],
        &["soak", "--seconds", "0"],
        &["soak", "--keys", "0"],
        &["soak", "--clients", "1000000"],
        &["soak", "--lease-ms", "0"],
        &["soak", "--loss", "2"],
        &["soak", "--loss", "nan"],
        &["soak", "--delay", "-1"],
        &["fly"],
        &["kv", "--fabric", "pigeon"],
        &["kv", "--rack", "rack.toml"],
        &["kv", "--node", "1"],
        &[
            "kv",
            "--rack",
            "r",
            "--node",
            "1",
            "--listen",
            "127.0.0.1:0",
            "--nodes",
            "2",
        ],
        &["kv", "--cache", "much"],
        &["demo", "--seconds", "0"],
        &["bench", "nothing"],
    ];
    for args in cases {
        let output = run(args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
