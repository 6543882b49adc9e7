//! Several objects in one step: those that this process has are copied in one pass, and the homes
//! of the others are asked together.

use super::content::Content;
use super::{Object, Retry};
use crate::bytes::whole;
use crate::bytes::window::Window;
use crate::error::AccessError;
use crate::node::Node;
use rackmem_proto::sabre::rule::{Refusal, Wanted};
use rackmem_proto::sabre::{Known, MANY, Ref};

/// What became of an object so far.
type Seen<T> = Option<Result<(u64, <T as Content>::Owned), AccessError>>;

/// A copy of what is there, or how many bytes are if they are not one.
pub(super) type Copied<T> = Result<<T as Content>::Owned, usize>;

/// What a read has come to.
pub(super) type Whole<T> = Result<Option<(u64, <T as Content>::Owned)>, AccessError>;

impl Node {
    /// Reads several objects in one step: each with its version, in the order of the handles.
    ///
    /// **What is promised** is that of [`Object::read`] for each of them: all of it from one write,
    /// at some moment since the call. They are *not* of one moment: of two objects that a program
    /// writes one after the other, this may see the second write and not the first, in whichever
    /// order the handles are.
    ///
    /// What is to be asked of homes is asked together, 16 objects at a time, and takes about as
    /// long as one of them. An object that meets a writer is tried again by itself, as
    /// [`Object::read`] does. What is wrong with one object does not concern the others.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::object::Object;
    /// use rackmem::{Contract, Rack, RegionSpec};
    ///
    /// let rack = Rack::local(2)?;
    /// let spec = RegionSpec::new("users", 1 << 20).contract(Contract::Object);
    /// let users = rack.node(0).create_region(&spec)?;
    /// let (a, b): (Object<u64>, Object<u64>) = (users.alloc(7)?, users.alloc(8)?);
    /// let mut sum = 0;
    /// for read in rack.node(0).read_many(&[&a, &b]) {
    ///     let (_version, value) = read?;
    ///     sum += value;
    /// }
    /// assert_eq!(sum, 15);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_many<T: Content + ?Sized>(
        &self,
        objects: &[&Object<T>],
    ) -> Vec<Result<(u64, T::Owned), AccessError>> {
        let mut seen: Vec<Seen<T>> = objects.iter().map(|object| object.glance()).collect();
        let elsewhere: Vec<usize> = (0..objects.len())
            .filter(|nth| seen[*nth].is_none() && objects[*nth].is_asked_for())
            .collect();
        for some in elsewhere.chunks(MANY) {
            self.ask_together(objects, some, &mut seen);
        }
        let seen = seen.into_iter().zip(objects);
        seen.map(|(seen, object)| seen.unwrap_or_else(|| object.read_alone_again()))
            .collect()
    }

    /// Asks the homes of some of these objects; nothing is said of those that met a writer.
    fn ask_together<T: Content + ?Sized>(
        &self,
        objects: &[&Object<T>],
        some: &[usize],
        seen: &mut [Seen<T>],
    ) {
        let refs = some
            .iter()
            .map(|nth| (objects[*nth].at, objects[*nth].expected(0)));
        let refs: Vec<(Ref, Known)> = refs.collect();
        let answered = self.open().map_err(AccessError::from);
        let answered = match answered.and_then(|()| self.inner.access.read_at_homes(&refs)) {
            Ok(answered) => answered,
            Err(error) => return some.iter().for_each(|nth| seen[*nth] = Some(Err(error))),
        };
        for (nth, answer) in some.iter().zip(answered) {
            seen[*nth] = match objects[*nth].heard(answer, &mut T::copied) {
                Ok(read) => objects[*nth].took(read),
                Err(error) => Some(Err(error)),
            };
        }
    }
}

impl<T: Content + ?Sized> Object<T> {
    /// One attempt where this process has the memory.
    fn glance(&self) -> Seen<T> {
        let place = self.place.as_ref().filter(|place| !place.is_over())?;
        if let Err(error) = self.node.open() {
            return Some(Err(error.into()));
        }
        let wanted = Wanted {
            generation: self.at.generation,
            known: 0,
        };
        let look = &mut |view: &Window<'_>| T::copied(view);
        let read = whole::read(place.words(), wanted, |bytes, meta| {
            super::reading::window(bytes, meta, look)
        });
        self.took(read)
    }

    /// What an attempt has come to; nothing if it is to be made again.
    fn took(&self, read: Result<(u64, Result<T::Owned, usize>), Refusal>) -> Seen<T> {
        match read {
            Ok((version, Ok(value))) => Some(Ok((version, value))),
            Ok((_, Err(is))) => Some(Err(self.other_size::<T>(is))),
            Err(Refusal::Gone) => Some(Err(self.gone())),
            Err(_) => None,
        }
    }

    fn read_alone_again(&self) -> Result<(u64, T::Owned), AccessError> {
        let (version, seen) = self.look(self.expected(0), Retry::default(), T::copied)?;
        self.whole(version, seen)?.ok_or_else(|| self.gone())
    }

    /// What a reader with this version knows of it.
    pub(super) fn expected(&self, version: u64) -> Known {
        let had = self.known(version);
        let len = T::LEN.map_or(had.len, |len| len as u32);
        Known { len, ..had }
    }

    /// What a read has come to; `None`: what was known.
    pub(super) fn whole(&self, version: u64, seen: Option<Copied<T>>) -> Whole<T> {
        match seen {
            Some(Ok(value)) => Ok(Some((version, value))),
            Some(Err(is)) => Err(self.other_size::<T>(is)),
            None => Ok(None),
        }
    }

    fn other_size<C: Content + ?Sized>(&self, is: usize) -> AccessError {
        AccessError::OtherSize {
            addr: self.at.tag.0,
            len: C::LEN.unwrap_or(is),
            is,
        }
    }
}
