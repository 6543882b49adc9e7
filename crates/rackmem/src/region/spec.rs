//! What a region is to be.

use crate::error::RegionError;
use rackmem_proto::heap::Backing;
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
        }
    }

    /// A number that stands for what the region's elements are; 0 without this call.
    #[must_use]
    pub fn element(mut self, element: u64) -> Self {
        self.element = element;
        self
    }

    /// Under which contract its memory is shared. [`Contract::Coherent`] and [`Contract::Locked`]
    /// are built: the second names the locks of an array
    /// ([`RwLockArray`](crate::locked::RwLockArray)), and has no bytes.
    #[must_use]
    pub fn contract(mut self, contract: Contract) -> Self {
        self.contract = contract;
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
        if !matches!(contract, Contract::Coherent | Contract::Locked) {
            return Err(RegionError::ContractNotBuilt { contract });
        }
        if backing != Backing::Heap {
            return Err(RegionError::BackingNotBuilt { backing });
        }
        Ok(())
    }
}
