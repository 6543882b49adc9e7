//! What an object has in it, as a program gets it.

use crate::bytes::value::Value;
use crate::bytes::window::Window;

/// What an [`Object`](super::Object) can have in it: a [`Value`], or bytes. A program implements it
/// for nothing; its own structs are values.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::object::{Content, Object};
/// use rackmem::{Contract, Node, Rack, RegionSpec};
///
/// fn sum_of_versions<T: Content + ?Sized>(node: &Node, all: &[&Object<T>]) -> u64 {
///     let read = node.read_many(all).into_iter().flatten();
///     read.map(|(version, _)| version).sum()
/// }
///
/// let rack = Rack::local(1)?;
/// let spec = RegionSpec::new("notes", 1 << 20).contract(Contract::Object);
/// let notes = rack.node(0).create_region(&spec)?;
/// let note = notes.alloc_bytes(b"first", 100)?;
/// let (version, _) = note.read_versioned()?;
/// assert_eq!(sum_of_versions(&rack.node(0), &[&note, &note]), 2 * version);
/// # Ok(())
/// # }
/// ```
pub trait Content: Sealed {
    /// What a read gives.
    type Owned: Send + 'static;

    /// Its bytes, where all have as many.
    #[doc(hidden)]
    const LEN: Option<usize>;

    /// A copy of what is there, or how many bytes are there if that is not one.
    #[doc(hidden)]
    fn copied(view: &Window<'_>) -> Result<Self::Owned, usize>;
}

/// Nothing else is in objects.
pub trait Sealed {}

impl<T: Value> Sealed for T {}
impl Sealed for [u8] {}

impl<T: Value> Content for T {
    type Owned = T;
    const LEN: Option<usize> = Some(size_of::<T>());

    fn copied(view: &Window<'_>) -> Result<T, usize> {
        if view.len() != size_of::<T>() {
            return Err(view.len());
        }
        let mut value = T::new_zeroed();
        view.read(0, value.as_mut_bytes());
        Ok(value)
    }
}

impl Content for [u8] {
    type Owned = Vec<u8>;
    const LEN: Option<usize> = None;

    fn copied(view: &Window<'_>) -> Result<Vec<u8>, usize> {
        let mut bytes = vec![0; view.len()];
        view.read(0, &mut bytes);
        Ok(bytes)
    }
}
