//! A rack of hosts with a switch in the kernel, whose process can be killed.

use rackmem::diagnostics::Kind;
use rackmem::membership::{self, Role};
use rackmem::{Config, KernelSwitch, Node, OpenError, Rack};
use rackmem_hosts::{Hosts, Place, address};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const HOSTS: usize = 5;
/// Longer than anything here takes on a loaded machine.
pub const LONG: Duration = Duration::from_secs(120);

/// What is told in a rack of its own, in each mode.
pub type Story = fn(&mut Rig);

pub fn say(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The rack.
pub struct Rig {
    pub mode: &'static str,
    pub hosts: Hosts,
    pub config: Config,
    file: PathBuf,
    switch: Option<(Child, BufReader<ChildStdout>)>,
}

/// What a switch has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Answers about replicated memory, and requests for blocks, that have come.
    pub answers: u64,
    pub misses: u64,
    /// To its process, and by its process in place of the ports.
    pub control: u64,
    pub orders: u64,
}

/// Serves until it is told to end, and says what it has done then.
pub fn play_switch(mode: &str, file: &Path, ports: &[String]) {
    let text = std::fs::read_to_string(file).expect("a configuration");
    let config = Config::parse(&text).expect("a configuration");
    let switch = KernelSwitch {
        interfaces: ports.to_vec(),
        mode: mode.parse().expect("a mode"),
    };
    let rack = match Rack::serve_switch_in_kernel(&config, &switch) {
        Ok(rack) => rack,
        Err(OpenError::Kernel { code, why }) => return say(format_args!("refused {code} {why}")),
        Err(error) => panic!("{error}"),
    };
    say(format_args!("ready"));
    let _ = std::io::stdin().lock().read_line(&mut String::new());
    let metrics = rack.metrics().switch.expect("it is the switch");
    let kernel = metrics.kernel.expect("it is in the kernel");
    let received = |kinds: [Kind; 2]| {
        let rows = metrics.received.0.iter();
        let rows = rows.filter(|row| kinds.contains(&row.0));
        rows.map(|row| row.1).sum::<u64>()
    };
    say(format_args!(
        "{} {} {} {} {} {}",
        received([Kind::AbdWriteAck, Kind::AbdReadAck]),
        received([Kind::ReadMiss, Kind::WriteMiss]),
        kernel.control,
        kernel.orders,
        kernel.malformed,
        kernel.missed + kernel.errors
    ));
}

impl Rig {
    fn start(mode: &'static str) -> Rig {
        let hosts = Hosts::start(HOSTS).expect("namespaces");
        let folder = hosts.folder().join("members");
        std::fs::create_dir_all(&folder).expect("a folder");
        let at = |place| format!("\"{}:7400\"", address(place));
        let nodes: Vec<String> = (0..HOSTS).map(|host| at(Place::Host(host))).collect();
        let text = format!(
            "fabric = \"udp\"\nswitch = {}\nnodes = [{}]\nmembership = \"dir:{}\"\n\
             memory = {}\ncache = {}\npatience = '60s'\nlease = '20s'\nreplace_after = '0s'\n",
            at(Place::Switch),
            nodes.join(", "),
            folder.display(),
            64 << 20,
            1 << 20,
        );
        let file = hosts.folder().join("rack.toml");
        std::fs::write(&file, &text).expect("a file");
        Rig {
            mode,
            hosts,
            config: Config::parse(&text).expect("a configuration"),
            file,
            switch: None,
        }
    }

    /// Starts the switch. False: this machine has none, which was said.
    pub fn start_switch(&mut self) -> bool {
        let own = std::env::current_exe().expect("this program");
        let mut command = self.hosts.command(Place::Switch, own);
        command.args(["play-switch", self.mode]).arg(&self.file);
        command.args(self.hosts.ports());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        let _ = said.read_line(&mut line);
        let serves = line.trim() == "ready";
        if !serves {
            // Whoever may not load programs is told so by another kind.
            let mode = self.mode;
            assert!(line.starts_with("refused permission"), "{mode}: {line}");
            say(format_args!("skipped: {mode}: {}", line.trim()));
        }
        self.switch = Some((child, said));
        serves
    }

    /// Kills the switch's process, as it is, and says that it is dead.
    pub fn kill_switch(&mut self) {
        if let Some((mut child, _)) = self.switch.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.bury(Role::Switch);
    }

    /// Ends the switch with a word.
    pub fn end_switch(&mut self) -> Figures {
        let (mut child, mut said) = self.switch.take().expect("it serves");
        let told = child.stdin.take().map(|mut it| it.write_all(b"end\n"));
        assert!(told.is_some_and(|told| told.is_ok()));
        let mut rest = String::new();
        let _ = said.read_to_string(&mut rest);
        let _ = child.wait();
        let figures: Vec<u64> = rest.split_whitespace().flat_map(str::parse).collect();
        let [answers, misses, control, orders, malformed, wrong] = figures[..] else {
            panic!("{}: {rest}", self.mode);
        };
        // Past the program, and accesses to its maps that have failed.
        assert_eq!((malformed, wrong), (0, 0), "{}: {rest}", self.mode);
        Figures {
            answers,
            misses,
            control,
            orders,
        }
    }

    /// Says that a member is dead, as `rackmem members remove` does: no lease is waited for.
    pub fn bury(&self, who: Role) {
        membership::remove(&*self.store(), who, LONG).expect("a member");
    }

    pub fn store(&self) -> Arc<dyn membership::Store> {
        let settings = &self.config.membership;
        let store = settings.source.open(&settings.name).expect("a store");
        store.expect("members can change")
    }

    /// A node of this host, in a rack whose nodes are all there.
    pub fn join(&self, host: usize) -> (Rack, Node) {
        let rack = Rack::join(&self.config, host).expect("a place");
        let node = rack.node(host);
        eventually("all are members", || {
            (0..HOSTS as u16).all(|n| node.is_member(n))
        });
        (rack, node)
    }
}

/// Tells a story in a mode. False: this machine has no switch in the kernel, which was said.
pub fn tell(mode: &'static str, story: Story) -> bool {
    let mut rig = Rig::start(mode);
    let serves = rig.start_switch();
    if serves {
        story(&mut rig);
    }
    if let Some((mut child, _)) = rig.switch.take() {
        let _ = child.wait();
    }
    rig.hosts.tear_down().expect("nothing is left");
    serves
}
