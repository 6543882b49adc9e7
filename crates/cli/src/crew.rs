//! A rack of processes that this one has started: a process for each node and one for the switch.
//! Everything ends with the value.

use crate::failure::{Failure, Result};
use crate::halt::{Halt, Played};
use crate::orphan;
use crate::rack_args::RackArgs;
use crate::stop::Stop;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Between two looks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// Racks that this process has started: a file has a name of its own.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// How a rack of processes is started.
pub struct Start<'a> {
    /// Its size.
    pub rack: &'a RackArgs,
    /// More lines of its file.
    pub lines: &'a str,
    /// The arguments of a node's process.
    pub member: &'a dyn Fn(&Path, usize) -> Vec<String>,
    /// How long a process may take to answer.
    pub patience: Duration,
    /// What to do when one has ended.
    pub next: &'static str,
}

/// The rack.
pub struct Crew {
    /// The switch first, if there is one.
    children: Vec<Process>,
    nodes: usize,
    file: PathBuf,
}

impl Crew {
    /// Starts all of them. The switch runs when this returns.
    pub fn start(start: &Start<'_>, stop: &Stop) -> Played<Crew> {
        let args = start.rack;
        let (process, nth) = (std::process::id(), STARTED.fetch_add(1, Relaxed));
        let file = std::env::temp_dir().join(format!("rackmem-crew-{process}-{nth}.toml"));
        let addresses = rackmem_hosts::addresses(args.nodes + 1);
        let quoted: Vec<String> = addresses.iter().map(|addr| format!("\"{addr}\"")).collect();
        let mut text = format!(
            "nodes = [{}]\ncache = {}\nmemory = {}\nblock_size = {}\n{}",
            quoted[1..].join(", "),
            args.cache,
            args.memory,
            args.block_size,
            start.lines
        );
        let switch = args.has_switch();
        if switch {
            text.push_str(&format!("switch = {}\n", quoted[0]));
        }
        let mut crew = Crew {
            children: Vec::new(),
            nodes: args.nodes,
            file,
        };
        std::fs::write(&crew.file, text).map_err(Failure::from)?;
        let path = crew.file.clone();
        if switch {
            let of_file = ["switch", "--rack", &path.to_string_lossy()].map(String::from);
            crew.children.push(Process::start(&of_file, true, start)?);
            crew.hear(0, stop)?;
        }
        for node in 0..args.nodes {
            let process = Process::start(&(start.member)(&path, node), false, start)?;
            crew.children.push(process);
        }
        Ok(crew)
    }

    /// The first node's place among the processes.
    fn first(&self) -> usize {
        self.children.len() - self.nodes
    }

    /// Nodes that have not been killed.
    pub fn living(&self) -> Vec<usize> {
        let members = self.children[self.first()..].iter().enumerate();
        let living = members.filter(|(_, process)| !process.is_killed);
        living.map(|(node, _)| node).collect()
    }

    /// SIGKILL to a node. Nobody tells it anything from now on, or waits for it.
    pub fn kill(&mut self, node: usize) {
        let place = self.first() + node;
        self.children[place].kill();
    }

    /// Tells all nodes, then waits for each one's answer.
    pub fn all(&mut self, command: &str, stop: &Stop) -> Played<Vec<Value>> {
        self.tell_all(command)?;
        self.answers(stop)
    }

    /// Tells all nodes.
    pub fn tell_all(&mut self, command: &str) -> Result<()> {
        let living = self.living();
        living
            .into_iter()
            .try_for_each(|node| self.tell(node, command))
    }

    /// Tells one node.
    pub fn tell(&mut self, node: usize, command: &str) -> Result<()> {
        let place = self.first() + node;
        self.children[place].tell(command)
    }

    /// Tells every process, the switch included, and waits for what each answers.
    pub fn everyone(&mut self, command: &str, stop: &Stop) -> Played<Vec<Value>> {
        for process in &mut self.children {
            process.tell(command)?;
        }
        (0..self.children.len())
            .map(|place| self.hear(place, stop))
            .collect()
    }

    /// The next line of each node.
    pub fn answers(&mut self, stop: &Stop) -> Played<Vec<Value>> {
        let living = self.living();
        living
            .into_iter()
            .map(|node| self.answer(node, stop))
            .collect()
    }

    /// The next line of each node, where nodes may be killed by anybody meanwhile: those that are
    /// have said nothing, and count as killed from then on. One that ends by itself is a failure.
    pub fn answers_of_living(&mut self, stop: &Stop) -> Played<Vec<Value>> {
        self.answers_of(&self.living(), stop)
    }

    /// The same of these nodes.
    pub fn answers_of(&mut self, nodes: &[usize], stop: &Stop) -> Played<Vec<Value>> {
        let mut said = Vec::new();
        for node in nodes {
            said.extend(self.hear_or_lose(self.first() + node, stop)?);
        }
        Ok(said)
    }

    fn hear_or_lose(&mut self, place: usize, stop: &Stop) -> Played<Option<Value>> {
        let first = self.first();
        let end = Instant::now() + self.children[place].patience;
        while !self.children[place].is_killed {
            if stop.requested() {
                return Err(Halt::Stopped);
            }
            if let Ok(said) = self.children[place].said.recv_timeout(STEP) {
                return Ok(Some(said));
            }
            if Instant::now() > end {
                Err(self.children[place].failure("does not answer"))?;
            }
            for process in &mut self.children[first..] {
                process.lose();
            }
            let ended = self.children.iter_mut().find_map(Process::ended);
            match ended {
                Some(failure) if stop.sleep(STEP) => Err(failure)?,
                Some(_) => return Err(Halt::Stopped),
                None => {}
            }
        }
        Ok(None)
    }

    /// The next line of one node.
    pub fn answer(&mut self, node: usize, stop: &Stop) -> Played<Value> {
        self.hear(self.first() + node, stop)
    }

    /// The next line of a process, unless any of them ends: then nobody waits for the others.
    fn hear(&mut self, place: usize, stop: &Stop) -> Played<Value> {
        let end = Instant::now() + self.children[place].patience;
        loop {
            if stop.requested() {
                return Err(Halt::Stopped);
            }
            match self.children[place].said.recv_timeout(STEP) {
                Ok(said) => return Ok(said),
                Err(_) if Instant::now() > end => {
                    Err(self.children[place].failure("does not answer"))?;
                }
                Err(_) => {}
            }
            let ended = self.children.iter_mut().find_map(Process::ended);
            // Ctrl-C reaches all processes of a terminal, in any order.
            match ended {
                Some(failure) if stop.sleep(STEP) => Err(failure)?,
                Some(_) => return Err(Halt::Stopped),
                None => {}
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.children.clear();
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A process of ours; killed when dropped.
struct Process {
    child: Child,
    said: Receiver<Value>,
    name: String,
    patience: Duration,
    next: &'static str,
    is_killed: bool,
}

impl Process {
    /// It ends with its standard input, which it watches by itself or by that option.
    fn start(args: &[String], watches: bool, start: &Start<'_>) -> Result<Process> {
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
                let value = serde_json::from_str(&line).unwrap_or(Value::Null);
                if tell.send(value).is_err() {
                    break;
                }
            }
        });
        Ok(Process {
            child,
            said,
            name: format!("rackmem {}", args.join(" ")),
            patience: start.patience,
            next: start.next,
            is_killed: false,
        })
    }

    fn kill(&mut self) {
        self.is_killed = true;
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Counts it as killed if somebody has.
    fn lose(&mut self) {
        let status = self.child.try_wait().ok().flatten();
        self.is_killed |= status.is_some_and(|status| status.signal().is_some());
    }

    fn tell(&mut self, command: &str) -> Result<()> {
        let input = self.child.stdin.as_mut();
        let written = input.map(|input| writeln!(input, "{command}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failure("has exited")),
        }
    }

    /// What is to be said if it has ended by itself.
    fn ended(&mut self) -> Option<Failure> {
        if self.is_killed {
            return None;
        }
        let status = self.child.try_wait().ok().flatten()?;
        Some(self.failure(&format!("has ended ({status})")))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("`{}` {what}", self.name), self.next)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
