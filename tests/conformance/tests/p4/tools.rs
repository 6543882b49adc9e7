//! The P4 compiler and the software switch, if they are on the PATH. They are in no registry, so a
//! machine may well lack them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What compiles for BMv2, what runs it, and what its control plane is.
pub const COMPILER: &str = "p4c-bm2-ss";
const SWITCH: &str = "simple_switch";
const CLI: &str = "simple_switch_CLI";

/// Where the programs are.
pub struct Tools {
    compiler: PathBuf,
    pub switch: PathBuf,
    pub cli: PathBuf,
}

fn on_path(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} was not found"))
}

fn sources() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../switch/p4"]
        .iter()
        .collect()
}

impl Tools {
    /// All three, or which one is missing.
    pub fn find() -> Result<Self, String> {
        Ok(Tools {
            compiler: on_path(COMPILER)?,
            switch: on_path(SWITCH)?,
            cli: on_path(CLI)?,
        })
    }

    /// Compiles the program for BMv2 with these preprocessor definitions into a file.
    pub fn compile(&self, defines: &[String], into: &Path) -> Result<(), String> {
        let output = Command::new(&self.compiler)
            .args(["--arch", "v1model", "--Wdisable=unused"])
            .args(defines.iter().map(|define| format!("-D{define}")))
            .arg("-o")
            .arg(into)
            .arg(sources().join("v1model/rackmem.p4"))
            .output()
            .map_err(|error| format!("{COMPILER}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!(
            "{COMPILER}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}
