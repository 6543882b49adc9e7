//! Several objects, as one step.

mod commit;
mod futures;

use self::commit::{Attempts, Committing, Ended};
use super::content::Content;
use super::many::Copied;
use super::reading::words_of;
use super::{MAX_OBJECT, Object, Retry};
use crate::bytes::value::Value;
use crate::bytes::window::Window;
use crate::error::{AccessError, TransactionError};
use crate::node::Node;
use rackmem_proto::sabre::Ref;
use rackmem_proto::sabre::transaction::{self, MAX_CONTENT, MAX_KEPT_CONTENT, MAX_OBJECTS};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;

/// Objects that a transaction can read and write.
pub const MAX_TRANSACTION_OBJECTS: usize = MAX_OBJECTS;
/// Bytes that a transaction can write.
pub const MAX_TRANSACTION_BYTES: usize = MAX_CONTENT;
/// Bytes that a transaction can write to objects with copies.
pub const MAX_TRANSACTION_BYTES_WITH_COPIES: usize = MAX_KEPT_CONTENT;

/// What one run of a [`Node::transaction`] has read, and is to write.
#[derive(Debug)]
pub struct Transaction<'n> {
    node: &'n Node,
    objects: Objects,
}

/// By address, in which order objects are locked.
type Objects = BTreeMap<Tag, Used>;

/// An object of a transaction.
#[derive(Debug)]
struct Used {
    generation: u32,
    /// Under which version it was read, and what there was.
    read: Option<(u64, Vec<u8>)>,
    write: Option<Vec<u8>>,
}

/// What it has used, in the order of addresses.
fn plan(objects: &Objects) -> impl Iterator<Item = transaction::Used<'_>> {
    objects.iter().map(|(tag, used)| transaction::Used {
        object: Ref {
            tag: *tag,
            generation: used.generation,
        },
        read: used.read.as_ref().map(|(version, _)| *version),
        write: used.write.as_deref(),
    })
}

impl<'n> Transaction<'n> {
    fn new(node: &'n Node) -> Self {
        Transaction {
            node,
            objects: Objects::new(),
        }
    }

    /// The object, as it was when this run read it first, or as this run has written it.
    ///
    /// # Errors
    /// Those of [`Object::read`], [`TransactionError::TooManyObjects`].
    pub fn read<T: Content + ?Sized>(
        &mut self,
        object: &Object<T>,
    ) -> Result<T::Owned, TransactionError> {
        if self.is_new(object)? {
            let read = object.look(object.known(0), Retry::default(), <[u8]>::copied)?;
            self.has_read(object, read);
        }
        self.value_of(object)
    }

    /// Whether this run has neither read nor written it.
    fn is_new<T: ?Sized>(&mut self, object: &Object<T>) -> Result<bool, TransactionError> {
        let used = self.used(object)?;
        Ok(used.read.is_none() && used.write.is_none())
    }

    /// It has been read, with its version.
    fn has_read<T: ?Sized>(
        &mut self,
        object: &Object<T>,
        (version, seen): (u64, Option<Copied<[u8]>>),
    ) {
        let bytes = seen.and_then(Result::ok).unwrap_or_default();
        if let Some(used) = self.objects.get_mut(&object.at.tag) {
            used.read = Some((version, bytes));
        }
    }

    /// What an object that has been read or written is in this run.
    fn value_of<T: Content + ?Sized>(
        &self,
        object: &Object<T>,
    ) -> Result<T::Owned, TransactionError> {
        let used = self.objects.get(&object.at.tag);
        let read = used.and_then(|used| used.read.as_ref().map(|(_, bytes)| bytes));
        let bytes = used.and_then(|used| used.write.as_ref()).or(read);
        let bytes = bytes.map_or(&[][..], Vec::as_slice);
        let words = words_of(bytes);
        let value = T::copied(&Window::new(&words, 0, bytes.len()));
        value.map_err(|is| {
            let (addr, len) = (object.addr(), T::LEN.unwrap_or(is));
            AccessError::OtherSize { addr, len, is }.into()
        })
    }

    /// The version under which this run has read the object, if it has: it rises with every write.
    pub fn version_of<T: ?Sized>(&self, object: &Object<T>) -> Option<u64> {
        let used = self.objects.get(&object.at.tag)?;
        used.read.as_ref().map(|(version, _)| *version)
    }

    /// The object has this value when the transaction takes effect, and not before.
    ///
    /// # Errors
    /// [`TransactionError::TooManyObjects`], [`TransactionError::TooManyBytes`].
    pub fn write<T: Value>(
        &mut self,
        object: &Object<T>,
        value: T,
    ) -> Result<(), TransactionError> {
        self.put(object, value.as_bytes())
    }

    /// The same, of bytes.
    ///
    /// # Errors
    /// Those of [`Transaction::write`].
    pub fn write_bytes(
        &mut self,
        object: &Object<[u8]>,
        bytes: &[u8],
    ) -> Result<(), TransactionError> {
        self.put(object, bytes)
    }

    fn put<T: ?Sized>(&mut self, object: &Object<T>, bytes: &[u8]) -> Result<(), TransactionError> {
        let (addr, len) = (object.addr(), bytes.len());
        if len > MAX_OBJECT {
            let is = MAX_OBJECT;
            return Err(AccessError::OtherSize { addr, len, is }.into());
        }
        self.used(object)?.write = Some(bytes.to_vec());
        let (mut all, mut with_copies) = (0, 0);
        for (tag, used) in &self.objects {
            let len = used.write.as_ref().map_or(0, Vec::len);
            all += len;
            with_copies += if tag.home().is_own() { 0 } else { len };
        }
        for (len, most) in [(with_copies, MAX_KEPT_CONTENT), (all, MAX_CONTENT)] {
            if len > most {
                return Err(TransactionError::TooManyBytes { len, most });
            }
        }
        Ok(())
    }

    fn used<T: ?Sized>(&mut self, object: &Object<T>) -> Result<&mut Used, TransactionError> {
        let Ref { tag, generation } = object.at;
        let (full, known) = (
            self.objects.len() >= MAX_OBJECTS,
            self.objects.get(&tag).map(|used| used.generation),
        );
        match known {
            None if full => return Err(TransactionError::TooManyObjects { most: MAX_OBJECTS }),
            // One of the two has been freed.
            Some(known) if known != generation => return Err(object.gone().into()),
            _ => {}
        }
        Ok(self.objects.entry(tag).or_insert(Used {
            generation,
            read: None,
            write: None,
        }))
    }

    /// Makes it one step. `writes`: otherwise it is looked whether what it has read was of one
    /// moment, and nothing else.
    fn commit(self, writes: bool, attempts: Attempts) -> Committing {
        Committing::new(self.objects, writes, attempts)
    }
}

impl Node {
    /// Reads and writes several objects as one step: strictly serializable. The objects may be of
    /// any homes. `f` reads objects, computes, and says what it writes; when it returns `Ok`, all
    /// of that takes effect at one moment at which everything that it has read was as it has read
    /// it. If something of that has changed meanwhile, nothing has happened and `f` runs again.
    ///
    /// `f` must have no side effects. In a run that does not count it may have read objects of
    /// different moments, as by [`Object::read`] one after the other. If it returns an error,
    /// nothing takes effect; the error is returned if what it has read was of one moment.
    ///
    /// Readers outside of transactions see each object before or after, and wait while it is being
    /// committed. A transaction has up to 64 objects, and writes up to 1 MiB.
    ///
    /// It reads and writes objects with copies beside others, of any regions. Where it writes such,
    /// it is a record that a majority of each of their regions has, and survives the death of this
    /// node and of the one that serves them; threads wait meanwhile, as for any call to such
    /// objects. It writes up to [`MAX_TRANSACTION_BYTES_WITH_COPIES`] bytes there; what it has read
    /// or writes of objects without copies is kept from others while a majority is asked, readers
    /// included, and if this node dies then, until a majority has said what has come of it.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::object::Object;
    /// use rackmem::{Contract, Rack, RegionSpec, TransactionError};
    ///
    /// let rack = Rack::local(2)?;
    /// let bank = |name, node| RegionSpec::new(name, 1 << 20).contract(Contract::Object).on(node);
    /// let a: Object<u64> = rack.node(0).create_region(&bank("here", 0))?.alloc(70)?;
    /// let b: Object<u64> = rack.node(0).create_region(&bank("there", 1))?.alloc(30)?;
    ///
    /// let transfer = |amount: u64| {
    ///     rack.node(0).transaction(|t| {
    ///         let (from, to) = (t.read(&a)?, t.read(&b)?);
    ///         let left = from.checked_sub(amount).ok_or(TransactionError::Cancelled)?;
    ///         t.write(&a, left)?;
    ///         t.write(&b, to + amount)
    ///     })
    /// };
    /// transfer(20)?;
    /// assert_eq!(transfer(51), Err(TransactionError::Cancelled));
    /// let sum = rack.node(1).transaction(|t| Ok(t.read(&a)? + t.read(&b)?))?;
    /// assert_eq!((sum, a.read()?), (100, 50));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If this node dies meanwhile, the others commit what one of them has committed and release
    /// the rest, once they know. Lost together with a home that has committed, it may be half done.
    ///
    /// # Errors
    /// [`TransactionError::Conflict`] when other writers came first for longer than the
    /// configuration's `patience`; [`TransactionError::Undecided`] when it may take effect and is
    /// not known to have; those of `f` and of [`Object::write`].
    pub fn transaction<R>(
        &self,
        mut f: impl FnMut(&mut Transaction<'_>) -> Result<R, TransactionError>,
    ) -> Result<R, TransactionError> {
        let mut attempts = Attempts::default();
        loop {
            self.open()?;
            let mut transaction = Transaction::new(self);
            let result = f(&mut transaction);
            match transaction.commit(result.is_ok(), attempts).call(self)? {
                Ended::Whole => return result,
                Ended::Again(next) => attempts = next,
            }
        }
    }
}
