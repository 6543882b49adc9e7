//! The file that describes a rack of processes.

use super::address::Address;
use super::{Config, Fabric, Mode, Settings, Size};
use crate::config::extras::{Extras, FaultsSection};
use crate::config::migration::Migration;
use crate::error::OpenError;
use crate::guest::Guests;
use crate::membership;
use rackmem_fabric::Faults;
use serde::Deserialize;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Bytes of a configuration file at most.
const MAX_FILE: u64 = 1 << 20;
/// An hour, in milliseconds: who waits longer is not patient but stuck.
const MAX_PATIENCE_MS: u64 = 3_600_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    nodes: Vec<Address>,
    switch: Option<Address>,
    fabric: Option<Fabric>,
    mode: Option<Mode>,
    epoch: Option<u32>,
    block_size: Option<Size>,
    cache: Option<Size>,
    memory: Option<Size>,
    switch_entries: Option<usize>,
    patience_ms: Option<u64>,
    mtu: Option<usize>,
    faults: Option<FaultsSection>,
    migration: Option<MigrationTable>,
    membership: Option<String>,
    name: Option<String>,
    lease_ms: Option<u64>,
}

/// `[migration]`: what is left out is as in [`Migration::default`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MigrationTable {
    period_ms: Option<u64>,
    top: Option<u32>,
    least: Option<u32>,
    tracked: Option<u32>,
    patience: Option<u32>,
    leave: Option<u32>,
}

impl MigrationTable {
    fn read(self) -> Migration {
        let default = Migration::default();
        let period = self.period_ms.map(Duration::from_millis);
        Migration {
            period: period.unwrap_or(default.period),
            top: self.top.unwrap_or(default.top),
            least: self.least.unwrap_or(default.least),
            tracked: self.tracked.unwrap_or(default.tracked),
            patience: self.patience.unwrap_or(default.patience),
            leave: self.leave.unwrap_or(default.leave),
        }
    }
}

/// Bytes that this machine can count; more than any machine has where it cannot.
fn bytes(size: Option<Size>, default: usize) -> usize {
    size.map_or(default, |size| {
        usize::try_from(size.0).unwrap_or(usize::MAX)
    })
}

impl Config {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Config, OpenError> {
        let named = |why: String| OpenError::Config(format!("{}: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|e| named(e.to_string()))?;
        let mut bytes = Vec::new();
        // A device has no length and no end.
        let read = file.take(MAX_FILE + 1).read_to_end(&mut bytes);
        if read.map_err(|e| named(e.to_string()))? as u64 > MAX_FILE {
            return Err(named(format!(
                "longer than the {MAX_FILE} bytes of a configuration"
            )));
        }
        let text = String::from_utf8(bytes).map_err(|e| named(e.utf8_error().to_string()))?;
        Config::parse(&text).map_err(|e| named(e.to_string()))
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Config, OpenError> {
        let file: File = toml::from_str(text).map_err(|e| OpenError::Config(e.to_string()))?;
        let nodes = file.nodes.iter().enumerate();
        let nodes = nodes.map(|(nth, address)| address.look_up(&format!("nodes[{nth}]")));
        let nodes = nodes.collect::<Result<Vec<_>, OpenError>>()?;
        let switch = file.switch.map(|address| address.look_up("switch"));
        let switch = switch.transpose()?;
        let membership = membership::Settings::read(
            file.membership.as_deref(),
            file.name.as_deref(),
            file.lease_ms,
            (nodes.len(), switch.is_some()),
        )
        .map_err(OpenError::Config)?;
        if let Some(ms) = file
            .patience_ms
            .filter(|ms| !(1..=MAX_PATIENCE_MS).contains(ms))
        {
            let why = format!("patience_ms is from 1 to {MAX_PATIENCE_MS}, not {ms}");
            return Err(OpenError::Config(why));
        }
        let default = Settings::default();
        let no_switch = if switch.is_some() {
            Mode::Switch
        } else {
            Mode::HomeOnly
        };
        let settings = Settings {
            epoch: file.epoch.unwrap_or(default.epoch),
            mode: file.mode.unwrap_or(no_switch),
            block_size: bytes(file.block_size, default.block_size),
            cache: bytes(file.cache, default.cache),
            memory: file.memory.map_or(default.memory, |size| size.0),
            switch_entries: file.switch_entries.unwrap_or(default.switch_entries),
            patience: file
                .patience_ms
                .map_or(default.patience, Duration::from_millis),
            mtu: file.mtu,
            extras: Extras {
                faults: file.faults.map(Faults::from),
                ..Extras::default()
            },
            migration: file
                .migration
                .map_or(default.migration, MigrationTable::read),
            home_shards: None,
            guests: Guests::default(),
            answering: None,
        };
        let config = Config {
            membership,
            nodes,
            switch,
            fabric: file.fabric.unwrap_or(Fabric::Udp),
            settings,
        };
        config.check()?;
        Ok(config)
    }
}
