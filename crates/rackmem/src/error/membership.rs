//! A process is, or becomes, a member of a rack, or ceases to be one.

use super::{Changed, family};
use rackmem_proto::abd::Refused;
use rackmem_proto::membership::{Places, Role, Unchanged};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a process is not, or cannot be, a member.
///
/// ```
/// use rackmem::membership::{Memory, MembershipError, Role, remove};
/// use std::time::Duration;
///
/// let empty = Memory::default();
/// let error = remove(&empty, Role::Node(3), Duration::from_millis(10)).unwrap_err();
/// assert!(matches!(error, MembershipError::NotHeld { role: Role::Node(3) }), "{error}");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum MembershipError {
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
        cause: Option<Box<MembershipError>>,
    },
    /// No process holds this place.
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
    /// No region with copies has this name.
    NoGroup {
        /// The name.
        name: String,
    },
    /// The copies of a region stay where they are.
    NotReplaced {
        /// The region's name.
        name: String,
        /// Why.
        why: Unchanged,
    },
    /// The list of members is fixed, in the file that describes the rack.
    Fixed,
    /// A thread could not be started.
    Thread(std::io::Error),
}

family!(MembershipError, "membership", through [],
    Unreachable => "store-unreachable",
    Refused => "store-refused",
    File => "store-file",
    Garbage => "store-garbage",
    Taken => "taken",
    Late => "late",
    NotHeld => "not-held",
    OutOfReach => "out-of-reach",
    NoGroup => "no-group",
    NotReplaced => "not-replaced",
    Fixed => "fixed",
    Thread => "thread",
);

impl MembershipError {
    /// Whether the process could not be admitted because it cannot reach the members:
    /// it may try again.
    pub fn is_out_of_reach(&self) -> bool {
        match self {
            MembershipError::OutOfReach { .. } => true,
            MembershipError::Late { cause, .. } => {
                cause.as_ref().is_some_and(|it| it.is_out_of_reach())
            }
            _ => false,
        }
    }

    /// Whether it stays until somebody mends it.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(
            self,
            MembershipError::Garbage { .. } | MembershipError::Taken { .. }
        )
    }

    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MembershipError::Unreachable { endpoint, why } => {
                write!(f, "etcd at {endpoint} does not answer ({why})")
            }
            MembershipError::Refused { endpoint, why } => {
                write!(f, "etcd at {endpoint} refuses: {why}")
            }
            MembershipError::File { path, error } => write!(f, "{}: {error}", path.display()),
            MembershipError::Garbage { place, why } => {
                write!(f, "{place} is not what rackmem stores ({why})")
            }
            MembershipError::Taken { role } => write!(f, "{role} is already running"),
            MembershipError::Late {
                role,
                waited,
                cause,
            } => {
                write!(f, "{role} waited {} ms for the others", waited.as_millis())?;
                match cause {
                    Some(cause) => {
                        f.write_str(": ")?;
                        cause.cause(f)
                    }
                    None => Ok(()),
                }
            }
            MembershipError::OutOfReach { role, unheard } => {
                write!(f, "{role} cannot reach {unheard}")
            }
            MembershipError::NotHeld { role } => write!(f, "{role} is not in the rack"),
            MembershipError::NoGroup { name } => {
                write!(f, "no region with copies is named `{name}`")
            }
            MembershipError::NotReplaced { name, why } => {
                write!(
                    f,
                    "the copies of `{name}` stay where they are: {}",
                    cause(*why)
                )
            }
            MembershipError::Fixed => f.write_str("the members of this rack are fixed"),
            MembershipError::Thread(error) => {
                write!(f, "no thread for the membership: {error}")
            }
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            MembershipError::Unreachable { .. } | MembershipError::Late { .. } => Changed::Perhaps,
            MembershipError::Refused { .. }
            | MembershipError::File { .. }
            | MembershipError::Garbage { .. }
            | MembershipError::Taken { .. }
            | MembershipError::NotHeld { .. }
            | MembershipError::OutOfReach { .. }
            | MembershipError::NoGroup { .. }
            | MembershipError::NotReplaced { .. }
            | MembershipError::Fixed
            | MembershipError::Thread(_) => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            MembershipError::Unreachable { .. } => {
                "start it and check its address, or correct `membership` in the configuration"
            }
            MembershipError::Refused { why, .. } => remedy(why),
            MembershipError::File { .. } => {
                "see to it that every process of the rack can write there"
            }
            MembershipError::Garbage { .. } => {
                "stop the rack and remove it, or choose another `name`"
            }
            MembershipError::Taken { .. } => "stop that process, or choose another number",
            MembershipError::Late { cause, .. } => match cause {
                Some(cause) => cause.next_step(),
                None => "start the others, check that all use one store, then try again",
            },
            MembershipError::NotHeld { .. } => "choose a member that is in the rack",
            MembershipError::OutOfReach { .. } => "check cables, addresses and firewalls (UDP)",
            MembershipError::NoGroup { .. } => "look at their names (`rackmem inspect --groups`)",
            MembershipError::NotReplaced { why, .. } => next(*why),
            MembershipError::Fixed => {
                "set `membership` to \"dir:...\" or \"etcd:...\" to change them while the rack runs"
            }
            MembershipError::Thread(_) => "raise the limit of threads (`ulimit -u`)",
        }
    }
}

/// Why groups stay as they are.
const fn cause(why: Unchanged) -> &'static str {
    match why {
        Unchanged::NotLive(_) => "the new node is no live member",
        Unchanged::Copies(_) => "it is to have as many already, or so many cannot be had",
        Unchanged::Members(_) => "so many copies take more live nodes",
        Unchanged::Config(Refused::Filling) => "another member fills",
        Unchanged::Config(Refused::NoQuorum) => "too few members that count would be left",
        Unchanged::Config(Refused::Member) => {
            "the old node keeps no copy of it, or the new one does"
        }
        _ => "there is no room for one more change",
    }
}

const fn next(why: Unchanged) -> &'static str {
    match why {
        Unchanged::Copies(_) => "ask for 3, 5 or 7 copies, and more than it has",
        Unchanged::Members(_) => "start more nodes, or ask for fewer copies",
        Unchanged::NotLive(_) => "start that node, or choose another",
        Unchanged::Config(Refused::Filling | Refused::NoQuorum) => {
            "wait until the member that fills has all (`rackmem inspect --groups`), then try again"
        }
        _ => "look at who keeps copies (`rackmem inspect --groups`)",
    }
}

/// What to do about a refusal that users meet.
fn remedy(why: &str) -> &'static str {
    if why.contains("database space exceeded") {
        "compact and defragment it, and start it with --auto-compaction-mode=periodic --auto-compaction-retention=10m"
    } else if why.contains("user name is empty") || why.contains("permission denied") {
        "use an etcd without authentication, which rackmem needs"
    } else {
        "check what answers there: rackmem needs an etcd of version 3.4 or later"
    }
}

impl std::error::Error for MembershipError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            MembershipError::File { error, .. } | MembershipError::Thread(error) => Some(error),
            MembershipError::Late {
                cause: Some(cause), ..
            } => Some(&**cause),
            _ => None,
        }
    }
}
