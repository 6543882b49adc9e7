//! Which lock.

use rackmem_baselines::locks::Algorithm;
use std::str::FromStr;

/// Which lock [`AnyLock`](super::AnyLock) is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LockKind {
    /// GCP: a lock that is coherence; what it protects comes with it.
    #[default]
    Gcp,
    /// The queue lock of Mellor-Crummey and Scott; readers are alone, too.
    Mcs,
    /// One word for all, readers first, as `pthread_rwlock`.
    Central,
    /// An indicator of readers at each node; writers take all of them.
    PerNode,
    /// C-RW-WP: a cohort lock for writers, who go first, and an indicator of readers at each node.
    Cohort,
    /// A manager at the lock's home that is asked by messages, as in TreadMarks.
    Service,
}

impl LockKind {
    /// All of them, with the names used in files, commands and reports.
    pub const ALL: [(LockKind, &'static str); 6] = [
        (LockKind::Gcp, "gcp"),
        (LockKind::Mcs, "mcs"),
        (LockKind::Central, "central"),
        (LockKind::PerNode, "per-node"),
        (LockKind::Cohort, "cohort"),
        (LockKind::Service, "service"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|row| row.0 == self);
        row.map_or("", |row| row.1)
    }

    /// Whether readers are inside together.
    pub fn shares(self) -> bool {
        self.algorithm().is_none_or(Algorithm::shares)
    }

    /// What is laid over coherent memory, unless it is coherence itself.
    pub(super) fn algorithm(self) -> Option<Algorithm> {
        match self {
            LockKind::Gcp => None,
            LockKind::Mcs => Some(Algorithm::Mcs),
            LockKind::Central => Some(Algorithm::Central),
            LockKind::PerNode => Some(Algorithm::PerNode),
            LockKind::Cohort => Some(Algorithm::Cohort),
            LockKind::Service => Some(Algorithm::Service),
        }
    }
}

/// No lock has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSuchKind(String);

impl std::fmt::Display for NoSuchKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = LockKind::ALL.map(|row| row.1).join(", ");
        write!(f, "no kind of lock is `{}`: there are {names}", self.0)
    }
}

impl std::error::Error for NoSuchKind {}

impl FromStr for LockKind {
    type Err = NoSuchKind;

    fn from_str(name: &str) -> Result<Self, NoSuchKind> {
        let row = Self::ALL.iter().find(|row| row.1 == name);
        row.map(|row| row.0).ok_or_else(|| NoSuchKind(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_others_are_told_what_there_is() {
        for (kind, name) in LockKind::ALL {
            assert_eq!((name.parse(), kind.name()), (Ok(kind), name));
        }
        let why = "futex".parse::<LockKind>().unwrap_err().to_string();
        assert!(why.contains("futex") && why.contains("per-node"), "{why}");
    }
}
