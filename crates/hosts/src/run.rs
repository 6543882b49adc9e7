//! Calls of `ip` and its like.

use crate::error::{Error, Result};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// Programs that a rack takes, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 2] = [("ip", "iproute2"), ("ethtool", "ethtool")];

/// Says what this process lacks: privilege or a program.
pub fn check() -> Result<()> {
    // Who owns one's own entry is who one acts as.
    if std::fs::metadata("/proc/self")?.uid() != 0 {
        return Err(Error::NotRoot);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (program, package) in PROGRAMS {
        if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            return Err(Error::Missing(program, package));
        }
    }
    Ok(())
}

/// Runs a program to its end; what it wrote.
pub fn run(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Refused {
        call: format!("{program} {}", args.join(" ")),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs `ip` with these words.
pub fn ip(words: &str) -> Result<String> {
    run("ip", &words.split_whitespace().collect::<Vec<_>>())
}

/// The processes in a namespace.
pub fn processes(namespace: &str) -> Result<Vec<u32>> {
    let said = run("ip", &["netns", "pids", namespace])?;
    Ok(said
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect())
}

/// SIGKILL to these processes; those that have ended by then are of no concern.
pub fn kill(processes: &[u32]) -> Result<()> {
    if processes.is_empty() {
        return Ok(());
    }
    // The shell's own `kill`, which is there without any package.
    let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
    Command::new("sh")
        .args(["-c", "kill -9 \"$@\"", "sh"])
        .args(&pids)
        .stderr(Stdio::null())
        .status()?;
    Ok(())
}
