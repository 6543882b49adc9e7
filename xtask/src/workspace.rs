//! What cargo knows about the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The packages are resolved for the one platform that rackmem supports today.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The workspace this program was built in.
pub struct Workspace {
    /// Where the root manifest lies.
    pub root: PathBuf,
    /// Where cargo builds to, `CARGO_TARGET_DIR` respected.
    pub target: PathBuf,
    /// The packages of the workspace, without those they come from elsewhere.
    pub packages: Vec<Package>,
}

/// A package as `cargo metadata` describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Its name in the registry.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence expression, where it has one.
    pub license: Option<String>,
    /// Its direct dependencies, of every kind.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// Where its manifest lies.
    pub manifest_path: PathBuf,
}

/// A direct dependency of a package.
#[derive(Clone, Debug, Deserialize)]
pub struct Dependency {
    /// The name of the package that is depended on.
    pub name: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    pub kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace that the current directory is in.
    pub fn load() -> Result<Workspace, String> {
        let metadata = metadata(&["--no-deps"])?;
        Ok(Workspace {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            packages: metadata.packages,
        })
    }

    /// Every package that the workspace is built from, its own ones included.
    pub fn all_packages(&self) -> Result<Vec<Package>, String> {
        metadata(&["--filter-platform", PLATFORM]).map(|metadata| metadata.packages)
    }

    /// A command that runs at the root.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// `path` as seen from the root, for messages.
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

impl Package {
    /// The folder of the package, relative to the root, with `/` between its parts.
    pub fn folder(&self, workspace: &Workspace) -> String {
        let folder = self.manifest_path.parent().unwrap_or(Path::new(""));
        workspace.relative(folder).display().to_string()
    }
}

/// The cargo that runs this program, or the one on the path.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

fn metadata(options: &[&str]) -> Result<Metadata, String> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .output()
        .map_err(|error| format!("cargo metadata did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata printed something unknown: {error}"))
}
