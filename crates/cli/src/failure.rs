//! What a user reads when a command fails: one line of cause, one line of what to do next.

use rackmem::{AllocError, Error, OpenError, RackError, RegionError};
use std::fmt;

/// Why a command failed, and the next step.
#[derive(Debug)]
pub struct Failure {
    cause: String,
    next: String,
}

/// The result of a command and its parts.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with its remedy.
    pub fn new(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Failure {
            cause: cause.into(),
            next: next.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A cause from a parser may have several lines; a failure has one.
        let cause: Vec<&str> = self.cause.split_whitespace().collect();
        write!(f, "error: {}\n next: {}", cause.join(" "), self.next)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::new(error.what(), next_step(&error))
    }
}

rackmem::from_families!(Failure);

/// The library's next step, or what this program has for it.
fn next_step(error: &Error) -> &'static str {
    match error {
        Error::Alloc(AllocError::OutOfMemory { .. }) => {
            "give each node more with --memory (or `memory` in the file)"
        }
        Error::Region(RegionError::Mismatch { .. }) => {
            "use the settings that the first process used"
        }
        Error::Open(OpenError::Kernel { code, .. }) => without_the_kernel(code),
        other => match other.rack() {
            Some(RackError::Timeout { .. }) => {
                "start the missing process, or check its address in the file"
            }
            _ => other.next_step(),
        },
    }
}

/// There are always the switch in user space, and a home's agent.
fn without_the_kernel(code: &str) -> &'static str {
    match code {
        "permission" => {
            "run it as root, or leave --xdp or --kernel-reads out: user space does the same and needs no privilege"
        }
        "not-built" => {
            "install clang and libbpf-dev, build with `cargo build --release -p rackmem-cli --features xdp`; or leave --xdp or --kernel-reads out"
        }
        "driver" => {
            "try --xdp-mode skb or --kernel-reads IFACE/skb, which work with any driver; or leave it out"
        }
        "no-interface" | "busy" => {
            "correct that, then try again; or leave --xdp or --kernel-reads out"
        }
        _ => "leave --xdp or --kernel-reads out: user space does the same, more slowly",
    }
}

impl From<rackmem_kv::Error> for Failure {
    fn from(error: rackmem_kv::Error) -> Self {
        let next = match &error {
            rackmem_kv::Error::Settings { .. } => "start every node with the same --buckets",
            rackmem_kv::Error::KeyTooLong { .. } => "choose larger blocks, such as --block-size 4K",
            rackmem_kv::Error::BadOption(_) => "choose a power of two, such as --buckets 1024",
            rackmem_kv::Error::Memory(_) => {
                "give each node more with --memory, or check that every process of the rack runs"
            }
            _ => "run it again; if it stays, please report it with this text",
        };
        Failure::new(format!("store: {error}"), next)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        OpenError::Io(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_two_lines_whatever_the_cause() {
        let text = Failure::new("bad\n  thing\n", "mend it").to_string();
        assert_eq!(text, "error: bad thing\n next: mend it");
    }

    #[test]
    fn an_exhausted_node_is_told_how_to_get_more() {
        let text = Failure::from(AllocError::OutOfMemory { node: 2 }).to_string();
        assert!(
            text.contains("node 2") && text.contains("--memory"),
            "{text}"
        );
    }
}
