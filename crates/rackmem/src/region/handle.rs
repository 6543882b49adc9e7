//! A region in a program's hands.

use super::copies::Copied;
use super::creating::Opened;
use super::removing::remove_row;
use super::row::{Ready, Row};
use super::{see, spec::RegionSpec};
use crate::bytes::value::Value;
use crate::error::{AccessError, AllocError, RegionError};
use crate::faulting::FaultMode;
use crate::node::Node;
use crate::object::Object;
use crate::paging::{CoherentPages, Mapped};
use crate::replicated::Replicated;
use rackmem_proto::abd::{Layout, first_line};
use rackmem_proto::heap::Backing;
use rackmem_proto::membership::KeptAs;
use rackmem_proto::sabre::room_of;
use rackmem_proto::wire::{Contract, HomeId, Tag};

/// A named region, as this handle found it. Another region that has the name later is another one,
/// and this handle says so.
///
/// What is read and written at [`Region::addr`] by the node's own operations is not checked against
/// the region: it would take a second look in every hit.
///
/// Dropping the handle frees nothing: the region has its name and its memory until
/// [`Node::remove_region`], after which handles of all nodes say [`RegionError::Removed`].
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionError, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("log", 1 << 20);
/// let log = rack.node(0).create_region(&spec)?;
/// log.write(100, b"entry")?;
/// let same = rack.node(1).open_region(&spec)?;
/// rack.node(1).remove_region("log")?;
/// assert!(matches!(same.read(100, &mut [0; 5]), Err(RegionError::Removed { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Region {
    node: Node,
    spec: RegionSpec,
    place: Place,
    created: bool,
}

/// Where a region is.
#[derive(Clone, Copy)]
enum Place {
    /// In the table, in this row.
    Row(u64, Ready),
    /// In a group, beginning with this config.
    Group(u16, Layout, u32),
    /// In the home that this group keeps, from this address on, beginning with this config.
    Home(u16, u64, u32),
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region")
            .field("name", &self.name())
            .field("addr", &format_args!("{:#018x}", self.addr()))
            .field("bytes", &self.bytes())
            .field("contract", &self.contract())
            .finish()
    }
}

impl Region {
    pub(super) fn new(node: &Node, spec: &RegionSpec, opened: Opened) -> Self {
        Region {
            node: node.clone(),
            spec: spec.clone(),
            place: Place::Row(opened.row, opened.ready),
            created: opened.created,
        }
    }

    pub(super) fn copied(node: &Node, spec: &RegionSpec, copied: Copied) -> Self {
        Region {
            node: node.clone(),
            spec: spec.clone(),
            place: match spec.kept_as() {
                Some(_) => Place::Home(copied.number, copied.addr, copied.first),
                None => Place::Group(copied.number, copied.layout, copied.first),
            },
            created: copied.created,
        }
    }

    /// Whether it is coherent memory with copies.
    pub(crate) fn has_home(&self) -> bool {
        self.spec.is_home()
    }

    /// The node of this handle.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.spec.name()
    }

    /// Where its memory begins; the contract is part of this.
    pub fn addr(&self) -> u64 {
        match self.place {
            Place::Row(_, ready) => ready.addr,
            Place::Group(number, ..) => first_line(number).0,
            Place::Home(_, addr, _) => addr,
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.spec.len
    }

    /// Bytes of a line.
    pub(crate) fn line(&self) -> usize {
        self.spec.line as usize
    }

    /// Its contract.
    pub fn contract(&self) -> Contract {
        self.spec.contract
    }

    /// Where its bytes are.
    pub fn backing(&self) -> Backing {
        self.spec.backing
    }

    /// Whose memory it is; of a region with copies the number of its group.
    pub fn home(&self) -> HomeId {
        Tag(self.addr()).home()
    }

    /// Whether the call that returned this handle has created it.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// Whether it is still there. A look at one row of the table, which is a hit unless names of
    /// its block have changed.
    ///
    /// # Errors
    /// [`RegionError::Removed`].
    pub fn check(&self) -> Result<(), RegionError> {
        let name = self.name();
        let (row, ready) = match self.place {
            Place::Row(row, ready) => (row, ready),
            Place::Group(number, _, first) | Place::Home(number, _, first) => {
                let now = self.node.inner.access.agents.replicas.region(number);
                return match now.is_some_and(|(_, now)| now == first) {
                    true => Ok(()),
                    false => Err(RegionError::Removed { name: name.into() }),
                };
            }
        };
        let row = see(&self.node, row, name)?;
        match row {
            Row::Ready(now) if now == ready => Ok(()),
            _ => Err(RegionError::Removed { name: name.into() }),
        }
    }

    /// Removes it, and not what has its name by then: where somebody else has removed it before,
    /// nothing happens. What that means is said at [`Node::remove_region`].
    ///
    /// # Errors
    /// [`RegionError::Removed`], and those of [`Node::remove_region`]. With copies, what is made
    /// under its name in the very moment in which it is removed by somebody else goes instead.
    pub fn remove(&self) -> Result<(), RegionError> {
        let name = self.name();
        match self.place {
            Place::Row(row, ready) => {
                self.node.open()?;
                let removed = remove_row(&self.node, row, name, ready)?;
                removed.then_some(()).ok_or_else(|| self.removed())
            }
            Place::Group(..) | Place::Home(..) => {
                self.check()?;
                self.node.remove_region(name)
            }
        }
    }

    /// Reads from a byte of it on. Each block's part is read at one moment; with copies, each
    /// line's.
    /// What is read was there while the region was.
    ///
    /// # Errors
    /// [`RegionError::Removed`], [`RegionError::OutOfBounds`], [`AccessError::WrongContract`] where
    /// it has no bytes, and those of [`Node::read`].
    pub fn read(&self, at: usize, out: &mut [u8]) -> Result<(), RegionError> {
        let addr = self.within(at, out.len())?;
        if let Place::Group(_, layout, first) = self.place {
            let read = self.node.read_lines(addr, (layout, first), out);
            return read.map_err(|error| match error {
                AccessError::Removed { .. } => self.removed(),
                error => error.into(),
            });
        }
        let read = self.node.read(addr, out);
        self.check()?;
        Ok(read?)
    }

    /// Writes from a byte of it on. Each block's part is written at one moment. A removal between
    /// the check and the write is not noticed. With copies, whole lines are written, each at one
    /// moment.
    ///
    /// # Errors
    /// Those of [`Region::read`]; [`AccessError::BadRange`] when a part of a line is to be written,
    /// and [`AccessError::NoQuorum`].
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), RegionError> {
        let addr = self.within(at, bytes.len())?;
        if let Place::Group(_, layout, first) = self.place {
            self.check()?;
            return Ok(self.node.write_lines(addr, (layout, first), bytes)?);
        }
        self.check()?;
        Ok(self.node.write(addr, bytes)?)
    }

    /// The value in a line of a region with copies, counted from 0.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the region has no copies, [`AccessError::OutOfBounds`]
    /// where it has no such line, [`AccessError::BadRange`] where the value is longer than a line.
    pub fn replicated<T: Value>(&self, line: usize) -> Result<Replicated<T>, RegionError> {
        let Place::Group(_, layout, first) = self.place else {
            let wanted = Contract::Replicated;
            let wrong = AccessError::wrong_contract(Tag(self.addr()), wanted);
            return Err(wrong.into());
        };
        let of = (layout.bytes / u64::from(layout.line)) as usize;
        let (at, len) = (line, 1);
        if line >= of {
            return Err(AccessError::OutOfBounds { at, len, of }.into());
        }
        let addr = self.addr() + line as u64 * u64::from(layout.line);
        Ok(Replicated::at(&self.node, addr, (layout, first))?)
    }

    fn removed(&self) -> RegionError {
        RegionError::Removed {
            name: self.name().into(),
        }
    }

    /// Maps coherent memory into this process: its bytes are at addresses of the process, for plain
    /// loads, stores and atomic instructions, while other nodes and processes use it, mapped or by
    /// calls. It may be mapped several times; all handles are on one mapping.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the region is under another contract,
    /// [`RegionError::NotMappable`] where its blocks are smaller than pages or a majority is to
    /// have each write ([`Survives::Writes`](crate::Survives::Writes)), [`RegionError::NoPaging`]
    /// where the system does not allow it, [`RegionError::TooManyMappings`].
    pub fn map(&self) -> Result<CoherentPages, RegionError> {
        self.map_with(FaultMode::Signal)
    }

    /// The same with faults that come another way. A region that this node has mapped once, and
    /// what shares its blocks, keeps its way as long as the node is.
    ///
    /// # Errors
    /// Those of [`Region::map`]; [`RegionError::NotMappable`] where it has another way.
    pub fn map_with(&self, mode: FaultMode) -> Result<CoherentPages, RegionError> {
        let addr = Tag(self.addr());
        if !addr.is_under(Contract::Coherent) {
            return Err(AccessError::wrong_contract(addr, Contract::Coherent).into());
        }
        self.check()?;
        if self.node.inner.access.agents.kept.writes_survive(addr) {
            let (name, why) = (self.name().into(), "a majority is to have each write");
            return Err(RegionError::NotMappable { name, why });
        }
        CoherentPages::new(&self.node, self.name(), (addr.0, self.bytes()), mode)
    }

    /// Maps a region with copies into this process, which has it for itself until the handle is
    /// dropped: loads and stores, with a buffer of so many pages ([`Mapped::page`]). Lines of 4 KiB
    /// are best ([`RegionSpec::line`]): a page of shorter ones takes several operations.
    ///
    /// Of threads that work at a time each needs four pages of the buffer at least, or they take
    /// them from each other.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the region has no copies, [`RegionError::Mapped`] where
    /// a live node has mapped it, [`RegionError::NoPaging`] where the system does not allow it,
    /// [`RegionError::SmallBuffer`] below four pages.
    pub fn map_exclusive(&self, pages: usize) -> Result<Mapped, RegionError> {
        let Place::Group(number, layout, first) = self.place else {
            let wanted = Contract::Replicated;
            let wrong = AccessError::wrong_contract(Tag(self.addr()), wanted);
            return Err(wrong.into());
        };
        self.check()?;
        Mapped::new(&self.node, (number, layout, first), self.name(), pages)
    }

    /// A new object in a region under [`Contract::Object`].
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the region is under another one,
    /// [`AllocError::TooLarge`] above [`MAX_OBJECT`](crate::object::MAX_OBJECT) bytes,
    /// or above what a line has room for where the region has copies ([`RegionSpec::line`]),
    /// [`AllocError::OutOfMemory`] when the region is full; those of [`Object::write`].
    pub fn alloc<T: Value>(&self, value: T) -> Result<Object<T>, AllocError> {
        self.fits(value.as_bytes().len())?;
        self.node.new_object(self.addr(), value.as_bytes(), 0)
    }

    /// A new object of bytes, with room for so many at least: a later write may be as long as
    /// that.
    ///
    /// # Errors
    /// Those of [`Region::alloc`].
    pub fn alloc_bytes(&self, bytes: &[u8], room: usize) -> Result<Object<[u8]>, AllocError> {
        self.fits(bytes.len().max(room))?;
        self.node.new_object(self.addr(), bytes, room)
    }

    /// [`Region::alloc`] as a future: see [the page on futures](crate::futures). Where the region's
    /// home is this node it is ready at the first poll.
    ///
    /// If it is dropped, no object is left: one that has been made, or is made by what was under
    /// way, is freed by the node, a little later. It counts as an operation of the node until then.
    ///
    /// # Errors
    /// Those of [`Region::alloc`];
    /// [`AccessError::TooManyAsked`], and then nothing has been made.
    pub fn alloc_async<T: Value>(
        &self,
        value: T,
    ) -> impl Future<Output = Result<Object<T>, AllocError>> + Send + use<T> {
        self.new_object_async(value.as_bytes().to_vec(), 0)
    }

    /// [`Region::alloc_bytes`] as a future. See [`Region::alloc_async`].
    ///
    /// # Errors
    /// Those of [`Region::alloc_async`].
    pub fn alloc_bytes_async(
        &self,
        bytes: Vec<u8>,
        room: usize,
    ) -> impl Future<Output = Result<Object<[u8]>, AllocError>> + Send + use<> {
        self.new_object_async(bytes, room)
    }

    fn new_object_async<T: ?Sized + 'static>(
        &self,
        content: Vec<u8>,
        room: usize,
    ) -> impl Future<Output = Result<Object<T>, AllocError>> + Send + use<T> {
        let fits = self.fits(content.len().max(room));
        let made = self.node.new_object_async(self.addr(), content, room);
        async move {
            fits?;
            made.await
        }
    }

    /// Whether a region with copies has lines for such an object.
    fn fits(&self, len: usize) -> Result<(), AllocError> {
        let most = room_of(self.spec.line) as usize;
        let objects = self.spec.kept_as() == Some(KeptAs::Objects);
        match objects && len > most {
            true => Err(AllocError::TooLarge { len, most }),
            false => Ok(()),
        }
    }

    /// The address of so many bytes from this one on.
    pub(crate) fn within(&self, at: usize, len: usize) -> Result<u64, RegionError> {
        match at.checked_add(len) {
            Some(end) if end <= self.bytes() => Ok(self.addr() + at as u64),
            _ => Err(RegionError::OutOfBounds {
                name: self.name().into(),
                at,
                len,
            }),
        }
    }
}
