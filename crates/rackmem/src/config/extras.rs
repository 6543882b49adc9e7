//! What is wanted between a process and its fabric: faults, a trace, a capture.

use rackmem_fabric::Faults;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    pub faults: Option<Faults>,
    pub capture: Option<PathBuf>,
    pub trace: Option<PathBuf>,
}

/// The section `[faults]` of a configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultsSection {
    loss: Option<f64>,
    duplication: Option<f64>,
    delay: Option<f64>,
    delay_up_to_us: Option<u64>,
    seed: Option<u64>,
}

impl From<FaultsSection> for Faults {
    fn from(section: FaultsSection) -> Faults {
        let none = Faults::NONE;
        Faults {
            loss: section.loss.unwrap_or(none.loss),
            duplication: section.duplication.unwrap_or(none.duplication),
            delay: section.delay.unwrap_or(none.delay),
            delay_up_to: section
                .delay_up_to_us
                .map_or(none.delay_up_to, Duration::from_micros),
            seed: section.seed.unwrap_or(none.seed),
        }
    }
}
