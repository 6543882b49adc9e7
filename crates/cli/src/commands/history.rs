//! `rackmem history`: judging what benches and others have recorded.

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::size::count;
use clap::{Args, Subcommand};
use rackmem::Time;
use rackmem_sim::history::{self, Operation, Outcome, ReadError, ReadErrorKind, Reader};
use rackmem_sim::linear::{ByKey, Counterexample, Limits, Verdict};
use rackmem_sim::serial::{self, Deed, Disorder};
use rackmem_sim::staleness::{self, AgePromise, NoVerdict};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Examples:
  rackmem bench micro --fabric udp --history micro.jsonl      measure, and record every answer
  rackmem history check micro.jsonl                           check the record
  rackmem --json history check micro.jsonl                    one object
  rackmem history check --bounded 10ms items.jsonl            a record of bounded memory: how old is what was read
  rackmem history export micro.jsonl --to micro-jepsen.jsonl  the same for checkers outside

A history is text, one operation a line:
  {\"client\":0,\"op\":\"set\",\"key\":\"a\",\"value\":\"1\",\"invoke\":100,\"return\":180,\"outcome\":\"ok\"}
docs/checking.md has the format. Exit code 1: no order of the operations explains the answers.";

/// Options of `rackmem history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check that a recorded history is linearizable; show the contradiction if it is not
    Check(CheckArgs),
    /// Write a recorded history as events of processes, as Jepsen has them, for other checkers
    Export(ExportArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Read the history from FILE, one operation a line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Remember at most N million configurations per key, about 20 MB each
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=2000))]
    limit: u32,
    /// Check that transactions are strictly serializable: a line has what one read and wrote
    #[arg(long, conflicts_with = "limit")]
    transactions: bool,
    /// Check bounded memory: each value read was current TIME before, or later; no reads go back
    #[arg(long, value_name = "TIME", conflicts_with_all = ["limit", "transactions"])]
    bounded: Option<Time>,
}

#[derive(Debug, Args)]
struct ExportArgs {
    /// Read the history from FILE, one operation a line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the events to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Does what was asked for.
pub fn run(args: &HistoryArgs, json: bool) -> Result<Ended> {
    match &args.action {
        Action::Check(args) if args.transactions => transactions(&args.file, json),
        Action::Check(CheckArgs {
            file,
            bounded: Some(Time(bound)),
            ..
        }) => ages(file, *bound, json),
        Action::Check(args) => check(args, json),
        Action::Export(args) => export(args, json),
    }
}

fn export(args: &ExportArgs, json: bool) -> Result<Ended> {
    let path = &args.file;
    let file = File::open(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let mut reader = Reader::new(BufReader::new(file));
    let history: std::result::Result<Vec<Operation>, ReadError> = reader.by_ref().collect();
    let history = history.map_err(|error| unreadable(path, &error.to_string()))?;
    let Some(to) = &args.to else {
        // Nobody may be reading on.
        let _ = history::export(&history, BufWriter::new(std::io::stdout().lock()));
        return Ok(Ended::Done);
    };
    let file = File::create(to);
    let events = file.and_then(|file| history::export(&history, BufWriter::new(file)));
    let events = events.map_err(|error| {
        let cause = format!("{}: {error}", to.display());
        Failure::new(cause, "give a file that can be written")
    })?;
    let operations = history.len();
    match json {
        true => out::line(json!({"operations": operations, "events": events})),
        false => out::line(format!(
            "{} operations as {} events in {}",
            count(operations as u64),
            count(events),
            to.display()
        )),
    }
    Ok(Ended::Done)
}

/// What a file has in it.
#[derive(Default)]
struct Counts {
    ok: usize,
    failed: usize,
    unknown: usize,
    cut_off: Option<usize>,
}

impl Counts {
    fn add(&mut self, operation: &Operation) {
        match operation.outcome {
            Outcome::Ok { .. } => self.ok += 1,
            Outcome::Fail { .. } => self.failed += 1,
            Outcome::Unknown => self.unknown += 1,
        }
    }
}

fn check(args: &CheckArgs, json: bool) -> Result<Ended> {
    let path = &args.file;
    let start = Instant::now();
    let file = File::open(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let (keys, counts) = gather(BufReader::new(file)).map_err(|error| match error.kind {
        ReadErrorKind::Empty => nothing_to_judge(path, "the file has no operation in it"),
        _ => unreadable(path, &error.to_string()),
    })?;
    if counts.ok == 0 {
        let why = "it has no answered operation";
        return Err(nothing_to_judge(path, why));
    }
    let limits = Limits {
        configurations: args.limit as usize * 1_000_000,
    };
    let verdict = keys.check(limits, |_| ());
    let seconds = start.elapsed().as_secs_f64();
    if json {
        out::line(as_json(&counts, &verdict, seconds));
    } else {
        tell(&counts, &verdict, seconds);
    }
    match verdict {
        Verdict::Linearizable(_) => Ok(Ended::Done),
        Verdict::Violation(found) => Err(Failure::new(
            format!(
                "{}: not linearizable, by key {:?}",
                path.display(),
                found.key
            ),
            "no order of the operations shown explains the answers: look for a stale read",
        )),
        Verdict::GaveUp { key, .. } => Err(Failure::new(
            format!("{}: too hard to judge, by key {key:?}", path.display()),
            "allow more with --limit, or record fewer clients on a key",
        )),
    }
}

fn transactions(path: &Path, json: bool) -> Result<Ended> {
    let start = Instant::now();
    let file = File::open(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let mut reader: Reader<_, Deed<String>> = Reader::new(BufReader::new(file));
    let deeds: std::result::Result<Vec<Deed<String>>, ReadError> = reader.by_ref().collect();
    let deeds = deeds.map_err(|error| match error.kind {
        ReadErrorKind::Empty => nothing_to_judge(path, "the file has no transaction in it"),
        _ => unreadable(path, &error.to_string()),
    })?;
    let verdict = serial::check(&deeds);
    let seconds = start.elapsed().as_secs_f64();
    let shown: Vec<&Deed<String>> = match &verdict {
        Ok(()) => Vec::new(),
        Err(Disorder::Twice(one, other, ..)) => vec![&deeds[*one], &deeds[*other]],
        Err(Disorder::Cycle(cycle)) => cycle.iter().map(|at| &deeds[*at]).collect(),
    };
    let name = match verdict {
        Ok(()) => "serializable",
        Err(_) => "violation",
    };
    if json {
        out::line(json!({
            "verdict": name,
            "seconds": seconds,
            "transactions": deeds.len(),
            "cut_off_line": reader.cut_off(),
            "detail": shown,
        }));
    } else {
        let count = count(deeds.len() as u64);
        out::line(format!("{count} transactions, {seconds:.1} s"));
        for deed in &shown {
            out::line(json!(deed));
        }
    }
    match verdict {
        Ok(()) => Ok(Ended::Done),
        Err(_) => Err(Failure::new(
            format!("{}: not strictly serializable", path.display()),
            "each of the transactions shown comes before the next one, and the last before the first: look for a stale read",
        )),
    }
}

fn ages(path: &Path, bound: Duration, json: bool) -> Result<Ended> {
    let start = Instant::now();
    let file = File::open(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let mut reader = Reader::new(BufReader::new(file));
    let history: std::result::Result<Vec<Operation>, ReadError> = reader.by_ref().collect();
    let history = history.map_err(|error| match error.kind {
        ReadErrorKind::Empty => nothing_to_judge(path, "the file has no operation in it"),
        _ => unreadable(path, &error.to_string()),
    })?;
    let promise = AgePromise {
        bound: u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX),
        // Of a recorder that may be held back nothing is known of how long sections were.
        section: None,
        onward: true,
    };
    let judged = staleness::check(&history, promise);
    let (verdict, detail) = match &judged {
        Ok(ages) if ages.reads == 0 => {
            return Err(nothing_to_judge(path, "it has no answered read"));
        }
        Ok(ages) => (
            "bounded",
            json!({"keys": ages.keys, "reads": ages.reads, "writes": ages.writes, "old": ages.old, "oldest_ns": ages.oldest}),
        ),
        Err(NoVerdict::Broken(found)) => {
            let others = &found.others;
            ("violation", json!({"read": found.read, "others": others}))
        }
        Err(other) => return Err(unreadable(path, &other.to_string())),
    };
    let seconds = start.elapsed().as_secs_f64();
    match (&judged, json) {
        (_, true) => out::line(json!({
            "verdict": verdict,
            "seconds": seconds,
            "cut_off_line": reader.cut_off(),
            "detail": detail,
        })),
        (Ok(ages), _) => out::line(format!(
            "bounded: {} reads of {} keys, {} of them of what had been superseded, by {:.3} ms at most; {seconds:.1} s",
            count(ages.reads as u64),
            count(ages.keys as u64),
            count(ages.old as u64),
            ages.oldest as f64 / 1e6,
        )),
        (Err(why), _) => out::line(why),
    }
    match judged {
        Ok(_) => Ok(Ended::Done),
        Err(_) => Err(Failure::new(
            format!(
                "{}: a read is older than {bound:?}, or goes back",
                path.display()
            ),
            "the operations shown contradict the bound: look for a reader that was not told of a write",
        )),
    }
}

/// Reads a history, never more than a line at a time.
fn gather(source: impl BufRead) -> std::result::Result<(ByKey, Counts), ReadError> {
    let (mut keys, mut counts) = (ByKey::default(), Counts::default());
    let mut reader = Reader::new(source);
    for operation in reader.by_ref() {
        let operation = operation?;
        counts.add(&operation);
        keys.add(operation);
    }
    counts.cut_off = reader.cut_off();
    Ok((keys, counts))
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::new(
        format!("{}: {why}", path.display()),
        "give a file of one JSON object a line; `rackmem history --help` shows one",
    )
}

/// A verdict on nothing would read like a promise kept.
fn nothing_to_judge(path: &Path, why: &str) -> Failure {
    Failure::new(
        format!("{}: nothing to judge: {why}", path.display()),
        "record operations, such as with `rackmem bench micro --history FILE`, and check that file",
    )
}

fn tell(counts: &Counts, verdict: &Verdict, seconds: f64) {
    let number = |n: usize| count(n as u64);
    out::line(format!(
        "{} operations done, {} failed, {} of unknown outcome",
        number(counts.ok),
        number(counts.failed),
        number(counts.unknown)
    ));
    if let Some(line) = counts.cut_off {
        out::line(format!(
            "line {line}, the last, is cut off and left out: its recorder was stopped"
        ));
    }
    match verdict {
        Verdict::Linearizable(summary) => out::line(format!(
            "linearizable: {} keys, {} configurations, {seconds:.1} s",
            number(summary.keys),
            number(summary.configurations)
        )),
        Verdict::Violation(found) => out::line(found),
        Verdict::GaveUp {
            operations,
            configurations,
            ..
        } => out::line(format!(
            "gave up on a key with {} operations after {} configurations",
            number(*operations),
            number(*configurations)
        )),
    }
}

fn as_json(counts: &Counts, verdict: &Verdict, seconds: f64) -> Value {
    let (name, more) = match verdict {
        Verdict::Linearizable(summary) => (
            "linearizable",
            json!({"keys": summary.keys, "configurations": summary.configurations}),
        ),
        Verdict::Violation(found) => ("violation", shown(found)),
        Verdict::GaveUp {
            key,
            operations,
            configurations,
        } => (
            "gave up",
            json!({"key": key, "operations": operations, "configurations": configurations}),
        ),
    };
    json!({
        "verdict": name,
        "seconds": seconds,
        "ok": counts.ok,
        "failed": counts.failed,
        "unknown": counts.unknown,
        "cut_off_line": counts.cut_off,
        "detail": more,
    })
}

fn shown(found: &Counterexample) -> Value {
    json!({
        "key": found.key,
        "from_start": found.from_start,
        "culprit": found.culprit,
        "operations": found.operations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_counted() {
        let text = "\
{\"client\":0,\"op\":\"set\",\"key\":\"a\",\"value\":\"1\",\"invoke\":1,\"return\":2,\"outcome\":\"ok\"}
{\"client\":0,\"op\":\"del\",\"key\":\"a\",\"invoke\":3,\"return\":4,\"outcome\":\"fail\"}
{\"client\":1,\"op\":\"del\",\"key\":\"a\",\"invoke\":3,\"outcome\":\"unknown\"}
{\"client\":1,\"op\":\"de";
        let (keys, counts) = gather(text.as_bytes()).unwrap();
        let (done, unclear) = ((counts.ok, counts.failed, counts.unknown), counts.cut_off);
        assert_eq!((done, unclear), ((1, 1, 1), Some(4)));
        let verdict = keys.check(Limits::default(), |_| ());
        assert!(verdict.is_linearizable(), "{verdict}");
        assert_eq!(as_json(&counts, &verdict, 0.0)["detail"]["keys"], 1);
    }

    #[test]
    fn ages_are_judged_beside_a_bound() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("rackmem-ages-{}.jsonl", std::process::id()));
        let set = |value: u32, at: u32| {
            format!(
                r#"{{"client":0,"op":"set","key":"a","value":{value},"invoke":{at},"return":{},"outcome":"ok"}}"#,
                at + 10
            )
        };
        let get = r#"{"client":1,"op":"get","key":"a","result":1,"invoke":1130,"return":1140,"outcome":"ok"}"#;
        std::fs::write(&path, format!("{}\n{}\n{get}\n", set(1, 0), set(2, 20))).unwrap();
        assert!(ages(&path, Duration::from_nanos(1100), true).is_ok());
        let failure = ages(&path, Duration::from_nanos(1099), false);
        let failure = failure.unwrap_err().to_string();
        assert!(failure.contains("older than 1.099"), "{failure}");
        std::fs::write(&path, set(1, 0)).unwrap();
        let failure = ages(&path, Duration::from_nanos(1), true).unwrap_err();
        assert!(failure.to_string().contains("nothing to judge"));
        std::fs::write(&path, r#"{"client":0,"op":"del","key":"a","result":true,"invoke":3,"return":4,"outcome":"ok"}"#).unwrap();
        let failure = ages(&path, Duration::from_nanos(1), true).unwrap_err();
        assert!(failure.to_string().contains("get, set and clear only"));
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn transactions_are_judged_together() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("rackmem-transactions-{}.jsonl", std::process::id()));
        let first = r#"{"client":0,"reads":[["a",4],["b",8]],"writes":[["a",6],["b",10]],"invoke":1,"return":8}"#;
        let judged = |second: &str| {
            std::fs::write(&path, format!("{first}\n{second}\n")).unwrap();
            transactions(&path, true)
        };
        let after = r#"{"client":1,"reads":[["a",6],["b",10]],"invoke":2,"return":9}"#;
        assert!(judged(after).is_ok());
        let half = r#"{"client":1,"reads":[["a",6],["b",8]],"invoke":2,"return":9}"#;
        let failure = judged(half).unwrap_err().to_string();
        assert!(failure.contains("not strictly serializable"), "{failure}");
        let _ = std::fs::remove_file(&path);
    }
}
