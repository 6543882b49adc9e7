//! Runs a program in sight of the user: its lines are passed on as they come,
//! and it has a time limit.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that wait to be printed; a program that prints faster waits for the terminal.
const QUEUED_LINES: usize = 1024;

/// How often a silent program is looked at.
const TICK: Duration = Duration::from_millis(200);

/// A program that has been silent for so long is said to run still, and again each time.
const BEAT: Duration = Duration::from_secs(20);

/// Why a program gave no exit status.
#[derive(Debug)]
pub enum ProcessError {
    /// It could not be started, read or waited for.
    Io(String, std::io::Error),
    /// It ran longer than it may and was ended, with all that it had started.
    TimedOut(String, Duration),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessError::Io(program, error) => write!(f, "{program}: {error}"),
            ProcessError::TimedOut(program, limit) => {
                write!(
                    f,
                    "{program} was ended after {} minutes",
                    limit.as_secs() / 60
                )
            }
        }
    }
}

/// Runs `command` and shows each line of its standard output and to `each_line`; of its standard
/// error too, where that is a pipe. Where there is none for a while a line says that it still runs.
pub fn watch(
    command: Command,
    limit: Duration,
    mut each_line: impl FnMut(&str),
) -> Result<ExitStatus, ProcessError> {
    watch_both(command, limit, |_, line| each_line(line))
}

/// The same, and which output a line is of: those of two come in any order.
pub fn watch_both(
    command: Command,
    limit: Duration,
    mut each_line: impl FnMut(Output, &str),
) -> Result<ExitStatus, ProcessError> {
    let what = short(&command);
    watch_beating(command, limit, BEAT, |seen| match seen {
        Seen::Line(of, line) => {
            println!("{line}");
            each_line(of, line);
        }
        Seen::Silence(time) => {
            let (seconds, minutes) = (time.as_secs(), limit.as_secs() / 60);
            println!("   ... {what}: {seconds} s, of {minutes} minutes at most");
        }
    })
}

/// Runs `command` and shows nothing of its standard output.
pub fn quietly(command: Command, limit: Duration) -> Result<ExitStatus, ProcessError> {
    watch_beating(command, limit, limit, |_| {})
}

/// Where a program writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Standard,
    Errors,
}

/// What is seen of a program.
enum Seen<'a> {
    Line(Output, &'a str),
    /// No line for a while; the time since its beginning.
    Silence(Duration),
}

/// The name of a program and its first arguments.
fn short(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem();
    let words = program.into_iter().chain(command.get_args().take(3));
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn watch_beating(
    mut command: Command,
    limit: Duration,
    beat: Duration,
    mut see: impl FnMut(Seen<'_>),
) -> Result<ExitStatus, ProcessError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error| ProcessError::Io(program.clone(), error);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let lines = lines_of(&mut child);
    let began = Instant::now();
    let (end, mut heard) = (began + limit, began);
    loop {
        match lines.recv_timeout(TICK) {
            Ok((of, line)) => {
                heard = Instant::now();
                see(Seen::Line(of, &line));
            }
            Err(RecvTimeoutError::Disconnected) => return child.wait().map_err(failed),
            Err(RecvTimeoutError::Timeout) => {
                // A process it left behind may hold the output open; its own end is what counts.
                if let Some(status) = child.try_wait().map_err(failed)? {
                    return Ok(status);
                }
                if heard.elapsed() >= beat {
                    heard = Instant::now();
                    see(Seen::Silence(began.elapsed()));
                }
            }
        }
        if Instant::now() > end {
            end_tree(child.id());
            child.wait().map_err(failed)?;
            return Err(ProcessError::TimedOut(program, limit));
        }
    }
}

/// The lines of the child's outputs; the channel closes when the last writer has closed them.
fn lines_of(child: &mut Child) -> mpsc::Receiver<(Output, String)> {
    let (sender, receiver) = mpsc::sync_channel(QUEUED_LINES);
    if let Some(errors) = child.stderr.take() {
        let sender = sender.clone();
        thread::spawn(move || send_lines(errors, Output::Errors, &sender));
    }
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || send_lines(output, Output::Standard, &sender));
    }
    receiver
}

fn send_lines(output: impl Read, of: Output, sender: &mpsc::SyncSender<(Output, String)>) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    // Bytes, not text: a test may print anything.
    while matches!(reader.read_until(b'\n', &mut line), Ok(n) if n > 0) {
        let text = String::from_utf8_lossy(&line);
        if sender.send((of, text.trim_end().to_owned())).is_err() {
            return;
        }
        line.clear();
    }
}

/// Ends a process and all its descendants, children first to be found before their parent is gone.
fn end_tree(root: u32) {
    let mut family = vec![root];
    let parents = parents();
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(
            parents
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(child, _)| *child),
        );
        next += 1;
    }
    for id in family.iter().rev() {
        let _ = Command::new("kill")
            .args(["-KILL", &id.to_string()])
            .status();
    }
}

/// Every process and its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            // The name, in parentheses, may hold anything; after it come the state and the parent.
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            Some((id, parent))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn passes_lines_on_and_returns_the_status() {
        let mut seen = Vec::new();
        let status = watch(
            shell("echo one; echo two; exit 3"),
            Duration::from_secs(20),
            |line| {
                seen.push(line.to_owned());
            },
        )
        .unwrap();
        assert_eq!(seen, ["one", "two"]);
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn errors_are_lines_too_where_they_are_piped() {
        let mut command = shell("echo one; echo two >&2");
        command.stderr(Stdio::piped());
        let mut seen = Vec::new();
        watch(command, Duration::from_secs(20), |line| {
            seen.push(line.to_owned());
        })
        .unwrap();
        seen.sort();
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn ends_what_runs_too_long_with_its_children() {
        let mut child = None;
        let result = watch(
            shell("sleep 1000 & echo $!; wait"),
            Duration::from_secs(3),
            |line| child = line.parse::<u32>().ok(),
        );
        assert!(matches!(result, Err(ProcessError::TimedOut(..))));
        let child = child.unwrap();
        // It has to have a processor to die of what it was sent.
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                return;
            }
            assert!(Instant::now() < end, "the child lives on: {state}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn does_not_wait_for_what_the_program_left_behind() {
        let mut left_behind = String::new();
        watch(
            shell("sleep 1000 & echo $!"),
            Duration::from_secs(60),
            |line| {
                left_behind = line.to_owned();
            },
        )
        // It would have been ended, and this an error, had it been waited for.
        .unwrap();
        end_tree(left_behind.parse().unwrap());
    }

    #[test]
    fn a_silent_program_is_said_to_run() {
        let mut silences = 0;
        let limit = Duration::from_secs(60);
        watch_beating(shell("sleep 3"), limit, TICK, |seen| {
            silences += usize::from(matches!(seen, Seen::Silence(_)));
        })
        .unwrap();
        assert!(silences > 0);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let result = watch(Command::new("/nonexistent"), Duration::from_secs(1), |_| {});
        assert!(matches!(result, Err(ProcessError::Io(..))));
    }
}
