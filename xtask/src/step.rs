//! A check as data, and the run of a table of them.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::counting::Counting;
use crate::process::{self, Patience, Told};
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};

/// No step may take longer: a test that hangs is ended and reported.
pub const LIMIT: Duration = Duration::from_secs(45 * 60);
/// No build may take longer. What is compiled beforehand is not counted against the limit of what
/// runs it.
pub const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);

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

/// Steps in their order, and what is done beside them.
pub struct Stage {
    /// The steps.
    pub steps: &'static [Step],
    /// Decides nothing; the next stage waits for it.
    pub beside: Option<fn(&Workspace)>,
}

/// Runs every step, whether or not the ones before it held, and prints the totals last.
pub fn run_all(workspace: &Workspace, stages: &[Stage]) -> bool {
    let all = stages.iter().map(|stage| stage.steps.len()).sum::<usize>();
    println!("{all} steps; each compiles what it needs, and then has a limit of its own");
    let mut rows = Vec::new();
    for stage in stages {
        thread::scope(|scope| {
            let beside = (stage.beside).map(|beside| scope.spawn(move || beside(workspace)));
            for step in stage.steps {
                println!("\n── {} of {all}: {}", rows.len() + 1, step.name);
                rows.push(run(workspace, step));
            }
            if beside.is_some_and(|beside| !beside.is_finished()) {
                println!("   what is done beside these steps is waited for");
            }
        });
    }
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
    let mut counting = Counting::default();
    let print = |line: &str| println!("{line}");
    let ended = process::watch_tests(command, Patience::of_tests(LIMIT), print, |of, line| {
        counting.read(of, line);
    });
    counting.verdict(ended.map(|status| status.success()))
}

/// The same of several, side by side: each has to run a test.
pub fn count_all(commands: Vec<(String, Command)>) -> Counting {
    let mut sum = Counting::default();
    for told in process::side_by_side(commands, Instant::now() + LIMIT) {
        let name = told.name.clone();
        let mut counting = Counting::of(told);
        counting.has_run(&name);
        sum.add(counting);
    }
    sum
}

/// What came of several that were run side by side.
pub fn all_counted(commands: Vec<(String, Command)>) -> Verdict {
    count_all(commands).verdict(Ok(true))
}

/// Runs commands side by side, of each of which the exit status is the check.
pub fn all_hold(commands: Vec<(String, Command)>) -> Verdict {
    let (mut tally, mut failed) = (Tally::default(), Vec::new());
    for Told { name, how, .. } in process::side_by_side(commands, Instant::now() + LIMIT) {
        let why = match how {
            Ok(status) if status.success() => {
                tally += Tally::PASS;
                continue;
            }
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        tally += Tally::FAIL;
        failed.push(format!("{name}: {why}"));
    }
    Verdict::Told(tally, failed, Vec::new())
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
    fn each_of_several_counts() {
        let named = |scripts: [&str; 2]| scripts.map(|it| (it.into(), shell(it))).into();
        let one = "echo 'test result: ok. 1 passed; 0 failed'";
        let verdict = all_counted(named([one, "echo nothing here"]));
        let tally = |passed, failed| Tally {
            passed,
            failed,
            skipped: 0,
        };
        assert_eq!(tally_of(verdict), tally(1, 1));
        let Verdict::Told(both, failed, _) = all_hold(named(["true", "exit 3"])) else {
            panic!("no failure is told");
        };
        assert_eq!(both, tally(1, 1));
        assert_eq!(failed, ["exit 3: exit status: 3"]);
    }

    #[test]
    fn the_status_decides_a_check() {
        assert_eq!(tally_of(holds(shell("true"))), Tally::PASS);
        assert_eq!(tally_of(holds(shell("false"))), Tally::FAIL);
    }
}
