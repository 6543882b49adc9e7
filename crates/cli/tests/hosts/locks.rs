//! Members in hosts that count by one lock. They are threads of this process,
//! each with its sockets in a host of its own.

use rackmem::locked::Mutex;
#[cfg(feature = "xdp")]
use rackmem::membership::View;
use rackmem::{Config, Node, Rack as Member};
use rackmem_hosts::Place;
use rackmem_hosts::rack::HostRack;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Turns of each thread of a node, of which there are two.
const TURNS: u64 = 100;
const THREADS: u64 = 2;
/// Longer than a rack takes for anything.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// Does something in a host: whatever sockets it takes are there.
fn within<T: Send>(rack: &HostRack, host: usize, work: impl FnOnce() -> T + Send) -> T {
    let done = rack.hosts().within(Place::Host(host), work);
    done.expect("a host")
}

fn members(rack: &HostRack) -> Vec<Member> {
    let config = Config::load(&rack.file()).expect("the rack's own file");
    let join = |host| {
        within(rack, host, || {
            Member::join(&config, host).expect("a member")
        })
    };
    (0..rack.hosts().count()).map(join).collect()
}

fn nodes(members: &[Member]) -> Vec<Node> {
    let of = |(host, member): (usize, &Member)| member.try_node(host).expect("its node");
    members.iter().enumerate().map(of).collect()
}

/// A lock at home on the first host.
fn create(rack: &HostRack, nodes: &[Node]) -> u64 {
    within(rack, 0, || Mutex::create(&nodes[0], 0u64).unwrap().addr())
}

fn attach(node: &Node, addr: u64) -> Mutex<u64> {
    Mutex::attach(node, addr).unwrap()
}

/// Every thread of these nodes counts so often under the lock. Nobody's turn is lost or counted
/// twice.
fn count(rack: &HostRack, nodes: &[Node], addr: u64) {
    let value = || within(rack, 0, || attach(&nodes[0], addr).lock().unwrap().get());
    let before = value();
    let turns = &|node: &Node| {
        let mutex = attach(node, addr);
        for _ in 0..TURNS {
            mutex.lock().unwrap().update(|n| n + 1);
        }
    };
    std::thread::scope(|scope| {
        for (host, node) in nodes.iter().enumerate() {
            for _ in 0..THREADS {
                scope.spawn(move || within(rack, host, || turns(node)));
            }
        }
    });
    assert_eq!(value() - before, nodes.len() as u64 * THREADS * TURNS);
}

/// What a switch in the kernel says every second of what it has done for locks,
/// when it has said something new of it.
fn said(rack: &HostRack, enough: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let log = std::fs::read_to_string(rack.log(Place::Switch)).unwrap();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut figures = lines.map(|line| line["switch"].clone());
        if let Some(last) = figures.rfind(|switch| switch["locks"].is_object())
            && enough(&last)
        {
            return last;
        }
        assert!(Instant::now() < end, "the switch says otherwise: {log}");
        std::thread::sleep(LOOK);
    }
}

fn is_in_kernel(rack: &HostRack) -> bool {
    let command = rack.command_line(Place::Switch).unwrap_or_default();
    command.contains("--xdp")
}

/// Every host in turn, by a lock whose home is the first.
pub fn take_turns(rack: &HostRack) {
    let members = members(rack);
    let nodes = nodes(&members);
    let addr = create(rack, &nodes);
    count(rack, &nodes, addr);
    if is_in_kernel(rack) {
        let figures = said(rack, |switch| switch["locks"]["served"].as_u64() > Some(0));
        assert_eq!(figures["kernel"]["missed"], 0, "{figures}");
        assert_eq!(figures["kernel"]["errors"], 0, "{figures}");
    }
}

/// The switch dies and comes back, and then a member dies: what the kernel's directory had goes on
/// in each new epoch.
#[cfg(feature = "xdp")]
pub fn live_on(rack: &HostRack) {
    let mut members = members(rack);
    let mut nodes = nodes(&members);
    let addr = create(rack, &nodes);
    count(rack, &nodes, addr);
    rack.kill(Place::Switch).unwrap();
    await_view(&members, |view| view.switch.is_none());
    count(rack, &nodes, addr);
    rack.restart(Place::Switch).unwrap();
    await_view(&members, |view| view.switch.is_some());
    count(rack, &nodes, addr);
    drop((members.pop(), nodes.pop()));
    let left = members.len() as u32;
    await_view(&members, |view| view.live.len() == left);
    count(rack, &nodes, addr);
}

/// Waits until every member knows of a view like that.
#[cfg(feature = "xdp")]
fn await_view(members: &[Member], like: impl Fn(&View) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !members
        .iter()
        .all(|member| member.view().is_some_and(|view| like(&view)))
    {
        assert!(Instant::now() < end, "the rack goes on as it was");
        std::thread::sleep(LOOK);
    }
}
