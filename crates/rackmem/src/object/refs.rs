//! What an object is found by, small enough for other objects.

use rackmem_proto::sabre::Ref;
use rackmem_proto::wire::Tag;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Where an object is, in 12 bytes, which other objects and packets of a program can hold.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::object::{Object, ObjectRef};
/// use rackmem::{Contract, Rack, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("list", 1 << 20).contract(Contract::Object);
/// let region = rack.node(0).create_region(&spec)?;
/// let last: Object<u64> = region.alloc(7)?;
/// let first: Object<ObjectRef> = region.alloc(last.at())?;
/// let next: Object<u64> = rack.node(1).attach_object(first.read()?)?;
/// assert_eq!(next.read()?, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ObjectRef {
    low: u32,
    high: u32,
    generation: u32,
}

impl ObjectRef {
    /// Of an object whose address and generation another program has sent.
    pub fn new(addr: u64, generation: u32) -> Self {
        ObjectRef {
            low: addr as u32,
            high: (addr >> 32) as u32,
            generation,
        }
    }

    pub(super) fn of(at: Ref) -> Self {
        ObjectRef::new(at.tag.0, at.generation)
    }

    pub(super) fn to_ref(self) -> Ref {
        Ref {
            tag: Tag(self.addr()),
            generation: self.generation,
        }
    }

    /// The global address.
    pub fn addr(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    /// Which of the objects that are there one after the other.
    pub fn generation(self) -> u32 {
        self.generation
    }
}
