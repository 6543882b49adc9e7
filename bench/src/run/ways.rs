//! Several ways to do one thing, beside the first of them.

use super::Result;
use crate::histogram::Histogram;
use crate::report::Report;

/// Microseconds of each way, by its name: the median of its times (ns).
pub(super) fn add<'a>(
    report: &mut Report,
    case: &str,
    ways: impl IntoIterator<Item = (&'a str, &'a Histogram)>,
) -> Result<()> {
    let mut first: Option<String> = None;
    for (way, times) in ways {
        let (name, time) = (format!("{case}/{way}"), times.percentile(50.0) as f64 / 1e3);
        match &first {
            Some(first) => report.add_against(&name, time, "us", first)?,
            None => {
                report.add(&name, time, "us")?;
                first = Some(name);
            }
        }
    }
    Ok(())
}
