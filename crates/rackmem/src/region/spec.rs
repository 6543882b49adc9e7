//! What a region is to be.

use crate::error::RegionError;
use rackmem_proto::abd::{COPIES, Durability, Layout, MAX_LINE, MIN_LINE};
use rackmem_proto::bi::cached::{MAX_ITEM, MAX_ITEMS};
use rackmem_proto::heap::Backing;
use rackmem_proto::membership::{KeptAs, Survives};
use rackmem_proto::sabre::bytes_with_rows;
use rackmem_proto::wire::{Contract, HomeId};

/// A named region as a program wants it: what all who use it have to agree on,
/// and where its memory comes from.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Backing, Contract, Rack, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("tables/users", 1 << 20)
///     .element(42)
///     .backing(Backing::Heap);
/// let users = rack.node(0).create_region(&spec)?;
/// users.write(0, b"first")?;
/// let same = rack.node(1).open_region(&spec)?;
/// assert_eq!((same.addr(), same.contract()), (users.addr(), Contract::Coherent));
/// rack.node(1).remove_region("tables/users")?;
/// assert!(users.read(0, &mut [0; 5]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionSpec {
    pub(super) name: String,
    pub(super) len: usize,
    pub(super) element: u64,
    pub(super) contract: Contract,
    pub(super) backing: Backing,
    pub(super) home: Option<HomeId>,
    pub(super) renew: bool,
    pub(super) copies: u8,
    pub(super) line: u32,
    pub(super) two_rounds: bool,
    pub(super) held: bool,
    pub(super) durability: Durability,
    pub(super) survives: Survives,
}

/// What all who use a region agree on, but its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct What {
    pub len: u64,
    pub element: u64,
    pub contract: Contract,
    pub backing: Backing,
}

impl What {
    /// Of no region.
    pub const NOTHING: What = What {
        len: 0,
        element: 0,
        contract: Contract::Coherent,
        backing: Backing::Heap,
    };
}

impl RegionSpec {
    /// Coherent memory of the creating node: `len` bytes under a name of 1 to 88 bytes.
    pub fn new(name: &str, len: usize) -> Self {
        RegionSpec {
            name: name.into(),
            len,
            element: 0,
            contract: Contract::default(),
            backing: Backing::default(),
            home: None,
            renew: false,
            copies: 0,
            line: MIN_LINE,
            two_rounds: false,
            held: false,
            durability: Durability::Memory,
            survives: Survives::Rest,
        }
    }

    /// A number that stands for what the region's elements are; 0 without this call.
    #[must_use]
    pub fn element(mut self, element: u64) -> Self {
        self.element = element;
        self
    }

    /// Under which contract its memory is shared. [`Contract::Locked`] names the locks of an array
    /// ([`RwLockArray`](crate::locked::RwLockArray)), and has no bytes; [`Contract::Object`] has
    /// room for objects ([`Region::alloc`](crate::Region::alloc)); [`Contract::Bounded`] has an
    /// item a line ([`Domain`](crate::bounded::Domain)).
    #[must_use]
    pub fn contract(mut self, contract: Contract) -> Self {
        self.contract = contract;
        self
    }

    /// So many nodes keep a copy of it each: 3, 5 or 7 (or 1). It is under
    /// [`Contract::Replicated`], lives as long as a majority of them does, and is read and written
    /// in lines ([`Region::replicated`](crate::Region::replicated)). With
    /// [`Contract::Object`] it has objects that do not die with the node that serves them: a
    /// write returns when a majority has it.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Rack, RegionSpec, Replicated};
    ///
    /// let rack = Rack::local(3)?;
    /// let spec = RegionSpec::new("ledger", 64 * 100).copies(3);
    /// let balance: Replicated<u64> = rack.node(0).create_region(&spec)?.replicated(7)?;
    /// balance.write(50)?; // a majority has it
    /// let same: Replicated<u64> = rack.node(2).open_region(&spec)?.replicated(7)?;
    /// assert_eq!(same.read()?, 50);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn copies(mut self, copies: u8) -> Self {
        if self.contract != Contract::Object {
            self.contract = Contract::Replicated;
        }
        self.copies = copies;
        self
    }

    /// Coherent memory with copies ([`RegionSpec::copies`]): it is cached, and used as all coherent
    /// memory is, and does not die with the node that serves it, which another one follows. What
    /// survives the node that has written it is to be said:
    ///
    /// - [`Survives::Rest`]: what has come home. A block that only the dead node's cache had
    ///   changed goes on as it was before, and nothing says so.
    /// - [`Survives::Writes`]: each write. It returns when a majority has its block, which is
    ///   dropped from the cache for that.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Rack, RegionSpec, Shared, Survives};
    ///
    /// let rack = Rack::local(3)?;
    /// let spec = RegionSpec::new("counts", 4096).copies(3).survives(Survives::Writes);
    /// let count: Shared<u64> = rack.node(0).create_region(&spec)?.shared(7)?;
    /// count.fetch_add(2)?; // a majority has it
    /// let same: Shared<u64> = rack.node(2).open_region(&spec)?.shared(7)?;
    /// assert_eq!(same.read()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn survives(mut self, survives: Survives) -> Self {
        self.contract = Contract::Coherent;
        self.survives = survives;
        self
    }

    /// Bytes of a line of a region with copies, which is read and written whole, at one moment: a
    /// power of two from 64 to 65,536; 64 without this call. Under [`Contract::Object`] with
    /// copies, each object has a line, and up to 32 bytes less. Under [`Contract::Bounded`], of an
    /// item: up to 1,024.
    #[must_use]
    pub fn line(mut self, bytes: u32) -> Self {
        self.line = bytes;
        self
    }

    /// Writes of a region with copies take two rounds of its members, always.
    /// Without this call they take one where a switch knows a line's stamps. A write of one round
    /// that a change of members cuts off may end as
    /// [`AccessError::Interrupted`](crate::AccessError::Interrupted); one of two rounds goes on.
    #[must_use]
    pub fn two_rounds(mut self) -> Self {
        self.two_rounds = true;
        self
    }

    /// A switch that can hold lines carries out both rounds of an operation: the region's users
    /// send one request and get one answer. For lines of 64 bytes and copies in memory; without
    /// such a switch operations go as without this call.
    #[must_use]
    pub fn line64(mut self) -> Self {
        (self.line, self.held) = (MIN_LINE, true);
        self
    }

    /// What its copies survive beside the death of a minority: nothing
    /// ([`Durability::Memory`], without this call), the end of all processes
    /// ([`Durability::File`]), or a power failure of all machines ([`Durability::Sync`], and
    /// [`Durability::Dax`] where the folder is in persistent memory).
    /// The nodes have a folder for it ([`Builder::store`](crate::Builder::store),
    /// `store` in the rack's file).
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Where its bytes are. [`Backing::Heap`] is built.
    #[must_use]
    pub fn backing(mut self, backing: Backing) -> Self {
        self.backing = backing;
        self
    }

    /// Memory of this node, where the region is created: of the creating one without this call.
    #[must_use]
    pub fn on(mut self, node: u16) -> Self {
        self.home = Some(HomeId::of(node));
        self
    }

    /// If it has died with its home, create it anew.
    #[must_use]
    pub fn renew(mut self) -> Self {
        self.renew = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Its element type.
    pub fn element_type(&self) -> u64 {
        self.element
    }

    /// Its contract.
    pub fn asks_contract(&self) -> Contract {
        self.contract
    }

    /// Its backing.
    pub fn asks_backing(&self) -> Backing {
        self.backing
    }

    /// How many copies it has; 0 where it is no region with copies.
    pub fn asks_copies(&self) -> u8 {
        self.copies
    }

    /// Whether its writes always take two rounds, if it has copies.
    pub fn asks_two_rounds(&self) -> bool {
        self.two_rounds
    }

    /// Bytes of its lines, if it has copies.
    pub fn asks_line(&self) -> u32 {
        self.line
    }

    /// Which writes to it survive the node that has made them, if it is coherent memory with
    /// copies.
    pub fn asks_survives(&self) -> Option<Survives> {
        match self.kept_as()? {
            KeptAs::Blocks(survives) => Some(survives),
            KeptAs::Objects => None,
        }
    }

    /// What of it the rack's keeper serves, if a group keeps it as a home.
    pub(super) fn kept_as(&self) -> Option<KeptAs> {
        let kept = match self.contract {
            Contract::Coherent => KeptAs::Blocks(self.survives),
            Contract::Object => KeptAs::Objects,
            _ => return None,
        };
        (self.copies > 0).then_some(kept)
    }

    /// Whether it is coherent memory whose home a group keeps.
    pub(super) fn is_home(&self) -> bool {
        self.copies > 0 && self.contract == Contract::Coherent
    }

    /// What its copies survive.
    pub fn asks_durability(&self) -> Durability {
        self.durability
    }

    pub(super) fn what(&self) -> What {
        What {
            len: self.len as u64,
            element: self.element,
            contract: self.contract,
            backing: self.backing,
        }
    }

    /// Whether this version can make such a region.
    pub(super) fn is_built(&self) -> Result<(), RegionError> {
        let (contract, backing) = (self.contract, self.backing);
        if contract == Contract::Replicated && backing == Backing::Heap {
            return self.layout(0).map(drop);
        }
        if self.kept_as().is_some() && backing == Backing::Heap {
            return self.layout(MAX_LINE).map(drop);
        }
        if self.durability != Durability::Memory {
            let durability = self.durability;
            return Err(RegionError::NotDurable { durability });
        }
        if self.copies > 1 {
            return Err(RegionError::ContractNotBuilt { contract });
        }
        if contract == Contract::Bounded {
            self.items()?;
        }
        if backing != Backing::Heap {
            return Err(RegionError::BackingNotBuilt { backing });
        }
        Ok(())
    }

    /// Items of bounded memory: bytes of each, and how many.
    pub(super) fn items(&self) -> Result<(u32, u32), RegionError> {
        let (line, bytes) = (self.line, self.len);
        let sound = line.is_power_of_two() && (MIN_LINE..=MAX_ITEM).contains(&line);
        let count = u32::try_from(bytes / line.max(1) as usize).ok();
        let whole = bytes > 0 && bytes.is_multiple_of(line.max(1) as usize);
        let count = count.filter(|count| sound && whole && *count <= MAX_ITEMS);
        let count = count.ok_or(RegionError::BadLines { line, bytes })?;
        Ok((line, count))
    }

    /// The lines of a region with copies. Those of coherent memory are whole blocks of so many
    /// bytes.
    pub(super) fn layout(&self, block: u32) -> Result<Layout, RegionError> {
        let copies = self.copies;
        let (line, bytes) = match self.is_home() {
            true => (block, self.len.next_multiple_of(block as usize)),
            false => (self.line, self.len),
        };
        if !COPIES.contains(&copies) {
            return Err(RegionError::BadCopies { copies });
        }
        let all = match self.kept_as() {
            Some(KeptAs::Objects) if line.is_power_of_two() => bytes_with_rows(bytes as u64, line),
            _ => bytes as u64,
        };
        let layout = Layout::new(line, all).filter(|_| bytes > 0);
        layout.ok_or(RegionError::BadLines { line, bytes })
    }
}
