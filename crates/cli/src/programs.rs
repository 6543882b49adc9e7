//! Programs of this machine.

use std::path::PathBuf;

/// Where a program is, if it is in the path.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_in_the_path() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
