//! `rackmem check`: every state that small racks can get into.

mod show;

pub use show::list;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use clap::Args;
use rackmem_sim::SUITES;
use rackmem_sim::driver::{About, Case, Limits, MAX_STATES, Progress, Report, Suite};
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Examples:
  rackmem check                              every scenario, in seconds
  rackmem check --list                       the scenarios, and what each covers
  rackmem check --scenario move-add          one of them; `--scenario move`: all with this prefix
  rackmem check --of gcp                     the scenarios of one protocol
  rackmem check --deep                       more faults: minutes, and gigabytes of memory
  rackmem check --deep --seconds 30          the same, at most 30 s per scenario
  rackmem check --defect forget-reader       plant a defect, to see a counterexample
  rackmem check --list-defects bi            all defects of one protocol
  rackmem --json check                       one object a scenario

Ctrl-C stops it and shows the coverage so far (exit code 130). Exit code 1: an invariant is broken; a shortest
sequence of packets that breaks it is printed. docs/checking.md says what is covered, and what is not.";

/// Options of `rackmem check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Run only scenarios whose names begin with NAME
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Run only scenarios of PROTOCOL
    #[arg(long, value_name = "PROTOCOL", value_parser = suite)]
    of: Option<&'static str>,
    /// List the scenarios and exit
    #[arg(long)]
    list: bool,
    /// List the defects that can be planted in PROTOCOL, one a line, and exit
    #[arg(long, value_name = "PROTOCOL", value_parser = suite)]
    list_defects: Option<&'static str>,
    /// Explore more faults per scenario
    #[arg(long)]
    deep: bool,
    /// Plant a defect, to see a counterexample; an unknown NAME lists them
    #[arg(long, value_name = "NAME", value_parser = defect)]
    defect: Option<String>,
    /// Stop each scenario after N seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: Option<u64>,
}

fn suite(name: &str) -> std::result::Result<&'static str, String> {
    let found = SUITES.iter().find(|suite| suite.name == name);
    found.map(|suite| suite.name).ok_or_else(|| {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        format!("the protocols are {}", names.join(", "))
    })
}

fn defect(name: &str) -> std::result::Result<String, String> {
    if SUITES.iter().any(|suite| has(suite, name)) {
        return Ok(name.to_owned());
    }
    let all = SUITES.iter().map(|suite| {
        let names = (suite.defects)().join(", ");
        format!("of {}: {names}", suite.name)
    });
    Err(format!(
        "the defects are\n{}",
        all.collect::<Vec<_>>().join("\n")
    ))
}

fn has(suite: &Suite, defect: &str) -> bool {
    (suite.defects)().iter().any(|name| name == defect)
}

/// A scenario, and the name of its suite.
type Chosen = (&'static str, &'static dyn Case);

/// Explores, and tells.
pub fn run(args: &CheckArgs, json: bool) -> Result<Ended> {
    if let Some(name) = args.list_defects {
        let suites = SUITES.iter().filter(|suite| suite.name == name);
        let defects: Vec<String> = suites.flat_map(|suite| (suite.defects)()).collect();
        show::list_defects(name, &defects, json);
        return Ok(Ended::Done);
    }
    let chosen = chosen(args)?;
    if args.list {
        let about = |(suite, case): &Chosen| (*suite, case.about(args.deep));
        show::list(&chosen.iter().map(about).collect::<Vec<_>>(), json);
        return Ok(Ended::Done);
    }
    let stop = Stop::on_signals()?;
    let mut reports = Vec::new();
    for (suite, case) in &chosen {
        let about = case.about(args.deep);
        let report = explored(*case, about.name, args, &stop)?;
        if json {
            out::line(show::report(suite, &about, &report));
        }
        let noticed = report.violation().is_some() && args.defect.is_some();
        reports.push((about, report));
        if noticed || stop.requested() {
            break;
        }
    }
    if !json {
        show::table(&reports);
    }
    match &args.defect {
        Some(defect) => noticed(&reports, defect)?,
        None => verdict(&reports, chosen.len())?,
    }
    Ok(if stop.requested() {
        Ended::Interrupted
    } else {
        Ended::Done
    })
}

fn chosen(args: &CheckArgs) -> Result<Vec<Chosen>> {
    let wanted = args.scenario.as_deref().unwrap_or_default();
    let plays = |suite: &&Suite| {
        let defect = args.defect.as_deref();
        args.of.is_none_or(|of| of == suite.name) && defect.is_none_or(|name| has(suite, name))
    };
    let all = SUITES.iter().filter(plays).flat_map(|suite| {
        let scenarios = (suite.scenarios)().into_iter();
        scenarios.map(|case| (suite.name, case))
    });
    let chosen: Vec<Chosen> = all
        .filter(|(_, case)| case.about(args.deep).name.starts_with(wanted))
        .collect();
    if chosen.is_empty() {
        let cause = match &args.defect {
            Some(defect) => format!("no scenario \"{wanted}\" can have {defect}"),
            None => format!("no scenario's name begins with \"{wanted}\""),
        };
        return Err(Failure::new(cause, "see `rackmem check --list`"));
    }
    Ok(chosen)
}

fn explored(case: &dyn Case, name: &'static str, args: &CheckArgs, stop: &Stop) -> Result<Report> {
    let mut told = Teller::new(name);
    let mut limits = Limits {
        states: MAX_STATES,
        time: args.seconds.map(Duration::from_secs),
        stop: &mut |progress| {
            told.tell(progress);
            stop.requested()
        },
    };
    let report = case.explore(args.deep, args.defect.as_deref(), &mut limits);
    report.map_err(|why| {
        let cause = format!("{name}: {why}");
        Failure::new(cause, "this is a defect of rackmem: please report it")
    })
}

/// A line on standard error for explorations that take long.
struct Teller {
    name: &'static str,
    last: Instant,
}

impl Teller {
    /// How often there is one.
    const EVERY: Duration = Duration::from_secs(5);

    fn new(name: &'static str) -> Self {
        let last = Instant::now();
        Teller { name, last }
    }

    fn tell(&mut self, progress: &Progress) {
        if self.last.elapsed() < Self::EVERY {
            return;
        }
        self.last = Instant::now();
        let Progress {
            states,
            expanded,
            depth,
            time,
        } = progress;
        let (name, seconds) = (self.name, time.as_secs());
        eprintln!("{name}: {states} states, {expanded} expanded, depth {depth}, {seconds} s");
    }
}

/// What was put in is to be found; otherwise these scenarios do not show it.
fn noticed(reports: &[(About, Report)], defect: &str) -> Result<()> {
    let Some((scenario, _)) = reports.iter().find(|(_, r)| r.violation().is_some()) else {
        eprintln!("none of these scenarios notices {defect}");
        return Ok(());
    };
    let cause = format!("{defect} breaks a promise in {}", scenario.name);
    let next = "read the story above it from the top; without --defect the rules are as shipped";
    Err(Failure::new(cause, next))
}

/// Broken promises, and witnesses that were never seen, are failures.
fn verdict(reports: &[(About, Report)], of: usize) -> Result<()> {
    let broken = reports.iter().filter(|(_, r)| r.violation().is_some());
    let broken = broken.count();
    if broken > 0 {
        let cause = format!("{broken} of {of} scenarios break a promise");
        let next =
            "read the story above it from the top; `rackmem check --scenario NAME` tells it again";
        return Err(Failure::new(cause, next));
    }
    let blind = reports.iter().filter(|(_, report)| !report.passed());
    let names: Vec<&str> = blind.map(|(scenario, _)| scenario.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let cause = format!("never came across what they are for: {}", names.join(", "));
    let next = "change the scenario's programs or budget until it does";
    Err(Failure::new(cause, next))
}
