//! Reading the kernel's files.

use std::fs;
use std::path::Path;

/// The text of a small file, without the newline at its end.
pub fn text(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// The number that a file holds.
pub fn number(path: &str) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Whether a path exists.
pub fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// The first number after a name at the start of a line: `MemFree:   123 kB`.
pub fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A mask in hexadecimal after a name at the start of a line: `CapEff: 000001ff`.
pub fn mask(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Numbers of capabilities in the kernel's mask.
pub const CAP_NET_ADMIN: u32 = 12;
pub const CAP_SYS_ADMIN: u32 = 21;
pub const CAP_SYS_PTRACE: u32 = 19;
pub const CAP_BPF: u32 = 39;

/// Whether this process has a capability.
pub fn capable(capability: u32) -> bool {
    let status = text("/proc/self/status").unwrap_or_default();
    mask(&status, "CapEff:").is_some_and(|mask| mask >> capability & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_masks_are_found_by_name() {
        let text = "MemTotal:  16 kB\nMemAvailable:       5 kB\nCapEff:\t00000000000001ff\n";
        assert_eq!(field(text, "MemAvailable:"), Some(5));
        assert_eq!(field(text, "Missing:"), None);
        assert_eq!(mask(text, "CapEff:"), Some(0x1ff));
        assert_eq!(mask("CapEff: xyz", "CapEff:"), None);
    }
}
