//! What memory holds for a program.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What can be shared between machines: plain bytes, no pointers, every bit pattern a value.
/// Integers, floats and arrays of them are; a `bool` is as a [`Bool`](crate::Bool). A struct is
/// when it derives these three of [`zerocopy`](crate::zerocopy), which see to it that it has no
/// padding and nothing but such values in it:
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::zerocopy::{FromBytes, Immutable, IntoBytes};
/// use rackmem::Rack;
///
/// #[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
/// #[zerocopy(crate = "rackmem::zerocopy")]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i32,
///     kind: u32,
/// }
///
/// let rack = Rack::local(2)?;
/// let one = Particle { place: [0.0; 3], charge: -1, kind: 7 };
/// let shared = rack.node(0).alloc(one)?;
/// shared.update(|one| Particle { charge: 2, ..one })?;
/// assert_eq!(rack.node(1).attach::<Particle>(shared.addr())?.read()?.charge, 2);
/// # Ok(())
/// # }
/// ```
///
/// Where types are compared (locks, and slices with a name), a type is its name without the modules
/// around it, its size and its alignment: a struct that two programs declare alike is one type to
/// them.
pub trait Value: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Value for T {}
