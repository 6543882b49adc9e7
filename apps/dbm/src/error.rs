//! What can go wrong with a database.

use std::fmt;

/// Why something with a database did not happen.
#[derive(Debug)]
#[non_exhaustive]
pub enum DbmError {
    /// The rack said no. What an exclusive section was writing just then may be there in part,
    /// and the database is [`DbmError::Torn`] afterwards.
    Rack(rackmem::Error),
    /// The lock was not to be had: nothing has changed.
    Lock(Box<dyn std::error::Error + Send + Sync>),
    /// All pages are used: nothing of the section has changed.
    Full,
    /// A key or a value has more bytes than fit: nothing of the section has changed.
    TooLong {
        /// Which of the two.
        what: &'static str,
        /// Bytes at most.
        most: usize,
    },
    /// There is memory for fewer pages than a database needs.
    TooSmall {
        /// Pages at least.
        least: u32,
    },
    /// A database is to be made where one is.
    Exists,
    /// There is no database in this memory, or it is of another size.
    NoDatabase,
    /// Pages were written while this section had the lock, or by one that has not come to its end:
    /// the lock does not exclude, or its holder has died.
    Torn,
    /// A page has not what it was left with.
    Broken {
        /// What is wrong.
        what: &'static str,
    },
}

/// The result of something with a database.
pub type Result<T> = std::result::Result<T, DbmError>;

impl DbmError {
    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            DbmError::Rack(error) => error.next_step(),
            DbmError::Lock(_) => "see whether all nodes of the rack are there",
            DbmError::Full | DbmError::TooSmall { .. } => "give the database more memory",
            DbmError::TooLong { .. } => "take a shorter one",
            DbmError::Exists => "open it, or take other memory",
            DbmError::NoDatabase => "create it first, in memory of the same size",
            DbmError::Torn => "use a lock that excludes; load the data again",
            DbmError::Broken { .. } => "this is a defect of rackmem: please report it",
        }
    }
}

impl fmt::Display for DbmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DbmError::Rack(error) => write!(f, "{}", error.what()),
            DbmError::Lock(error) => write!(f, "the database's lock: {error}"),
            DbmError::Full => f.write_str("the database is full"),
            DbmError::TooLong { what, most } => write!(f, "a {what} has {most} bytes at most"),
            DbmError::TooSmall { least } => write!(f, "a database has {least} pages at least"),
            DbmError::Exists => f.write_str("there is a database in this memory"),
            DbmError::NoDatabase => f.write_str("there is no database in this memory"),
            DbmError::Torn => {
                f.write_str("the database was written by two at a time, or not to the end")
            }
            DbmError::Broken { what } => write!(f, "the database is broken: {what}"),
        }
    }
}

impl std::error::Error for DbmError {}

impl From<rackmem::Error> for DbmError {
    fn from(error: rackmem::Error) -> Self {
        DbmError::Rack(error)
    }
}

rackmem::from_families!(DbmError);
