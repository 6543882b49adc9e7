//! `rackmem run`: a program of the user's in every node of a rack, or as the node that a launcher
//! such as `srun` or a StatefulSet says.

mod lines;
mod programs;

use super::load;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::rack_args::nodes;
use crate::stop::Stop;
use crate::{orphan, size};
use clap::{Args, ValueEnum};
use lines::Look;
use programs::{Programs, Start};
use rackmem::Config;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const EXAMPLES: &str = "\
Examples:
  rackmem run -n 3 -- ./counter 1000            a rack of 3 nodes on this machine, a process of the program in each
  rackmem run -n 4 --fabric shm -- python3 sum.py
  rackmem run --label -- sh -c 'echo $RACKMEM_NODE of $RACKMEM_CONFIG'
  rackmem run --rack rack.toml --all -- ./store    every node of a file that is there
  srun -n 4 rackmem run --rack rack.toml -- ./store    the node that the launcher says

A program finds the rack's file in RACKMEM_CONFIG and its node in RACKMEM_NODE: `Rack::from_env` in Rust,
`rackmem.from_env()` in Python, `rm_from_env` in C. Without --all, the node of a file is RACKMEM_NODE, the
rank of Slurm, MPI or an indexed job of Kubernetes, or the ordinal at the end of the host's name.
When a program fails, or at Ctrl-C, the others get SIGINT, then SIGTERM, and SIGKILL after 5 seconds.
Standard input goes to node 0, unless it is a terminal.";

/// How packets travel between processes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Between {
    /// UDP over loopback
    Udp,
    /// Shared memory
    Shm,
}

/// Options of `rackmem run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Start N nodes, 1 to 32
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = nodes)]
    nodes: usize,
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "udp")]
    fabric: Between,
    /// Start a switch as well, which keeps the directory
    #[arg(long)]
    switch: bool,
    /// Cache SIZE bytes of blocks and remote locks at each node
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    cache: u64,
    /// Contribute SIZE bytes of memory per node, allocated on first use
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size::parse)]
    memory: u64,
    /// Be one node of the rack that FILE describes
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["nodes", "fabric", "switch", "cache", "memory"])]
    rack: Option<PathBuf>,
    /// Start all nodes of that rack here, and its switch
    #[arg(long, requires = "rack")]
    all: bool,
    /// Let the others go on when a program fails
    #[arg(long)]
    keep_going: bool,
    /// Begin each line that a program prints with its node
    #[arg(long)]
    label: bool,
    /// Become the program, and end with this process
    #[arg(long, hide = true, value_name = "N")]
    become_child_of: Option<u32>,
    /// Run this program, with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Runs the programs to their ends.
pub fn run(args: &RunArgs, json: bool) -> Result<Ended> {
    if let Some(parent) = args.become_child_of {
        return programs::become_child(parent, &args.program).map(|()| Ended::Done);
    }
    let file = match (&args.rack, args.all) {
        (None, _) => File::made(args)?,
        (Some(path), true) => File::of(path)?,
        (Some(path), false) => return Err(be_one(path, &args.program)),
    };
    let stop = Stop::on_signals()?;
    let _switch = file.switch()?;
    let look = match (json, args.label) {
        (true, _) => Look::Json,
        (false, true) => Look::Labelled,
        (false, false) => Look::Plain,
    };
    let programs = Programs::start(&Start {
        config: &file.path,
        nodes: file.nodes,
        program: &args.program,
        look,
    })?;
    programs.wait(args.keep_going, &stop)
}

/// This process as the node that the launcher says. Returns if that cannot be.
fn be_one(path: &Path, program: &[String]) -> Failure {
    let node = load(path).and_then(|config| {
        let node = Config::node_from_env()?;
        let nodes = config.nodes.len();
        let there = (node < nodes).then_some(node);
        there.ok_or_else(|| {
            let cause = format!(
                "this is node {node}, and the file has nodes 0 to {}",
                nodes - 1
            );
            Failure::new(cause, "start as many as the file has nodes")
        })
    });
    match node {
        Ok(node) => programs::become_program(programs::command(program, path, node)),
        Err(failure) => failure,
    }
}

/// The rack's file.
struct File {
    path: PathBuf,
    nodes: usize,
    has_switch: bool,
    is_ours: bool,
}

impl File {
    fn of(path: &Path) -> Result<File> {
        let config = load(path)?;
        Ok(File {
            path: path.to_owned(),
            nodes: config.nodes.len(),
            has_switch: config.switch.is_some(),
            is_ours: false,
        })
    }

    /// One on addresses that no other process of this machine uses.
    fn made(args: &RunArgs) -> Result<File> {
        let name = format!("rackmem-run-{}.toml", std::process::id());
        let file = File {
            path: std::env::temp_dir().join(name),
            nodes: args.nodes,
            has_switch: args.switch,
            is_ours: true,
        };
        let addresses = rackmem_hosts::addresses(args.nodes + 1);
        let quoted: Vec<String> = addresses.iter().map(|addr| format!("\"{addr}\"")).collect();
        let fabric = match args.fabric {
            Between::Udp => "udp",
            Between::Shm => "shm",
        };
        let switch = match args.switch {
            true => format!("switch = {}\n", quoted[0]),
            false => String::new(),
        };
        let text = format!(
            "fabric = \"{fabric}\"\nnodes = [{}]\ncache = {}\nmemory = {}\n{switch}",
            quoted[1..].join(", "),
            args.cache,
            args.memory,
        );
        std::fs::write(&file.path, text)?;
        Ok(file)
    }

    /// The rack's switch, if it has one.
    fn switch(&self) -> Result<Option<Switch>> {
        if !self.has_switch {
            return Ok(None);
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["switch", "--rack"]).arg(&self.path);
        command.args(["--json", orphan::OPTION]);
        // Ctrl-C is for this process, which ends it last.
        command.process_group(0);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Some(Switch(child)))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.is_ours {
            // What cannot be removed is in the system's folder for such things.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A process of ours; killed when dropped.
struct Switch(Child);

impl Drop for Switch {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
