//! What kind of failure an error is, for languages and programs that do not tell more than that
//! apart.

/// A kind of failure: what a program can do about it is the same for all causes of a kind.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{ErrorKind, Rack};
///
/// let rack = Rack::local(1)?;
/// let error = rack.node(0).load(1 << 50).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Argument);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing has this name.
    NotFound,
    /// What is there is something else: of another size, type or contract.
    Mismatch,
    /// What was asked for cannot be.
    Argument,
    /// The rack has no room left for this.
    Full,
    /// A node or a majority has not answered in the rack's patience.
    NoAnswer,
    /// It has died with the node that had it, or has been removed or freed.
    Lost,
    /// The rack is closed here, or goes on without this process.
    Closed,
    /// The system does not let this process map memory of the rack.
    NoPaging,
    /// What was read may be older than was promised: throw it away.
    Stale,
    /// Anything else: its code says which.
    Other,
}

/// Codes of each kind. What is in no row is [`ErrorKind::Other`].
const KINDS: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::NotFound,
        &["name-not-found", "no-lock", "no-arena", "no-owner"],
    ),
    (
        ErrorKind::Mismatch,
        &[
            "name-mismatch",
            "name-taken",
            "wrong-contract",
            "other-copies",
            "wrong-type",
            "other-size",
            "other-shape",
            "other-rack",
        ],
    ),
    (
        ErrorKind::Argument,
        &[
            "bad-name",
            "bad-address",
            "bad-range",
            "bad-shape",
            "bad-pointer",
            "bad-spec",
            "out-of-bounds",
            "region-out-of-bounds",
            "outside-ranges",
            "bad-copies",
            "config",
            "no-such-node",
            "too-large",
            "object-too-large",
            "too-many-bytes",
            "small-buffer",
        ],
    ),
    (
        ErrorKind::Full,
        &[
            "out-of-memory",
            "name-table-full",
            "too-many-locks",
            "too-many-objects",
            "too-many-waiting",
            "arena-full",
        ],
    ),
    (
        ErrorKind::NoAnswer,
        &[
            "timeout",
            "busy",
            "lock-busy",
            "no-quorum",
            "no-lease",
            "interrupted",
            "undecided",
            "owned",
        ],
    ),
    (
        ErrorKind::Lost,
        &[
            "node-lost",
            "name-lost",
            "lost",
            "region-removed",
            "copies-removed",
            "gone",
            "lock-freed",
            "lock-freed-in-part",
            "unanswered",
        ],
    ),
    (ErrorKind::Closed, &["closed", "fenced", "expelled"]),
    (
        ErrorKind::NoPaging,
        &[
            "no-paging",
            "not-mappable",
            "not-shown",
            "too-many-mappings",
        ],
    ),
    (ErrorKind::Stale, &["stale", "late-section"]),
];

impl ErrorKind {
    /// That of an error with this code.
    pub fn of(code: &str) -> ErrorKind {
        let row = KINDS.iter().find(|row| row.1.contains(&code));
        row.map_or(ErrorKind::Other, |row| row.0)
    }

    /// Codes of a kind.
    #[cfg(test)]
    pub(super) fn codes() -> impl Iterator<Item = &'static str> {
        KINDS.iter().flat_map(|row| row.1.iter().copied())
    }
}
