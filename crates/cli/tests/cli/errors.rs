//! Errors: one line of cause, one line of what to do next, and the right exit code.

use crate::process::{TempFile, run, stderr};
use std::net::TcpListener;

/// Runs what must fail with code 1, and holds its two lines to what they must say.
fn fails(args: &[&str], cause: &str, next: &str) {
    explained(args, &run(args), cause, next);
}

/// What it has printed names the cause and what can be done.
fn explained(args: &[&str], output: &std::process::Output, cause: &str, next: &str) {
    let text = stderr(output);
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
            &["kv", "--memory", "16T"],
            "memory: this machine has",
            "correct the option",
        ),
        (
            &["demo", "--memory", "1000T"],
            "less than 2^45 bytes",
            "correct the option",
        ),
        (
            &["kv", "--cache", "18446744073709551615"],
            "this machine does not give",
            "correct the option",
        ),
        (
            &["demo", "--cache", "9000000000000000"],
            "this machine does not give",
            "correct the option",
        ),
        (
            &["kv", "--block-size", "1000"],
            "power of two",
            "correct the option",
        ),
        (
            &["kv", "--cache", "0"],
            "at least 8 blocks",
            "correct the option",
        ),
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
    for (path, cause) in [("/dev/zero", "is a device"), (folder, "is a directory")] {
        for command in ["members", "inspect", "switch"] {
            fails(&[command, "--rack", path], cause, "correct the file");
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
    fails(
        &kv,
        "node 9 is not in the configuration",
        "correct the option",
    );
    fails(
        &["node", "--rack", file.path(), "--node", "9"],
        "node 9",
        "correct the option",
    );
}

#[test]
fn an_open_address_needs_a_password() {
    // Node 0 is not there, and is not waited for.
    let rack = crate::racks::rack_file(2, false);
    let listen = ["--node", "1", "--listen", "0.0.0.0:0", "--buckets", "64"];
    let args = [&["kv", "--rack", rack.path()], &listen[..]].concat();
    fails(&args, "can be reached from outside", "--password");
}

#[test]
fn a_clients_port_in_use_is_named_before_the_others_are_waited_for() {
    let rack = crate::racks::rack_file(2, false);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let listen = ["--node", "1", "--listen", &addr, "--buckets", "64"];
    let args = [&["kv", "--rack", rack.path()], &listen[..]].concat();
    fails(&args, &addr, "choose another port");
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

/// All of these end at once, with the name of the option, whatever this machine has.
#[test]
fn impossible_numbers_are_refused_before_they_are_tried() {
    const HUGE: &str = "18446744073709551615";
    let cases: [(&[&str], &[&str]); 31] = [
        (&["kv"], &["--nodes", "0"]),
        (&["kv"], &["--nodes", "10000"]),
        (&["demo"], &["--nodes", "33"]),
        (&["kv"], &["--workers", "0"]),
        (&["kv"], &["--workers", "65"]),
        (&["kv"], &["--port", "65536"]),
        (&["kv"], &["--cache", "99999999T"]),
        (&["kv"], &["--delay", "0.1", "--delay-up-to", HUGE]),
        (
            &["kv", "--rack", "r", "--listen", "127.0.0.1:1"],
            &["--node", "32"],
        ),
        (
            &["kv", "--rack", "r", "--node", "1"],
            &["--listen", "127.0.0.1:99999"],
        ),
        (&["node", "--rack", "r"], &["--node", HUGE]),
        (&["node", "--rack", "r", "--node", "1"], &["--stats", HUGE]),
        (&["inspect", "--rack", "r"], &["--watch", "0"]),
        (&["members", "--rack", "r"], &["remove", "65536"]),
        (&["soak"], &["--seconds", HUGE]),
        (&["soak"], &["--nodes", "33"]),
        (&["bench", "loss"], &["--nodes", "0"]),
        (&["bench", "kv"], &["--nodes", "10000"]),
        (&["bench", "kv"], &["--keys", "0"]),
        (&["bench", "micro"], &["--threads", "0"]),
        (&["bench", "micro"], &["--nodes", "33"]),
        (&["bench", "bulk"], &["--size", "0"]),
        (&["bench", "bulk"], &["--size", "7"]),
        (&["bench", "bulk"], &["--size", "1000T"]),
        (&["bench", "lock"], &["--rounds", "0"]),
        (&["bench", "lock"], &["--think", HUGE]),
        (&["bench", "lock"], &["--nodes", "33"]),
        (&["bench", "miss"], &["--rounds", "0"]),
        (&["bench", "dataplane"], &["--packets", "0"]),
        (&["bench", "dataplane"], &["--rounds", HUGE]),
        (&["bench", "failover"], &["--phases", "0", "1", "1"]),
    ];
    for (command, wrong) in cases {
        let args = [command, wrong].concat();
        let output = run(&args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        let named = wrong.iter().any(|word| text.contains(word));
        assert!(
            named && text.contains("error: invalid value"),
            "{args:?}: {text}"
        );
    }
}

#[test]
fn errors_of_a_rack_file_have_line_text_and_what_was_meant() {
    let cases = [
        (
            "nodes = ['127.0.0.1:1']\ncashe = 1",
            "line 2 (cashe = 1): unknown key `cashe`; did you mean `cache`?",
        ),
        (
            "nodes = ['127.0.0.1:1']\ncache = 'much'",
            "line 2 (cache = 'much'): `much` is no size",
        ),
        (
            "nodes = ['127.0.0.1:1']\nlease = 5",
            "line 2 (lease = 5): invalid type: integer `5`, expected a text in quotes",
        ),
        (
            "nodes = [\n  'localhost:1',\n  '127.0.0.1:1',\n]",
            "line 3 ('127.0.0.1:1',): nodes[1]: 127.0.0.1:1 is used twice: it is nodes[0]'s",
        ),
        (
            "nodes = [\n  'nowhere.invalid:1',\n]",
            "line 2 ('nowhere.invalid:1',): nodes[0] = \"nowhere.invalid:1\": ",
        ),
        (
            "nodes = ['127.0.0.1:65536']",
            "line 1 (nodes = ['127.0.0.1:65536']): nodes[0] = \"127.0.0.1:65536\": ",
        ),
        (
            "nodes = ['127.0.0.1:1']\n[faults]\nloss = 2",
            "line 3 (loss = 2): faults: loss is a share",
        ),
        (
            "nodes = ['127.0.0.1:1']\nmemory = '1M'",
            "line 2 (memory = '1M'): memory is at least",
        ),
        (
            "nodes = ['127.0.0.1:1'",
            "line 1 (nodes = ['127.0.0.1:1'): ",
        ),
    ];
    for (text, cause) in cases {
        let file = TempFile::new(text);
        let named = format!("{}: {cause}", file.path());
        fails(
            &["node", "--rack", file.path(), "--node", "0"],
            &named,
            "correct the file",
        );
    }
}

#[test]
fn a_pipe_a_huge_file_and_one_without_permission_are_refused_at_once() {
    let huge = TempFile::new("");
    let file = std::fs::File::options()
        .write(true)
        .open(huge.path())
        .expect("a file");
    file.set_len(1 << 40).expect("a sparse file");
    fails(
        &["inspect", "--rack", huge.path()],
        "longer than",
        "correct the file",
    );
    let pipe = format!("{}.pipe", huge.path());
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let refused = std::panic::catch_unwind(|| {
        fails(&["inspect", "--rack", &pipe], "a pipe", "correct the file");
    });
    std::fs::remove_file(&pipe).expect("the pipe");
    refused.expect("a pipe is refused");
    let secret = TempFile::new("nodes = ['127.0.0.1:1']");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    std::fs::set_permissions(secret.path(), mode).expect("a mode");
    // Without the right of root to read every file, so that root runs the test, too.
    let args = ["inspect", "--rack", secret.path()];
    let mut inspect = std::process::Command::new("setpriv");
    if std::fs::File::open(secret.path()).is_ok() {
        inspect.arg("--bounding-set=-dac_override,-dac_read_search");
    }
    inspect.arg(env!("CARGO_BIN_EXE_rackmem")).args(args);
    let output = inspect.output().expect("setpriv, of util-linux");
    explained(&args, &output, "Permission denied", "correct the file");
}

#[test]
fn addresses_that_cannot_be_had_are_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let file = TempFile::new(&format!("nodes = ['{addr}']"));
    let node = ["node", "--rack", file.path(), "--node", "0"];
    fails(
        &node,
        &format!("node 0: its address {addr} is in use"),
        "end the process",
    );
    // Of documentation, and so of no host.
    let file = TempFile::new("nodes = ['192.0.2.1:7401']");
    let node = ["node", "--rack", file.path(), "--node", "0"];
    fails(
        &node,
        "node 0: its address is not one of this host: 192.0.2.1:7401",
        "correct the option",
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let rack = crate::racks::rack_file(1, false);
    let kv = [
        "kv",
        "--rack",
        rack.path(),
        "--node",
        "0",
        "--buckets",
        "64",
        "--listen",
        &addr,
    ];
    fails(
        &kv,
        &format!("cannot listen on {addr}"),
        "choose another port",
    );
}
