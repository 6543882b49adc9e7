//! A starved machine: other processes keep its cores busy, and the rack's control planes get what
//! these leave.
//!
//! Real machines are like that for seconds at a time: a backup runs, a neighbour computes. Members
//! must stay right then, however late they hear of each other.

use crate::failure::{Failure, Result};
use crate::programs;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// How threads of a member are called, as far as the kernel keeps names, that follow the
/// membership: its control plane.
const CONTROL: [&str; 3] = ["rackmem-control", "rackmem-lease", "rackmem-members"];
/// The lowest priority that a process may give to its own.
const NICE: &str = "19";
/// Between two looks for members that have been started.
const LOOK: Duration = Duration::from_millis(100);

/// Uses a core until its standard input ends, which is when the process that has started it does.
pub fn keep_busy() {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        flag.store(true, Relaxed);
    });
    while !ended.load(Relaxed) {
        std::hint::spin_loop();
    }
}

/// Ends with the value.
pub struct Starved {
    busy: Vec<Child>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Starved {
    /// So many busy processes a core; from now on, the control planes of this process' children
    /// have the lowest priority.
    pub fn begin(per_core: u64) -> Result<Starved> {
        if programs::find("renice").is_none() {
            return Err(Failure::new(
                "renice is not installed",
                "as root: apt-get install bsdutils, or leave out --starve",
            ));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let stop = Arc::new(AtomicBool::new(false));
        let mut starved = Starved {
            busy: Vec::new(),
            stop: stop.clone(),
            thread: None,
        };
        for _ in 0..cores * per_core as usize {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["soak", "--keep-busy"]);
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            starved.busy.push(command.spawn()?);
        }
        starved.thread = Some(std::thread::spawn(move || {
            let mut lowered = HashSet::new();
            while !stop.load(Relaxed) {
                lower(&mut lowered);
                std::thread::sleep(LOOK);
            }
        }));
        Ok(starved)
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for busy in &mut self.busy {
            // Gone already is as good as killed.
            let _ = busy.kill();
            let _ = busy.wait();
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Numbers of the folders in `/proc` and its like.
fn numbers(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn is_child(process: u32, of: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The command before it is in parentheses, and may contain anything.
    let parent = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(1));
    parent.and_then(|parent| parent.parse().ok()) == Some(of)
}

/// Lowers the control planes that have not been.
fn lower(lowered: &mut HashSet<u32>) {
    let me = std::process::id();
    let children = numbers(Path::new("/proc")).filter(|process| is_child(*process, me));
    let threads = children.flat_map(|process| {
        let folder = format!("/proc/{process}/task");
        let threads: Vec<u32> = numbers(Path::new(&folder)).collect();
        threads.into_iter().filter(move |thread| {
            let name = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
            CONTROL.contains(&name.unwrap_or_default().trim_end())
        })
    });
    let new: Vec<u32> = threads.filter(|thread| !lowered.contains(thread)).collect();
    if new.is_empty() {
        return;
    }
    let names: Vec<String> = new.iter().map(u32::to_string).collect();
    let quiet = || Stdio::null();
    let mut renice = Command::new("renice");
    renice.args(["-n", NICE, "-p"]).args(&names);
    // One that has ended meanwhile needs none.
    let _ = renice.stdout(quiet()).stderr(quiet()).status();
    lowered.extend(new);
}
