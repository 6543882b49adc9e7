//! The file that describes a rack of processes.

use super::address::Address;
use super::kv::KvTable;
use super::{Config, Fabric, KernelReads, Mode, PATIENCE, Settings, Size, Time, located};
use crate::config::extras::{Extras, FaultsSection};
use crate::config::migration::Migration;
use crate::error::OpenError;
use crate::guest::Guests;
use crate::membership;
use rackmem_fabric::Faults;
use serde::Deserialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a configuration file at most.
const MAX_FILE: u64 = 1 << 20;

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
    patience: Option<Time>,
    patience_ms: Option<u64>,
    mtu: Option<usize>,
    faults: Option<FaultsSection>,
    migration: Option<MigrationTable>,
    membership: Option<String>,
    name: Option<String>,
    lease: Option<Time>,
    lease_ms: Option<u64>,
    replace_after: Option<Time>,
    copies: Option<u8>,
    store: Option<PathBuf>,
    kv: Option<KvTable>,
    kernel_reads: Option<String>,
    object_memory: Option<Size>,
    bounded_memory: Option<Size>,
    replicated_memory: Option<Size>,
    coherent_memory: Option<Size>,
    kernel_cache: Option<bool>,
}

/// `[migration]`: what is left out is as in [`Migration::default`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MigrationTable {
    period: Option<Time>,
    period_ms: Option<u64>,
    top: Option<u32>,
    least: Option<u32>,
    tracked: Option<u32>,
    patience: Option<u32>,
    leave: Option<u32>,
}

impl MigrationTable {
    fn read(self) -> Result<Migration, OpenError> {
        let default = Migration::default();
        let period = either("migration: period", self.period, self.period_ms)?;
        Ok(Migration {
            period: period.unwrap_or(default.period),
            top: self.top.unwrap_or(default.top),
            least: self.least.unwrap_or(default.least),
            tracked: self.tracked.unwrap_or(default.tracked),
            patience: self.patience.unwrap_or(default.patience),
            leave: self.leave.unwrap_or(default.leave),
        })
    }
}

/// A time that is written as `patience = "2s"` or, as it once was, `patience_ms = 2000`.
fn either(name: &str, time: Option<Time>, ms: Option<u64>) -> Result<Option<Duration>, OpenError> {
    if time.is_some() && ms.is_some() {
        let why = format!("{name} is given twice: leave `{name}_ms` out");
        return Err(OpenError::Config(why));
    }
    let ms = ms.map(Duration::from_millis);
    Ok(time.map(|Time(time)| time).or(ms))
}

/// Bytes that this machine can count; more than any machine has where it cannot.
fn bytes(size: Option<Size>, default: usize) -> usize {
    size.map_or(default, |size| {
        usize::try_from(size.0).unwrap_or(usize::MAX)
    })
}

/// The text of a file. What has no length or no end, such as a folder or a device, is not read.
fn text_of(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if about.is_dir() {
        return Err("is a directory, not a file".into());
    }
    if !about.is_file() {
        return Err("is a device, a pipe or a socket, not a file".into());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    // It may have grown, or be one of the kernel's, which have no length.
    let read = file.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if about.len() > MAX_FILE || bytes.len() as u64 > MAX_FILE {
        return Err(format!(
            "longer than the {MAX_FILE} bytes of a configuration"
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("line {line}: not a text in UTF-8")
    })
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`OpenError::Config`] names the file, the line and what is wrong there.
    pub fn load(path: &Path) -> Result<Config, OpenError> {
        let named = |why: String| OpenError::Config(format!("{}: {why}", path.display()));
        let text = text_of(path).map_err(named)?;
        Config::parse(&text).map_err(|error| match error {
            OpenError::Config(why) => named(why),
            other => named(other.to_string()),
        })
    }

    /// Reads a text.
    ///
    /// # Errors
    /// [`OpenError::Config`] names the line and what is wrong there.
    pub fn parse(text: &str) -> Result<Config, OpenError> {
        let file: File = toml::from_str(text)
            .map_err(|error| OpenError::Config(located::refused(text, &error)))?;
        Config::read(file).map_err(|error| match error {
            OpenError::Config(why) => OpenError::Config(located::named(text, &why)),
            other => other,
        })
    }

    fn read(file: File) -> Result<Config, OpenError> {
        let nodes = file.nodes.iter().enumerate();
        let nodes = nodes.map(|(nth, address)| address.look_up(&format!("nodes[{nth}]")));
        let nodes = nodes.collect::<Result<Vec<_>, OpenError>>()?;
        let switch = file.switch.map(|address| address.look_up("switch"));
        let switch = switch.transpose()?;
        let membership = membership::Settings::read(
            file.membership.as_deref(),
            file.name.as_deref(),
            either("lease", file.lease, file.lease_ms)?,
            file.replace_after.map(|Time(time)| time),
            (nodes.len(), switch.is_some()),
        )
        .map_err(OpenError::Config)?;
        let patience = either("patience", file.patience, file.patience_ms)?;
        if let Some(wrong) = patience.filter(|time| !PATIENCE.contains(time)) {
            let why = format!("patience is from 1 ms to an hour, not {wrong:?}");
            return Err(OpenError::Config(why));
        }
        let default = Settings::default();
        let no_switch = if switch.is_some() {
            Mode::Switch
        } else {
            Mode::HomeOnly
        };
        let settings = Settings {
            rack: default.rack,
            epoch: file.epoch.unwrap_or(default.epoch),
            mode: file.mode.unwrap_or(no_switch),
            block_size: bytes(file.block_size, default.block_size),
            cache: bytes(file.cache, default.cache),
            memory: file.memory.map_or(default.memory, |size| size.0),
            switch_entries: file.switch_entries.unwrap_or(default.switch_entries),
            patience: patience.unwrap_or(default.patience),
            mtu: file.mtu,
            extras: Extras {
                faults: file.faults.map(Faults::try_from).transpose()?,
                ..Extras::default()
            },
            migration: match file.migration {
                Some(table) => table.read()?,
                None => default.migration,
            },
            home_shards: None,
            guests: Guests::default(),
            answering: None,
            copies: file.copies.unwrap_or(default.copies),
            store: file.store,
            disks: default.disks,
            kernel_reads: KernelReads::read(
                file.kernel_reads.as_deref(),
                (
                    file.object_memory,
                    file.bounded_memory,
                    file.replicated_memory,
                    file.coherent_memory,
                ),
            )?,
            kernel_cache: file.kernel_cache.unwrap_or(default.kernel_cache),
            evict_ahead: default.evict_ahead,
        };
        let fabric = file.fabric.unwrap_or(Fabric::Udp);
        let ships = file.kv.as_ref().and_then(KvTable::ships);
        let mut config = Config {
            membership,
            nodes,
            switch,
            fabric,
            settings,
            kv_ships: ships.unwrap_or(fabric == Fabric::Udp),
            kv_copies: file.kv.map(KvTable::read).transpose()?.flatten(),
        };
        config.settings.rack = config.number();
        config.check()?;
        Ok(config)
    }
}
