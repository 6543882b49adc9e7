//! Why bytes are not what Redis would have written.

use std::fmt;

/// Where reading ended, and why.
#[derive(Debug)]
pub struct Error {
    /// Bytes from the beginning to where what is wrong begins.
    pub offset: u64,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong.
#[derive(Debug)]
pub enum Cause {
    /// The bytes could not be read.
    Io(std::io::Error),
    /// They end too early.
    Truncated,
    /// They do not begin as a file of Redis does.
    NotRdb,
    /// They have a version that is not read.
    Version(u32),
    /// They are not what their checksum was made of.
    Checksum {
        /// The one they come with.
        written: u64,
        /// The one they have.
        computed: u64,
    },
    /// A value of a type that is not known.
    Type(u8),
    /// A module's value or data, in the form of an early Redis 4 that cannot be skipped.
    OldModule,
    /// Functions in the form of early releases of Redis 7.
    OldFunction,
    /// A string longer than [`super::MAX_STRING`].
    TooLong(u64),
    /// A value that contradicts itself.
    Malformed(&'static str),
}

/// The result of reading.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Truncated => f.write_str("the data end too early"),
            Self::NotRdb => f.write_str("not an RDB file: it does not begin with REDIS"),
            Self::Version(version) => write!(
                f,
                "RDB version {version}, of which 1 to {} can be read",
                super::NEWEST
            ),
            Self::Checksum { written, computed } => write!(
                f,
                "the checksum is {written:016x}, that of the data {computed:016x}: they are damaged"
            ),
            Self::Type(number) => write!(f, "unknown type of value {number}"),
            Self::OldModule => f.write_str("a module's value in the form of an early Redis 4"),
            Self::OldFunction => f.write_str("functions in the form of an early Redis 7"),
            Self::TooLong(len) => write!(
                f,
                "a string of {len} bytes, of which {} can be read",
                super::MAX_STRING
            ),
            Self::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}
