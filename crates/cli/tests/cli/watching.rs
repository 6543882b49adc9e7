//! Figures over HTTP, of racks that work.

use crate::process::{Running, TempFile, has_quietly, run, stderr};
use crate::racks::rack_file;
use crate::resp::{Answer, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Connections that a process keeps at a time.
const CONNECTIONS: usize = 8;

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("it accepts");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Everything that the server says until it closes.
fn all(mut stream: &TcpStream) -> String {
    let (mut text, mut some) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut some) {
            Ok(0) => break,
            Ok(read) => text.extend(&some[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8(text).expect("text")
}

/// The head and the body of what a request is answered.
fn ask(addr: SocketAddr, request: &str) -> (String, String) {
    let mut stream = connect(addr);
    stream.write_all(request.as_bytes()).expect("it reads");
    let said = all(&stream);
    let (head, body) = said.split_once("\r\n\r\n").expect("a head");
    let length = format!("Content-Length: {}", body.len());
    assert!(head.contains(&length), "{head}");
    (head.to_owned(), body.to_owned())
}

fn get(addr: SocketAddr, path: &str, accept: &str) -> (String, String) {
    let (head, body) = ask(
        addr,
        &format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nAccept: {accept}\r\n\r\n"),
    );
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    (head, body)
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The samples of a text, which has the form of Prometheus to the letter: each family once, with
/// HELP, TYPE and, where its name has a unit, UNIT before its samples; no sample twice.
fn samples(text: &str, open: bool) -> BTreeMap<String, f64> {
    let (mut found, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind, mut unit) = (String::new(), String::new(), String::new());
    assert!(text.ends_with('\n'));
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let wrong = |why: &str| -> ! { panic!("line {}: {why}: {line}", at + 1) };
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            match words[..] {
                ["HELP", name, help] if is_name(name) && help.len() > 10 => {
                    if !families.insert(name.to_owned()) {
                        wrong("a family twice");
                    }
                    (family, kind, unit) = (name.to_owned(), String::new(), String::new());
                }
                ["TYPE", name, of] if name == family && kind.is_empty() => {
                    if !["counter", "gauge"].contains(&of) {
                        wrong("a type");
                    }
                    of.clone_into(&mut kind);
                    let total = family.ends_with("_total");
                    if total != (of == "counter" && !open) {
                        wrong("a suffix");
                    }
                }
                ["UNIT", name, of] if name == family && !kind.is_empty() => {
                    of.clone_into(&mut unit);
                    if !family.ends_with(&format!("_{of}")) {
                        wrong("a unit");
                    }
                }
                ["EOF"] if open && at + 1 == lines.len() => return found,
                _ => wrong("a comment"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| wrong("no value"));
        let value: f64 = value.parse().unwrap_or_else(|_| wrong("a value"));
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').unwrap_or_else(|| wrong("}"))),
            None => (series, ""),
        };
        let suffix = if open && kind == "counter" {
            "_total"
        } else {
            ""
        };
        if kind.is_empty() || name != format!("{family}{suffix}") || value < 0.0 {
            wrong("a sample of no family");
        }
        for label in labels.split(',').filter(|_| !labels.is_empty()) {
            let (label, value) = label.split_once("=\"").unwrap_or_else(|| wrong("a label"));
            let value = value.strip_suffix('"').unwrap_or_else(|| wrong("a label"));
            if !is_name(label) || value.is_empty() || value.contains(['"', '\\']) {
                wrong("a label");
            }
        }
        if found.insert(series.to_owned(), value).is_some() {
            wrong("a sample twice");
        }
    }
    assert!(!open, "no EOF");
    found
}

/// Where a process serves its figures, as it says.
fn metrics(process: &mut Running) -> SocketAddr {
    loop {
        let said = process.line();
        if let Some(addr) = said["metrics"].as_str() {
            return addr.parse().expect("an address");
        }
    }
}

/// A switch, a node that gives memory and one that serves a store, each with its figures.
struct WatchedRack {
    file: TempFile,
    processes: Vec<Running>,
    metrics: Vec<SocketAddr>,
    store: SocketAddr,
}

fn watched() -> WatchedRack {
    let file = rack_file(2, true);
    let rack = ["--rack", file.path(), "--metrics", "127.0.0.1:0"];
    let start = |words: &[&str]| Running::start(&[words, &rack[..]].concat());
    let mut switch = start(&["switch"]);
    let of_switch = metrics(&mut switch);
    let mut giver = start(&["node", "--node", "0"]);
    let serve = ["--listen", "127.0.0.1:0", "--buckets", "64"];
    let mut server = start(&[&["kv", "--node", "1"], &serve[..]].concat());
    let store = server.listening()[0];
    let metrics = vec![metrics(&mut giver), metrics(&mut server), of_switch];
    WatchedRack {
        file,
        processes: vec![giver, server, switch],
        metrics,
        store,
    }
}

fn write_keys(store: SocketAddr, keys: std::ops::Range<usize>) {
    let mut client = Client::connect(store);
    for n in keys {
        let done = client.call(&["SET", &format!("key:{n}"), &"value".repeat(2000)]);
        assert_eq!(done, Answer::Text("OK".into()));
    }
}

#[test]
fn figures_rise_while_a_rack_works() {
    let rack = watched();
    let [giver, server, switch] = rack.metrics[..] else {
        panic!("{:?}", rack.metrics);
    };
    let look = |addr| samples(&get(addr, "/metrics", "text/plain").1, false);
    write_keys(rack.store, 0..50);
    let before = look(server);
    write_keys(rack.store, 50..200);
    let after = look(server);
    for counter in [
        "rackmem_misses_total{node=\"1\",cause=\"write\"}",
        "rackmem_packets_sent_total{node=\"1\",kind=\"WriteMiss\"}",
        "rackmem_lock_acquisitions_total{node=\"1\",way=\"here\"}",
    ] {
        let [before, after] = [&before, &after].map(|all| all[counter]);
        assert!(
            before > 0.0 && after > before,
            "{counter}: {before}, {after}"
        );
    }
    // Counters only rise, and no series comes or goes.
    assert!(before.keys().eq(after.keys()));
    let fell = before
        .iter()
        .find(|(series, value)| series.contains("_total") && after[series.as_str()] < **value);
    assert_eq!(fell, None);
    let home = look(giver);
    assert!(home["rackmem_packets_received_total{node=\"0\",kind=\"WriteMiss\"}"] >= 0.0);
    assert_eq!(home["rackmem_members{node=\"0\"}"], 2.0);
    assert!(home["rackmem_memory_bytes{node=\"0\",of=\"given\"}"] > 0.0);
    let of_switch = look(switch);
    assert!(of_switch["rackmem_switch_requests_total{outcome=\"to_home\"}"] > 0.0);
    assert_eq!(
        of_switch["rackmem_switch_violations_total{about=\"blocks\"}"],
        0.0
    );
    assert!(!of_switch.keys().any(|series| series.contains("node=")));
    let open = get(
        server,
        "/metrics",
        "application/openmetrics-text; version=1.0.0",
    );
    assert!(
        open.0
            .contains("Content-Type: application/openmetrics-text"),
        "{}",
        open.0
    );
    assert!(samples(&open.1, true).keys().eq(after.keys()));
    promtool(&get(server, "/metrics", "*/*").1);
    for process in rack.processes {
        assert_eq!(process.interrupt(), Some(130));
    }
    drop(rack.file);
}

/// What Prometheus' own checker says, where it is installed.
fn promtool(text: &str) {
    if !has_quietly("promtool") {
        return crate::process::skip("promtool is not installed (apt-get install prometheus)");
    }
    let mut checker = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("promtool");
    let mut input = checker.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    assert!(checker.wait().expect("its end").success());
}

#[test]
fn clients_that_misbehave_harm_nobody() {
    let mut store = Running::start(&[
        "kv",
        "--nodes",
        "2",
        "--port",
        "0",
        "--metrics",
        "127.0.0.1:0",
    ]);
    let clients = store.listening();
    let addr = metrics(&mut store);
    // A header that does not end.
    let mut endless = connect(addr);
    let mebibyte = format!("GET /metrics HTTP/1.1\r\nX: {}", "a".repeat(1 << 20));
    // It may have been refused before all is sent.
    let _ = endless.write_all(mebibyte.as_bytes());
    let said = all(&endless);
    assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
    drop(endless);
    // Clients that go: before they asked, half-way, and without the answer.
    for words in ["", "GET /met", "GET /metrics HTTP/1.1\r\n\r\n"] {
        connect(addr).write_all(words.as_bytes()).expect("it reads");
    }
    for (request, status) in [
        ("\x16\x03\x01\x02\x03\r\n\r\n", "400"),
        ("DELETE /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /etc/passwd HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
    ] {
        let (head, _) = insist(addr, request);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {head}"
        );
    }
    // As many that say nothing as there are places: one more is told, and clients of the store are
    // served.
    let silent: Vec<TcpStream> = (0..4 * CONNECTIONS).map(|_| connect(addr)).collect();
    write_keys(clients[1], 0..20);
    // Each silent one that has a place is told when its time is over, and others have its place.
    let told = silent.iter().map(all).collect::<Vec<_>>();
    let late = told.iter().filter(|said| said.starts_with("HTTP/1.1 408 "));
    let full = told.iter().filter(|said| said.starts_with("HTTP/1.1 503 "));
    assert_eq!((late.count(), full.count()), (CONNECTIONS, 3 * CONNECTIONS));
    let all = samples(&insist(addr, "GET /metrics HTTP/1.1\r\n\r\n").1, false);
    assert_eq!(all["rackmem_members{node=\"1\"}"], 2.0);
    assert_eq!(store.interrupt(), Some(130));
}

/// Asks until there is a place.
fn insist(addr: SocketAddr, request: &str) -> (String, String) {
    let end = Instant::now() + PATIENCE;
    loop {
        let (head, body) = ask(addr, request);
        if !head.starts_with("HTTP/1.1 503 ") {
            return (head, body);
        }
        assert!(Instant::now() < end, "{head}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_address_that_cannot_be_is_an_error_with_a_next_step() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let file = rack_file(2, true);
    for command in [
        &["kv", "--port", "0"][..],
        &["node", "--rack", file.path(), "--node", "0"],
        &["switch", "--rack", file.path()],
    ] {
        for (addr, code, cause, next) in [
            (taken.as_str(), 1, "in use", "port 0"),
            ("0.0.0.0:0", 1, "no authentication", "--metrics-open"),
            ("9400", 2, "--metrics", "--help"),
        ] {
            let output = run(&[command, &["--metrics", addr]].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert!(
                said.contains(cause) && said.contains(next),
                "{addr}: {said}"
            );
        }
    }
    let anywhere = ["--metrics", "0.0.0.0:0", "--metrics-open"];
    let mut open = Running::start(&[&["kv", "--port", "0"], &anywhere[..]].concat());
    let port = metrics(&mut open).port();
    let here = SocketAddr::from(([127, 0, 0, 1], port));
    let named = "GET /metrics HTTP/1.1\r\nHost: rack7\r\n\r\n";
    assert!(ask(here, named).0.starts_with("HTTP/1.1 200 "));
}
