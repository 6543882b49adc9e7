//! A region, or a name, is created, found, used or removed.

use super::{AccessError, AllocError, BulkError, Changed, LockError, RackError, family, from};
use rackmem_proto::abd::Durability;
use rackmem_proto::heap::Backing;
use rackmem_proto::wire::{Contract, NodeId};
use std::fmt;

/// Why something with a region, or with the name of a lock, did not happen.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionError};
///
/// let rack = Rack::local(2)?;
/// rack.node(0).named_slice::<f64>("grid", 1000)?;
/// let error = rack.node(1).named_slice::<u64>("grid", 1000).unwrap_err();
/// assert!(matches!(error, RegionError::Mismatch { name } if name == "grid"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RegionError {
    /// The rack, or a node of it, cannot be used now.
    Rack(RackError),
    /// The table of names, or the region's memory, was not read or written.
    Access(AccessError),
    /// The region's memory was not written to the end.
    Bulk(BulkError),
    /// There is no memory for the region, or it was not freed.
    Alloc(AllocError),
    /// The lock of this name was not made, or is another one.
    Lock(LockError),
    /// A name has 1 to 88 bytes.
    BadName {
        /// The name.
        name: String,
    },
    /// Nothing has this name.
    NotFound {
        /// The name.
        name: String,
    },
    /// What has this name is of another size, type or backing.
    Mismatch {
        /// The name.
        name: String,
    },
    /// What had this name has died with the node that gave its memory.
    NameLost {
        /// The name.
        name: String,
        /// The node.
        node: NodeId,
    },
    /// The region of this handle has been removed; another may have its name.
    Removed {
        /// The name.
        name: String,
    },
    /// The name is free again, but the region's memory was not given back.
    NotFreed {
        /// The name.
        name: String,
        /// Why.
        why: AllocError,
    },
    /// The region has no such bytes.
    OutOfBounds {
        /// Its name.
        name: String,
        /// The first byte asked for.
        at: usize,
        /// How many.
        len: usize,
    },
    /// What has this name is not removed as a region.
    NotRemovable {
        /// The name.
        name: String,
        /// Its contract.
        contract: Contract,
    },
    /// This version has no memory under this contract.
    ContractNotBuilt {
        /// Which.
        contract: Contract,
    },
    /// This version has no memory with this backing.
    BackingNotBuilt {
        /// Which.
        backing: Backing,
    },
    /// A region has not so many copies, ever.
    BadCopies {
        /// How many were asked for.
        copies: u8,
    },
    /// The region has another number of copies.
    OtherCopies {
        /// Its name.
        name: String,
        /// How many it is to have.
        has: u8,
    },
    /// The rack has too few live nodes for so many copies.
    FewMembers {
        /// How many were asked for.
        copies: u8,
        /// Live nodes.
        live: u8,
    },
    /// The region cannot be divided into such lines.
    BadLines {
        /// Bytes of a line.
        line: u32,
        /// Bytes of the region.
        bytes: usize,
    },
    /// Only a region with copies is durable.
    NotDurable {
        /// What was asked for.
        durability: Durability,
    },
    /// This rack has no folder for durable copies.
    NoStore {
        /// What was asked for.
        durability: Durability,
    },
    /// The files of this node's folder are not in persistent memory.
    NotPersistent {
        /// What the store says.
        why: String,
    },
    /// A live node has the region's pages for itself.
    Mapped {
        /// Its name.
        name: String,
        /// The node.
        node: NodeId,
    },
    /// A mapping needs a larger buffer.
    SmallBuffer {
        /// The pages that were asked for.
        pages: usize,
        /// The fewest that do.
        least: usize,
    },
    /// The system does not let this process handle its own page faults.
    NoPaging {
        /// What was tried.
        tried: &'static str,
        /// The number of the operating system's error.
        os: i32,
    },
    /// This region cannot be mapped.
    NotMappable {
        /// Its name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A process maps so many ranges of memory at most.
    TooManyMappings {
        /// That many.
        most: usize,
    },
    /// So many pages of a mapping can be pinned at a time.
    TooManyPinned {
        /// That many blocks.
        most: usize,
    },
    /// Members of this rack are fixed: one that has forgotten its copies could not be told.
    FixedMembers,
    /// Which members keep copies cannot be read, or not be agreed on, in the membership's store.
    NoGroups {
        /// Why.
        why: String,
    },
    /// The table has no room for one more name.
    TableFull {
        /// The name.
        name: String,
    },
    /// Another thread has begun to create this and has not finished in the time that the
    /// configuration allows.
    Unfinished {
        /// The name.
        name: String,
    },
}

family!(RegionError, "region", through [Rack, Access, Bulk, Alloc, Lock],
    BadName => "bad-name",
    NotFound => "name-not-found",
    Mismatch => "name-mismatch",
    NameLost => "name-lost",
    Removed => "region-removed",
    NotFreed => "region-not-freed",
    OutOfBounds => "region-out-of-bounds",
    NotRemovable => "not-removable",
    ContractNotBuilt => "contract-not-built",
    BackingNotBuilt => "backing-not-built",
    BadCopies => "bad-copies",
    OtherCopies => "other-copies",
    FewMembers => "few-members",
    BadLines => "bad-lines",
    NotDurable => "not-durable",
    NoStore => "no-store",
    NotPersistent => "not-persistent",
    Mapped => "region-mapped",
    SmallBuffer => "small-buffer",
    NoPaging => "no-paging",
    NotMappable => "not-mappable",
    TooManyMappings => "too-many-mappings",
    TooManyPinned => "too-many-pinned",
    FixedMembers => "fixed-members",
    NoGroups => "no-groups",
    TableFull => "name-table-full",
    Unfinished => "name-unfinished",
);

from!(RackError => RegionError, _ => Rack);
from!(AccessError => RegionError, Rack => Rack, _ => Access);
from!(BulkError => RegionError, _ => Bulk);
from!(AllocError => RegionError, Rack => Rack, Access => Access, _ => Alloc);
from!(LockError => RegionError, Rack => Rack, Access => Access, Alloc => Alloc, _ => Lock);

impl RegionError {
    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionError::Rack(error) => error.cause(f),
            RegionError::Access(error) => error.cause(f),
            RegionError::Bulk(error) => error.cause(f),
            RegionError::Alloc(error) => error.cause(f),
            RegionError::Lock(error) => error.cause(f),
            RegionError::BadName { name } => {
                write!(f, "`{name}` is no name: a name has 1 to 88 bytes")
            }
            RegionError::NotFound { name } => write!(f, "nothing has the name `{name}`"),
            RegionError::Mismatch { name } => write!(
                f,
                "what has the name `{name}` is of another kind, size, type or backing"
            ),
            RegionError::NameLost { name, node } => {
                write!(
                    f,
                    "what had the name `{name}` died with node {node}, its home"
                )
            }
            RegionError::Removed { name } => write!(f, "region `{name}` has been removed"),
            RegionError::NotFreed { name, why } => {
                write!(f, "the name `{name}` is free, but not its memory: ")?;
                why.cause(f)
            }
            RegionError::OutOfBounds { name, at, len } => {
                write!(f, "region `{name}` has no {len} bytes at {at}")
            }
            RegionError::NotRemovable { name, contract } => write!(
                f,
                "`{name}` is {contract} memory, which is not removed as a region"
            ),
            RegionError::ContractNotBuilt { contract } => {
                write!(f, "this version has no {contract} memory")
            }
            RegionError::BackingNotBuilt { backing } => {
                write!(f, "this version has no memory in a {backing}")
            }
            RegionError::BadCopies { copies } => {
                write!(f, "a region has 1, 3, 5 or 7 copies, not {copies}")
            }
            RegionError::OtherCopies { name, has } => {
                write!(f, "region `{name}` is to have {has} copies")
            }
            RegionError::FewMembers { copies, live } => {
                write!(f, "{copies} copies take as many nodes, and {live} are live")
            }
            RegionError::BadLines { line, bytes } => write!(
                f,
                "a region of {bytes} bytes has no lines of {line}: a line is a power of two from 64 to 65,536 bytes, and there are whole ones"
            ),
            RegionError::NotDurable { durability } => {
                write!(f, "durability `{durability}` is of regions with copies")
            }
            RegionError::NoStore { durability } => write!(
                f,
                "this rack has no folder for copies of durability `{durability}`"
            ),
            RegionError::NotPersistent { why } => f.write_str(why),
            RegionError::Mapped { name, node } => {
                write!(f, "node {node} has mapped region `{name}` for itself")
            }
            RegionError::SmallBuffer { pages, least } => write!(
                f,
                "a buffer of {pages} pages is too small: one instruction may touch {least}"
            ),
            RegionError::NoPaging { tried, os } => write!(
                f,
                "this process cannot handle its own page faults ({tried}): {}",
                std::io::Error::from_raw_os_error(*os)
            ),
            RegionError::NotMappable { name, why } => {
                write!(f, "region `{name}` cannot be mapped: {why}")
            }
            RegionError::TooManyMappings { most } => {
                write!(f, "this process has mapped {most} regions")
            }
            RegionError::TooManyPinned { most } => {
                write!(f, "{most} blocks of this mapping are pinned, and no more can be")
            }
            RegionError::FixedMembers => f.write_str(
                "the members of this rack are fixed, so a node that has restarted without its copies could not be told from one that has them",
            ),
            RegionError::NoGroups { why } => {
                write!(f, "who keeps copies is not agreed on: {why}")
            }
            RegionError::TableFull { name } => {
                write!(f, "the table of names has no room for `{name}`")
            }
            RegionError::Unfinished { name } => write!(
                f,
                "another thread is creating `{name}` and has not finished"
            ),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match self {
            RegionError::Rack(error) => error.changed(),
            RegionError::Access(error) => error.changed(),
            RegionError::Bulk(error) => error.changed(),
            RegionError::Alloc(error) => error.changed(),
            RegionError::Lock(error) => error.changed(),
            RegionError::NotFreed { .. } => Changed::Yes,
            RegionError::NoGroups { .. } => Changed::Perhaps,
            RegionError::BadName { .. }
            | RegionError::NotFound { .. }
            | RegionError::Mismatch { .. }
            | RegionError::NameLost { .. }
            | RegionError::Removed { .. }
            | RegionError::OutOfBounds { .. }
            | RegionError::NotRemovable { .. }
            | RegionError::ContractNotBuilt { .. }
            | RegionError::BackingNotBuilt { .. }
            | RegionError::BadCopies { .. }
            | RegionError::OtherCopies { .. }
            | RegionError::FewMembers { .. }
            | RegionError::BadLines { .. }
            | RegionError::NotDurable { .. }
            | RegionError::NoStore { .. }
            | RegionError::NotPersistent { .. }
            | RegionError::Mapped { .. }
            | RegionError::SmallBuffer { .. }
            | RegionError::NoPaging { .. }
            | RegionError::NotMappable { .. }
            | RegionError::TooManyMappings { .. }
            | RegionError::TooManyPinned { .. }
            | RegionError::FixedMembers
            | RegionError::TableFull { .. }
            | RegionError::Unfinished { .. } => Changed::No,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            RegionError::Rack(error) => error.next_step(),
            RegionError::Access(error) => error.next_step(),
            RegionError::Bulk(error) => error.next_step(),
            RegionError::Alloc(error) => error.next_step(),
            RegionError::Lock(error) => error.next_step(),
            RegionError::BadName { .. } => "choose another name",
            RegionError::NotFound { .. } => "create it first, or check the name",
            RegionError::Mismatch { .. } => {
                "use the size and type that it was created with, or another name"
            }
            RegionError::NameLost { .. } => {
                "make it anew: `renewed` of a lock, `RegionSpec::renew` of a region"
            }
            RegionError::Removed { .. } => "drop the handle, and open or create the region anew",
            RegionError::NotFreed { .. } => {
                "use the name again if you want: the memory stays allocated until its home starts anew"
            }
            RegionError::OutOfBounds { .. } => "stay within its `bytes`",
            RegionError::NotRemovable { .. } => {
                "free a lock by its handle (an array of locks stays)"
            }
            RegionError::BadCopies { .. } => "ask for 3, 5 or 7 copies, or for 1 without a spare",
            RegionError::OtherCopies { .. } => {
                "ask for as many (`RegionSpec::copies`), or use another name"
            }
            RegionError::FewMembers { .. } => "start more nodes, or ask for fewer copies",
            RegionError::BadLines { .. } => {
                "round the region's bytes up, or ask for other lines (`RegionSpec::line`)"
            }
            RegionError::NotDurable { .. } => "ask for copies too (`RegionSpec::copies`)",
            RegionError::NoStore { .. } => {
                "set `store` to a folder in the rack's file, or by `Builder::store`"
            }
            RegionError::NotPersistent { .. } => "ask for durability `sync`",
            RegionError::Mapped { .. } => {
                "drop that mapping, or read and write lines (`Region::replicated`)"
            }
            RegionError::SmallBuffer { .. } => "ask for more pages",
            RegionError::NoPaging { .. } => {
                "use Linux 5.19 or later, and where the system call userfaultfd is not allowed, let this user open /dev/userfaultfd"
            }
            RegionError::NotMappable { .. } => {
                "read and write it by calls (`Region::read`, `Region::write`)"
            }
            RegionError::TooManyMappings { .. } => "map one larger region, and divide it",
            RegionError::TooManyPinned { .. } => "pin a part at a time, and unpin it",
            RegionError::FixedMembers => {
                "set `membership` to \"dir:...\" or \"etcd:...\" in the rack's file"
            }
            RegionError::NoGroups { .. } => {
                "look at the membership's store (`rackmem members`), then try again"
            }
            RegionError::ContractNotBuilt { .. } => {
                "ask for coherent or locked memory, or for copies (`RegionSpec::copies`)"
            }
            RegionError::BackingNotBuilt { .. } => "ask for the heap",
            RegionError::TableFull { .. } => "remove regions that are not used, or share one",
            RegionError::Unfinished { .. } => {
                "try again, and if it stays, look for a process that has stopped"
            }
        }
    }
}

impl std::error::Error for RegionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RegionError::Bulk(bulk) => bulk.source(),
            RegionError::Lock(lock) => lock.source(),
            RegionError::NotFreed { why, .. } => Some(why),
            _ => None,
        }
    }
}
