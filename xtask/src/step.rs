//! A check as data, and the run of a table of them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{self, ProcessError};
use crate::tally::{SKIPPED, Tally, is_skip};
use crate::workspace::{Workspace, cargo};

/// No step may take longer: a test that hangs is ended and reported.
const LIMIT: Duration = Duration::from_secs(45 * 60);
/// No build may take longer. What is compiled beforehand is not counted against the limit of what
/// runs it.
pub const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Names of failed tests, what they said, and reasons of skipped ones, that the summary repeats, at
/// most of each.
const NAMED: usize = 20;
/// Characters of what a failed test said that the summary repeats.
const SAID: usize = 300;
/// Lines of what one panic says, at most.
const PANIC_LINES: usize = 8;

/// One row of a table of checks.
pub struct Step {
    /// What the reader sees.
    pub name: &'static str,
    /// What is done.
    pub action: Action,
}

/// What a step does.
pub enum Action {
    /// A cargo command that holds or not: it counts as one check. What it does is compiling,
    /// mostly.
    Cargo(&'static [&'static str]),
    /// A cargo command that runs tests, which are counted.
    Tests(&'static [&'static str]),
    /// A function of this program.
    Run(fn(&Workspace) -> Verdict),
}

/// How a step ended.
pub enum Verdict {
    /// It ran; what it counted.
    Counted(Tally),
    /// It ran; what it counted, the names of tests that failed, and lines that say why they did
    /// and why others were skipped.
    Told(Tally, Vec<String>, Vec<String>),
    /// It did not hold, or could not be run; why.
    Failed(String),
    /// It does not apply on this machine; why.
    Skipped(String),
}

impl Verdict {
    /// Of a step that is run as a command: whether it held, or why it could not run.
    pub fn told(self) -> Result<bool, crate::Failure> {
        match self {
            Verdict::Skipped(why) | Verdict::Failed(why) => Err(why),
            Verdict::Counted(tally) | Verdict::Told(tally, ..) => Ok(tally.failed == 0),
        }
    }
}

struct Row {
    name: &'static str,
    time: Duration,
    tally: Tally,
    note: String,
    reasons: Vec<String>,
}

/// Runs every step, whether or not the ones before it held, and prints the totals last.
pub fn run_all(workspace: &Workspace, tables: &[&[Step]]) -> bool {
    let steps: Vec<&Step> = tables.iter().flat_map(|table| table.iter()).collect();
    let all = steps.len();
    println!("{all} steps; each compiles what it needs, and then has a limit of its own");
    let rows: Vec<Row> = (steps.into_iter().enumerate())
        .map(|(nth, step)| {
            println!("\n── {} of {all}: {}", nth + 1, step.name);
            run(workspace, step)
        })
        .collect();
    summarize(&rows)
}

fn run(workspace: &Workspace, step: &Step) -> Row {
    let begin = Instant::now();
    let verdict = match step.action {
        Action::Cargo(arguments) => builds(cargo_command(workspace, arguments)),
        Action::Tests(arguments) => {
            let build = cargo_command(workspace, &without_running(arguments));
            after_build(build, || counted(cargo_command(workspace, arguments)))
        }
        Action::Run(function) => function(workspace),
    };
    let mut reasons = Vec::new();
    let (tally, note) = match verdict {
        Verdict::Counted(tally) => (tally, String::new()),
        Verdict::Told(tally, failed, told) => {
            reasons = told;
            let names = failed.join(", ");
            let note = (!failed.is_empty()).then(|| format!("{tally}: {names}"));
            (tally, note.unwrap_or_default())
        }
        Verdict::Failed(why) => (Tally::FAIL, why),
        Verdict::Skipped(why) => (Tally::SKIP, why),
    };
    let time = begin.elapsed();
    println!("   {tally}, {:.1} s {note}", time.as_secs_f64());
    Row {
        name: step.name,
        time,
        tally,
        note,
        reasons,
    }
}

fn summarize(rows: &[Row]) -> bool {
    let mut total = Tally::default();
    println!("\n── summary");
    for row in rows {
        total += row.tally;
        let mark = match row.tally {
            Tally { failed: 1.., .. } => "FAIL",
            Tally::SKIP => "skip",
            _ => "ok",
        };
        let seconds = row.time.as_secs_f64();
        println!(
            "{mark:>4}  {:<34} {seconds:>7.1} s  {}",
            row.name,
            note(row)
        );
        for reason in &row.reasons {
            println!("{:>4}  {reason}", "");
        }
    }
    println!("\n{total}");
    total.failed == 0
}

fn note(row: &Row) -> String {
    if row.note.is_empty() {
        row.tally.to_string()
    } else {
        row.note.clone()
    }
}

/// A cargo command at the root; warnings of rustdoc are errors.
fn cargo_command(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.command(cargo());
    command.args(arguments).env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// Runs a command whose exit status is the check.
pub fn holds(command: Command) -> Verdict {
    ends_well(command, LIMIT)
}

/// What compiles the tests that a cargo command runs.
fn without_running<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let options = arguments.iter().position(|word| *word == "--");
    let (own, _) = arguments.split_at(options.unwrap_or(arguments.len()));
    let own = own.iter().filter(|word| **word != "--no-fail-fast");
    own.copied().chain(["--no-run"]).collect()
}

/// Builds, and then runs what was built: compiling has a limit of its own.
pub fn after_build(build: Command, run: impl FnOnce() -> Verdict) -> Verdict {
    let begin = Instant::now();
    match builds(build) {
        Verdict::Counted(_) => {
            println!("   built in {:.1} s", begin.elapsed().as_secs_f64());
            run()
        }
        Verdict::Failed(why) => Verdict::Failed(format!("does not compile: {why}")),
        other => other,
    }
}

/// Runs a build.
pub fn builds(command: Command) -> Verdict {
    ends_well(command, BUILD_LIMIT)
}

fn ends_well(command: Command, limit: Duration) -> Verdict {
    match process::watch(command, limit, |_| {}) {
        Ok(status) if status.success() => Verdict::Counted(Tally::PASS),
        Ok(status) => Verdict::Failed(status.to_string()),
        Err(error) => Verdict::Failed(error.to_string()),
    }
}

/// Runs a command that prints summaries of tests, and counts those.
pub fn counted(mut command: Command) -> Verdict {
    // That a program of tests was ended by a signal is said by cargo, and there.
    command.stderr(Stdio::piped());
    let mut tally = Tally::default();
    let (mut failed, mut said, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    let mut slow = Vec::new();
    let mut follow = [0; 2];
    let result = process::watch_tests(command, LIMIT, |of, line| {
        tally.read(line);
        // Those that are slow when a program is ended for its silence are what hung.
        slow.extend(slow_test(line).map(str::to_owned));
        if let Some(name) = ended_test(line) {
            slow.retain(|slow| slow != name);
        }
        if line.starts_with(process::HUNG) {
            failed.append(&mut slow);
            said.push(shortened(line));
        }
        failed.extend(failed_test(line).map(str::to_owned));
        failed.extend(ended_program(line));
        skipped.extend(skipped_test(line));
        let why = of_pytest(line).filter(|why| why.contains(" - "));
        said.extend(why.map(shortened));
        // What a test says follows on the same output, whatever is on the other one meanwhile.
        let follow = &mut follow[of as usize];
        *follow = match () {
            () if is_panic(line) => 1 + PANIC_LINES,
            () if ends_panic(line) => 0,
            () => *follow,
        };
        if *follow > 0 {
            *follow -= 1;
            said.push(shortened(line));
        }
    });
    failed.truncate(NAMED);
    said.truncate((1 + PANIC_LINES) * NAMED);
    skipped.truncate(NAMED);
    said.append(&mut skipped);
    match verdict_of(tally, result.map(|status| status.success())) {
        Verdict::Counted(tally) if !failed.is_empty() || !said.is_empty() => {
            Verdict::Told(tally, failed, said)
        }
        verdict => verdict,
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(SAID).collect()
}

/// Whether a line begins what a panic says, which goes on in the next line. The harness keeps to
/// itself what tests print that hold.
fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// Whether what a panic says is over before this line.
fn ends_panic(line: &str) -> bool {
    line.is_empty()
        || ["note: ", "stack backtrace:", "test "]
            .iter()
            .any(|end| line.starts_with(end))
}

/// What a line says of a test that did not run: why, or the name of one that cargo's harness
/// ignores.
fn skipped_test(line: &str) -> Option<String> {
    if let Some(at) = is_skip(line).then(|| line.find(SKIPPED)).flatten() {
        return Some(line[at..].to_owned());
    }
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some(format!("ignored: {name}{rest}"))
}

/// The name of a test of cargo's harness that has not ended for a minute.
fn slow_test(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(' ')?;
    (rest.starts_with("has been running for over")).then_some(name)
}

/// The name of a test of cargo's harness that has ended.
fn ended_test(line: &str) -> Option<&str> {
    Some(line.strip_prefix("test ")?.split_once(" ... ")?.0)
}

/// The name of a test that a line of a runner says has failed: cargo's harness,
/// or pytest's short summary.
fn failed_test(line: &str) -> Option<&str> {
    let cargo = line
        .strip_prefix("test ")
        .and_then(|rest| rest.strip_suffix(" ... FAILED"));
    cargo.or_else(|| of_pytest(line)?.split(" - ").next())
}

/// What pytest's short summary says of a test that failed, or could not be set up:
/// its name and why.
fn of_pytest(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("FAILED ");
    rest.or_else(|| line.strip_prefix("ERROR "))
        .filter(|rest| rest.contains(".py"))
}

/// A program of tests that ended without a summary, such as by a signal: its name and how.
fn ended_program(line: &str) -> Option<String> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("process didn't exit successfully: `")?;
    let (command, how) = rest.split_once("` ")?;
    let program = Path::new(command.split(' ').next()?).file_name()?;
    Some(format!("{} {how}", program.to_string_lossy()))
}

/// A failure that no summary tells of, such as a test that did not compile, is counted as one.
fn verdict_of(mut tally: Tally, success: Result<bool, ProcessError>) -> Verdict {
    match success {
        Ok(true) if tally == Tally::default() => Verdict::Failed("no test was run".into()),
        Ok(true) => Verdict::Counted(tally),
        Ok(false) => {
            tally.failed = tally.failed.max(1);
            Verdict::Counted(tally)
        }
        Err(error) => {
            println!("   {error}");
            tally += Tally::FAIL;
            Verdict::Counted(tally)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn tally_of(verdict: Verdict) -> Tally {
        match verdict {
            Verdict::Counted(tally) | Verdict::Told(tally, ..) => tally,
            Verdict::Failed(_) => Tally::FAIL,
            Verdict::Skipped(_) => Tally::SKIP,
        }
    }

    #[test]
    fn a_failing_status_counts_even_when_every_test_passed() {
        let verdict = counted(shell("echo 'test result: ok. 2 passed; 0 failed'; exit 1"));
        assert_eq!(
            tally_of(verdict),
            Tally {
                passed: 2,
                failed: 1,
                skipped: 0
            }
        );
    }

    #[test]
    fn the_summary_names_what_failed() {
        let script = "echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; \
                      echo 'FAILED tests/e2e/x.py::y - Error: z'; exit 1";
        let Verdict::Told(tally, names, said) = counted(shell(script)) else {
            panic!("nothing is named");
        };
        assert_eq!(
            (tally.failed, names),
            (1, vec!["a::c".into(), "tests/e2e/x.py::y".into()])
        );
        assert_eq!(said, vec!["tests/e2e/x.py::y - Error: z".to_owned()]);
    }

    #[test]
    fn the_summary_says_what_a_failed_test_said_and_what_a_signal_ended() {
        let script = "echo \"thread 'a::c' (7) panicked at src/a.rs:3:5:\"; echo 'left is not right'; \
                      echo '  left: 1'; echo 'note: no more'; echo 'Caused by:' >&2; \
                      echo \"  process didn't exit successfully: \\`/x/deps/a-1f --nocapture\\` (signal: 6)\" >&2; \
                      exit 1";
        let Verdict::Told(tally, names, said) = counted(shell(script)) else {
            panic!("nothing is told");
        };
        assert_eq!((tally.failed, names), (1, vec!["a-1f (signal: 6)".into()]));
        let expected = [
            "thread 'a::c' (7) panicked at src/a.rs:3:5:",
            "left is not right",
            "  left: 1",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn the_summary_names_tests_that_hung() {
        let slow = "has been running for over 60 seconds";
        let script = format!(
            "echo 'test a::b {slow}'; echo 'test a::c {slow}'; echo 'test a::b ... ok'; \
             echo '{}7 x --long'; echo 'test a::d {slow}'; exit 1",
            process::HUNG
        );
        let Verdict::Told(_, names, said) = counted(shell(&script)) else {
            panic!("nothing is told");
        };
        assert_eq!(names, ["a::c"]);
        assert_eq!(said, ["hung: 7 x --long"]);
    }

    #[test]
    fn the_summary_says_why_a_test_was_skipped() {
        let script = "echo 'skipped: no root'; echo 'test a - b (line 1) ... ignored, slow'; \
                      echo 'test result: ok. 2 passed; 0 failed; 1 ignored'";
        let Verdict::Told(tally, failed, reasons) = counted(shell(script)) else {
            panic!("no reason is told");
        };
        assert_eq!((tally.passed, tally.skipped, failed.len()), (1, 2, 0));
        assert_eq!(
            reasons,
            ["skipped: no root", "ignored: a - b (line 1), slow"]
        );
    }

    #[test]
    fn what_does_not_compile_is_not_run() {
        let run = || panic!("it was run");
        let verdict = after_build(shell("exit 1"), run);
        assert!(matches!(verdict, Verdict::Failed(why) if why.contains("does not compile")));
        let verdict = after_build(shell("true"), || counted(shell("echo nothing here")));
        assert!(matches!(verdict, Verdict::Failed(why) if why == "no test was run"));
    }

    #[test]
    fn a_build_has_the_options_of_what_it_builds() {
        let run = ["test", "-p", "x", "--no-fail-fast", "--", "--nocapture"];
        assert_eq!(without_running(&run), ["test", "-p", "x", "--no-run"]);
    }

    #[test]
    fn a_run_without_tests_fails() {
        assert!(matches!(
            counted(shell("echo nothing here")),
            Verdict::Failed(_)
        ));
    }

    #[test]
    fn the_status_decides_a_check() {
        assert_eq!(tally_of(holds(shell("true"))), Tally::PASS);
        assert_eq!(tally_of(holds(shell("false"))), Tally::FAIL);
    }
}
