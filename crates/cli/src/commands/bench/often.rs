//! How often and for how long everything is measured: the same options for every bench.

use clap::Args;
use rackmem::Time;
use std::time::Duration;

/// The shortest and the longest time of a case.
const TIMES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3600);
/// Runs at most.
const MAX_RUNS: u64 = 1000;

/// Options with their defaults: runs, and milliseconds; 0 where the time depends on others.
#[derive(Clone, Copy, Debug, Args)]
pub struct Often<const RUNS: usize, const MS: u64> {
    /// Measure everything N times; the median of each case counts
    #[arg(long, value_name = "N", default_value = usual_runs(RUNS), value_parser = runs)]
    pub runs: usize,
    /// Measure each case for TIME, such as 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = usual(MS), value_parser = time)]
    pub duration: Option<Duration>,
}

impl<const RUNS: usize, const MS: u64> Often<RUNS, MS> {
    /// The time of a case, of benches that have a default.
    pub fn time(&self) -> Duration {
        self.duration.unwrap_or(Duration::from_millis(MS))
    }
}

// clap keeps the text of a `default_value_t` once for all instances of a generic type.

/// A number of runs as people write it.
fn usual_runs(runs: usize) -> &'static str {
    match runs {
        3 => "3",
        _ => "1",
    }
}

/// A time as people write it.
fn usual(ms: u64) -> Option<&'static str> {
    match ms {
        100 => Some("100ms"),
        300 => Some("300ms"),
        1000 => Some("1s"),
        _ => None,
    }
}

fn runs(text: &str) -> Result<usize, String> {
    let number = text.parse::<u64>().ok();
    let number = number.filter(|number| (1..=MAX_RUNS).contains(number));
    let number = number.ok_or_else(|| format!("runs are 1 to {MAX_RUNS}"))?;
    usize::try_from(number).map_err(|error| error.to_string())
}

/// A time of a case; for clap.
pub fn time(text: &str) -> Result<Duration, String> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Time(time) = match bare {
        true => format!("{text}ms").parse()?,
        false => text.parse::<Time>()?,
    };
    match TIMES.contains(&time) {
        true => Ok(time),
        false => Err("a case takes from 1 ms to an hour".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_milliseconds() {
        let ms = Duration::from_millis;
        assert_eq!(time("50"), Ok(ms(50)));
        assert_eq!(time("2s"), Ok(ms(2000)));
        for text in [
            "",
            "0",
            "0s",
            "2h",
            "500us",
            "61m",
            "-1",
            "99999999999999999999",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_default_is_shown() {
        for ms in [100, 300, 1000] {
            assert_eq!(usual(ms).map(time), Some(Ok(Duration::from_millis(ms))));
        }
    }
}
