//! What can go wrong, in words that say what to do.

use std::fmt;

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
#[derive(Debug)]
pub enum Error {
    /// Namespaces are made by root only.
    NotRoot,
    /// A program is not installed: its name, and the Debian package that has it.
    Missing(&'static str, &'static str),
    /// A program was refused what it wanted: the call, and what it said.
    Refused {
        /// The command line.
        call: String,
        /// What it wrote to its standard error.
        said: String,
    },
    /// No such place in this rack, or no rack of so many hosts.
    Size(String),
    /// A name of a rack has 1 to 32 letters, digits, `-` or `_`.
    Name(String),
    /// There is a rack of this name already.
    Taken(String),
    /// There is no rack of this name.
    Unknown(String),
    /// A process of the rack ended, or said nothing in time: which, and the end of its log.
    NotUp {
        /// Whose.
        who: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// The system failed.
    Io(std::io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRoot => write!(
                f,
                "hosts are network namespaces, which only root can make: run it as root"
            ),
            Error::Missing(program, package) => write!(
                f,
                "{program} was not found; as root: apt-get install {package}"
            ),
            Error::Refused { call, said } => write!(f, "`{call}` failed: {}", said.trim()),
            Error::Size(why) => write!(f, "{why}"),
            Error::Name(name) => write!(
                f,
                "`{name}` is no name for a rack: 1 to 32 letters, digits, `-` or `_`"
            ),
            Error::Taken(name) => {
                write!(f, "there is a rack `{name}` already, or what is left of it")
            }
            Error::Unknown(name) => write!(f, "there is no rack `{name}`"),
            Error::NotUp { who, log } => {
                write!(
                    f,
                    "{who} ended, or did not come up in time; it said:\n{log}"
                )
            }
            Error::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Io(error)
    }
}
