//! The result of a bench: one JSON object whose form does not change, and the same as a table.
//!
//! ```json
//! {
//!   "bench": "hit", "commit": "0123456789ab", "machine": "Fast CPU, 2 cores, Linux 6.12",
//!   "cases": [
//!     {"case": "atomic_load", "value": 0.4, "unit": "ns", "baseline": null, "ratio": null},
//!     {"case": "read_hit", "value": 1.5, "unit": "ns", "baseline": "atomic_load", "ratio": 3.75}
//!   ]
//! }
//! ```
//!
//! `ratio` is the case's value divided by that of the case named as its `baseline`, which was
//! measured in the same run. Whether more is better is a matter of the unit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::machine;
use crate::table::{Align, Table};

/// All cases of one run of a bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the bench.
    pub bench: String,
    /// What was measured.
    pub commit: String,
    /// Where.
    pub machine: String,
    /// The cases, in the order they were added.
    pub cases: Vec<Case>,
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
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportError::Duplicate(case) => write!(f, "there are two cases {case:?}"),
            ReportError::NoBaseline(case) => write!(f, "no baseline {case:?} was measured before"),
            ReportError::NotFinite(case) => write!(f, "the value of {case:?} is not finite"),
        }
    }
}

impl std::error::Error for ReportError {}

impl Report {
    /// An empty report of this machine and commit.
    pub fn new(bench: &str) -> Self {
        Report {
            bench: bench.to_owned(),
            commit: machine::commit(),
            machine: machine::machine(),
            cases: Vec::new(),
        }
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
            &format!("{} · {} · {}", self.bench, self.machine, self.commit),
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
            commit: "abc".into(),
            machine: "m".into(),
            ..Report::new("hit")
        };
        report.add("load", 0.5, "ns").unwrap();
        report.add_against("hit", 1.5, "ns", "load").unwrap();
        report
    }

    #[test]
    fn the_json_form_is_stable() {
        let expected = concat!(
            r#"{"bench":"hit","commit":"abc","machine":"m","cases":["#,
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
