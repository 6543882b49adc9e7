//! Racks of hosts as they are: namespaces, cables, and nothing left behind.

use rackmem_hosts::{Error, Hosts, Place, address, cleanup, found, mac, port_index};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether racks can be made here; says so if not.
fn possible() -> bool {
    let probe = Hosts::probe();
    if let Err(error) = &probe {
        let _ = writeln!(std::io::stdout(), "skipped: {error}");
    }
    probe.is_ok()
}

/// A UDP echo, in bash's and Python's absence: this test's own program, run again in a host.
fn within(hosts: &Hosts, place: Place, test: &str, what: &str) -> Child {
    let own = std::env::current_exe().expect("this program");
    hosts
        .command(place, own)
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env("RACKMEM_HOSTS_TEST", what)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

fn asked() -> Option<String> {
    std::env::var("RACKMEM_HOSTS_TEST").ok()
}

fn at(place: Place) -> SocketAddr {
    SocketAddr::from((address(place), 7000))
}

/// Not a test of its own: answers datagrams for whoever starts it in a host.
#[test]
fn echo() {
    let Some(own) = asked() else { return };
    let socket = std::net::UdpSocket::bind(own).expect("the address is there");
    println!("ready");
    let mut packet = [0; 2000];
    loop {
        let (length, from) = socket.recv_from(&mut packet).expect("a datagram");
        socket.send_to(&packet[..length], from).expect("an answer");
    }
}

/// Not a test of its own: asks an echo until it answers or, with `no` before the address, that it does not.
#[test]
fn ask() {
    let Some(whom) = asked() else { return };
    let (silent, whom) = match whom.strip_prefix("no ") {
        Some(whom) => (true, whom.to_owned()),
        None => (false, whom),
    };
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
    let short = Duration::from_millis(100);
    socket.set_read_timeout(Some(short)).expect("a timeout");
    let end = Instant::now() + if silent { 5 * short } else { PATIENCE };
    // As large as a packet on the cable can be.
    let (sent, mut packet) = ([7; 1472], [0; 2000]);
    while Instant::now() < end {
        let _ = socket.send_to(&sent, &whom);
        if socket
            .recv(&mut packet)
            .is_ok_and(|length| length == sent.len())
        {
            assert!(!silent, "{whom} is heard");
            return;
        }
    }
    assert!(silent, "{whom} is not heard");
}

fn echo_in(hosts: &Hosts, place: Place) -> Child {
    let mut child = within(hosts, place, "echo", &at(place).to_string());
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains("ready")), "no echo");
    child
}

/// Whether an echo hears a host.
fn hears(hosts: &Hosts, from: usize, whom: Place, silent: bool) -> bool {
    let what = if silent {
        format!("no {}", at(whom))
    } else {
        at(whom).to_string()
    };
    let mut child = within(hosts, Place::Host(from), "ask", &what);
    child.wait().expect("it ends").success()
}

fn namespaces_of(rack: &str) -> bool {
    let list = Command::new("ip").args(["netns", "list"]).output();
    let list = String::from_utf8(list.expect("ip").stdout).expect("text");
    list.contains(&format!("rackmem-{rack}-"))
}

#[test]
fn hosts_reach_each_other_and_the_switch_through_cables_that_can_be_cut() {
    if !possible() {
        return;
    }
    let hosts = Hosts::start(3).unwrap();
    let mut echoes: Vec<Child> = hosts.places().map(|place| echo_in(&hosts, place)).collect();
    for place in [Place::Switch, Place::Host(1), Place::Host(2)] {
        assert!(hears(&hosts, 0, place, false), "{place}");
    }
    hosts.cut(2).unwrap();
    assert!(hears(&hosts, 0, Place::Host(2), true));
    assert!(hears(&hosts, 2, Place::Switch, true));
    assert!(
        hears(&hosts, 0, Place::Host(1), false),
        "others are not cut off"
    );
    hosts.mend(2).unwrap();
    assert!(hears(&hosts, 0, Place::Host(2), false));
    // A dead host's processes are gone, and only its.
    assert_eq!(hosts.kill(Place::Host(2)).unwrap(), 1);
    assert!(hosts.processes(Place::Host(2)).unwrap().is_empty());
    assert!(hears(&hosts, 0, Place::Host(2), true));
    assert!(hears(&hosts, 0, Place::Host(1), false));
    assert!(matches!(hosts.cut(3), Err(Error::Size(_))));
    let name = hosts.name().to_owned();
    hosts.tear_down().unwrap();
    for echo in &mut echoes {
        assert!(!echo.wait().expect("it was killed").success());
    }
    assert!(!namespaces_of(&name));
    assert!(matches!(Hosts::open(&name), Err(Error::Unknown(_))));
}

#[test]
fn interfaces_are_as_an_xdp_program_expects_them() {
    if !possible() {
        return;
    }
    let hosts = Hosts::start(2).unwrap();
    let say = |place: Place, program: &str, args: &[&str]| {
        let output = hosts.command(place, program).args(args).output();
        String::from_utf8(output.expect("it runs").stdout).expect("text")
    };
    for (host, port) in hosts.ports().iter().enumerate() {
        let link = say(Place::Switch, "ip", &["-o", "link", "show", port]);
        assert!(
            link.starts_with(&format!("{}: ", port_index(host))),
            "{link}"
        );
        assert!(link.contains("mtu 1500"), "{link}");
        let own = say(Place::Host(host), "ip", &["-o", "link", "show", "eth0"]);
        let bytes = mac(Place::Host(host)).map(|byte| format!("{byte:02x}"));
        assert!(own.contains(&bytes.join(":")), "{own}");
        let offload = say(Place::Host(host), "ethtool", &["-k", "eth0"]);
        assert!(offload.contains("tx-checksumming: off"), "{offload}");
        assert!(offload.contains("generic-receive-offload: on"), "{offload}");
        let known = say(Place::Host(host), "ip", &["neigh", "show"]);
        assert_eq!(known.matches("PERMANENT").count(), 2, "{known}");
    }
}

#[test]
fn racks_are_apart_and_a_name_is_given_once() {
    if !possible() {
        return;
    }
    let (one, two) = (Hosts::start(1).unwrap(), Hosts::start(1).unwrap());
    let echo = echo_in(&one, Place::Host(0));
    assert!(hears(&two, 0, Place::Host(0), true), "the same address");
    assert!(matches!(
        Hosts::start_as(one.name(), 1),
        Err(Error::Taken(_))
    ));
    assert!(
        namespaces_of(one.name()),
        "the second try leaves the first rack alone"
    );
    drop(one);
    assert!(!echo.wait_with_output().expect("killed").status.success());
    assert!(namespaces_of(two.name()));
}

#[test]
fn a_kept_rack_stays_until_it_is_taken_down() {
    if !possible() {
        return;
    }
    let hosts = Hosts::start(1).unwrap();
    let name = hosts.name().to_owned();
    hosts.keep().unwrap();
    assert!(!cleanup().unwrap().contains(&name));
    let again = Hosts::open(&name).unwrap();
    assert_eq!(again.count(), 1);
    drop(again);
    assert!(namespaces_of(&name), "opened is not owned");
    Hosts::open(&name).unwrap().tear_down().unwrap();
    assert!(!namespaces_of(&name));
    assert!(found().unwrap().iter().all(|rack| rack.name != name));
}

/// Not a test of its own: makes a rack and ends in the way it is told, without taking it down.
#[test]
fn owner() {
    let Some(way) = asked() else { return };
    let hosts = Hosts::start(2).unwrap();
    let program = hosts.command(Place::Host(1), "sleep").arg("1000").spawn();
    println!("rack {}", hosts.name());
    match way.as_str() {
        "panic" => panic!("as asked"),
        _ => drop(program.expect("sleep").wait()),
    }
}

#[test]
fn nothing_is_left_when_the_owner_panics_is_interrupted_or_killed() {
    if !possible() {
        return;
    }
    for (way, signal) in [
        ("panic", None),
        ("int", Some("-INT")),
        ("kill", Some("-KILL")),
    ] {
        let mut owner = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "owner", "--nocapture"])
            .env("RACKMEM_HOSTS_TEST", way)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(owner.stdout.take().expect("a pipe")).lines();
        let rack = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("rack ").map(|(_, name)| name.to_owned()))
            .expect("a rack");
        if let Some(signal) = signal {
            let pid = owner.id().to_string();
            let sent = Command::new("kill").args([signal, &pid]).status();
            assert!(sent.is_ok_and(|status| status.success()));
        }
        assert!(!owner.wait().expect("it ends").success());
        let end = Instant::now() + PATIENCE;
        while found().unwrap().iter().any(|found| found.name == rack) || namespaces_of(&rack) {
            assert!(Instant::now() < end, "{way}: rack {rack} is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_has_no_owner_any_more_is_cleaned_up() {
    if !possible() {
        return;
    }
    // A namespace without a state file: what is left when the folder was emptied under a rack.
    let name = format!("left-{}", std::process::id());
    let namespace = format!("rackmem-{name}-host0");
    let made = Command::new("ip")
        .args(["netns", "add", &namespace])
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    assert!(
        found()
            .unwrap()
            .iter()
            .any(|rack| rack.name == name && rack.stale)
    );
    assert!(cleanup().unwrap().contains(&name));
    assert!(!namespaces_of(&name));
}

#[test]
fn sizes_and_names_are_checked_before_anything_is_made() {
    for hosts in [0, 33] {
        assert!(matches!(Hosts::start(hosts), Err(Error::Size(_))));
    }
    for name in ["", "-n", "a/b"] {
        assert!(matches!(Hosts::start_as(name, 1), Err(Error::Name(_))));
    }
}
