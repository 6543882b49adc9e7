//! The one table of what can be watched: a row for each figure, with its name, its unit, and where
//! it comes from. Every form in which people see figures over time is made of it.

mod of_node;
mod of_switch;

pub use of_node::NODE_METRICS;
pub use of_switch::{PROCESS_METRICS, SWITCH_METRICS};
use rackmem_fabric::PacketCounts;
use rackmem_proto::wire::Kind;

/// Whether a figure only rises.
///
/// ```
/// use rackmem::diagnostics::{MetricKind, NODE_METRICS};
///
/// let epoch = NODE_METRICS.iter().find(|metric| metric.name == "epoch").unwrap();
/// assert_eq!(epoch.kind, MetricKind::Gauge);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// It rises, from zero at the start of the process.
    Counter,
    /// It is what it is now.
    Gauge,
}

/// What a figure counts.
///
/// ```
/// use rackmem::diagnostics::{MetricUnit, NODE_METRICS};
///
/// let memory = NODE_METRICS.iter().find(|metric| metric.name == "memory").unwrap();
/// assert_eq!(memory.unit, MetricUnit::Bytes);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricUnit {
    /// Things.
    One,
    /// Bytes.
    Bytes,
    /// Seconds; the figure is in microseconds.
    Seconds,
}

/// Some figures of one kind, which differ by a label; or one.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::{Metric, NODE_METRICS, NodeReport};
///
/// let rack = Rack::local(2)?;
/// let word = rack.node(0).alloc(1u64)?;
/// rack.node(1).load(word.addr())?;
/// let report: NodeReport = rack.node(1).report();
/// let misses: &Metric<NodeReport> = NODE_METRICS.iter().find(|it| it.name == "misses").unwrap();
/// let by_cause = misses.samples(&report);
/// assert!(by_cause.contains(&("read", 1)), "{by_cause:?}");
/// # Ok(())
/// # }
/// ```
pub struct Metric<T: 'static> {
    /// Its name, without a prefix and a unit.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Whether it only rises.
    pub kind: MetricKind,
    /// Its unit.
    pub unit: MetricUnit,
    /// The name of the label by which its figures differ; nothing if it is one.
    pub label: &'static str,
    figures: Figures<T>,
    /// Whether nodes are asked for it: it takes no lock that a thread holds while it waits.
    pub(crate) told: bool,
}

/// The value of the label, and where the figure is.
type Row<T> = (&'static str, fn(&T) -> u64);

enum Figures<T: 'static> {
    Rows(&'static [Row<T>]),
    Kinds(fn(&T) -> &PacketCounts),
}

impl<T> Metric<T> {
    /// Its figures, by the values of the label. Always the same, in the same order.
    pub fn samples(&self, of: &T) -> Vec<(&'static str, u64)> {
        match self.figures {
            Figures::Rows(rows) => rows
                .iter()
                .map(|(label, read)| (*label, read(of)))
                .collect(),
            Figures::Kinds(read) => {
                let counts = &read(of).0;
                let count = |kind| {
                    counts
                        .iter()
                        .find(|row| row.0 == kind)
                        .map_or(0, |row| row.1)
                };
                let all = Kind::ALL.iter();
                all.map(|&kind| (kind.name(), count(kind))).collect()
            }
        }
    }

    const fn new(name: &'static str, help: &'static str, figures: Figures<T>) -> Self {
        Metric {
            name,
            help,
            kind: MetricKind::Counter,
            unit: MetricUnit::One,
            label: "",
            figures,
            told: true,
        }
    }

    const fn by(self, label: &'static str) -> Self {
        Metric { label, ..self }
    }

    const fn gauge(self) -> Self {
        Metric {
            kind: MetricKind::Gauge,
            ..self
        }
    }

    const fn bytes(self) -> Self {
        Metric {
            unit: MetricUnit::Bytes,
            kind: MetricKind::Gauge,
            ..self
        }
    }

    const fn seconds(self) -> Self {
        Metric {
            unit: MetricUnit::Seconds,
            kind: MetricKind::Gauge,
            ..self
        }
    }

    /// Only the process itself looks.
    const fn only_here(self) -> Self {
        Metric {
            told: false,
            ..self
        }
    }
}

const fn one<T>(name: &'static str, help: &'static str, row: &'static [Row<T>; 1]) -> Metric<T> {
    Metric::new(name, help, Figures::Rows(row))
}

const fn several<T>(
    (name, label): (&'static str, &'static str),
    help: &'static str,
    rows: &'static [Row<T>],
) -> Metric<T> {
    Metric::new(name, help, Figures::Rows(rows)).by(label)
}

const fn packets<T>(
    name: &'static str,
    help: &'static str,
    counts: fn(&T) -> &PacketCounts,
) -> Metric<T> {
    Metric::new(name, help, Figures::Kinds(counts)).by("kind")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::metrics::{RackMetrics, SwitchMetrics};
    use crate::host::told::NodeReport;
    use std::collections::BTreeSet;

    fn check<T>(metrics: &[Metric<T>], of: &T, names: &mut BTreeSet<&'static str>) {
        for metric in metrics {
            assert!(names.insert(metric.name), "{} is there twice", metric.name);
            let samples = metric.samples(of);
            assert!(!metric.help.is_empty() && !metric.help.contains(['\n', '\\']));
            let labels: BTreeSet<_> = samples.iter().map(|sample| sample.0).collect();
            assert_eq!(labels.len(), samples.len(), "{}", metric.name);
            let one = metric.label.is_empty();
            assert!(
                labels.iter().all(|label| label.is_empty() == one),
                "{}",
                metric.name
            );
        }
    }

    #[test]
    fn names_and_labels_are_unique() {
        let mut names = BTreeSet::new();
        check(NODE_METRICS, &NodeReport::default(), &mut names);
        check(SWITCH_METRICS, &SwitchMetrics::default(), &mut names);
        check(PROCESS_METRICS, &RackMetrics::default(), &mut names);
        assert!(names.len() > 40);
    }
}
