//! Runs a program in sight of the user: its lines are passed on as they come,
//! and it has a time limit.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that wait to be printed; a program that prints faster waits for the terminal.
const QUEUED_LINES: usize = 1024;

/// How often a silent program is looked at.
const TICK: Duration = Duration::from_millis(200);

/// A program that has been silent for so long is said to run still, and again each time.
const BEAT: Duration = Duration::from_secs(20);

/// What a program wrote before its end may be read later: for so long it is waited for. After that,
/// what holds the output open is a process that it left behind.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// What a program of tests has started is ended where nothing was heard for so long: a test waits
/// for what never comes. The longest time between two lines of tests that hold is under two
/// minutes.
const SILENCE: Duration = Duration::from_secs(10 * 60);

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
    // A compiler is silent for as long as it takes.
    let patience = Patience {
        silence: Duration::MAX,
        ..Patience::of_tests(limit)
    };
    let print = |line: &str| println!("{line}");
    watch_tests(command, patience, print, |_, line| each_line(line))
}

/// The same of a program that runs tests, and which output a line is of: those of two come in any
/// order; `print` has what is shown. What it has started is ended where it has been silent for too
/// long, and named by lines that begin with [`HUNG`].
pub fn watch_tests(
    command: Command,
    patience: Patience,
    mut print: impl FnMut(&str),
    mut each_line: impl FnMut(Output, &str),
) -> Result<ExitStatus, ProcessError> {
    let what = short(&command);
    watch_beating(command, patience, |seen| match seen {
        Seen::Line(of, line) => {
            print(line);
            each_line(of, line);
        }
        Seen::Silence(time) => {
            let (seconds, minutes) = (time.as_secs(), patience.limit.as_secs() / 60);
            print(&format!(
                "   ... {what}: {seconds} s, of {minutes} minutes at most"
            ));
        }
        Seen::Ended(processes) => {
            print(&format!("   ... {what}: ended for saying nothing:"));
            for process in processes {
                print(&format!("   ... {process}"));
                each_line(Output::Errors, &format!("{HUNG}{process}"));
            }
        }
    })
}

/// Before the command of a process that was ended for its silence.
pub const HUNG: &str = "hung: ";

/// Runs `command` and shows nothing of its standard output.
pub fn quietly(command: Command, limit: Duration) -> Result<ExitStatus, ProcessError> {
    watch_beating(command, Patience::of_computing(limit), |_| {})
}

/// What a program said, and how it ended.
pub struct Told {
    pub name: String,
    pub lines: Vec<(Output, String)>,
    pub how: Result<ExitStatus, ProcessError>,
}

/// Runs named commands, as many at a time as there are processors, until `end` at most. What each
/// has said is printed when it has ended: whole, whatever is said beside it.
pub fn side_by_side(commands: Vec<(String, Command)>, end: Instant) -> Vec<Told> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (queue, told) = (Mutex::new(commands.into_iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                while let Some((name, mut command)) = next() {
                    let mut lines = Vec::new();
                    command.stderr(Stdio::piped());
                    let left = end.saturating_duration_since(Instant::now());
                    let how = watch_beating(command, Patience::of_computing(left), |seen| {
                        if let Seen::Line(of, line) = seen {
                            lines.push((of, line.to_owned()));
                        }
                    });
                    let text: Vec<_> = lines.iter().map(|(_, line)| line.as_str()).collect();
                    println!("     Running {name}, beside others\n{}", text.join("\n"));
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    told.push(Told { name, lines, how });
                }
            });
        }
    });
    told.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The same command at a lower priority, as `nice` counts it.
pub fn nice(command: &Command, level: u8) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", &level.to_string()])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

/// How long a program may take.
#[derive(Clone, Copy)]
pub struct Patience {
    /// In all.
    pub limit: Duration,
    /// Without a line until it is said to run still.
    pub beat: Duration,
    /// Without a line until what it has started is ended, and it if that changes nothing.
    pub silence: Duration,
}

impl Patience {
    /// With a program of tests.
    pub fn of_tests(limit: Duration) -> Patience {
        Patience {
            limit,
            beat: BEAT,
            silence: SILENCE,
        }
    }

    /// With a program that only computes, and waits for processors that others have: it may be
    /// silent for all of its time.
    pub fn of_computing(limit: Duration) -> Patience {
        Patience {
            limit,
            beat: Duration::MAX,
            silence: Duration::MAX,
        }
    }
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
    /// No line for too long: these were ended, each with its number and command.
    Ended(&'a [String]),
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
    patience: Patience,
    mut see: impl FnMut(Seen<'_>),
) -> Result<ExitStatus, ProcessError> {
    let Patience { limit, beat, .. } = patience;
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error| ProcessError::Io(program.clone(), error);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let lines = lines_of(&mut child);
    let began = Instant::now();
    let (end, mut heard, mut spoke) = (began + limit, began, began);
    let mut ended = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok((of, line)) => {
                heard = Instant::now();
                spoke = heard;
                see(Seen::Line(of, &line));
            }
            Err(RecvTimeoutError::Disconnected) => return child.wait().map_err(failed),
            Err(RecvTimeoutError::Timeout) => {
                // A process it left behind may hold the output open; its own end is what counts.
                if let Some(status) = child.try_wait().map_err(failed)? {
                    let ended = *ended.get_or_insert_with(Instant::now);
                    if ended.elapsed() >= AFTERWARDS {
                        return Ok(status);
                    }
                } else if spoke.elapsed() >= patience.silence {
                    // What started them goes on with the next, and tells what failed.
                    spoke = Instant::now();
                    let mut hung = family(child.id());
                    if hung.len() > 1 {
                        hung.remove(0);
                    }
                    let said: Vec<_> = hung.iter().map(described).collect();
                    end_all(&hung);
                    see(Seen::Ended(&said));
                } else if heard.elapsed() >= beat {
                    heard = Instant::now();
                    see(Seen::Silence(began.elapsed()));
                }
            }
        }
        if Instant::now() > end {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(status);
            }
            end_all(&family(child.id()));
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

/// A process and all its descendants, each after its parent.
fn family(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let parents = parents();
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        family.extend(children.map(|(child, _)| *child));
        next += 1;
    }
    family
}

/// Ends processes, children before what started them.
fn end_all(family: &[u32]) {
    for id in family.iter().rev() {
        let _ = Command::new("kill")
            .args(["-KILL", &id.to_string()])
            .status();
    }
}

/// The number of a process and its command, as it was started.
fn described(id: &u32) -> String {
    let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!("{id} {}", command.trim_end())
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
    fn programs_side_by_side_each_have_their_lines_and_their_end() {
        let scripts = [
            "echo a; echo b >&2",
            "echo c; exit 3",
            "true",
            "kill -KILL $$",
        ];
        let commands = scripts.map(|script| (script.to_owned(), shell(script)));
        let end = Instant::now() + Duration::from_secs(20);
        let mut told = side_by_side(commands.into(), end);
        told.sort_by_key(|told| scripts.iter().position(|script| *script == told.name));
        told[0].lines.sort_by(|(_, one), (_, other)| one.cmp(other));
        let lines = told.iter().map(|told| {
            let lines: Vec<_> = told.lines.iter().map(|(_, line)| line.as_str()).collect();
            lines.join(" ")
        });
        assert_eq!(lines.collect::<Vec<_>>(), ["a b", "c", "", ""]);
        let how = told.iter().map(|told| told.how.as_ref().unwrap().code());
        assert_eq!(how.collect::<Vec<_>>(), [Some(0), Some(3), Some(0), None]);
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
        end_all(&[left_behind.parse().unwrap()]);
    }

    #[test]
    fn what_is_heard_after_the_program_has_ended_counts() {
        let mut lines = Vec::new();
        let script = "(sleep 1; echo late) & echo first; exit 3";
        let status = watch(shell(script), Duration::from_secs(60), |line| {
            lines.push(line.to_owned());
        });
        assert_eq!((status.unwrap().code(), lines.len()), (Some(3), 2));
    }

    #[test]
    fn a_silent_program_is_said_to_run() {
        let mut silences = 0;
        let patience = Patience {
            limit: Duration::from_secs(60),
            beat: TICK,
            silence: Duration::from_secs(60),
        };
        watch_beating(shell("sleep 3"), patience, |seen| {
            silences += usize::from(matches!(seen, Seen::Silence(_)));
        })
        .unwrap();
        assert!(silences > 0);
    }

    #[test]
    fn what_hangs_is_ended_and_named_and_what_started_it_goes_on() {
        let patience = Patience {
            limit: Duration::from_secs(600),
            beat: TICK,
            silence: Duration::from_secs(2),
        };
        let (mut ended, mut lines) = (Vec::new(), Vec::new());
        let script = "echo begun; sleep 1234; echo gone on; exit 3";
        let status = watch_beating(shell(script), patience, |seen| match seen {
            Seen::Ended(processes) => ended.extend_from_slice(processes),
            Seen::Line(_, line) => lines.push(line.to_owned()),
            Seen::Silence(_) => {}
        })
        .unwrap();
        assert_eq!((status.code(), lines.len()), (Some(3), 2), "{lines:?}");
        assert!(
            ended.len() == 1 && ended[0].ends_with("sleep 1234"),
            "{ended:?}"
        );
    }

    #[test]
    fn what_hangs_and_has_started_nothing_is_ended_itself() {
        let patience = Patience {
            limit: Duration::from_secs(600),
            beat: TICK,
            silence: Duration::from_secs(1),
        };
        let status = watch_beating(shell("exec sleep 1234"), patience, |_| {}).unwrap();
        assert!(!status.success());
    }

    #[test]
    fn a_nice_command_is_the_same_command() {
        let mut command = shell("test $(nice) = 19 && test $A = b && test $PWD = /tmp");
        command.env("A", "b").current_dir("/tmp");
        assert!(nice(&command, 19).status().unwrap().success());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let result = watch(Command::new("/nonexistent"), Duration::from_secs(1), |_| {});
        assert!(matches!(result, Err(ProcessError::Io(..))));
    }
}
