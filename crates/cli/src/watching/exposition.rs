//! Figures in the text formats that Prometheus reads.

use rackmem::Rack;
use rackmem::diagnostics::{
    Metric, MetricKind, MetricUnit, NODE_METRICS, NodeReport, PROCESS_METRICS, RackMetrics,
    SWITCH_METRICS,
};
use std::fmt::Write;

/// Which text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// What every version of Prometheus reads.
    Text,
    /// OpenMetrics 1.0.
    Open,
}

impl Format {
    /// What a client reads that sent this `Accept`.
    pub fn for_accept(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Format::Open,
            false => Format::Text,
        }
    }

    /// Its media type.
    pub fn media(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Everything that this process counts.
pub fn expose(rack: &Rack, format: Format) -> String {
    let reports: Vec<(u16, NodeReport)> = rack
        .nodes()
        .iter()
        .map(|node| (node.id(), node.report()))
        .collect();
    let metrics = rack.metrics();
    text(&reports, &metrics, format)
}

fn text(reports: &[(u16, NodeReport)], metrics: &RackMetrics, format: Format) -> String {
    let mut text = String::new();
    let nodes: Vec<(String, &NodeReport)> = reports
        .iter()
        .map(|(node, report)| (format!("node=\"{node}\""), report))
        .collect();
    for metric in NODE_METRICS {
        family(&mut text, metric, &nodes, format);
    }
    let switch: Vec<_> = metrics
        .switch
        .iter()
        .map(|it| (String::new(), it))
        .collect();
    for metric in SWITCH_METRICS {
        family(&mut text, metric, &switch, format);
    }
    for metric in PROCESS_METRICS {
        family(&mut text, metric, &[(String::new(), metrics)], format);
    }
    if format == Format::Open {
        text.push_str("# EOF\n");
    }
    text
}

/// One metric of several sources, each with its own labels. Writing to a string does not fail.
fn family<T>(text: &mut String, metric: &Metric<T>, sources: &[(String, &T)], format: Format) {
    if sources.is_empty() {
        return;
    }
    let unit = match metric.unit {
        MetricUnit::One => "",
        MetricUnit::Bytes => "bytes",
        MetricUnit::Seconds => "seconds",
    };
    let mut name = format!("rackmem_{}", metric.name);
    if !unit.is_empty() {
        let _ = write!(name, "_{unit}");
    }
    let (kind, total) = match metric.kind {
        MetricKind::Counter => ("counter", "_total"),
        MetricKind::Gauge => ("gauge", ""),
    };
    // The two formats differ in whether the family of a counter has its suffix.
    let of_family = match format {
        Format::Text => total,
        Format::Open => "",
    };
    let help = metric.help;
    let _ = writeln!(text, "# HELP {name}{of_family} {help}.");
    let _ = writeln!(text, "# TYPE {name}{of_family} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name}{of_family} {unit}");
    }
    for (own, source) in sources {
        for (value, figure) in metric.samples(source) {
            let label = match metric.label {
                "" => String::new(),
                label => format!("{label}=\"{value}\""),
            };
            let labels = [own.as_str(), &label];
            let labels: Vec<&str> = labels.into_iter().filter(|it| !it.is_empty()).collect();
            let labels = match labels.is_empty() {
                true => String::new(),
                false => format!("{{{}}}", labels.join(",")),
            };
            let _ = match metric.unit {
                MetricUnit::Seconds => {
                    let (whole, part) = (figure / 1_000_000, figure % 1_000_000);
                    writeln!(text, "{name}{total}{labels} {whole}.{part:06}")
                }
                _ => writeln!(text, "{name}{total}{labels} {figure}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_formats_differ_in_the_families_of_counters() {
        let mut report = NodeReport::default();
        report.metrics.events.read_miss = 3;
        report.metrics.rebuilds.last = std::time::Duration::from_micros(1_500);
        let reports = [(2, report)];
        let of = |format| text(&reports, &RackMetrics::default(), format);
        let (plain, open) = (of(Format::Text), of(Format::Open));
        assert!(
            plain.contains("# TYPE rackmem_misses_total counter\n"),
            "{plain}"
        );
        assert!(open.contains("# TYPE rackmem_misses counter\n"), "{open}");
        for text in [&plain, &open] {
            assert!(text.contains("\nrackmem_misses_total{node=\"2\",cause=\"read\"} 3\n"));
            assert!(text.contains("\n# UNIT rackmem_rebuild_last_seconds seconds\n"));
            assert!(text.contains("\nrackmem_rebuild_last_seconds{node=\"2\"} 0.001500\n"));
            assert!(text.contains("\nrackmem_packets_unsent_total 0\n"));
            assert!(!text.contains("rackmem_switch_entries"));
        }
        assert!(open.ends_with("# EOF\n") && !plain.contains("EOF"));
        let accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3";
        assert_eq!(Format::for_accept(accept), Format::Open);
        assert_eq!(Format::for_accept("*/*"), Format::Text);
    }
}
