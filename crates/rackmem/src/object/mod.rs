//! Objects in a program's hands: values that are read whole, without a lock, while others write
//! them.

mod bytes;
mod content;
mod futures;
mod making;
mod many;
pub(crate) mod map;
mod reading;
mod refs;
mod transaction;
mod updating;
mod writing;

pub use content::Content;
pub use map::{Entries, Map, MapSpec};
pub use rackmem_proto::sabre::{Retry, Then};
pub use refs::ObjectRef;
pub use transaction::{
    MAX_TRANSACTION_BYTES, MAX_TRANSACTION_BYTES_WITH_COPIES, MAX_TRANSACTION_OBJECTS, Transaction,
};

use self::making::Making;
use self::updating::Updating;
use crate::bytes::objects::Place;
use crate::bytes::value::Value;
use crate::bytes::window::Window;
use crate::error::{AccessError, AllocError, RackError};
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks};
use crate::node::Node;
use rackmem_proto::sabre::{MAX_BYTES, Ref};
use rackmem_proto::wire::Contract;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of an object at most.
pub const MAX_OBJECT: usize = MAX_BYTES as usize;

/// A value of up to 65,520 bytes in a region under [`Contract::Object`]. A read is all of it from
/// one write, and takes no lock: it copies the value and looks at its version before and after.
/// Writes are carried out by the home's process, one after the other.
///
/// Where this process has the home's memory, a read is a copy, without a packet.
/// Elsewhere the home's agent answers by a packet, or the kernel of its host
/// ([`KernelReads`](crate::KernelReads)). Nothing is cached: [`Object::read_if_newer`]
/// says in one small packet that what a program has is still the newest.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::object::Object;
/// use rackmem::{Contract, Rack, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("users", 1 << 20).contract(Contract::Object);
/// let visits: Object<[u64; 16]> = rack.node(0).create_region(&spec)?.alloc([0; 16])?;
/// visits.update(|all| all[3] += 1)?;
/// let same: Object<[u64; 16]> = rack.node(1).attach_object(visits.at())?;
/// let (version, all) = same.read_versioned()?;
/// assert_eq!((all[3], same.read_if_newer(version)?), (1, None));
/// # Ok(())
/// # }
/// ```
///
/// The handle is an address and a generation. Dropping it frees nothing. An object that has been
/// freed is [`AccessError::Gone`] for every handle, also when another one has its place.
pub struct Object<T: ?Sized> {
    node: Node,
    at: Ref,
    place: Option<Place>,
    /// The header's second word as long as it lives, but for its length.
    meta: u64,
    /// Bytes that it had when its home told them last, or 0.
    had: AtomicU32,
    value: PhantomData<fn() -> Box<T>>,
}

impl<T: ?Sized> Clone for Object<T> {
    fn clone(&self) -> Self {
        Object {
            node: self.node.clone(),
            at: self.at,
            place: self.place.clone(),
            meta: self.meta,
            had: AtomicU32::new(self.had.load(Relaxed)),
            value: PhantomData,
        }
    }
}

impl<T: ?Sized> std::fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object")
            .field("of", &std::any::type_name::<T>())
            .field("addr", &format_args!("{:#018x}", self.at.tag.0))
            .field("generation", &self.at.generation)
            .finish()
    }
}

impl<T: ?Sized> Object<T> {
    fn new(node: &Node, at: Ref) -> Self {
        let place = node.inner.access.agents.objects.place(at.tag);
        let meta = place.as_ref().map_or(0, |place| place.meta(at.generation));
        Object {
            node: node.clone(),
            at,
            place,
            meta,
            had: AtomicU32::new(0),
            value: PhantomData,
        }
    }

    /// What another node, or a program's own data, finds it by.
    pub fn at(&self) -> ObjectRef {
        ObjectRef::of(self.at)
    }

    /// Its global address.
    pub fn addr(&self) -> u64 {
        self.at.tag.0
    }

    fn addr_of(&self) -> u64 {
        self.at.tag.0
    }

    /// Looks at it without a copy, where this process has its memory. What `f` returns comes from a
    /// run that saw one write's bytes and no other; before that it may run on bytes that change
    /// under it, so it must tolerate torn data and have no side effects.
    ///
    /// # Errors
    /// Those of [`Object::read`].
    pub fn with<R>(&self, f: impl FnMut(&Window<'_>) -> R) -> Result<R, AccessError> {
        let (_, result) = self.look(self.known(0), Retry::default(), f)?;
        result.ok_or_else(|| self.gone())
    }

    /// Its memory is its home's again: handles of all nodes say [`AccessError::Gone`] from then on,
    /// those that read it meanwhile among them.
    ///
    /// # Errors
    /// [`AccessError::Gone`] if it has been freed before, and those of [`Object::write`].
    pub fn free(self) -> Result<(), AccessError> {
        self.call(|came| self.free_on(came))
    }

    /// The same: what is to be done next, when its home has answered this if it was asked.
    fn free_on(&self, came: Option<Answered>) -> Action<(), Asks> {
        if came.is_none() {
            match self.node.open_now() {
                Some(Ok(())) => {}
                Some(Err(error)) => return Action::Over(Err(error.into())),
                None => return Action::Later(RackError::NoLease.into()),
            }
        }
        self.node.inner.access.free_object(self.at, came)
    }

    fn gone(&self) -> AccessError {
        AccessError::Gone {
            addr: self.addr_of(),
        }
    }
}

impl<T: Value> Object<T> {
    /// All of it, as one write has left it, at a moment since the call.
    ///
    /// # Errors
    /// [`AccessError::Gone`] when it has been freed, [`AccessError::OtherSize`] when it is no `T`,
    /// [`AccessError::BadAddress`] when no object can be there; those of [`Node`].
    pub fn read(&self) -> Result<T, AccessError> {
        Ok(self.read_versioned()?.1)
    }

    /// The same, and which version it is: it rises with every write.
    pub fn read_versioned(&self) -> Result<(u64, T), AccessError> {
        let mut value = T::new_zeroed();
        let version = self.read_into(&mut value, Retry::default())?;
        Ok((version, value))
    }

    /// The same, tried so often; see [`Retry`].
    ///
    /// # Errors
    /// [`AccessError::Torn`] when all attempts have met a writer, if `retry` says so; those of
    /// [`Object::read`].
    pub fn read_with(&self, retry: Retry) -> Result<T, AccessError> {
        let mut value = T::new_zeroed();
        self.read_into(&mut value, retry)?;
        Ok(value)
    }

    /// What has been written since this version; `None` if nothing has.
    ///
    /// # Errors
    /// Those of [`Object::read`].
    pub fn read_if_newer(&self, version: u64) -> Result<Option<(u64, T)>, AccessError> {
        let mut value = T::new_zeroed();
        let newer = self.read_newer(version, value.as_mut_bytes(), Retry::default())?;
        Ok(newer.map(|version| (version, value)))
    }

    /// Reads it into a value that is there: nothing is made zero first. What is in `value` after an
    /// error is of no use.
    ///
    /// # Errors
    /// Those of [`Object::read_with`].
    #[inline]
    pub fn read_into(&self, value: &mut T, retry: Retry) -> Result<u64, AccessError> {
        let newer = self.read_newer(0, value.as_mut_bytes(), retry)?;
        newer.ok_or_else(|| self.gone())
    }

    /// Replaces it; its new version. When this returns, every later read sees it or a later write.
    ///
    /// # Errors
    /// [`AccessError::Gone`], [`AccessError::BadAddress`], [`AccessError::Busy`] when other writers
    /// kept it for longer than the configuration's `patience`; those of [`Node`].
    pub fn write(&self, value: &T) -> Result<u64, AccessError> {
        self.replaced(self.put(0, value.as_bytes())?)
    }

    /// Replaces it if it still has this version: the new one, or in `Err` the one that it has.
    ///
    /// # Errors
    /// Those of [`Object::write`].
    pub fn write_if(&self, version: u64, value: &T) -> Result<Result<u64, u64>, AccessError> {
        self.put(version, value.as_bytes())
    }

    /// Changes it as one step; its new version. `f` may run several times, and what it did counts
    /// once.
    ///
    /// # Errors
    /// [`AccessError::Busy`] when others changed it for longer than the configuration's `patience`;
    /// those of [`Object::read`].
    pub fn update(&self, mut f: impl FnMut(&mut T)) -> Result<u64, AccessError> {
        let mut updating = Updating::new(self);
        self.call(|came| updating.go_on(self, came, &mut f))
    }
}

impl Node {
    /// A handle on an object. Sends no packet: a wrong address is an error when it is used.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the address is other memory's,
    /// [`AccessError::BadAddress`] where it is of no node.
    pub fn attach_object<T: ?Sized>(&self, at: ObjectRef) -> Result<Object<T>, AccessError> {
        let at = at.to_ref();
        if !at.tag.is_under(Contract::Object) {
            return Err(AccessError::wrong_contract(at.tag, Contract::Object));
        }
        if !self.inner.has_home(at.tag.home()) {
            return Err(AccessError::BadAddress { addr: at.tag.0 });
        }
        Ok(Object::new(self, at))
    }

    /// An object in the region that begins at this address, with this content.
    pub(crate) fn new_object<T: ?Sized>(
        &self,
        region: u64,
        content: &[u8],
        room: usize,
    ) -> Result<Object<T>, AllocError> {
        let (mut making, of) = (Making::New, (region, content, room));
        let access = &self.inner.access;
        access.call_home(|came| making.go_on(self, of, came))?
    }
}
