//! The rack of processes: a process for each node and one for the switch, over UDP. Everything ends
//! with the value.

use super::halt::{Halt, Played, wrong};
use super::summary::Phase;
use super::workload::RECORDS;
use crate::failure::{Failure, Result};
use crate::orphan;
use crate::rack_args::RackArgs;
use crate::stop::Stop;
use rackmem_bench::histogram::Histogram;
use rackmem_bench::ycsb::Mix;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks whether to stop.
const STEP: Duration = Duration::from_millis(50);

/// The rack.
pub struct Processes {
    /// The switch first, if there is one.
    children: Vec<Process>,
    nodes: usize,
    file: PathBuf,
}

impl Processes {
    /// Starts all of them, and returns when every node serves the store.
    pub fn start(args: &RackArgs, stop: &Stop) -> Played<Processes> {
        let name = format!("rackmem-demo-{}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        let addresses = rackmem_hosts::addresses(args.nodes + 1);
        let quoted: Vec<String> = addresses.iter().map(|addr| format!("\"{addr}\"")).collect();
        let mut text = format!(
            "nodes = [{}]\ncache = {}\nmemory = {}\nblock_size = {}\n",
            quoted[1..].join(", "),
            args.cache,
            args.memory,
            args.block_size
        );
        let switch = args.has_switch();
        if switch {
            text.push_str(&format!("switch = {}\n", quoted[0]));
        }
        let mut rack = Processes {
            children: Vec::new(),
            nodes: args.nodes,
            file,
        };
        std::fs::write(&rack.file, text).map_err(Failure::from)?;
        let path = rack.file.clone();
        if switch {
            let of_file = ["switch", "--rack", &path.to_string_lossy()].map(String::from);
            rack.children.push(Process::start(&of_file, true)?);
        }
        for node in 0..args.nodes {
            rack.children.push(Process::member(&path, node)?);
        }
        for child in &mut rack.children {
            child.answer(stop)?;
        }
        Ok(rack)
    }

    /// Stores the records: every node its share.
    pub fn load(&mut self, stop: &Stop) -> Played<()> {
        let stored: u64 = self
            .all("load", stop)?
            .iter()
            .map(field("operations"))
            .sum();
        match stored == RECORDS.count {
            true => Ok(()),
            false => Err(wrong(format!(
                "{stored} of {} records stored",
                RECORDS.count
            ))),
        }
    }

    /// A workload on all nodes at once, for a time.
    pub fn run(&mut self, mix: Mix, time: Duration, stop: &Stop) -> Played<Phase> {
        let answers = self.all(&format!("run {mix} {}", time.as_millis()), stop)?;
        let sum = |name| answers.iter().map(field(name)).sum::<u64>();
        if sum("missing") > 0 {
            return Err(wrong(
                "a record of YCSB is missing in the rack of processes",
            ));
        }
        let mut latencies = Histogram::new();
        let times = answers
            .iter()
            .filter_map(|answer| answer["nanos"].as_array());
        times
            .flatten()
            .filter_map(Value::as_u64)
            .for_each(|nanos| latencies.record(nanos));
        let seconds = answers
            .iter()
            .filter_map(|answer| answer["seconds"].as_f64());
        Ok(Phase {
            name: format!("ycsb {mix}").to_lowercase(),
            seconds: seconds.fold(0.0, f64::max),
            operations: sum("operations"),
            remote: sum("remote"),
            latencies,
        })
    }

    /// Tells all nodes, then waits for each one's answer.
    fn all(&mut self, command: &str, stop: &Stop) -> Played<Vec<Value>> {
        let first = self.children.len() - self.nodes;
        let members = &mut self.children[first..];
        for member in members.iter_mut() {
            member.tell(command)?;
        }
        members
            .iter_mut()
            .map(|member| member.answer(stop))
            .collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.children.clear();
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_file(&self.file);
    }
}

fn field(name: &'static str) -> impl Fn(&Value) -> u64 {
    move |answer| answer[name].as_u64().unwrap_or_default()
}

/// A process of ours; killed when dropped.
struct Process {
    child: Child,
    said: Receiver<Value>,
    name: String,
}

impl Process {
    fn member(file: &Path, node: usize) -> Result<Process> {
        let (file, node) = (file.to_string_lossy(), node.to_string());
        Process::start(
            &["demo", "--member", &file, "--node", &node].map(String::from),
            false,
        )
    }

    /// It ends with its standard input, which it watches by itself or by that option.
    fn start(args: &[String], watches: bool) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).arg("--json");
        if watches {
            command.arg(orphan::OPTION);
        }
        let (input, output) = (Stdio::piped(), Stdio::piped());
        let mut child = command.stdin(input).stdout(output).spawn()?;
        let (tell, said) = channel();
        let out = child.stdout.take();
        std::thread::spawn(move || {
            let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(std::result::Result::ok) {
                if tell
                    .send(serde_json::from_str(&line).unwrap_or(Value::Null))
                    .is_err()
                {
                    break;
                }
            }
        });
        let name = format!("rackmem {}", args.join(" "));
        Ok(Process { child, said, name })
    }

    fn tell(&mut self, command: &str) -> Result<()> {
        let input = self.child.stdin.as_mut();
        let written = input.map(|input| writeln!(input, "{command}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failure("has exited")),
        }
    }

    /// Its next line.
    fn answer(&mut self, stop: &Stop) -> Played<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            if stop.requested() {
                return Err(Halt::Stopped);
            }
            match self.said.recv_timeout(STEP) {
                Ok(said) => return Ok(said),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(RecvTimeoutError::Timeout) => Err(self.failure("does not answer"))?,
                // Ctrl-C reaches all processes of a terminal, in any order.
                Err(RecvTimeoutError::Disconnected) => match stop.sleep(STEP) {
                    true => Err(self.failure("has exited"))?,
                    false => return Err(Halt::Stopped),
                },
            }
        }
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(
            format!("`{}` {what}", self.name),
            "see its message above; `rackmem demo --no-processes` leaves it out",
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
