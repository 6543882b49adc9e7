//! A rack is described, opened or joined.

use super::{Changed, MembershipError, family, from};
use std::fmt;

/// Why a rack was not opened or joined, or its switch not served.
///
/// ```
/// use rackmem::{OpenError, Rack};
///
/// let error = Rack::local(33).unwrap_err();
/// assert!(matches!(error, OpenError::Config(_)));
/// assert_eq!(error.what(), "nodes: a rack has 1 to 32 nodes, not 33");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration contradicts itself, or does not fit this machine; the text says where.
    Config(String),
    /// This process is not admitted to the rack.
    Membership(MembershipError),
    /// Another process has the place of this member: its address, or its memory on this host.
    PlaceTaken {
        /// Which place, and what says that it is taken.
        place: String,
    },
    /// The switch cannot run in this kernel, or not as it was asked to.
    Kernel {
        /// The cause in a word: `permission`, `kernel`, `verifier`, `driver`, `no-interface`,
        /// `busy`, `rack`, `map`, or `not-built`.
        code: &'static str,
        /// The cause.
        why: String,
    },
    /// No address of the rack is one of this host.
    NotOfThisHost,
    /// A socket, a thread or shared memory could not be had.
    Io(std::io::Error),
}

family!(OpenError, "open", through [Membership],
    Config => "config",
    PlaceTaken => "place-taken",
    Kernel => "kernel",
    NotOfThisHost => "not-of-this-host",
    Io => "io",
);

from!(MembershipError => OpenError, _ => Membership);
from!(IoError => OpenError, _ => Io);

type IoError = std::io::Error;

impl OpenError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Membership(error) => error.cause(f),
            OpenError::Config(why) => f.write_str(why.trim_end()),
            OpenError::PlaceTaken { place } => f.write_str(place),
            OpenError::Kernel { why, .. } => f.write_str(why),
            OpenError::NotOfThisHost => f.write_str("this host has none of the rack's addresses"),
            OpenError::Io(error) => {
                write!(
                    f,
                    "no socket, thread or shared memory for the rack: {error}"
                )
            }
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            OpenError::Membership(error) => error.changed(),
            OpenError::Config(_)
            | OpenError::PlaceTaken { .. }
            | OpenError::Kernel { .. }
            | OpenError::NotOfThisHost
            | OpenError::Io(_) => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            OpenError::Membership(error) => error.next_step(),
            OpenError::Config(_) => "correct the option or the line named, then try again",
            OpenError::PlaceTaken { .. } => {
                "end the process that has it (`ss -ulpn`, `fuser`), or choose another node number or address in the file"
            }
            OpenError::Kernel { code, .. } => without_the_kernel(code),
            OpenError::NotOfThisHost => "ask on a host of one of its nodes",
            OpenError::Io(_) => "run `rackmem doctor`, which says what this machine lacks",
        }
    }
}

/// There are always the switch in user space, and a home's agent.
fn without_the_kernel(code: &str) -> &'static str {
    match code {
        "permission" => {
            "run it as root, or leave it out: user space does the same and needs no privilege"
        }
        "not-built" => "build with the feature `xdp` (clang and libbpf-dev), or leave it out",
        "driver" => "try `KernelMode::Skb`, which works with any driver, or leave it out",
        "no-interface" | "busy" => "correct that, then try again, or leave it out",
        _ => "leave it out: user space does the same, more slowly",
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Membership(error) => error.source(),
            OpenError::Io(error) => Some(error),
            _ => None,
        }
    }
}
