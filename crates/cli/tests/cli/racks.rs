//! Racks under test: embedded in one process, or a process a node.

use crate::process::{Running, TempFile};
use rackmem_hosts::addresses;
use std::net::SocketAddr;

/// Few buckets, so that a rack is quickly there.
const BUCKETS: &str = "1024";

/// What a rack file says when processes share memory.
pub const SHM: &str = "fabric = \"shm\"\n";

/// The ways to run a store in one process.
pub const EMBEDDED: [(&str, &[&str]); 8] = [
    ("inline, switch", &[]),
    ("inline, no switch", &["--mode", "home-only"]),
    ("inline, directory", &["--mode", "directory"]),
    ("shm, switch", &["--fabric", "shm"]),
    (
        "shm, faults",
        &["--fabric", "shm", "--loss", "0.02", "--duplication", "0.02"],
    ),
    ("udp, switch", &["--fabric", "udp"]),
    (
        "udp, no switch",
        &["--fabric", "udp", "--mode", "home-only"],
    ),
    (
        "udp, a bad network",
        &["--fabric", "udp", "--loss", "0.02", "--duplication", "0.02"],
    ),
];

/// A store that serves; ends when dropped.
pub struct Serving {
    /// Where clients connect, by node.
    pub addrs: Vec<SocketAddr>,
    processes: Vec<Running>,
    file: Option<TempFile>,
}

impl Serving {
    /// All nodes in one process.
    pub fn embedded(nodes: usize, options: &[&str]) -> Serving {
        let nodes = nodes.to_string();
        let mut args = vec!["kv", "--nodes", &nodes, "--port", "0", "--buckets", BUCKETS];
        args.extend(["--memory", "256M", "--cache", "32M"]);
        args.extend(options);
        let mut process = Running::start(&args);
        Serving {
            addrs: process.listening(),
            processes: vec![process],
            file: None,
        }
    }

    /// A process a node, and one for the switch if there is one, over UDP.
    pub fn processes(nodes: usize, with_switch: bool) -> Serving {
        Serving::of(nodes, with_switch, rack_file(nodes, with_switch))
    }

    /// A process a node, and one for the switch, by shared memory.
    pub fn sharing_memory(nodes: usize) -> Serving {
        Serving::of(nodes, true, rack_file_with(nodes, true, SHM))
    }

    /// The same on a network that loses, doubles and reorders some packets of every process.
    pub fn on_a_bad_network(nodes: usize, with_switch: bool) -> Serving {
        let faults = "[faults]\nloss = 0.02\nduplication = 0.02\ndelay = 0.02\n";
        let file = rack_file_with(nodes, with_switch, faults);
        Serving::of(nodes, with_switch, file)
    }

    fn of(nodes: usize, with_switch: bool, file: TempFile) -> Serving {
        let mut processes = Vec::new();
        if with_switch {
            let mut switch = Running::start(&["switch", "--rack", file.path()]);
            assert_eq!(switch.line()["nodes"], nodes);
            processes.push(switch);
        }
        // All start at once: whoever comes first waits for the others.
        let mut members: Vec<Running> = (0..nodes).map(|node| member(&file, node)).collect();
        let addrs = members.iter_mut().flat_map(Running::listening).collect();
        processes.extend(members);
        Serving {
            addrs,
            processes,
            file: Some(file),
        }
    }

    /// The UDP addresses of the rack's processes.
    pub fn agents(&self) -> Vec<SocketAddr> {
        let text = self.file.as_ref().map(TempFile::text).unwrap_or_default();
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.filter_map(|text| text.parse().ok()).collect()
    }

    /// Ends everything by SIGINT; the exit codes.
    pub fn interrupt(self) -> Vec<Option<i32>> {
        self.processes.iter().for_each(Running::signal);
        self.processes.into_iter().map(Running::interrupt).collect()
    }
}

fn member(file: &TempFile, node: usize) -> Running {
    let node = node.to_string();
    let rack = ["kv", "--rack", file.path(), "--node", &node];
    let serve = ["--listen", "127.0.0.1:0", "--buckets", BUCKETS];
    Running::start(&[&rack[..], &serve[..]].concat())
}

/// A description of a rack on addresses of its own.
pub fn rack_file(nodes: usize, with_switch: bool) -> TempFile {
    rack_file_with(nodes, with_switch, "")
}

/// The same with further lines.
pub fn rack_file_with(nodes: usize, with_switch: bool, further: &str) -> TempFile {
    let ports = addresses(nodes + 1);
    let quoted = |addr: &SocketAddr| format!("\"{addr}\"");
    let agents: Vec<String> = ports[1..].iter().map(quoted).collect();
    let mut text = format!("nodes = [{}]\n", agents.join(", "));
    text.push_str("memory = 268435456\ncache = 33554432\n");
    if with_switch {
        text.push_str(&format!("switch = {}\n", quoted(&ports[0])));
    }
    TempFile::new(&(text + further))
}
