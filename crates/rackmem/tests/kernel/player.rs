//! A process of one host that plays a part: it is told what to do by lines, and answers by lines.

use crate::rig::say;
use rackmem::{Config, OpenError, Rack};
use rackmem_hosts::{Hosts, Place, UPLINK, address, port};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// See the module. Dropping it kills it.
pub struct Player {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Player {
    /// Starts a part at a host, whose kernel answers by a program in this mode, and what it says
    /// once it is ready. `None`: this machine loads no programs, which was said.
    pub fn start(
        (hosts, host): (&Hosts, usize),
        (part, mode): (&str, &str),
        folder: &Path,
    ) -> Option<(Player, String)> {
        let own = std::env::current_exe().expect("this program");
        let mut command = hosts.command(Place::Host(host), own);
        command
            .args([part, &format!("{UPLINK}/{mode}")])
            .arg(folder);
        Player::played(command, (part, mode))
    }

    /// Starts the switch of a rack with this file, in the kernel and in this mode.
    pub fn switch(hosts: &Hosts, mode: &str, file: &Path) -> Option<Player> {
        let own = std::env::current_exe().expect("this program");
        let mut command = hosts.command(Place::Switch, own);
        command.args(["play-switch", mode]).arg(file);
        command.args(hosts.ports());
        let started = Player::played(command, ("the switch", mode));
        started.map(|(player, _)| player)
    }

    fn played(mut command: Command, (part, mode): (&str, &str)) -> Option<(Player, String)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut player = Player {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().expect("piped")),
            child,
        };
        let line = player.hear();
        let Some(said) = line.strip_prefix("ready") else {
            // Whoever may not load programs is told so by another kind.
            assert!(line.starts_with("refused permission"), "{mode}: {line}");
            say(format_args!("skipped: {part}, {mode}: {line}"));
            return None;
        };
        Some((player, said.trim().to_owned()))
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        let _ = self.stdout.read_line(&mut line);
        line.trim().to_owned()
    }

    pub fn tell(&mut self, line: &str) -> String {
        let stdin = self.stdin.as_mut().expect("it listens");
        writeln!(stdin, "{line}").expect("it lives");
        self.hear()
    }

    /// So many figures of what its program has done.
    pub fn counts<const N: usize>(&mut self) -> [u64; N] {
        let said = self.tell("count");
        let figures: Vec<u64> = said.split(' ').take(N).flat_map(str::parse).collect();
        let figures: Result<[u64; N], _> = figures.try_into();
        figures.unwrap_or_else(|_| panic!("no figures: {said}"))
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).expect("a process");
        // SAFETY: a signal to a process that this one has started and not waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets it end by itself. Whether it has ended well.
    pub fn end(&mut self) -> bool {
        drop(self.stdin.take());
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.kill();
    }
}

/// Whether a program is attached to a host's interface.
pub fn attached(hosts: &Hosts, host: usize) -> bool {
    let namespace = hosts.namespace(Place::Host(host));
    let shown = Command::new("ip")
        .args(["-n", &namespace, "link", "show", UPLINK])
        .output()
        .expect("`ip`, which made the rack");
    String::from_utf8_lossy(&shown.stdout).contains("xdp")
}

/// Hosts, and a folder for their membership. In native mode the other end of the cable of the host
/// that has the program has to poll.
pub fn hosts(count: usize, host: usize) -> (Hosts, std::path::PathBuf) {
    let hosts = Hosts::start(count).expect("namespaces");
    let folder = hosts.folder().join("members");
    std::fs::create_dir_all(&folder).expect("a folder");
    polls(&hosts, host);
    (hosts, folder)
}

/// The other end of a host's cable polls.
pub fn polls(hosts: &Hosts, host: usize) {
    let polls = hosts
        .command(Place::Switch, "ethtool")
        .args(["-K", &port(host), "gro", "on"])
        .status();
    assert!(polls.expect("`ethtool`").success());
}

/// A rack with a node on each of so many hosts, at this port, and more lines of its file.
pub fn config(hosts: (usize, u16), folder: &Path, more: &str) -> Config {
    Config::parse(&text(hosts, folder, more)).expect("a configuration")
}

/// The file.
pub fn text((hosts, port): (usize, u16), folder: &Path, more: &str) -> String {
    let node = |host| format!("\"{}:{port}\"", address(Place::Host(host)));
    let nodes: Vec<String> = (0..hosts).map(node).collect();
    format!(
        "fabric = \"udp\"\nnodes = [{}]\nmembership = \"dir:{}\"\nmemory = {}\ncache = {}\n\
         patience = '60s'\n{more}",
        nodes.join(", "),
        folder.display(),
        64 << 20,
        1 << 20,
    )
}

/// What a part joins. `None`: its kernel takes no program, which the test was told.
pub fn joined(config: &Config, host: usize) -> Option<Rack> {
    match Rack::join(config, host) {
        Ok(rack) => Some(rack),
        Err(OpenError::Kernel { code, why }) => {
            say(format_args!("refused {code} {why}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}
