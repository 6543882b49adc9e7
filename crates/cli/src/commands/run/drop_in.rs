//! The library that puts the rack's memory in the place of files in memory.

use crate::failure::{Failure, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its name, which stands for wherever it is.
pub const NAME: &str = "librackmem_pthread.so";
const PRELOAD: &str = "LD_PRELOAD";

/// Where it is: at this path, or, where that is just its name, where an installation or a build has
/// it.
pub fn find(path: &Path) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places = match path == Path::new(NAME) {
        false => vec![path.to_owned()],
        true => vec![folder.join(NAME), folder.join("../lib").join(NAME)],
    };
    let found = places.iter().find(|place| place.is_file());
    let missing = || {
        let cause = format!("there is no {}", places[0].display());
        let next = "build it (cargo build --release -p rackmem-dropin), or say where it is (--drop-in=FILE)";
        Failure::new(cause, next)
    };
    Ok(std::path::absolute(found.ok_or_else(missing)?)?)
}

/// The program has it in front of all its libraries.
pub fn put_in_front(command: &mut Command, library: &Path) {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    command.env(PRELOAD, all);
}
