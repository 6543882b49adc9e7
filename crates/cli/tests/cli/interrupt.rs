//! Ctrl-C ends any command, quickly, and leaves nothing behind.

use crate::process::{Running, TempFile, has};
use crate::racks::Serving;
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

#[test]
fn a_stopped_store_gives_its_ports_back() {
    let serving = Serving::embedded(2, &["--fabric", "udp"]);
    let addrs = serving.addrs.clone();
    let idle = TcpStream::connect(addrs[0]).expect("a connection");
    assert_eq!(serving.interrupt(), [Some(130)]);
    for addr in addrs {
        assert!(TcpStream::connect(addr).is_err(), "{addr} still listens");
    }
    drop(idle);
}

#[test]
fn a_node_that_waits_for_its_rack_can_be_stopped() {
    // The switch that the file names is never started.
    let file = crate::racks::rack_file(2, true);
    let serve = ["--node", "1", "--listen", "127.0.0.1:0"];
    let waiting = Running::start(&[&["kv", "--rack", file.path()], &serve[..]].concat());
    let waiting = waiting.catches_interrupts();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(waiting.interrupt(), Some(130));
}

#[test]
fn a_switch_gives_its_port_back_and_its_figures() {
    let file = crate::racks::rack_file(1, true);
    let mut switch = Running::start(&["switch", "--rack", file.path()]);
    let said = switch.line();
    let addr = said["switch"].as_str().expect("an address").to_owned();
    assert!(
        UdpSocket::bind(&addr).is_err(),
        "the switch is not on {addr}"
    );
    switch.signal();
    assert!(switch.line()["switch"]["received"].is_object());
    assert_eq!(switch.interrupt(), Some(130));
    assert!(UdpSocket::bind(&addr).is_ok());
}

#[test]
fn a_demo_can_be_stopped_in_the_middle() {
    let demo = Running::start(&["demo", "--nodes", "2", "--seconds", "60"]);
    let demo = demo.catches_interrupts();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(demo.interrupt(), Some(130));
}

#[test]
fn a_demo_that_is_stopped_ends_its_processes_and_removes_its_file() {
    let demo = Running::start(&["demo", "--built-in", "--nodes", "2", "--seconds", "1"]);
    // The first rack of processes that it starts.
    let name = format!("rackmem-crew-{}-0.toml", demo.id());
    let file = std::env::temp_dir().join(name);
    let end = Instant::now() + Duration::from_secs(120);
    let mut members = Vec::new();
    while members.len() < 3 {
        assert!(Instant::now() < end, "no rack of processes");
        std::thread::sleep(Duration::from_millis(5));
        members = demo.children();
    }
    assert!(file.exists());
    assert_eq!(demo.interrupt(), Some(130));
    assert!(!file.exists());
    // A number may be another process' by now, but not one that joins this rack.
    let is_member = |number: &&u32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(file.to_str().expect("a path in UTF-8"))
    };
    assert_eq!(members.iter().find(is_member), None);
}

#[test]
fn a_bench_keeps_what_it_has_measured() {
    let history = TempFile::new("");
    let options = [
        "--nodes",
        "2",
        "--sharing",
        "100,60,20,0",
        "--duration",
        "300ms",
    ];
    let modes = ["--modes", "home-only,switch", "--history", history.path()];
    let mut bench = Running::start(&[&["bench", "micro"], &options[..], &modes[..]].concat());
    // A case is in the file before the next one begins.
    let cases = || {
        let text = history.text();
        let of = ["home-only/", "switch/"].map(|mode| text.contains(mode));
        of.iter().filter(|is_there| **is_there).count()
    };
    bench.until("two cases are recorded", |_| cases() == 2);
    bench.signal();
    let told = bench.line();
    assert_eq!(told["partial"], true, "{told}");
    assert_eq!(told["runs"], 0);
    let named = |part: &str| {
        let cases = told["cases"].as_array().expect("a list").iter();
        cases
            .filter(|case| {
                case["case"]
                    .as_str()
                    .is_some_and(|name| name.contains(part))
            })
            .count()
    };
    assert!(
        named("home-only/") > 0 && named("sharing-0/") == 0,
        "{told}"
    );
    assert_eq!(bench.ended(), Some(130));
}

#[test]
fn a_bench_of_slices_keeps_the_cases_of_the_one_it_was_at() {
    let options = ["--fabric", "inline", "--size", "64M", "--duration", "10m"];
    let mut bench = Running::start(&[&["bench", "bulk"], &options[..]].concat());
    let resident = |bench: &Running| {
        let file = format!("/proc/{}/status", bench.id());
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix("kB"));
        number.and_then(|number| number.trim().parse::<u64>().ok())
    };
    // The slice, what the program has in hand, and copies in a cache: all cases before those that
    // keep copies are measured.
    bench.until("copies are kept", |bench| {
        resident(bench).is_some_and(|kib| kib > 130 << 10)
    });
    bench.signal();
    let told = bench.line();
    assert_eq!(told["partial"], true, "{told}");
    let cases = told["cases"].as_array().expect("a list").iter();
    let named = |name: &str| cases.clone().any(|case| case["case"] == name);
    assert!(
        named("memcpy") && named("inline/switch/read-elsewhere"),
        "{told}"
    );
    assert_eq!(bench.ended(), Some(130));
}

#[test]
fn a_bench_that_is_ended_says_so_to_people() {
    // It has not measured anything when it is ended.
    let mut bench = std::process::Command::new(env!("CARGO_BIN_EXE_rackmem"))
        .args(["bench", "hit", "--duration", "60m"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the command starts");
    let id = bench.id();
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 2 != 0)
    };
    while !catches() {
        assert!(bench.try_wait().expect("a child").is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    let script = format!("kill -INT {id}");
    let killed = std::process::Command::new("sh")
        .args(["-c", &script])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    let output = bench.wait_with_output().expect("an end");
    let text = crate::process::stdout(&output);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.starts_with("hit · rackmem "), "{text}");
    assert!(
        text.contains("duration=60m") && text.contains("PARTIAL"),
        "{text}"
    );
}

#[test]
fn a_bench_that_is_ended_leaves_no_folder() {
    let folder = TempFile::folder();
    let args = ["bench", "failover", "--nodes", "2", "--duration", "10m"];
    let mut bench = Running::start_in(folder.as_ref(), &args);
    let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
    bench.until("it has made its folder", |_| files() > 0);
    bench.signal();
    assert_eq!(bench.line()["partial"], true);
    assert_eq!(bench.ended(), Some(130));
    assert_eq!(files(), 0);
}

#[test]
fn a_bench_that_is_ended_leaves_no_process() {
    if !has("redis-server") {
        return;
    }
    let mut bench = Running::start(&["bench", "kv", "--vs", "redis", "--duration", "10m"]);
    bench.until("redis runs", |bench| !bench.children().is_empty());
    let children = bench.children();
    bench.signal();
    assert_eq!(bench.line()["partial"], true);
    assert_eq!(bench.ended(), Some(130));
    for child in children {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        assert!(!stat.contains("redis"), "{stat}");
    }
}
