//! What a group of explored scenarios comes to, the gravest first: a broken promise is what there
//! is to mend, and a scenario that has grown or shrunk, or shows nothing any more,
//! is often only its trace.

use rackmem_sim::driver::{Ended, Explored, Limits, Report, explore};
use std::fmt::Debug;

/// What came of the scenarios so far.
#[derive(Default)]
pub struct Verdicts {
    broken: Vec<String>,
    cut_short: Vec<String>,
    blind: Vec<String>,
    resized: Vec<String>,
}

/// The scenario of this name.
pub fn named<S: Explored>(all: impl IntoIterator<Item = &'static S>, name: &str) -> &'static S {
    let mut all = all.into_iter();
    let found = all.find(|scenario| scenario.about(false).name == name);
    found.unwrap_or_else(|| panic!("there is no scenario {name}"))
}

/// Visits so many states of a scenario at most, with a defect or without.
pub fn visited<S: Explored>(scenario: &S, defect: Option<S::Defect>, states: usize) -> Report {
    let mut limits = Limits {
        states,
        time: None,
        stop: &mut |_| false,
    };
    let name = scenario.about(false).name;
    let system = scenario.system(false, defect);
    explore(
        &mut system.unwrap_or_else(|why| panic!("{name}: {why}")),
        &mut limits,
    )
}

/// Every state of all of these is visited, and keeps every promise; `known` says how many a
/// scenario has. The complaint, if there is one, is about all of them.
#[allow(dead_code)] // Not every program of tests asks.
pub fn all_keep<S: Explored + 'static>(
    all: impl IntoIterator<Item = &'static S>,
    states: usize,
    known: impl Fn(&S) -> usize,
) {
    let mut verdicts = Verdicts::default();
    for scenario in all {
        let report = visited(scenario, None, states);
        let sizes = (known(scenario), report.states);
        verdicts.add(scenario.about(false).name, &report, sizes);
    }
    if let Some(complaint) = verdicts.complaint() {
        panic!("{complaint}");
    }
}

/// How many states a scenario has in a list by name; none, if it is not in it.
#[allow(dead_code)]
pub fn of<S: Explored>(sizes: &[(&str, usize)], scenario: &S) -> usize {
    let name = scenario.about(false).name;
    sizes
        .iter()
        .find(|row| row.0 == name)
        .map_or(0, |row| row.1)
}

impl Verdicts {
    /// Takes one more. `sizes`: how large the catalogue says that it is, and how large it is.
    pub fn add<Size>(&mut self, name: &str, report: &Report, sizes: (Size, Size))
    where
        Size: PartialEq + Debug,
    {
        let (known, found) = sizes;
        let missing = report.missing.join(", ");
        match report.violation() {
            Some(story) => self.broken.push(format!("{name}: {story}")),
            None if report.ended != Ended::Whole => self.cut_short.push(name.to_owned()),
            None => {
                if !missing.is_empty() {
                    self.blind.push(format!("{name} never shows {missing}"));
                }
                if known != found {
                    self.resized
                        .push(format!("{name}: {found:?} and not {known:?}"));
                }
            }
        }
    }

    /// What is wrong, if anything is.
    pub fn complaint(&self) -> Option<String> {
        let parts = [
            ("broken promises", &self.broken),
            ("more states than an exploration visits", &self.cut_short),
            ("scenarios that show nothing", &self.blind),
            ("sizes that the catalogue does not know", &self.resized),
        ];
        let parts = parts.into_iter().filter(|(_, rows)| !rows.is_empty());
        let parts: Vec<String> = parts
            .map(|(what, rows)| format!("{what}:\n{}", rows.join("\n")))
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}
