//! What the system tells of this process.

use std::time::Duration;

/// Bytes of a page in `/proc/self/statm`.
const PAGE: u64 = 4096;
/// Ticks of a second in `/proc/self/stat`.
const TICKS: u64 = 100;

/// A look at the process. What cannot be read is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    /// Bytes of memory that it has.
    pub resident: u64,
    /// And had at most.
    pub peak: u64,
    /// Time in the kernel, and outside.
    pub system: Duration,
    pub user: Duration,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The number of kilobytes behind a name, in bytes.
fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

impl Process {
    pub fn now() -> Self {
        let pages = read("/proc/self/statm");
        let pages = pages
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<u64>().ok());
        let stat = read("/proc/self/stat");
        // The name before it may hold anything, spaces included.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = |nth: usize| {
            let field = fields
                .split_whitespace()
                .nth(nth)
                .and_then(|n| n.parse::<u64>().ok());
            Duration::from_millis(field.unwrap_or(0) * 1000 / TICKS)
        };
        Self {
            resident: pages.unwrap_or(0) * PAGE,
            peak: kilobytes(&read("/proc/self/status"), "VmHWM:"),
            user: ticks(11),
            system: ticks(12),
        }
    }
}

/// Bytes of memory that the machine has.
pub(super) fn machine_memory() -> u64 {
    kilobytes(&read("/proc/meminfo"), "MemTotal:")
}

/// Bytes for people: `1.50M`.
pub(super) fn human(bytes: u64) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match units.iter().find(|(_, shift)| bytes >> shift != 0) {
        Some((unit, shift)) => format!(
            "{:.2}{unit}",
            bytes as f64 / f64::from(1u32 << (shift - 10)) / 1024.0
        ),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells() {
        let process = Process::now();
        assert!(process.resident > 0 && process.peak >= process.resident / 2);
        assert!(machine_memory() > process.resident);
        let shown = [0, 1023, 1536, 3 << 20, 5 << 40].map(human);
        assert_eq!(shown, ["0B", "1023B", "1.50K", "3.00M", "5.00T"]);
    }
}
