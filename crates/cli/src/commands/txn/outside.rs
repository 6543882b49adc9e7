//! SQLite on the same mix, as a guest: a process of Python, whose standard library has it.

use super::TxnArgs;
use crate::failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::process::Command;

const SCRIPT: &str = include_str!("sqlite.py");

/// What it did.
#[derive(Debug, Deserialize, Serialize)]
pub struct Outside {
    /// With what it is run.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What loading took.
    pub loading_seconds: f64,
    /// How long it ran.
    pub seconds: f64,
    /// New orders a minute that have committed.
    #[serde(rename = "tpmC")]
    pub tpm_c: f64,
    /// Of each transaction.
    pub transactions: Vec<Times>,
    /// Whether its sums and numbers of orders agree: conditions 1 and 2.
    pub holds: bool,
}

/// Of one transaction.
#[derive(Debug, Deserialize, Serialize)]
pub struct Times {
    /// Which one.
    pub transaction: String,
    /// How many have committed.
    pub committed: u64,
    /// In how many microseconds half of them were done.
    pub p50_us: f64,
    /// In how many all but a hundredth were.
    pub p99_us: f64,
}

impl Outside {
    /// Runs it.
    pub fn run(args: &TxnArgs) -> Result<Outside> {
        let lacks = |why: String| {
            Failure::new(
                format!("SQLite does not run: {why}"),
                "install python3 with its sqlite3 module, or leave --vs out",
            )
        };
        let remote = args.remote.map_or(-1, i64::from);
        let scale = args.scale();
        let sizes = [scale.warehouses, scale.items, scale.customers].map(i64::from);
        let rest = [args.seconds as i64, remote, args.seed as i64];
        let output = Command::new("python3")
            .args(["-c", SCRIPT])
            .args(sizes.iter().chain(&rest).map(ToString::to_string))
            .output()
            .map_err(|error| lacks(format!("python3: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(lacks(said.lines().last().unwrap_or_default().to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| lacks(error.to_string()))
    }
}
