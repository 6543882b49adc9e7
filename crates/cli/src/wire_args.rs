//! What is to happen to this process's packets, and where to keep them:
//! options of every command that sends any.

use clap::Args;
use rackmem::diagnostics::Faults;
use rackmem::{Builder, Config};
use std::path::PathBuf;
use std::time::Duration;

/// Faults, a trace, a capture.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Packets of this process")]
pub struct WireArgs {
    /// Drop this share of packets, such as 0.01 (shm, UDP)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    loss: Option<f64>,
    /// Duplicate this share of packets (shm, UDP)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    duplication: Option<f64>,
    /// Delay this share of packets by up to 2 ms, which reorders them (shm, UDP)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    delay: Option<f64>,
    /// Delay packets by at most US microseconds
    #[arg(long, value_name = "US", requires = "delay")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    delay_up_to: Option<u64>,
    /// Write packets to FILE for tcpdump and Wireshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write packets to FILE as text, one a line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// A share of packets.
pub fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err("a share is from 0 to 1, such as 0.01 for one packet of a hundred".into()),
    }
}

impl WireArgs {
    /// The faults that are asked for, over those that there are already.
    fn faults(&self, before: Option<Faults>) -> Option<Faults> {
        let asked = [self.loss, self.duplication, self.delay];
        let none = asked.iter().all(Option::is_none);
        if none {
            return before;
        }
        let before = before.unwrap_or(Faults::NONE);
        let delay_up_to = self.delay_up_to.map(Duration::from_micros);
        Some(Faults {
            loss: self.loss.unwrap_or(before.loss),
            duplication: self.duplication.unwrap_or(before.duplication),
            delay: self.delay.unwrap_or(before.delay),
            delay_up_to: delay_up_to.unwrap_or(before.delay_up_to),
            ..before
        })
    }

    /// The faults alone, for one process of several that were started with the same options.
    pub fn apply_faults(&self, config: &mut Config) {
        if let Some(faults) = self.faults(config.faults()) {
            config.set_faults(faults);
        }
    }

    /// For one process of a rack of processes.
    pub fn apply(&self, config: &mut Config) {
        self.apply_faults(config);
        if let Some(file) = &self.pcap {
            config.set_capture(file.clone());
        }
        if let Some(file) = &self.trace {
            config.set_trace(file.clone());
        }
    }

    /// For an embedded rack.
    pub fn build(&self, mut rack: Builder) -> Builder {
        if let Some(faults) = self.faults(None) {
            rack = rack.faults(faults);
        }
        if let Some(file) = &self.pcap {
            rack = rack.capture(file);
        }
        if let Some(file) = &self.trace {
            rack = rack.trace(file);
        }
        rack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_replaces_what_the_file_says() {
        let before = Faults {
            loss: 0.5,
            delay: 0.25,
            seed: 9,
            ..Faults::NONE
        };
        let quiet = WireArgs::default();
        assert_eq!(quiet.faults(None), None);
        assert_eq!(quiet.faults(Some(before)), Some(before));
        let asked = WireArgs {
            loss: Some(0.1),
            ..quiet
        };
        let after = Faults {
            loss: 0.1,
            ..before
        };
        assert_eq!(asked.faults(Some(before)), Some(after));
    }

    #[test]
    fn a_share_is_from_nothing_to_all() {
        assert_eq!(share("0.25"), Ok(0.25));
        for text in ["-0.1", "1.5", "NaN", "5%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
