//! Where and with what a number was measured.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// The processor, its cores and the kernel, in one line: `AMD EPYC 9B14, 2 cores, Linux 6.12.1`. On
/// a virtual machine that can, also for how long an idle core looks for work before it halts: what
/// a wake-up costs hangs on it.
pub fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| cpu_model(&text))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plural = if cores == 1 { "core" } else { "cores" };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system = format!("{} {}", capitalized(std::env::consts::OS), kernel.trim());
    let halts = halt_poll_ns().map_or(String::new(), |ns| format!(", halts after {ns} ns"));
    format!("{model}, {cores} {plural}, {}{halts}", system.trim())
}

/// The nanoseconds for which an idle core of this virtual machine looks for work before it halts,
/// where the kernel has that setting (`guest_halt_poll_ns`) and goes by it.
pub fn halt_poll_ns() -> Option<u64> {
    let driver = fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver").ok()?;
    let set = fs::read_to_string("/sys/module/haltpoll/parameters/guest_halt_poll_ns").ok()?;
    (driver.trim() == "haltpoll").then(|| set.trim().parse().ok())?
}

static BUILT_FROM: OnceLock<String> = OnceLock::new();

/// Says which commit this program was built from; only the first call counts.
pub fn built_from(commit: &str) {
    let _ = BUILT_FROM.set(commit.to_owned());
}

/// The commit that the program was built from, or else the one that is checked out where it runs,
/// or `unknown`.
pub fn commit() -> String {
    if let Some(commit) = BUILT_FROM.get() {
        return commit.clone();
    }
    let output = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output();
    let text = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    match text.as_deref().map(str::trim) {
        Some(commit) if !commit.is_empty() => commit.to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// Bytes of memory that programs can still have, if the system says.
pub fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// The first value of a line that names the processor; not every architecture has one.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    const NAMES: [&str; 4] = ["model name", "Model", "cpu model", "uarch"];
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut named = lines.filter(|(name, _)| NAMES.contains(&name.trim()));
    named.next().map(|(_, value)| value.trim().to_owned())
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_among_other_lines() {
        let text = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Fast CPU @ 3 GHz\n\n";
        assert_eq!(cpu_model(text).as_deref(), Some("Fast CPU @ 3 GHz"));
        assert_eq!(cpu_model("BogoMIPS : 50"), None);
    }

    #[test]
    fn the_line_has_its_three_parts() {
        let line = machine();
        assert!(line.contains(" core"), "{line}");
        assert!(line.split(", ").count() >= 3, "{line}");
        assert!(!commit().is_empty());
    }
}
