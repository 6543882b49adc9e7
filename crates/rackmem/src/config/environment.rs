//! Which node of which rack a process is, as its launcher says.

use super::Config;
use crate::error::OpenError;
use std::path::PathBuf;

/// The rack's description.
const FILE: &str = "RACKMEM_CONFIG";
/// What launchers tell a process of its number; the first that is set counts.
const RANKS: [&str; 6] = [
    "RACKMEM_NODE",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "JOB_COMPLETION_INDEX",
];

impl Config {
    /// The rack that the file of `RACKMEM_CONFIG` describes, and which node of it this process is:
    /// `RACKMEM_NODE`, or the rank that Slurm, MPI or an indexed job of Kubernetes has given it;
    /// else the ordinal at the end of the host's name, as of a StatefulSet.
    ///
    /// # Errors
    /// [`OpenError::Config`] where one of them is missing or no number, or the file is wrong.
    pub fn from_env() -> Result<(Config, usize), OpenError> {
        let file = std::env::var_os(FILE).filter(|file| !file.is_empty());
        let file = file.map(PathBuf::from);
        let file =
            file.ok_or_else(|| wrong(format!("{FILE} is not set: it names the rack's file")))?;
        let config = Config::load(&file)?;
        Ok((config, Self::node_from_env()?))
    }

    /// Which node this process is, as [`Config::from_env`] finds it.
    pub fn node_from_env() -> Result<usize, OpenError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        node(variable, host.trim()).map_err(wrong)
    }
}

fn wrong(why: String) -> OpenError {
    OpenError::Config(why)
}

fn node(variable: impl Fn(&str) -> Option<String>, host: &str) -> Result<usize, String> {
    let set = RANKS.iter().find_map(|name| Some((*name, variable(name)?)));
    if let Some((name, text)) = set {
        let number = text.parse();
        return number.map_err(|_| format!("{name} is {text:?}, and no number of a node"));
    }
    let ordinal = host.rsplit_once('-').map(|(_, ordinal)| ordinal.parse());
    let none = || "no variable says which node this is: set RACKMEM_NODE".to_owned();
    ordinal.and_then(Result::ok).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_what_the_launcher_says_first() {
        let of = |set: &[(&str, &str)], host: &str| {
            let value = |name: &str| {
                let found = set.iter().find(|(of, _)| *of == name);
                found.map(|(_, text)| (*text).to_owned())
            };
            node(value, host)
        };
        assert_eq!(of(&[("RACKMEM_NODE", "3")], "a"), Ok(3));
        let both = [("SLURM_PROCID", "5"), ("RACKMEM_NODE", "3")];
        assert_eq!(of(&both, "store-7"), Ok(3));
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "2")], "store-7"), Ok(2));
        assert_eq!(of(&[], "store-7"), Ok(7));
        assert_eq!(of(&[], "big-store-12"), Ok(12));
        assert!(of(&[], "store").is_err_and(|why| why.contains("RACKMEM_NODE")));
        assert!(of(&[], "store-a").is_err());
        let wrong = of(&[("PMI_RANK", "-1")], "store-7");
        assert!(wrong.is_err_and(|why| why.contains("PMI_RANK")));
    }
}
