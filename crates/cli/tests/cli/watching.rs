//! Figures over HTTP, of racks that work.

use crate::process::{Running, TempFile, has_quietly, run, stderr, stdout};
use crate::racks::rack_file;
use crate::resp::{Answer, Client};
use rackmem::locked::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
            // A read with a limit ends when the process is stopped and goes on.
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8(text).expect("text")
}

/// The head and the body of what a request is answered.
fn ask(addr: SocketAddr, request: &str) -> (String, String) {
    let mut stream = connect(addr);
    stream.write_all(request.as_bytes()).expect("it reads");
    answer(&all(&stream)).expect("a head")
}

fn answer(said: &str) -> Option<(String, String)> {
    let (head, body) = said.split_once("\r\n\r\n")?;
    let length = format!("Content-Length: {}", body.len());
    assert!(head.contains(&length), "{head}");
    Some((head.to_owned(), body.to_owned()))
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
    // More that say nothing than there are places: the others are told, and clients of the store
    // are served.
    let silent: Vec<TcpStream> = (0..4 * CONNECTIONS).map(|_| connect(addr)).collect();
    write_keys(clients[1], 0..20);
    // Each silent one that has a place is told when its time is over, and others have its place.
    let told = silent.iter().map(all).collect::<Vec<_>>();
    let late = told.iter().filter(|said| said.starts_with("HTTP/1.1 408 "));
    let full = told.iter().filter(|said| said.starts_with("HTTP/1.1 503 "));
    let (late, full) = (late.count(), full.count());
    assert!(late > 0 && full > 0, "{late} late, {full} without a place");
    assert_eq!(late + full, silent.len());
    drop(silent);
    let all = samples(&insist(addr, "GET /metrics HTTP/1.1\r\n\r\n").1, false);
    assert_eq!(all["rackmem_members{node=\"1\"}"], 2.0);
    assert_eq!(store.interrupt(), Some(130));
}

/// Asks until there is a place. Who is refused one may not even hear it: what it has asked was not
/// read.
fn insist(addr: SocketAddr, request: &str) -> (String, String) {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut stream = connect(addr);
        let written = stream.write_all(request.as_bytes());
        let said = written.map(|()| all(&stream)).unwrap_or_default();
        match answer(&said) {
            Some(answer) if !answer.0.starts_with("HTTP/1.1 503 ") => return answer,
            refused => assert!(Instant::now() < end, "{refused:?}"),
        }
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

/// One sample, in which these nodes have not answered: on a starved machine others may be late.
fn top(file: &str, silent: &[usize]) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let output = run(&["top", "--json", "--once", "--rack", file]);
        let shown: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        if shown["unanswered"] == json!(silent) {
            return shown;
        }
        assert!(Instant::now() < end, "{shown}");
    }
}

/// One frame that has these words.
fn frame(words: &[&str], has: &[&str]) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let output = run(&[&["top", "--once"], words].concat());
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        if has.iter().all(|word| text.contains(word)) {
            return text;
        }
        assert!(Instant::now() < end, "{text}");
    }
}

#[test]
fn top_shows_rates_and_nodes_that_do_not_answer() {
    let mut rack = watched();
    let (stop, store) = (AtomicBool::new(false), rack.store);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                write_keys(store, 0..50);
            }
        });
        let _ends = Ends(&stop);
        let end = Instant::now() + PATIENCE;
        // Within one second, a starved machine may do nothing.
        loop {
            let shown = top(rack.file.path(), &[]);
            let [first, second] = [0, 1].map(|node| &shown["nodes"][node]);
            assert_eq!((&first["node"], &second["node"]), (&json!(0), &json!(1)));
            assert_eq!(second["figures"]["members"], 2);
            assert!(
                second["figures"]["misses"]["write"].as_u64() > Some(0),
                "{shown}"
            );
            assert_eq!(second["figures"]["retransmissions"], Value::Null);
            let rates = first["per_second"]["packets_received"].as_object().unwrap();
            if rates.values().any(|rate| rate.as_u64() > Some(0)) {
                break;
            }
            assert!(Instant::now() < end, "{shown}");
        }
        let sorted = ["--sort", "misses", "--rack", rack.file.path()];
        let text = frame(&sorted, &["rack of 2: 2 answer, 2 members, epoch "]);
        assert!(
            text.contains("a switch\n") && text.contains("upgrade"),
            "{text}"
        );
    });
    let last = rack.processes.remove(1);
    assert_eq!(last.interrupt(), Some(130));
    let shown = top(rack.file.path(), &[1]);
    assert_eq!(shown["nodes"][1], Value::Null);
    let silent = ["\n   1 does not answer\n", "1 answer"];
    frame(&["--rack", rack.file.path()], &silent);
    drop(rack.processes);
    let silent = run(&["top", "--once", "--rack", rack.file.path()]);
    assert_eq!(silent.status.code(), Some(1));
    assert!(stderr(&silent).contains("none of the rack's 2 nodes answers"));
    let no_terminal = run(&["top", "--rack", rack.file.path()]);
    assert_eq!(no_terminal.status.code(), Some(1));
    assert!(
        stderr(&no_terminal).contains("no terminal"),
        "{}",
        stderr(&no_terminal)
    );
}

/// Says that it is over, also when an assertion fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn top_shows_who_waits_for_which_lock() {
    let (file, [first, second]) = crate::inspect::rack();
    let made: Mutex<u64> = Mutex::create(&first.node(0), 7).unwrap();
    let far: Mutex<u64> = Mutex::attach(&second.node(1), made.addr()).unwrap();
    let held = made.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| far.lock().unwrap().set(8));
        let end = Instant::now() + PATIENCE;
        while made.waiting().nodes == 0 {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
        let shown = top(file.path(), &[2]);
        assert_eq!(shown["locks"][0]["nodes"][0]["writer_inside"], true);
        assert_eq!(shown["locks"][0]["nodes"][1]["threads_waiting"], 1);
        let told = ["a writer of node 0", "a thread of node 1"];
        frame(&["--rack", file.path()], &told);
        drop(held);
    });
}

#[test]
fn top_shows_which_blocks_go_back_and_forth() {
    let (file, [first, second]) = crate::inspect::rack();
    let word = first.node(0).alloc_isolated(0u64).expect("room");
    let there = second.node(1).attach::<u64>(word.addr()).expect("it is");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let adds = |word: rackmem::Shared<u64>| {
            while !stop.load(Relaxed) {
                word.fetch_add(1).expect("both live");
            }
        };
        let _ends = Ends(&stop);
        let word = word.clone();
        let addr = json!(format!("{:#x}", word.addr()));
        scope.spawn(move || adds(word));
        scope.spawn(move || adds(there));
        let shown = top(file.path(), &[2]);
        assert_eq!(shown["hot"][0]["addr"], addr, "{shown}");
        assert!(shown["hot"][0]["nodes"][1]["writes"].as_u64() > Some(0));
        frame(
            &["--rack", file.path()],
            &["blocks that are missed most", "0 1, 2 write it"],
        );
    });
}

#[test]
fn the_page_shows_the_rack_to_browsers_of_this_host() {
    let mut rack = watched();
    let file = rack.file.path().to_owned();
    let mut page = Running::start(&["top", "--rack", &file, "--page", "127.0.0.1:0"]);
    let addr = page.line()["page"].as_str().expect("where").parse();
    let addr: SocketAddr = addr.expect("an address");
    let (head, html) = get(addr, "/", "text/html");
    assert!(head.contains("Content-Type: text/html"), "{head}");
    assert!(html.contains("fetch(\"/status.json\""), "{html}");
    // Nothing is loaded from elsewhere: the one address is a name of SVG.
    assert_eq!(html.matches("//").count(), 1, "{html}");
    let shows = |what: &str, is: &dyn Fn(&Value) -> bool| {
        let end = Instant::now() + PATIENCE;
        loop {
            let (_, status) = get(addr, "/status.json", "*/*");
            let status: Value = serde_json::from_str(&status).expect("JSON");
            if is(&status) {
                return status;
            }
            assert!(Instant::now() < end, "{what}: {status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    write_keys(rack.store, 0..50);
    let all = shows("two nodes, twice", &|status| {
        status["sample"].as_u64() > Some(0) && status["unanswered"] == json!([])
    });
    assert_eq!((&all["interval"], &all["locks"]), (&json!(1), &json!([])));
    assert!(all["hot"].is_array(), "{all}");
    assert_eq!(all["nodes"][1]["figures"]["members"], 2);
    assert!(
        all["nodes"][0]["per_second"]["misses"]["read"].is_u64(),
        "{all}"
    );
    assert_eq!(rack.processes.remove(1).interrupt(), Some(130));
    shows("a node that is gone", &|status| {
        status["nodes"][1].is_null() && status["unanswered"] == json!([1])
    });
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\n\r\n", "404"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
    ] {
        let (head, _) = ask(addr, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    assert_eq!(page.interrupt(), Some(130));
    for (more, code, cause) in [
        (&["--page", "0.0.0.0:0"][..], 1, "no authentication"),
        (&["--page", "8080"], 2, "--page"),
        (&["--page", "127.0.0.1:0", "--once"], 2, "--once"),
    ] {
        let output = run(&[&["top", "--rack", &file], more].concat());
        assert_eq!(output.status.code(), Some(code));
        assert!(stderr(&output).contains(cause), "{}", stderr(&output));
    }
}

/// In a terminal of `script`: the settings before and after are the same, and so is the screen.
#[test]
fn top_leaves_the_terminal_as_it_was() {
    if !has_quietly("script") {
        return crate::process::skip("script is not installed (apt-get install bsdutils)");
    }
    let (file, _racks) = crate::inspect::rack();
    let program = env!("CARGO_BIN_EXE_rackmem");
    for (key, code) in [("q", 0), ("\x03", 130), ("mpnq", 0)] {
        let inside = format!(
            "stty rows 24 cols 80; stty -g; {program} top --rack {}; echo code $?; stty -g",
            file.path()
        );
        let mut terminal = Command::new("script")
            .args(["-qec", &inside, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script");
        let mut input = terminal.stdin.take().expect("a pipe");
        let mut output = terminal.stdout.take().expect("a pipe");
        let mut said = Vec::new();
        let mut until = |what: &str| loop {
            let text = String::from_utf8_lossy(&said).into_owned();
            if text.contains(what) {
                return text;
            }
            let mut some = [0; 4096];
            let read = output.read(&mut some).expect("a terminal");
            assert!(read > 0, "no {what}: {text}");
            said.extend(&some[..read]);
        };
        until("q quit");
        input.write_all(key.as_bytes()).expect("a terminal");
        until("code ");
        drop(input);
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).expect("its end");
        let _ = terminal.wait();
        said.extend(rest);
        let text = String::from_utf8_lossy(&said);
        assert!(text.contains("\x1b[?1049h\x1b[?25l"), "{text}");
        let (_, after) = text
            .split_once("\x1b[?25h\x1b[?1049l")
            .expect("the screen before");
        let mut after = after.lines();
        assert_eq!(
            after.next(),
            Some(format!("code {code}").as_str()),
            "{text}"
        );
        let before = text.lines().next().expect("settings");
        assert_eq!(after.next(), Some(before), "{text}");
        assert!(text.contains("   2 does not answer"), "{text}");
    }
}
