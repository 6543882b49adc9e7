//! What can go wrong with the membership, and what to do about it.

use super::{Places, Role};
use std::path::PathBuf;
use std::time::Duration;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a process is not, or cannot be, a member. The texts say what to do next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An endpoint of etcd does not answer, or not in time.
    Unreachable {
        /// Its URL.
        endpoint: String,
        /// Why.
        why: String,
    },
    /// An endpoint of etcd answered with an error, or is not etcd.
    Refused {
        /// Its URL.
        endpoint: String,
        /// What it said.
        why: String,
    },
    /// A file or folder cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Something stored is not what rackmem stores.
    Garbage {
        /// The file, or the endpoint and key.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// Another process holds this place and is alive.
    Taken {
        /// The place.
        role: Role,
    },
    /// The process was not admitted, or not let go, for so long.
    Late {
        /// The place that it wants or holds.
        role: Role,
        /// How long.
        waited: Duration,
        /// What was in the way last, if anything was.
        cause: Option<Box<Error>>,
    },
    /// Nobody holds this place.
    NotHeld {
        /// The place.
        role: Role,
    },
    /// It cannot reach a majority of the members, which are alive, and would be declared dead
    /// again.
    OutOfReach {
        /// Who wants a place.
        role: Role,
        /// Members that do not answer it.
        unheard: Places,
    },
    /// The list of members is fixed, in the file that describes the rack.
    Fixed,
    /// A thread could not be started.
    Thread(std::io::Error),
}

impl Error {
    /// Whether the process could not be admitted because it cannot reach the members:
    /// it may try again.
    pub fn is_out_of_reach(&self) -> bool {
        match self {
            Error::OutOfReach { .. } => true,
            Error::Late { cause, .. } => cause.as_ref().is_some_and(|it| it.is_out_of_reach()),
            _ => false,
        }
    }

    /// Whether it stays until somebody mends it.
    pub(super) fn is_lasting(&self) -> bool {
        matches!(self, Error::Garbage { .. } | Error::Taken { .. })
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Unreachable { endpoint, why } => write!(
                f,
                "etcd at {endpoint} does not answer ({why}): start it, or mend `membership`"
            ),
            Error::Refused { endpoint, why } => {
                write!(f, "etcd at {endpoint} refuses: {why}{}", remedy(why))
            }
            Error::File { path, error } => write!(
                f,
                "{}: {error}: every process of the rack must be able to write there",
                path.display()
            ),
            Error::Garbage { place, why } => write!(
                f,
                "{place} is not what rackmem stores ({why}): stop the rack and remove it, or choose another `name`"
            ),
            Error::Taken { role } => write!(
                f,
                "{role} is already running: stop that process, or choose another number"
            ),
            Error::Late {
                role,
                waited,
                cause,
            } => {
                write!(f, "{role} waited {} ms for the others", waited.as_millis())?;
                match cause {
                    Some(cause) => write!(f, ": {cause}"),
                    None => Ok(()),
                }
            }
            Error::OutOfReach { role, unheard } => write!(
                f,
                "{role} cannot reach {unheard}: check cables, addresses and firewalls (UDP)"
            ),
            Error::NotHeld { role } => write!(f, "{role} is not in the rack"),
            Error::Fixed => f.write_str(
                "the members are fixed: set `membership` to \"dir:...\" or \"etcd:...\" to change them while the rack runs",
            ),
            Error::Thread(error) => write!(f, "no thread for the membership: {error}"),
        }
    }
}

/// What to do about a refusal that users meet.
fn remedy(why: &str) -> &'static str {
    if why.contains("database space exceeded") {
        ": compact and defragment it, and start it with --auto-compaction-mode=periodic --auto-compaction-retention=10m"
    } else if why.contains("user name is empty") || why.contains("permission denied") {
        ": rackmem needs an etcd without authentication"
    } else {
        ""
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { error, .. } | Error::Thread(error) => Some(error),
            Error::Late {
                cause: Some(cause), ..
            } => Some(&**cause),
            _ => None,
        }
    }
}
