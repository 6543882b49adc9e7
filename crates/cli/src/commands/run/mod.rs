//! `rackmem run`: a program of the user's in every node of a rack, or as the node that a launcher
//! such as `srun` or a StatefulSet says.

pub mod drop_in;
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
use rackmem_proto::wire::MAX_NODES;
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
  rackmem run -n 3 --drop-in -- ./program       a program of mmap and pthreads, not written for racks: docs/dropin.md

A program finds the rack's file in RACKMEM_CONFIG and its node in RACKMEM_NODE: `Rack::from_env` in Rust,
`rackmem.from_env()` in Python, `rm_from_env` in C. Without --all, the node of a file is RACKMEM_NODE, the
rank of Slurm, MPI or an indexed job of Kubernetes, or the ordinal at the end of the host's name.
With --drop-in, files whose paths begin with /dev/shm/rack. (or what RACKMEM_FILES says) are the rack's:
shm_open(\"/rack.x\"), mmap, fcntl locks, process-shared mutexes, conditions and semaphores in them. Node 0 keeps them,
and the programs are nodes 1 to N; with --rack, start `rackmem node --node 0` for that.
When a program fails, or at Ctrl-C, the others get SIGINT, then SIGTERM, and SIGKILL after 5 seconds.
Standard input goes to node 0, unless it is a terminal.";

/// How long a program that drops dead holds up the others.
const LEASE: &str = "lease_ms = 3000\n";

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
    /// Put the library in FILE in front, which gives programs that know no racks the rack's memory
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = drop_in::NAME)]
    drop_in: Option<PathBuf>,
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
    let drop_in = args.drop_in.as_deref().map(drop_in::find).transpose()?;
    let file = match (&args.rack, args.all) {
        (None, _) => File::made(args)?,
        (Some(path), true) => File::of(path)?,
        (Some(path), false) => return Err(be_one(path, drop_in.as_deref(), &args.program)),
    };
    let stop = Stop::on_signals()?;
    let _switch = file.switch()?;
    let _keeper = match &drop_in {
        Some(_) => Some(file.keeper()?),
        None => None,
    };
    let look = match (json, args.label) {
        (true, _) => Look::Json,
        (false, true) => Look::Labelled,
        (false, false) => Look::Plain,
    };
    let programs = Programs::start(&Start {
        config: &file.path,
        // Who keeps the files is no program.
        nodes: usize::from(drop_in.is_some())..file.nodes,
        drop_in: drop_in.as_deref(),
        program: &args.program,
        look,
    })?;
    programs.wait(args.keep_going, &stop)
}

/// This process as the node that the launcher says. Returns if that cannot be.
fn be_one(path: &Path, drop_in: Option<&Path>, program: &[String]) -> Failure {
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
        Ok(node) => {
            let mut command = programs::command(program, path, node);
            if let Some(library) = drop_in {
                drop_in::put_in_front(&mut command, library);
                // Others may be on other hosts.
                command.env("RACKMEM_PIDS", "node");
            }
            programs::become_program(command)
        }
        Err(failure) => failure,
    }
}

/// The rack's file.
struct File {
    path: PathBuf,
    /// Where members agree on who they are, if that is ours too.
    members: Option<PathBuf>,
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
            members: None,
            has_switch: config.switch.is_some(),
            is_ours: false,
        })
    }

    /// One on addresses that no other process of this machine uses.
    fn made(args: &RunArgs) -> Result<File> {
        let name = format!("rackmem-run-{}", std::process::id());
        let kept = args.drop_in.is_some();
        let nodes = args.nodes + usize::from(kept);
        if nodes > MAX_NODES {
            let cause = format!(
                "{} programs and who keeps their files are too many",
                args.nodes
            );
            let next = format!("a rack has {MAX_NODES} nodes: start one program less");
            return Err(Failure::new(cause, next));
        }
        let file = File {
            path: std::env::temp_dir().join(format!("{name}.toml")),
            members: kept.then(|| std::env::temp_dir().join(format!("{name}-members"))),
            nodes,
            has_switch: args.switch,
            is_ours: true,
        };
        let addresses = rackmem_hosts::addresses(nodes + 1);
        let quoted: Vec<String> = addresses.iter().map(|addr| format!("\"{addr}\"")).collect();
        let fabric = match args.fabric {
            Between::Udp => "udp",
            Between::Shm => "shm",
        };
        let switch = match args.switch {
            true => format!("switch = {}\n", quoted[0]),
            false => String::new(),
        };
        // Programs that die leave the others their files, and what they had locked.
        let members = match &file.members {
            Some(folder) => format!("membership = \"dir:{}\"\n{LEASE}", folder.display()),
            None => String::new(),
        };
        let text = format!(
            "fabric = \"{fabric}\"\nnodes = [{}]\ncache = {}\nmemory = {}\n{switch}{members}",
            quoted[1..].join(", "),
            args.cache,
            args.memory,
        );
        std::fs::write(&file.path, text)?;
        Ok(file)
    }

    /// The rack's switch, if it has one.
    fn switch(&self) -> Result<Option<Part>> {
        match self.has_switch {
            true => self.part(&["switch"]).map(Some),
            false => Ok(None),
        }
    }

    /// The node that keeps files.
    fn keeper(&self) -> Result<Part> {
        self.part(&["node", "--node", "0"])
    }

    /// A command of ours that serves the rack.
    fn part(&self, words: &[&str]) -> Result<Part> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).arg("--rack").arg(&self.path);
        command.args(["--json", orphan::OPTION]);
        // Ctrl-C is for this process, which ends it last.
        command.process_group(0);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Part(child))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.is_ours {
            // What cannot be removed is in the system's folder for such things.
            let _ = std::fs::remove_file(&self.path);
            if let Some(members) = &self.members {
                let _ = std::fs::remove_dir_all(members);
            }
        }
    }
}

/// A process of ours; killed when dropped.
struct Part(Child);

impl Drop for Part {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
