//! What is wanted between a process and its fabric: faults, a trace, a capture.

use super::Time;
use crate::error::OpenError;
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
    delay_up_to: Option<Time>,
    delay_up_to_us: Option<u64>,
    seed: Option<u64>,
}

impl TryFrom<FaultsSection> for Faults {
    type Error = OpenError;

    fn try_from(section: FaultsSection) -> Result<Faults, OpenError> {
        let none = Faults::NONE;
        let delay_up_to = match (section.delay_up_to, section.delay_up_to_us) {
            (Some(_), Some(_)) => {
                let why = "faults: delay_up_to is given twice: leave `delay_up_to_us` out";
                return Err(OpenError::Config(why.into()));
            }
            (Some(Time(time)), None) => Some(time),
            (None, us) => us.map(Duration::from_micros),
        };
        Ok(Faults {
            loss: section.loss.unwrap_or(none.loss),
            duplication: section.duplication.unwrap_or(none.duplication),
            delay: section.delay.unwrap_or(none.delay),
            delay_up_to: delay_up_to.unwrap_or(none.delay_up_to),
            seed: section.seed.unwrap_or(none.seed),
        })
    }
}
