//! The store on a rack of hosts: a network namespace each and one for the switch,
//! with cables that are cut and hosts that are killed. What clients are told meanwhile must be
//! linearizable.

mod clients;
mod cut;
mod locks;

use clients::{Clients, Record};
use rackmem_hosts::rack::{HostRack, Plan, Switch, Work};
use rackmem_hosts::{Hosts, Place, found};
use std::io::Write;
use std::sync::{Mutex, MutexGuard};

const HOSTS: usize = 4;
/// A silent host is declared dead after so long: a busy machine must not take the living for dead.
const SETTINGS: &str =
    "lease_ms = 2000\npatience_ms = 20000\nmemory = 134217728\ncache = 16777216\n";
const BAD_NETWORK: &str = "[faults]\nloss = 0.02\nduplication = 0.02\ndelay = 0.02\n";

/// One rack at a time: nine processes each are enough for a small machine.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A rack whose hosts all serve the store; none, and a line why, where that is impossible.
fn rack(switch: Switch, faults: &str) -> Option<HostRack> {
    rack_of(Work::Store, switch, faults)
}

/// The same whose hosts do something else.
fn rack_of(work: Work, switch: Switch, faults: &str) -> Option<HostRack> {
    if let Err(error) = Hosts::probe() {
        let _ = writeln!(std::io::stdout(), "skipped: {error}");
        return None;
    }
    let plan = Plan {
        switch,
        work,
        settings: format!("{SETTINGS}{faults}"),
        ..Plan::new(env!("CARGO_BIN_EXE_rackmem"))
    };
    let hosts = Hosts::start(HOSTS).expect("hosts, which the probe had");
    match HostRack::start(hosts, &plan) {
        Ok(rack) => Some(rack),
        Err(error) => panic!("{error}"),
    }
}

/// What the rack's processes have said, if the test fails.
struct Logs<'a>(&'a HostRack);

impl Drop for Logs<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for place in (0..HOSTS).map(Place::Host).chain([Place::Switch]) {
            let log = std::fs::read_to_string(self.0.log(place));
            eprintln!("{place:?}:\n{}", log.unwrap_or_default());
        }
    }
}

/// That clients of all hosts agree, and that nothing is left when the rack is taken down.
fn serves_and_goes(rack: HostRack) {
    let record = Record::new();
    Clients::work(&rack, &record, |clients| clients.until_each_has_done(100));
    record.judge();
    let name = rack.hosts().name().to_owned();
    let folder = rack.hosts().folder();
    rack.tear_down().unwrap();
    assert!(found().unwrap().iter().all(|rack| rack.name != name));
    assert!(!folder.exists());
}

#[test]
fn the_store_serves_in_every_host() {
    let _turn = turn();
    for (switch, faults) in [
        (Switch::User, ""),
        (Switch::User, BAD_NETWORK),
        (Switch::None, ""),
    ] {
        let Some(rack) = rack(switch, faults) else {
            return;
        };
        serves_and_goes(rack);
    }
}

#[test]
fn a_cut_cable_only_delays_and_a_dead_switch_comes_back() {
    let _turn = turn();
    if let Some(rack) = rack(Switch::User, "") {
        endures_a_cut(&rack);
        endures_the_death_of_the_switch(&rack);
    }
}

/// Nobody is declared dead, so nothing is lost: what waits for a host that is cut off goes on when
/// it is back.
fn endures_a_cut(rack: &HostRack) {
    let record = Record::new();
    Clients::work(rack, &record, |clients| {
        clients.until_each_has_done(20);
        rack.hosts().cut(3).unwrap();
        clients.until_one_waits();
        rack.hosts().mend(3).unwrap();
        clients.until_each_has_done(20);
    });
    record.judge();
}

fn endures_the_death_of_the_switch(rack: &HostRack) {
    let _logs = Logs(rack);
    let record = Record::new();
    Clients::work(rack, &record, |clients| {
        clients.until_each_has_done(20);
        rack.kill(Place::Switch).unwrap();
        // Not before the others have noticed: the rack goes on without.
        clients.until_each_has_done(10);
        rack.restart(Place::Switch).unwrap();
        clients.until_each_has_done(20);
    });
    record.judge();
}

#[test]
fn a_host_that_is_killed_comes_back_and_takes_its_own_keys_with_it_at_most() {
    let _turn = turn();
    let Some(rack) = rack(Switch::User, "") else {
        return;
    };
    let record = Record::new();
    Clients::work(&rack, &record, |clients| {
        clients.until_each_has_done(20);
        let died = record.now();
        assert!(rack.kill(Place::Host(2)).unwrap() > 0);
        clients.until_some_have_done(20);
        rack.restart(Place::Host(2)).unwrap();
        clients.until_each_has_done(20);
        record.died(died);
    });
    record.judge();
}

#[test]
fn a_host_whose_cable_is_cut_is_excluded_and_comes_back() {
    let _turn = turn();
    for switch in [Switch::User, Switch::None] {
        let Some(rack) = rack(switch, "") else {
            return;
        };
        cut::is_excluded_and_comes_back(&rack);
    }
}

/// The same through the program in the kernel, native and generic. Loss alone the program makes
/// itself; doubled and late packets go by its control plane.
#[cfg(feature = "xdp")]
#[test]
fn the_store_serves_through_the_switch_in_the_kernel() {
    let _turn = turn();
    for mode in ["native", "skb"] {
        for faults in ["", "[faults]\nloss = 0.02\n", BAD_NETWORK] {
            let Some(rack) = rack(Switch::Xdp(mode.into()), faults) else {
                return;
            };
            let log = std::fs::read_to_string(rack.log(Place::Switch)).unwrap();
            assert!(
                log.contains(mode),
                "the switch is where it should be: {log}"
            );
            serves_and_goes(rack);
        }
    }
}

#[cfg(feature = "xdp")]
#[test]
fn a_switch_in_the_kernel_bears_cut_cables_and_its_own_death() {
    let _turn = turn();
    if let Some(rack) = rack(Switch::Xdp("native".into()), "") {
        endures_a_cut(&rack);
        endures_the_death_of_the_switch(&rack);
    }
}

/// Locks whose directory is the switch's, in either place; in the kernel it goes on in the next
/// epoch with what it had in the last.
#[test]
fn hosts_take_turns_by_locks() {
    let _turn = turn();
    let mut switches = vec![(Switch::User, "")];
    if cfg!(feature = "xdp") {
        switches.extend([
            (Switch::Xdp("native".into()), ""),
            (Switch::Xdp("skb".into()), "[faults]\nloss = 0.02\n"),
            (Switch::Xdp("skb".into()), BAD_NETWORK),
        ]);
    }
    for (switch, faults) in switches {
        let Some(rack) = rack_of(Work::Nothing, switch, faults) else {
            return;
        };
        locks::take_turns(&rack);
        rack.tear_down().unwrap();
    }
}

#[cfg(feature = "xdp")]
#[test]
fn locks_live_through_deaths_with_their_directory_in_the_kernel() {
    let _turn = turn();
    if let Some(rack) = rack_of(Work::Nothing, Switch::Xdp("native".into()), "") {
        locks::live_on(&rack);
        rack.tear_down().unwrap();
    }
}
