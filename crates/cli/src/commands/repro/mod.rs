//! `rackmem repro`: every figure of the five papers by one command. What the paper says, what the
//! model of its hardware says, and what this machine measures, side by side, as a page and as JSON.

mod catalogue;
mod claims;
mod page;
mod plot;
mod ranks;
mod run;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use catalogue::{FIGURES, Figure, Here};
use clap::{Args, ValueEnum, builder::PossibleValuesParser, builder::TypedValueParser};
use indicatif::{ProgressBar, ProgressStyle};
use rackmem::Time;
use rackmem_bench::judged::Judged;
use rackmem_bench::machine;
use rackmem_bench::report::Report;
use rackmem_bench::run::BenchError;
use rackmem_bench::stop;
use rackmem_bench::table::{Align, Table};
use run::{Effort, Modelled};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const EXAMPLES: &str = "\
Each figure is told three times: by the paper, by a model of its hardware around the code that ships, and by this
machine. \"agrees\" is within 20% of the paper, \"near\" within 50%; \"calibrated\" agrees because it was fitted.

Examples:
  rackmem repro                                  all figures, in minutes; the page is repro.html
  rackmem repro --figure concordia-9,soul-9      these two
  rackmem repro --only model                     the models: the same figures on every machine
  rackmem repro --list                           the figures, and what there is of each
  rackmem --json repro --figure sabres-8         one object for scripts: cases, claims, verdicts";

/// Options of `rackmem repro`.
#[derive(Debug, Args)]
pub struct ReproArgs {
    /// Only these figures [all]
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = figure())]
    #[arg(hide_possible_values = true)]
    figure: Vec<&'static Figure>,
    /// List the figures, and run nothing
    #[arg(long)]
    list: bool,
    /// Only run the models, or only measure on this machine [both]
    #[arg(long, value_name = "WHICH")]
    only: Option<Only>,
    /// Write the page to FILE
    #[arg(long, value_name = "FILE", default_value = "repro.html")]
    page: PathBuf,
    /// Seed the models
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Divide the sizes of the Concordia paper by N in its model
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u32).range(8..=1024))]
    scale: u32,
    /// Measure each case on this machine for TIME
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    duration: Time,
}

/// One of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Only {
    Model,
    Here,
}

fn figure() -> impl TypedValueParser<Value = &'static Figure> {
    let names = PossibleValuesParser::new(FIGURES.iter().map(|figure| figure.id));
    names.try_map(|id: String| catalogue::of(&id).ok_or("no such figure"))
}

/// A figure, and what came of it.
#[derive(Debug)]
pub struct Row {
    figure: &'static Figure,
    model: Option<Modelled>,
    here: Vec<Judged>,
    /// What could not be measured, and why.
    left_out: Vec<String>,
}

/// The same for scripts.
#[derive(Serialize)]
struct RowJson<'a> {
    figure: &'a str,
    paper: &'a str,
    place: &'a str,
    title: &'a str,
    model: &'a Option<Modelled>,
    here: &'a [Judged],
    left_out: &'a [String],
    why: &'a str,
}

impl Row {
    fn model_verdicts(&self) -> String {
        match &self.model {
            Some(model) => verdicts(&model.claims),
            None => "none".to_owned(),
        }
    }

    fn here_verdicts(&self) -> String {
        match self.here.as_slice() {
            [] if self.left_out.is_empty() => "none".to_owned(),
            [] => "not measured".to_owned(),
            claims => verdicts(claims),
        }
    }

    fn json(&self) -> RowJson<'_> {
        let Figure {
            id,
            paper,
            place,
            title,
            why,
            ..
        } = *self.figure;
        RowJson {
            figure: id,
            paper: paper.title(),
            place,
            title,
            model: &self.model,
            here: &self.here,
            left_out: &self.left_out,
            why,
        }
    }
}

/// How many of each there are.
fn verdicts(claims: &[Judged]) -> String {
    let count = |word: &str| claims.iter().filter(|claim| claim.word() == word).count();
    let counts = ["agrees", "near", "differs", "calibrated"].map(|word| (count(word), word));
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    some.join(", ")
}

/// Runs it.
pub fn run(args: &ReproArgs, json: bool) -> Result<Ended> {
    let wanted: Vec<&'static Figure> = match args.figure.as_slice() {
        [] => FIGURES.iter().collect(),
        some => some.to_vec(),
    };
    if args.list {
        out::table(&list(&wanted));
        return Ok(Ended::Done);
    }
    Stop::on_signals()?;
    // What would fail at the end fails now.
    let unwritable = |error: std::io::Error| {
        let cause = format!("{}: {error}", args.page.display());
        Failure::new(cause, "give --page a file that can be written")
    };
    touch(&args.page).map_err(unwritable)?;
    let bar = bar(wanted.len());
    let rows = rows(args, &wanted, &bar);
    bar.finish_and_clear();
    let Some(rows) = rows? else {
        return Ok(Ended::Interrupted);
    };
    let head = page::Head {
        version: env!("CARGO_PKG_VERSION"),
        commit: &machine::commit(),
        machine: &machine::machine(),
        seed: args.seed,
    };
    std::fs::write(&args.page, page::html(&head, &rows)).map_err(unwritable)?;
    if json {
        let figures: Vec<RowJson<'_>> = rows.iter().map(Row::json).collect();
        let all = serde_json::json!({
            "version": head.version, "commit": head.commit, "machine": head.machine,
            "seed": args.seed, "page": args.page, "figures": figures,
        });
        out::line(all);
    } else {
        out::table(&table(&rows));
        out::line(format!(
            "The page, with plots and every claim: {}",
            args.page.display()
        ));
    }
    Ok(Ended::Done)
}

/// Whether a file can be written, without changing what it has.
fn touch(path: &Path) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new();
    file.append(true).create(true).open(path).map(drop)
}

/// Models, then measurements; nothing if it was stopped.
fn rows(
    args: &ReproArgs,
    wanted: &[&'static Figure],
    bar: &ProgressBar,
) -> Result<Option<Vec<Row>>> {
    let Time(duration) = args.duration;
    let effort = Effort {
        seed: args.seed,
        scale: args.scale,
        duration,
    };
    let mut measured: Vec<(Here, std::result::Result<Report, String>)> = Vec::new();
    let mut rows = Vec::new();
    for figure in wanted.iter().copied() {
        let mut tell = |what: &str| bar.set_message(format!("{}: {what}", figure.id));
        let model = match args.only {
            Some(Only::Here) => None,
            _ => match run::model(figure, effort, &mut tell) {
                Err(_) if stop::requested() => return Ok(None),
                model => model.map_err(explain)?,
            },
        };
        let here = figure.here.filter(|_| args.only != Some(Only::Model));
        if let Some(here) = here
            && measured.iter().all(|row| row.0 != here)
        {
            let report = run::measure(here, effort, &mut tell);
            if stop::requested() {
                return Ok(None);
            }
            measured.push((here, report.map_err(|error| error.to_string())));
        }
        let of = |here: Here| measured.iter().find(|row| row.0 == here).map(|row| &row.1);
        let (here, left_out) = match here.and_then(of) {
            None => (Vec::new(), Vec::new()),
            Some(Err(why)) => (Vec::new(), vec![why.clone()]),
            Some(Ok(report)) => judged(figure, report),
        };
        rows.push(Row {
            figure,
            model,
            here,
            left_out,
        });
        bar.inc(1);
    }
    Ok(Some(rows))
}

/// What came of a figure's statements, and those that nothing came of.
fn judged(figure: &Figure, report: &Report) -> (Vec<Judged>, Vec<String>) {
    let (mut here, mut left_out) = (Vec::new(), Vec::new());
    for statement in figure.statements {
        match statement.judge(figure.place, report) {
            Some(judged) => here.push(judged),
            None => left_out.push(format!("{}: this machine cannot", statement.says)),
        }
    }
    (here, left_out)
}

fn explain(error: BenchError) -> Failure {
    Failure::new(
        error.to_string(),
        "try another --seed; if it fails again, please report it",
    )
}

fn bar(figures: usize) -> ProgressBar {
    let bar = ProgressBar::new(figures as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn list(wanted: &[&'static Figure]) -> Table {
    let columns = ["figure", "in the paper", "what", "model", "here"];
    let mut table = Table::new("", &columns.map(|name| (name, Align::Left)));
    let has = |is: bool| if is { "yes" } else { "no" };
    for figure in wanted {
        table.row(&[
            figure.id,
            figure.place,
            figure.title,
            has(figure.model.is_some()),
            has(figure.here.is_some()),
        ]);
    }
    table
}

fn table(rows: &[Row]) -> Table {
    let columns = ["figure", "what", "the model", "this machine"];
    let mut table = Table::new("", &columns.map(|name| (name, Align::Left)));
    for row in rows {
        table.row(&[
            row.figure.id,
            row.figure.title,
            &row.model_verdicts(),
            &row.here_verdicts(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Verdicts of all models at sizes that take seconds. A change of a protocol or of a model that
    /// changes one shows here: see what it is, then write the new one down.
    const VERDICTS: &str = include_str!("verdicts.txt");

    #[test]
    fn verdicts_do_not_change_unnoticed() {
        let effort = Effort {
            seed: 1,
            scale: 256,
            duration: Duration::ZERO,
        };
        // Locks' first figures take minutes; `rackmem-sim` pins their counts.
        let long = ["soul-7", "soul-9"];
        let mut told = String::new();
        for figure in FIGURES.iter().filter(|figure| !long.contains(&figure.id)) {
            let model = run::model(figure, effort, &mut |_| {}).unwrap();
            for claim in model.iter().flat_map(|model| &model.claims) {
                let line = format!("{}: {}: {}\n", figure.id, claim.says, claim.word());
                told.push_str(&line);
            }
            // Every plot has lines, and no more than there are colours.
            if let Some(model) = &model {
                for plot in figure.plots {
                    let lines = plot.lines(&model.cases).len();
                    assert!(
                        (1..=plot::COLOURS).contains(&lines),
                        "{}: {lines}",
                        figure.id
                    );
                }
            }
        }
        assert_eq!(told, VERDICTS, "\n{told}");
    }

    #[test]
    fn every_figure_has_something_or_says_why_not() {
        let names: BTreeSet<&str> = FIGURES.iter().map(|figure| figure.id).collect();
        assert_eq!(names.len(), FIGURES.len());
        for figure in FIGURES {
            let none = figure.model.is_none() && figure.here.is_none();
            assert_eq!(
                none,
                figure.why.starts_with("Not here yet"),
                "{}",
                figure.id
            );
            assert_eq!(
                figure.here.is_some(),
                !figure.statements.is_empty(),
                "{}",
                figure.id
            );
        }
    }

    #[test]
    fn a_page_has_every_figure_and_needs_nothing_else() {
        let row = |figure| Row {
            figure,
            model: None,
            here: Vec::new(),
            left_out: vec!["a < b".to_owned()],
        };
        let rows: Vec<Row> = FIGURES.iter().map(row).collect();
        let head = page::Head {
            version: "1",
            commit: "abc",
            machine: "a & b",
            seed: 1,
        };
        let page = page::html(&head, &rows);
        for figure in FIGURES {
            assert!(page.contains(&format!("<section id=\"{}\">", figure.id)));
        }
        assert!(page.contains("a &lt; b") && page.contains("a &amp; b"));
        for outside in ["http", "<script", "src=", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
