//! Why the kernel does not take the program, in words that say what to do.

use aya::maps::MapError;
use aya::maps::xdp::XdpMapError;
use aya::programs::ProgramError;
use aya::programs::tc::TcError;
use aya::programs::xdp::XdpError;
use aya::{EbpfError, sys::SyscallError};
use std::io;

/// What this crate's operations come to.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug)]
pub enum Error {
    /// The kernel wants a privilege that this process does not have.
    Permission,
    /// The kernel has not got what the program needs.
    Kernel(String),
    /// The verifier refuses the program: its last words about it.
    Verifier(String),
    /// There is no such interface.
    NoInterface(String),
    /// Another program is attached to the interface.
    Busy(String),
    /// The interface's driver cannot run programs in this mode.
    Driver {
        /// The interface.
        interface: String,
        /// What it was asked for.
        mode: crate::Mode,
        /// What the kernel said.
        why: io::Error,
    },
    /// The rack cannot be served by it.
    Rack(String),
    /// A map could not be read or written.
    Map(String),
}

impl Error {
    /// The cause in one word, for programs that read it.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Permission => "permission",
            Error::Kernel(_) => "kernel",
            Error::Verifier(_) => "verifier",
            Error::NoInterface(_) => "no-interface",
            Error::Busy(_) => "busy",
            Error::Driver { .. } => "driver",
            Error::Rack(_) => "rack",
            Error::Map(_) => "map",
        }
    }

    /// Why a program could not be loaded.
    pub(crate) fn of_load(error: ProgramError) -> Error {
        match error {
            ProgramError::LoadError { io_error, .. } if refuses(&io_error) => Error::Permission,
            ProgramError::LoadError {
                io_error,
                verifier_log,
            } => {
                let log = verifier_log.to_string();
                if log.trim().is_empty() {
                    Error::Kernel(format!("it does not load the program: {io_error}"))
                } else {
                    Error::Verifier(cause(&log))
                }
            }
            other => Error::of_call(other),
        }
    }

    fn of_call(error: ProgramError) -> Error {
        match os_error(&error) {
            Some(io_error) if refuses(io_error) => Error::Permission,
            _ => Error::Kernel(error.to_string()),
        }
    }

    /// Why a program could not be attached.
    pub(crate) fn of_attach(error: ProgramError, interface: &str, mode: crate::Mode) -> Error {
        let name = || interface.to_owned();
        if matches!(error, ProgramError::UnknownInterface { .. }) {
            return Error::NoInterface(name());
        }
        let Some(io_error) = os_error(&error) else {
            return Error::of_call(error);
        };
        match io_error.kind() {
            io::ErrorKind::PermissionDenied => Error::Permission,
            io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => Error::Busy(name()),
            _ => Error::Driver {
                interface: name(),
                mode,
                why: io::Error::new(io_error.kind(), io_error.to_string()),
            },
        }
    }

    /// Why a program could not be attached behind an interface's driver.
    pub(crate) fn of_link(error: ProgramError, interface: &str) -> Error {
        match &error {
            // Its number is all that is asked for in another way.
            ProgramError::TcError(TcError::IoError(_)) => Error::NoInterface(interface.to_owned()),
            _ => match os_error(&error) {
                Some(why) if refuses(why) => Error::Permission,
                Some(why) => Error::Kernel(format!(
                    "it attaches no program behind the driver of `{interface}`, which Linux 6.6 does: {why}"
                )),
                None => Error::of_call(error),
            },
        }
    }
}

fn refuses(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// What a system call answered, if it is that.
fn os_error(error: &ProgramError) -> Option<&io::Error> {
    match error {
        ProgramError::SyscallError(SyscallError { io_error, .. }) => Some(io_error),
        ProgramError::XdpError(XdpError::NetlinkError(error)) => {
            let source = std::error::Error::source(error)?;
            source.downcast_ref::<io::Error>()
        }
        _ => None,
    }
}

/// Of the verifier's log, which may have thousands of lines, what it ends with.
fn cause(log: &str) -> String {
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("processed ");
    let lines: Vec<&str> = log.lines().filter(says).collect();
    let from = lines.len().saturating_sub(3);
    lines[from..].join(" | ")
}

impl From<EbpfError> for Error {
    fn from(error: EbpfError) -> Self {
        match error {
            EbpfError::ProgramError(error) => Error::of_load(error),
            EbpfError::MapError(error) => error.into(),
            other => Error::Kernel(other.to_string()),
        }
    }
}

impl From<MapError> for Error {
    fn from(error: MapError) -> Self {
        match &error {
            MapError::CreateError { io_error, .. } if refuses(io_error) => Error::Permission,
            MapError::CreateError { name, io_error } => {
                Error::Kernel(format!("it does not make the map {name}: {io_error}"))
            }
            _ => Error::Map(error.to_string()),
        }
    }
}

impl From<XdpMapError> for Error {
    fn from(error: XdpMapError) -> Self {
        Error::Kernel(error.to_string())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Permission => f.write_str(
                "the kernel does not let this process load XDP programs: it takes root, or CAP_BPF and CAP_NET_ADMIN",
            ),
            Error::Kernel(why) => write!(f, "this kernel does not take the XDP program: {why}"),
            Error::Verifier(why) => write!(
                f,
                "the kernel's verifier refuses the XDP program, which is a defect of rackmem or an older kernel than it knows: {why}"
            ),
            Error::NoInterface(name) => {
                write!(f, "there is no interface `{name}` here; `ip link` lists them")
            }
            Error::Busy(name) => write!(
                f,
                "another XDP program is attached to `{name}`; `ip link show {name}` tells which, `ip link set {name} xdp off` takes it off"
            ),
            Error::Driver { interface, mode, why } => {
                write!(f, "`{interface}` cannot run the program in {mode} mode: {why}")
            }
            Error::Rack(why) => write!(f, "the XDP program cannot serve this rack: {why}"),
            Error::Map(why) => write!(f, "a map of the XDP program: {why}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_cut_to_its_cause() {
        let log = "0: (b7) r0 = 0\n1: (61) r1 = *(u32 *)(r2 +0)\nR2 !read_ok\n\nprocessed 2 insns (limit 1000000)\n";
        assert_eq!(
            cause(log),
            "0: (b7) r0 = 0 | 1: (61) r1 = *(u32 *)(r2 +0) | R2 !read_ok"
        );
        assert_eq!(cause("processed 2 insns\n"), "");
    }
}
