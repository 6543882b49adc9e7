//! Ctrl-C ends any command, quickly, and leaves nothing behind.

use crate::process::Running;
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
    let demo = Running::start(&["demo", "--nodes", "2", "--seconds", "1"]);
    let name = format!("rackmem-demo-{}.toml", demo.id());
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
