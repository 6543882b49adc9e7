//! Racks of hosts as they are: namespaces, cables, and nothing left behind.

use rackmem_hosts::{Error, Hosts, Place, address, cleanup, found, mac, port_index};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two tries.
const SHORT: Duration = Duration::from_millis(50);

/// Whether racks can be made here; says so if not.
fn possible() -> bool {
    let probe = Hosts::probe();
    if let Err(error) = &probe {
        let _ = writeln!(std::io::stdout(), "skipped: {error}");
    }
    probe.is_ok()
}

/// What a test's own program is asked to do when it is run again.
fn asked() -> Option<String> {
    std::env::var("RACKMEM_HOSTS_TEST").ok()
}

/// Answers datagrams in a place, until the rack is dropped with its socket.
struct Echo {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(hosts: &Hosts, place: Place) -> Echo {
        let at = SocketAddr::from((address(place), 7000));
        let socket = hosts.within(place, || UdpSocket::bind(at)).unwrap();
        let socket = socket.expect("the address is there");
        socket.set_read_timeout(Some(SHORT)).expect("a timeout");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let answer = move || {
            let mut packet = [0; 2000];
            while !stopped.load(Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut packet) {
                    let _ = socket.send_to(&packet[..length], from);
                }
            }
        };
        Echo {
            at,
            stop,
            thread: Some(std::thread::spawn(answer)),
        }
    }

    /// Whether it is heard in a host within so long.
    fn answers(&self, hosts: &Hosts, host: usize, within: Duration) -> bool {
        let socket = hosts.within(Place::Host(host), || UdpSocket::bind("0.0.0.0:0"));
        let socket = socket.unwrap().expect("a port");
        socket.set_read_timeout(Some(SHORT)).expect("a timeout");
        // As large as a packet on the cable can be.
        let (sent, mut packet) = ([7; 1472], [0; 2000]);
        let end = Instant::now() + within;
        while Instant::now() < end {
            let _ = socket.send_to(&sent, self.at);
            let heard = socket.recv(&mut packet);
            if heard.is_ok_and(|length| length == sent.len()) {
                return true;
            }
        }
        false
    }

    fn heard(&self, hosts: &Hosts, host: usize) -> bool {
        self.answers(hosts, host, PATIENCE)
    }

    fn silent(&self, hosts: &Hosts, host: usize) -> bool {
        !self.answers(hosts, host, 5 * SHORT)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
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
    let [switch, one, two] =
        [Place::Switch, Place::Host(1), Place::Host(2)].map(|place| Echo::start(&hosts, place));
    for echo in [&switch, &one, &two] {
        assert!(echo.heard(&hosts, 0), "{}", echo.at);
    }
    hosts.cut(2).unwrap();
    assert!(two.silent(&hosts, 0));
    assert!(switch.silent(&hosts, 2));
    assert!(one.heard(&hosts, 0), "others are not cut off");
    hosts.mend(2).unwrap();
    assert!(two.heard(&hosts, 0));
    assert!(matches!(hosts.cut(3), Err(Error::Size(_))));
}

#[test]
fn a_dead_host_has_no_process_and_the_others_have_theirs() {
    if !possible() {
        return;
    }
    let hosts = Hosts::start(2).unwrap();
    let sleep = |host: usize| {
        let mut shell = hosts.command(Place::Host(host), "sh");
        shell
            .args(["-c", "sleep 1000 & sleep 1000"])
            .spawn()
            .expect("a shell")
    };
    let mut shells = [sleep(0), sleep(1)];
    let end = Instant::now() + PATIENCE;
    while [0, 1]
        .iter()
        .any(|&host| hosts.processes(Place::Host(host)).unwrap().len() < 3)
    {
        assert!(Instant::now() < end, "the shells have not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(hosts.kill(Place::Host(1)).unwrap(), 3);
    assert!(hosts.processes(Place::Host(1)).unwrap().is_empty());
    assert!(!shells[1].wait().expect("it was killed").success());
    assert_eq!(hosts.processes(Place::Host(0)).unwrap().len(), 3);
    let name = hosts.name().to_owned();
    hosts.tear_down().unwrap();
    assert!(!shells[0].wait().expect("it was killed").success());
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
    let [echo, other] = [&one, &two].map(|hosts| Echo::start(hosts, Place::Switch));
    assert!(echo.heard(&one, 0) && echo.heard(&two, 0));
    drop(other);
    assert!(echo.silent(&two, 0), "the same address is another's");
    assert!(matches!(
        Hosts::start_as(one.name(), 1),
        Err(Error::Taken(_))
    ));
    assert!(
        namespaces_of(one.name()),
        "the second try leaves the first rack alone"
    );
    drop(one);
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
