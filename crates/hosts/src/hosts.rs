//! The hosts, the switch, and their cables.

use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::names::{self, BRIDGE, MAX_HOSTS, MTU, Place, UPLINK, namespace, port, port_index};
use crate::{run, state};
use nix::sched::CloneFlags;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A rack of hosts without anything running in them. Taken down when dropped,
/// unless it was kept or only opened.
pub struct Hosts {
    name: String,
    count: usize,
    guard: Option<Guard>,
}

/// Where `ip` keeps namespaces.
const NAMESPACES: &str = "/run/netns";
/// Racks of this process so far.
static RACKS: AtomicU32 = AtomicU32::new(0);

impl Hosts {
    /// Says what this machine lacks for a rack of hosts, by making a namespace with a bridge and a
    /// cable and removing it.
    pub fn probe() -> Result<()> {
        run::check()?;
        let rack = unique("probe");
        let hosts = Hosts::start_as(&rack, 1)?;
        hosts.tear_down()
    }

    /// Makes a rack of so many hosts, 1 to [`MAX_HOSTS`], under a name that no other has.
    pub fn start(hosts: usize) -> Result<Hosts> {
        Hosts::start_as(&unique("run"), hosts)
    }

    /// Makes a rack of this name.
    pub fn start_as(name: &str, hosts: usize) -> Result<Hosts> {
        names::check(name)?;
        if !(1..=MAX_HOSTS).contains(&hosts) {
            let why = format!("a rack has 1 to {MAX_HOSTS} hosts, not {hosts}");
            return Err(Error::Size(why));
        }
        run::check()?;
        state::claim(name, hosts)?;
        let mut rack = Hosts {
            name: name.into(),
            count: hosts,
            guard: None,
        };
        // From here on it is taken down whatever happens: by the drop of this value,
        // or by the guard.
        match Guard::start(name, hosts) {
            Ok(guard) => rack.guard = Some(guard),
            Err(error) => {
                state::release(name);
                return Err(error);
            }
        }
        rack.build()?;
        Ok(rack)
    }

    /// A rack that was made before, by this process or another. Dropping the value leaves it as it
    /// is.
    pub fn open(name: &str) -> Result<Hosts> {
        run::check()?;
        let found = state::read(names::check(name)?).filter(|found| !found.stale);
        let found = found.ok_or_else(|| Error::Unknown(name.into()))?;
        Ok(Hosts {
            name: found.name,
            count: found.hosts,
            guard: None,
        })
    }

    fn build(&self) -> Result<()> {
        self.add_namespace(Place::Switch)?;
        let switch = namespace(&self.name, Place::Switch);
        let mac = names::mac_text(Place::Switch);
        run::ip(&format!(
            "-n {switch} link add {BRIDGE} address {mac} mtu {MTU} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
        ))?;
        let addr = names::address(Place::Switch);
        run::ip(&format!("-n {switch} addr add {addr}/24 dev {BRIDGE}"))?;
        run::ip(&format!("-n {switch} link set {BRIDGE} up"))?;
        (0..self.count).try_for_each(|host| self.add_host(host))?;
        self.introduce()
    }

    fn add_namespace(&self, place: Place) -> Result<()> {
        let name = namespace(&self.name, place);
        run::ip(&format!("netns add {name}"))?;
        // IPv6 is unused here, and its announcements would be in every capture.
        let quiet = "cd /proc/sys/net/ipv6/conf 2>/dev/null || exit 0; echo 1 > all/disable_ipv6; echo 1 > default/disable_ipv6";
        run::run("ip", &["netns", "exec", &name, "sh", "-c", quiet])?;
        run::ip(&format!("-n {name} link set lo up"))?;
        Ok(())
    }

    fn add_host(&self, host: usize) -> Result<()> {
        let place = Place::Host(host);
        self.add_namespace(place)?;
        let (switch, own) = (
            namespace(&self.name, Place::Switch),
            namespace(&self.name, place),
        );
        let (port, index) = (port(host), port_index(host));
        let (mac, addr) = (names::mac_text(place), names::address(place));
        run::ip(&format!(
            "-n {switch} link add {port} index {index} mtu {MTU} type veth peer name {UPLINK} address {mac} mtu {MTU} netns {own}"
        ))?;
        run::ip(&format!("-n {switch} link set {port} master {BRIDGE} up"))?;
        run::ip(&format!("-n {own} addr add {addr}/24 dev {UPLINK}"))?;
        // A packet that a program forwards must have its checksum already. And a frame that a
        // native XDP program sends to the other end of a cable vanishes unless that end polls,
        // which it does with a program of its own or with GRO.
        let offload = ["-K", UPLINK, "tx", "off", "gro", "on"];
        let ethtool = [&["netns", "exec", own.as_str(), "ethtool"], &offload[..]].concat();
        // The driver tells the switch's end that this one polls only if it is up by then.
        run::ip(&format!("-n {own} link set {UPLINK} up"))?;
        run::run("ip", &ethtool)?;
        Ok(())
    }

    /// Static neighbour entries between all hosts: an XDP program need not resolve addresses,
    /// and a capture shows no ARP.
    fn introduce(&self) -> Result<()> {
        let places: Vec<Place> = self.places().collect();
        for &at in &places {
            let own = namespace(&self.name, at);
            let device = if at == Place::Switch { BRIDGE } else { UPLINK };
            for &other in places.iter().filter(|&&other| other != at) {
                let (addr, mac) = (names::address(other), names::mac_text(other));
                run::ip(&format!(
                    "-n {own} neigh replace {addr} lladdr {mac} nud permanent dev {device}"
                ))?;
            }
        }
        Ok(())
    }

    /// Its name, which tells it from other racks of this machine.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many hosts it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The switch and all hosts.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        std::iter::once(Place::Switch).chain((0..self.count).map(Place::Host))
    }

    /// A folder of the rack's own, which is removed with it.
    pub fn folder(&self) -> PathBuf {
        state::folder(&self.name)
    }

    /// The network namespace of a place, as `ip netns` knows it.
    pub fn namespace(&self, place: Place) -> String {
        namespace(&self.name, place)
    }

    /// The switch's interfaces, by host.
    pub fn ports(&self) -> Vec<String> {
        (0..self.count).map(port).collect()
    }

    /// A command that will run in a place. Its process is the program itself,
    /// so a signal to it reaches the program.
    pub fn command(&self, place: Place, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(place)]);
        command.arg(program);
        command
    }

    /// Does something in a place, in a thread of its own; sockets that it makes stay there wherever
    /// they are used.
    pub fn within<T: Send>(&self, place: Place, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.known(place)?;
        let namespace = File::open(Path::new(NAMESPACES).join(self.namespace(place)))?;
        let enter = move || {
            // This thread only, which ends with the work.
            nix::sched::setns(namespace, CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from)?;
            Ok(work())
        };
        std::thread::scope(|scope| match scope.spawn(enter).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// The processes that run in a place.
    pub fn processes(&self, place: Place) -> Result<Vec<u32>> {
        self.known(place)?;
        run::processes(&self.namespace(place))
    }

    /// SIGKILL to all processes of a place, as if its power had failed; how many there were.
    /// Its cable stays.
    pub fn kill(&self, place: Place) -> Result<usize> {
        self.known(place)?;
        state::kill(&self.namespace(place))
    }

    /// Pulls a host's cable: neither end has a carrier, and what is sent is lost.
    pub fn cut(&self, host: usize) -> Result<()> {
        self.cable(host, "down")
    }

    /// Puts it in again. Until the kernel has noticed, which may take a second,
    /// packets are still lost.
    pub fn mend(&self, host: usize) -> Result<()> {
        self.cable(host, "up")
    }

    fn cable(&self, host: usize, state: &str) -> Result<()> {
        self.known(Place::Host(host))?;
        let switch = self.namespace(Place::Switch);
        run::ip(&format!("-n {switch} link set {} {state}", port(host))).map(drop)
    }

    fn known(&self, place: Place) -> Result<()> {
        match place {
            Place::Host(host) if host >= self.count => {
                let last = self.count.saturating_sub(1);
                let why = format!("there is no host {host}: they are 0 to {last}");
                Err(Error::Size(why))
            }
            _ => Ok(()),
        }
    }

    /// Keeps it when this process ends, until a process opens it and takes it down.
    pub fn keep(mut self) -> Result<()> {
        state::disown(&self.name, self.count)?;
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        Ok(())
    }

    /// Takes it down, also if another process made it; an error if that failed.
    pub fn tear_down(mut self) -> Result<()> {
        let removed = state::remove(&self.name);
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        removed
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            match state::remove(&self.name) {
                Ok(()) => guard.dismiss(),
                // The guard tries once more.
                Err(_) => drop(guard),
            }
        }
    }
}

fn unique(kind: &str) -> String {
    let number = RACKS.fetch_add(1, Ordering::Relaxed);
    format!("{kind}-{}-{number}", std::process::id())
}
