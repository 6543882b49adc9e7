//! The result of a bench: one JSON object whose form does not change, and the same as a table.
//!
//! ```json
//! {
//!   "bench": "hit", "version": "0.1.0", "commit": "0123456789ab",
//!   "machine": "Fast CPU, 2 cores, Linux 6.12", "options": {"block-size": "4K", "runs": "3"},
//!   "runs": 3, "partial": false,
//!   "cases": [
//!     {"case": "atomic_load", "value": 0.4, "unit": "ns", "baseline": null, "ratio": null},
//!     {"case": "read_hit", "value": 1.5, "unit": "ns", "baseline": "atomic_load", "ratio": 3.75}
//!   ]
//! }
//! ```
//!
//! A value is the median of its runs. Where the user ended the bench before it was through
//! `partial` is true, `runs` counts those that were whole, and cases may be missing.
//!
//! `ratio` is the case's value divided by that of the case named as its `baseline`, which was
//! measured in the same run. Whether more is better is a matter of the unit.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::table::{Align, Table};
use crate::timing::median_of;
use crate::{machine, stop};

/// All cases of one run of a bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the bench.
    pub bench: String,
    /// The version of rackmem that was measured.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// Where.
    pub machine: String,
    /// With which options, by their names on the command line.
    pub options: BTreeMap<String, String>,
    /// How often everything was measured.
    pub runs: usize,
    /// Whether it was ended before it was through.
    pub partial: bool,
    /// The cases, in the order they were added.
    pub cases: Vec<Case>,
    /// Whether figures are taken although the end has been asked for.
    #[serde(skip)]
    late: bool,
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its name: stable, lower case.
    pub case: String,
    /// The number.
    pub value: f64,
    /// What it counts: `ns`, `ops/s`, `bytes` and so on.
    pub unit: String,
    /// The case it is compared with.
    pub baseline: Option<String>,
    /// `value` divided by that of the baseline.
    pub ratio: Option<f64>,
}

/// A case that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// There is a case of this name.
    Duplicate(String),
    /// No case of the name given as baseline was added before.
    NoBaseline(String),
    /// Infinite or not a number, which JSON cannot tell.
    NotFinite(String),
    /// The end has been asked for, so what was measured may be cut short.
    Stopped,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportError::Duplicate(case) => write!(f, "there are two cases {case:?}"),
            ReportError::NoBaseline(case) => write!(f, "no baseline {case:?} was measured before"),
            ReportError::NotFinite(case) => write!(f, "the value of {case:?} is not finite"),
            ReportError::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for ReportError {}

impl Report {
    /// An empty report of this machine and commit.
    pub fn new(bench: &str) -> Self {
        Report {
            bench: bench.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: machine::commit(),
            machine: machine::machine(),
            options: BTreeMap::new(),
            runs: 1,
            partial: false,
            cases: Vec::new(),
            late: false,
        }
    }

    /// Figures that are added from now on are whole, whether or not the end has been asked for.
    pub fn take_late(&mut self) {
        self.late = true;
    }

    /// Several runs as one: of every case the median of those that have it.
    /// Of no run, this report as it is.
    #[must_use]
    pub fn median_of(mut self, runs: &[Report]) -> Report {
        self.take_late();
        for case in runs.iter().flat_map(|run| &run.cases) {
            if self.case(&case.case).is_some() {
                continue;
            }
            let values = runs.iter().filter_map(|run| run.case(&case.case));
            let mut values = values.map(|case| case.value);
            let count = runs.iter().filter(|run| run.case(&case.case).is_some());
            let median = median_of(count.count(), || values.next().unwrap_or_default()).value;
            // A baseline is measured before what is compared with it, and values were finite.
            let _ = self.push(&case.case, median, &case.unit, case.baseline.as_deref());
        }
        self
    }

    /// What was measured, where and how, for people: a line each.
    pub fn header(&self) -> Vec<String> {
        let Report {
            bench,
            version,
            commit,
            machine,
            options,
            runs,
            ..
        } = self;
        let mut lines = vec![
            format!("{bench} · rackmem {version}, commit {commit} · {machine}"),
            options
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" "),
        ];
        lines.retain(|line| !line.is_empty());
        if self.partial {
            lines.push(format!(
                "PARTIAL: stopped after {runs} whole runs; what was cut off is left out"
            ));
        }
        lines
    }

    /// Adds a number that stands for itself.
    pub fn add(&mut self, case: &str, value: f64, unit: &str) -> Result<(), ReportError> {
        self.push(case, value, unit, None)
    }

    /// Adds a number that is compared with a case added before.
    pub fn add_against(
        &mut self,
        case: &str,
        value: f64,
        unit: &str,
        baseline: &str,
    ) -> Result<(), ReportError> {
        self.push(case, value, unit, Some(baseline))
    }

    /// The case of a name.
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.case == name)
    }

    fn push(
        &mut self,
        case: &str,
        value: f64,
        unit: &str,
        baseline: Option<&str>,
    ) -> Result<(), ReportError> {
        if !self.late && stop::requested() {
            return Err(ReportError::Stopped);
        }
        if self.case(case).is_some() {
            return Err(ReportError::Duplicate(case.to_owned()));
        }
        if !value.is_finite() {
            return Err(ReportError::NotFinite(case.to_owned()));
        }
        let ratio = match baseline {
            None => None,
            Some(name) => {
                let found = self.case(name);
                let found = found.ok_or_else(|| ReportError::NoBaseline(name.to_owned()))?;
                // A baseline of nothing has no ratio.
                Some(value / found.value).filter(|ratio| ratio.is_finite())
            }
        };
        self.cases.push(Case {
            case: case.to_owned(),
            value,
            unit: unit.to_owned(),
            baseline: baseline.map(str::to_owned),
            ratio,
        });
        Ok(())
    }

    /// The report as one line of JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The report for people.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "",
            &[
                ("case", Align::Left),
                ("value", Align::Right),
                ("unit", Align::Left),
                ("ratio", Align::Right),
                ("of", Align::Left),
            ],
        );
        for case in &self.cases {
            let ratio = case
                .ratio
                .map_or(String::new(), |ratio| format!("{ratio:.2}×"));
            table.row(&[
                &case.case,
                &number(case.value),
                &case.unit,
                &ratio,
                case.baseline.as_deref().unwrap_or(""),
            ]);
        }
        table
    }
}

/// A number as people read it: three digits that count, thousands apart.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(whole) => ("-", whole),
        None => ("", whole),
    };
    let mut grouped = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let mut report = Report {
            version: "1".into(),
            commit: "abc".into(),
            machine: "m".into(),
            options: [("runs".to_owned(), "3".to_owned())].into(),
            ..Report::new("hit")
        };
        report.add("load", 0.5, "ns").unwrap();
        report.add_against("hit", 1.5, "ns", "load").unwrap();
        report
    }

    #[test]
    fn the_json_form_is_stable() {
        let expected = concat!(
            r#"{"bench":"hit","version":"1","commit":"abc","machine":"m","options":{"runs":"3"},"#,
            r#""runs":1,"partial":false,"cases":["#,
            r#"{"case":"load","value":0.5,"unit":"ns","baseline":null,"ratio":null},"#,
            r#"{"case":"hit","value":1.5,"unit":"ns","baseline":"load","ratio":3.0}]}"#,
        );
        let report = sample();
        assert_eq!(report.to_json().unwrap(), expected);
        assert_eq!(serde_json::from_str::<Report>(expected).unwrap(), report);
    }

    #[test]
    fn a_case_is_told_once_and_against_what_there_is() {
        let mut report = sample();
        let before = report.clone();
        assert_eq!(
            report.add("hit", 1.0, "ns"),
            Err(ReportError::Duplicate("hit".into()))
        );
        assert_eq!(
            report.add_against("x", 1.0, "ns", "y"),
            Err(ReportError::NoBaseline("y".into()))
        );
        assert!(report.add("x", f64::NAN, "ns").is_err());
        assert_eq!(report, before);
        report.add("zero", 0.0, "ns").unwrap();
        report.add_against("x", 1.0, "ns", "zero").unwrap();
        assert_eq!(report.case("x").unwrap().ratio, None);
    }

    #[test]
    fn the_median_of_runs_has_every_case_and_its_ratio() {
        let run = |load: f64, hit: f64| {
            let mut report = Report::new("hit");
            report.add("load", load, "ns").unwrap();
            report.add_against("hit", hit, "ns", "load").unwrap();
            report
        };
        let mut cut_off = Report::new("hit");
        cut_off.add("load", 100.0, "ns").unwrap();
        let runs = [run(1.0, 8.0), run(3.0, 4.0), cut_off];
        let told = Report::new("hit").median_of(&runs);
        let hit = told.case("hit").unwrap();
        assert_eq!((told.case("load").unwrap().value, hit.value), (3.0, 6.0));
        assert_eq!((hit.ratio, told.cases.len()), (Some(2.0), 2));
        assert!(Report::new("hit").median_of(&[]).cases.is_empty());
    }

    #[test]
    fn a_header_says_what_was_measured_where_and_how() {
        let mut report = sample();
        assert_eq!(
            report.header(),
            ["hit · rackmem 1, commit abc · m", "runs=3"]
        );
        report.partial = true;
        assert!(report.header()[2].starts_with("PARTIAL"));
    }

    #[test]
    fn numbers_keep_the_digits_that_count() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (999.6, "1 000"),
            (-1234567.0, "-1 234 567"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
