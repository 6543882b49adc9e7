//! Why a store cannot be opened, or has ended.

use rackmem_proto::abd::journal::{Identity, Lost};
use std::fmt;
use std::io;

/// Why a store cannot be opened, or has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The node has no folder for stores.
    NoFolder,
    /// Another process has the folder.
    InUse {
        /// Which one.
        folder: String,
    },
    /// The store is another rack's or group's, or has other lines.
    Other {
        /// The file that says so.
        file: String,
        /// Whose it is.
        found: Identity,
    },
    /// The files of this folder are not the medium itself: they cannot be written by stores.
    NotPersistent {
        /// The folder.
        folder: String,
        /// What the system says.
        cause: io::Error,
    },
    /// Something that was durable is damaged or missing: this copy must not count.
    Damaged {
        /// In which file, or folder.
        file: String,
        /// What.
        lost: Lost,
    },
    /// The disk is full.
    Full {
        /// The file that could not be written.
        file: String,
    },
    /// A file could not be read, written or made durable.
    Io {
        /// What was done, as a verb.
        doing: &'static str,
        /// The file.
        file: String,
        /// What the system says.
        cause: io::Error,
    },
    /// A write or sync has failed before: this process' copy does not count any more.
    Ended,
}

impl StoreError {
    pub(crate) fn io(doing: &'static str, file: String, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { file },
            _ => StoreError::Io { doing, file, cause },
        }
    }
}

const REPLACE: &str = "move the folder away and replace this member: \
                       the other copies have what it has acknowledged";

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoFolder => f.write_str(
                "this node has no folder for durable copies; set `store` in the rack's file",
            ),
            StoreError::InUse { folder } => {
                write!(f, "{folder}: another process has this store; stop it first")
            }
            StoreError::Other { file, found } => {
                let Identity { rack, group, .. } = found;
                let (line, bytes) = (found.layout.line, found.layout.bytes);
                write!(
                    f,
                    "{file}: a store of rack {rack:x}, group {group}, {bytes} bytes in lines of \
                     {line}; name another folder"
                )
            }
            StoreError::NotPersistent { folder, cause } => {
                write!(
                    f,
                    "{folder}: its files are not in persistent memory (mapping one with MAP_SYNC: \
                     {cause}); name a folder of a file system that is mounted with `dax` on such \
                     memory, or create the region with durability `sync`"
                )
            }
            StoreError::Damaged { file, lost } => match lost {
                Lost::Damaged { offset } => {
                    write!(f, "{file}: damaged at byte {offset}; {REPLACE}")
                }
                Lost::Missing { number } => {
                    write!(f, "{file}: records from {number} on are missing; {REPLACE}")
                }
                Lost::Header | Lost::Other(_) => {
                    write!(f, "{file}: the file's header is damaged; {REPLACE}")
                }
            },
            StoreError::Full { file } => {
                write!(
                    f,
                    "{file}: the disk is full; make room and start the node again"
                )
            }
            StoreError::Io { doing, file, cause } => {
                write!(
                    f,
                    "{file}: cannot {doing}: {cause}; check the disk, then start the node again"
                )
            }
            StoreError::Ended => {
                f.write_str("a write or sync of this store has failed before; start the node again")
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { cause, .. } | StoreError::NotPersistent { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
