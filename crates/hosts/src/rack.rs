//! A rack that runs in hosts: a process in each, and the switch's.
//!
//! What runs where is in the rack's folder: `rack.toml`, and for each place the words of its
//! command and its log. So a rack that was kept is looked after by other processes than the one
//! that made it.

use crate::error::{Error, Result};
use crate::hosts::Hosts;
use crate::names::{Place, address};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The UDP port of every agent, and of the switch.
pub const PORT: u16 = 7400;
/// Where a host's own clients find its store: on the host's loopback.
pub const STORE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7379);
/// How long a member may take until it serves: it waits for the others,
/// and for its predecessor's lease.
const START: Duration = Duration::from_secs(60);
/// Between two looks at a log.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of a log that are shown when its process ended.
const LAST_WORDS: usize = 2000;

/// Which switch a rack has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// None: home agents own every entry.
    None,
    /// A process behind a UDP socket.
    User,
    /// A program in the kernel on every port of the switch, attached in this mode: `native`,
    /// `skb` or `auto`.
    Xdp(String),
}

/// What the processes in hosts do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Each is a node that serves the store at [`STORE`].
    Store,
    /// Each is a node.
    Node,
    /// There are none: the rack's creator starts its own.
    Nothing,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command `rackmem`.
    pub program: PathBuf,
    /// Which switch.
    pub switch: Switch,
    /// In the hosts.
    pub work: Work,
    /// Further lines of the rack's file, such as `mode = "home-only"`; tables last.
    pub settings: String,
    /// Further options of the switch's process.
    pub switch_options: Vec<String>,
    /// Whether members may die: by a folder that all hosts see. Else members are fixed.
    pub members: bool,
}

impl Plan {
    /// Nodes that serve the store, behind a switch in user space, and may die.
    pub fn new(program: impl Into<PathBuf>) -> Plan {
        Plan {
            program: program.into(),
            switch: Switch::User,
            work: Work::Store,
            settings: String::new(),
            switch_options: Vec::new(),
            members: true,
        }
    }

    fn file(&self, hosts: usize, folder: &Path) -> String {
        let at = |place: Place| format!("\"{}:{PORT}\"", address(place));
        let nodes: Vec<String> = (0..hosts).map(|host| at(Place::Host(host))).collect();
        let mut text = format!("nodes = [{}]\n", nodes.join(", "));
        if self.switch != Switch::None {
            text.push_str(&format!("switch = {}\n", at(Place::Switch)));
        }
        if self.members {
            let members = folder.join("members");
            text.push_str(&format!("membership = \"dir:{}\"\n", members.display()));
        }
        text.push_str(&self.settings);
        text
    }

    /// The words of a place's command; none where nothing is to run.
    fn words(&self, place: Place, file: &Path, ports: &[String]) -> Vec<String> {
        let file = file.display().to_string();
        let program = self.program.display().to_string();
        let mut words = vec![program, "--json".into()];
        match (place, self.work) {
            (Place::Switch, _) if self.switch == Switch::None => return Vec::new(),
            (Place::Switch, _) => {
                words.extend(["switch".into(), "--rack".into(), file]);
                if let Switch::Xdp(mode) = &self.switch {
                    words.push("--xdp".into());
                    words.extend(ports.iter().cloned());
                    words.extend(["--xdp-mode".into(), mode.clone()]);
                }
                words.extend(self.switch_options.iter().cloned());
            }
            (Place::Host(_), Work::Nothing) => return Vec::new(),
            (Place::Host(node), work) => {
                let serves = work == Work::Store;
                let command = if serves { "kv" } else { "node" };
                words.extend([command.into(), "--rack".into(), file]);
                words.extend(["--node".into(), node.to_string()]);
                if serves {
                    words.extend(["--listen".into(), STORE.to_string()]);
                    words.extend(["--buckets".into(), "1024".into()]);
                }
            }
        }
        words
    }
}

/// A running rack. Its hosts, and with them all processes, are taken down with it,
/// unless it was kept or only opened.
pub struct HostRack {
    hosts: Hosts,
    /// Those that this process started, to be waited for when they end.
    children: Mutex<Vec<(Place, Child)>>,
}

impl HostRack {
    /// Runs this in the hosts; returns when every member serves.
    pub fn start(hosts: Hosts, plan: &Plan) -> Result<HostRack> {
        let folder = hosts.folder();
        std::fs::create_dir_all(folder.join("members"))?;
        let rack = HostRack {
            hosts,
            children: Mutex::new(Vec::new()),
        };
        std::fs::write(rack.file(), plan.file(rack.hosts.count(), &folder))?;
        for place in rack.hosts.places() {
            let words = plan.words(place, &rack.file(), &rack.hosts.ports());
            std::fs::write(rack.words_file(place), words.join("\n"))?;
        }
        // All at once: the first ones wait for the others.
        let places: Vec<Place> = rack.hosts.places().collect();
        let begun: Vec<(Place, Began)> = (places.into_iter())
            .filter_map(|place| {
                rack.begin(place)
                    .map(|began| Some((place, began?)))
                    .transpose()
            })
            .collect::<Result<_>>()?;
        begun
            .into_iter()
            .try_for_each(|(place, began)| rack.wait_for(place, &began))?;
        Ok(rack)
    }

    /// A rack that was kept.
    pub fn open(name: &str) -> Result<HostRack> {
        Ok(HostRack {
            hosts: Hosts::open(name)?,
            children: Mutex::new(Vec::new()),
        })
    }

    /// Where it runs.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The file that describes it.
    pub fn file(&self) -> PathBuf {
        self.hosts.folder().join("rack.toml")
    }

    /// What the process of a place has written.
    pub fn log(&self, place: Place) -> PathBuf {
        self.hosts.folder().join(format!("{place}.log"))
    }

    fn words_file(&self, place: Place) -> PathBuf {
        self.hosts.folder().join(format!("{place}.command"))
    }

    /// What runs in a place, or ran, or none.
    pub fn command_line(&self, place: Place) -> Option<String> {
        let words = self.words(place).ok()?;
        (!words.is_empty()).then(|| words.join(" "))
    }

    fn words(&self, place: Place) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(self.words_file(place))?;
        Ok(text.lines().map(String::from).collect())
    }

    /// Starts a place's process, after it was killed; returns when it serves.
    pub fn restart(&self, place: Place) -> Result<()> {
        match self.begin(place)? {
            Some(began) => self.wait_for(place, &began),
            None => Ok(()),
        }
    }

    fn begin(&self, place: Place) -> Result<Option<Began>> {
        let words = self.words(place)?;
        let Some((program, args)) = words.split_first() else {
            return Ok(None);
        };
        if let [pid, ..] = self.hosts.processes(place)?[..] {
            let why = format!("{place}: process {pid} runs there: kill it first");
            return Err(Error::Size(why));
        }
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.log(place))?;
        let from = log.metadata()?.len();
        let child = self
            .hosts
            .command(place, program)
            .args(args)
            // Ctrl-C is for the command in front, not for the members.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let pid = child.id();
        self.children().push((place, child));
        Ok(Some(Began { pid, from }))
    }

    fn children(&self) -> std::sync::MutexGuard<'_, Vec<(Place, Child)>> {
        // The list is complete whenever its lock is free.
        self.children
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits for the first line that a member writes when it serves.
    fn wait_for(&self, place: Place, began: &Began) -> Result<()> {
        let end = Instant::now() + START;
        loop {
            let log = std::fs::read(self.log(place))?;
            let said = log.get(began.from as usize..).unwrap_or_default();
            let said = String::from_utf8_lossy(said);
            if said.lines().any(|line| line.starts_with('{')) {
                return Ok(());
            }
            if self.ended(began.pid)? || Instant::now() > end {
                let from = said.len().saturating_sub(LAST_WORDS);
                let log = said.get(from..).unwrap_or(&said).to_owned();
                let who = place.to_string();
                return Err(Error::NotUp { who, log });
            }
            std::thread::sleep(LOOK);
        }
    }

    fn ended(&self, pid: u32) -> Result<bool> {
        let mut children = self.children();
        let own = children.iter_mut().find(|(_, child)| child.id() == pid);
        Ok(match own {
            Some((_, child)) => child.try_wait()?.is_some(),
            None => true,
        })
    }

    /// SIGKILL to all processes of a place; how many there were. It can be started again.
    pub fn kill(&self, place: Place) -> Result<usize> {
        let killed = self.hosts.kill(place)?;
        let mut children = self.children();
        while let Some(at) = children.iter().position(|(at, _)| *at == place) {
            let (_, mut child) = children.swap_remove(at);
            child.wait()?;
        }
        Ok(killed)
    }

    /// Lets it run when this process ends.
    pub fn keep(self) -> Result<()> {
        self.hosts.keep()
    }

    /// Takes everything down, also what another process made.
    pub fn tear_down(self) -> Result<()> {
        self.hosts.tear_down()?;
        for (_, mut child) in self.children.into_inner().unwrap_or_default() {
            child.wait()?;
        }
        Ok(())
    }
}

struct Began {
    pid: u32,
    /// Bytes that were in its log before.
    from: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(switch: Switch, work: Work) -> Plan {
        Plan {
            switch,
            work,
            ..Plan::new("rackmem")
        }
    }

    #[test]
    fn the_file_names_the_switch_if_there_is_one_and_further_lines_come_last() {
        let mut plan = plan(Switch::User, Work::Node);
        plan.settings = "[faults]\nloss = 0.1\n".into();
        let text = plan.file(2, Path::new("/f"));
        assert_eq!(
            text,
            "nodes = [\"10.77.0.1:7400\", \"10.77.0.2:7400\"]\nswitch = \"10.77.0.254:7400\"\n\
             membership = \"dir:/f/members\"\n[faults]\nloss = 0.1\n"
        );
        plan.switch = Switch::None;
        plan.members = false;
        let text = plan.file(1, Path::new("/f"));
        assert!(
            !text.contains("switch") && !text.contains("membership"),
            "{text}"
        );
    }

    #[test]
    fn every_place_has_its_command() {
        let words = |switch: Switch, work, place| {
            let ports = ["s0".to_owned(), "s1".to_owned()];
            plan(switch, work)
                .words(place, Path::new("f"), &ports)
                .join(" ")
        };
        let xdp = Switch::Xdp("skb".into());
        assert_eq!(
            words(xdp, Work::Node, Place::Switch),
            "rackmem --json switch --rack f --xdp s0 s1 --xdp-mode skb"
        );
        assert_eq!(
            words(Switch::User, Work::Node, Place::Host(1)),
            "rackmem --json node --rack f --node 1"
        );
        let store = words(Switch::None, Work::Store, Place::Host(0));
        assert!(
            store.contains("kv --rack f --node 0 --listen 127.0.0.1:7379"),
            "{store}"
        );
        assert_eq!(words(Switch::None, Work::Store, Place::Switch), "");
        assert_eq!(words(Switch::User, Work::Nothing, Place::Host(0)), "");
    }
}
