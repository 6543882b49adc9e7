//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// What is printed when the command line is wrong.
pub const USAGE: &str =
    "usage: [--seconds N] [--target NAME] [--seed N] [--replay FILE] [--list] [--write-seeds]";

/// What to do.
pub struct Options {
    /// How long each target runs.
    pub time: Duration,
    /// Only this target.
    pub target: Option<String>,
    /// The same seed makes the same inputs in the same order.
    pub seed: u64,
    /// Run this input once, with `target`.
    pub replay: Option<PathBuf>,
    /// Only name the targets.
    pub list: bool,
    /// Only write the seeds to libFuzzer's corpus folder.
    pub write_seeds: bool,
}

impl Options {
    /// From the arguments of the command.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            time: Duration::from_secs(20),
            target: None,
            seed: fastrand::u64(..),
            replay: None,
            list: false,
            write_seeds: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "--seconds" => options.time = Duration::from_secs(number(&value()?)?),
                "--target" => options.target = Some(value()?),
                "--seed" => options.seed = number(&value()?)?,
                "--replay" => options.replay = Some(value()?.into()),
                "--list" => options.list = true,
                "--write-seeds" => options.write_seeds = true,
                _ => return Err(format!("{name} is not known")),
            }
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}
