//! The processes of the user's program: started, watched, and ended together.

use super::drop_in;
use super::lines::{Look, copy, tell};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::programs::find;
use crate::stop::Stop;
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getppid};
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at the processes.
const STEP: Duration = Duration::from_millis(20);
/// How a process is asked to end, and how long it is waited for then.
const ENDS: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(2)),
    (Signal::SIGTERM, Duration::from_secs(3)),
    (Signal::SIGKILL, Duration::from_secs(60)),
];

/// What is to be started.
pub struct Start<'a> {
    pub config: &'a Path,
    pub nodes: std::ops::Range<usize>,
    /// The library that is put in front of theirs.
    pub drop_in: Option<&'a Path>,
    pub program: &'a [String],
    pub look: Look,
}

/// All of them. They end with the value.
pub struct Programs {
    running: Vec<Running>,
    name: String,
    look: Look,
}

struct Running {
    node: usize,
    child: Child,
    /// They end when nobody can write any more what they read.
    copies: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

impl Programs {
    pub fn start(start: &Start<'_>) -> Result<Programs> {
        check(&start.program[0])?;
        let mut programs = Programs {
            running: Vec::new(),
            name: start.program[0].clone(),
            look: start.look,
        };
        for node in start.nodes.clone() {
            programs.running.push(Running::start(start, node)?);
        }
        Ok(programs)
    }

    /// Waits until all have ended, or one has failed, or the user has enough.
    pub fn wait(mut self, keep_going: bool, stop: &Stop) -> Result<Ended> {
        loop {
            self.look();
            let failed = self.running.iter().find_map(Running::failed);
            let all = self.running.iter().all(|running| running.status.is_some());
            if stop.requested() {
                self.end();
                return Ok(Ended::Interrupted);
            }
            match failed {
                Some(why) if all || !keep_going => {
                    self.end();
                    let cause = format!("node {}'s `{}` {}", why.0, self.name, why.1);
                    return Err(Failure::new(cause, "see what it has printed above"));
                }
                None if all => {
                    self.end();
                    return Ok(Ended::Done);
                }
                _ => std::thread::sleep(STEP),
            }
        }
    }

    /// Notes which of them have ended.
    fn look(&mut self) {
        let look = self.look;
        for running in &mut self.running {
            if running.status.is_none() {
                running.status = running.child.try_wait().ok().flatten();
                if let (Look::Json, Some(status)) = (look, running.status) {
                    let ended =
                        serde_json::json!({"code": status.code(), "signal": status.signal()});
                    tell(running.node, "ended", ended);
                }
            }
        }
    }

    /// Ends all that run, with the processes that they have started, and waits for what they have
    /// printed.
    fn end(&mut self) {
        for (signal, patience) in ENDS {
            let end = Instant::now() + patience;
            let groups = self.running.iter().filter(|running| running.is_there());
            for running in groups {
                // It may have ended meanwhile.
                let _ = killpg(running.group(), signal);
            }
            while self.running.iter().any(Running::is_there) && Instant::now() < end {
                std::thread::sleep(STEP);
                self.look();
            }
        }
        for running in &mut self.running {
            for copy in running.copies.drain(..) {
                let _ = copy.join();
            }
        }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn start(start: &Start<'_>, node: usize) -> Result<Running> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "run",
            "--become-child-of",
            &std::process::id().to_string(),
            "--",
        ]);
        command.args(start.program);
        place(&mut command, start.config, node);
        if let Some(library) = start.drop_in {
            drop_in::put_in_front(&mut command, library);
        }
        // A group of its own: the program's own children end with it.
        command.process_group(0);
        if node > start.nodes.start || std::io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        let copied = !matches!(start.look, Look::Plain);
        if copied {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let copies = [
            out.map(|from| copy(from, start.look, node, "out")),
            err.map(|from| copy(from, start.look, node, "err")),
        ];
        Ok(Running {
            node,
            child,
            copies: copies.into_iter().flatten().collect(),
            status: None,
        })
    }

    fn group(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Whether it or a process that it has started runs.
    fn is_there(&self) -> bool {
        self.status.is_none() || killpg(self.group(), None).is_ok()
    }

    /// Which node, and how it has failed, if it has.
    fn failed(&self) -> Option<(usize, String)> {
        let status = self.status.filter(|status| !status.success())?;
        Some((self.node, format!("has failed ({status})")))
    }
}

/// A program that cannot be started is told once, before any runs.
fn check(program: &str) -> Result<()> {
    let there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => find(program).is_some(),
    };
    let missing = || {
        let cause = format!("there is no program `{program}`");
        Failure::new(cause, "write its path, such as ./program")
    };
    there.then_some(()).ok_or_else(missing)
}

fn place(command: &mut Command, config: &Path, node: usize) {
    let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
    command.env("RACKMEM_CONFIG", config);
    command.env("RACKMEM_NODE", node.to_string());
}

/// The program as a node.
pub fn command(program: &[String], config: &Path, node: usize) -> Command {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    place(&mut command, config, node);
    command
}

/// This process becomes the program. Returns if it cannot.
pub fn become_program(mut command: Command) -> Failure {
    let name = command.get_program().to_string_lossy().into_owned();
    let error = command.exec();
    let cause = format!("`{name}` cannot be started: {error}");
    Failure::new(cause, "correct that, then try again")
}

/// This process becomes the program, and ends when the one that has started it does, by SIGKILL
/// too.
pub fn become_child(parent: u32, program: &[String]) -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from)?;
    // It may have ended before that.
    if getppid().as_raw() as u32 != parent {
        let cause = "the process that started this one has ended";
        return Err(Failure::new(cause, "nothing: this one ends, too"));
    }
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    Err(become_program(command))
}
