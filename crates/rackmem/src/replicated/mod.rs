//! Replicated memory in a program's hands: lines that a majority of a group's members keeps.

mod futures;
mod status;

pub use crate::host::replicated::CopyStore;
pub use status::{CopyStatus, GroupStatus, SweepStatus};

use crate::bytes::value::Value;
use crate::error::{AccessError, BulkError, RackError};
use crate::host::driving::errand::{self, Action, Came};
use crate::host::replicated::Asks;
use crate::node::Node;
use rackmem_proto::abd::{Command, Layout};
use rackmem_proto::wire::{Contract, Tag};
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;

/// A value in a line of a region with copies, which several nodes keep: read and written whole,
/// linearizable, as long as a majority of the copies is there. The death of a minority neither
/// loses nor delays anything.
///
/// There is no `fetch_add` and no `compare_exchange`: copies that agree on a register cannot agree
/// on one. Memory that needs these is [`Shared`](crate::Shared), which dies with its home.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionSpec, Replicated};
///
/// let rack = Rack::local(3)?;
/// let spec = RegionSpec::new("status", 64).copies(3);
/// let status: Replicated<[u8; 5]> = rack.node(0).create_region(&spec)?.replicated(0)?;
/// status.write(*b"ready")?;
/// let same = rack.node(1).attach_replicated::<[u8; 5]>(status.addr())?;
/// assert_eq!(&same.read()?, b"ready");
/// # Ok(())
/// # }
/// ```
///
/// The handle is an address and a node. Dropping it frees nothing.
pub struct Replicated<T> {
    node: Node,
    line: Tag,
    len: usize,
    /// The region began with this config of its group.
    first: u32,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Replicated<T> {
    fn clone(&self) -> Self {
        Replicated {
            node: self.node.clone(),
            value: PhantomData,
            ..*self
        }
    }
}

impl<T> std::fmt::Debug for Replicated<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replicated")
            .field("of", &std::any::type_name::<T>())
            .field("addr", &format_args!("{:#018x}", self.line.0))
            .finish()
    }
}

impl<T: Value> Replicated<T> {
    pub(crate) fn at(
        node: &Node,
        addr: u64,
        (layout, first): (Layout, u32),
    ) -> Result<Self, AccessError> {
        let line = Tag(addr);
        if !layout.has(line.home().0, line) || size_of::<T>() > layout.line as usize {
            return Err(AccessError::BadRange {
                addr,
                len: size_of::<T>(),
                block: layout.line as usize,
            });
        }
        Ok(Replicated {
            node: node.clone(),
            line,
            len: layout.line as usize,
            first,
            value: PhantomData,
        })
    }

    /// Its global address.
    pub fn addr(&self) -> u64 {
        self.line.0
    }

    /// The value as of one moment since the call: no older than what any write had stored that has
    /// returned, or any read has seen. A line that has not been written is zeros.
    ///
    /// # Errors
    /// [`AccessError::NoQuorum`] when no majority answers within the configuration's `patience`.
    pub fn read(&self) -> Result<T, AccessError> {
        self.call(|came| self.go_on(came, || self.asks_read(), |line| self.value(line)))
    }

    /// Writes it. When this returns a majority has it, and every later read sees it or a later
    /// write.
    ///
    /// # Errors
    /// [`AccessError::NoQuorum`] when no majority answers within the configuration's `patience`:
    /// the write may take effect later, or never.
    pub fn write(&self, value: T) -> Result<(), AccessError> {
        self.call(|came| self.go_on(came, || self.asks_write(&value), |_| Ok(())))
    }

    /// Goes through an operation in this thread.
    fn call<R>(
        &self,
        go_on: impl FnMut(Option<Came<Asks>>) -> Action<R, Asks>,
    ) -> Result<R, AccessError> {
        let access = &self.node.inner.access;
        errand::call(access, |asks| access.ask_copies(asks), go_on)
    }

    /// What is to be done next: those that have copies are asked, and what they answer is `then`'s.
    fn go_on<R>(
        &self,
        came: Option<Came<Asks>>,
        asks: impl FnOnce() -> Asks,
        then: impl FnOnce(&[u8]) -> Result<R, AccessError>,
    ) -> Action<R, Asks> {
        match came {
            Some(came) => Action::Over(came.and_then(|line| then(&line))),
            None => match self.node.to_lines() {
                Ok(()) => Action::Ask(asks()),
                Err(error) => Action::Over(Err(error.into())),
            },
        }
    }

    fn asks_read(&self) -> Asks {
        self.asks(Command::Read(self.line), Vec::new())
    }

    fn asks_write(&self, value: &T) -> Asks {
        let mut line = value.as_bytes().to_vec();
        line.resize(self.len, 0);
        self.asks(Command::Write(self.line), line)
    }

    fn asks(&self, command: Command, value: Vec<u8>) -> Asks {
        let first = self.first;
        Asks {
            command,
            value,
            first,
        }
    }

    fn value(&self, line: &[u8]) -> Result<T, AccessError> {
        let bytes = line.get(..size_of::<T>());
        let value = bytes.and_then(|bytes| T::read_from_bytes(bytes).ok());
        value.ok_or(AccessError::BadRange {
            addr: self.line.0,
            len: size_of::<T>(),
            block: line.len(),
        })
    }
}

impl Node {
    /// A handle on a value in a line of a region with copies.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the address is other memory's,
    /// [`AccessError::BadAddress`] where it is of no region, [`AccessError::BadRange`] where it is
    /// no line's beginning or the value is longer than a line.
    pub fn attach_replicated<T: Value>(&self, addr: u64) -> Result<Replicated<T>, AccessError> {
        let tag = Tag(addr);
        if !tag.is_under(Contract::Replicated) {
            return Err(AccessError::wrong_contract(tag, Contract::Replicated));
        }
        let access = &self.inner.access;
        let layout = || access.agents.replicas.region(tag.home().0);
        // It may be of a region that this process has not heard of yet.
        let layout = layout().or_else(|| access.groups.look().ok().and_then(|_| layout()));
        let region = layout.filter(|(layout, _)| tag.offset() < layout.bytes);
        Replicated::at(self, addr, region.ok_or(AccessError::BadAddress { addr })?)
    }

    /// Whether operations on replicated memory may go on. A lease is nothing to them: stale copies
    /// cannot make a majority.
    pub(crate) fn to_lines(&self) -> Result<(), RackError> {
        if self.inner.closed.load(Relaxed) {
            return Err(RackError::Closed);
        }
        match self.inner.access.standing.is_fenced() {
            true => Err(RackError::Fenced),
            false => Ok(()),
        }
    }

    /// Reads bytes of lines, each line's at one moment.
    pub(crate) fn read_lines(
        &self,
        addr: u64,
        (layout, first): (Layout, u32),
        out: &mut [u8],
    ) -> Result<(), AccessError> {
        self.to_lines()?;
        let len = u64::from(layout.line);
        let mut done = 0;
        while done < out.len() {
            let at = addr + done as u64;
            let from = (at % len) as usize;
            let line = self.inner.access.read_line(Tag(at - from as u64), first)?;
            let bad = AccessError::BadAddress { addr: at };
            let part = line
                .get(from..)
                .filter(|part| !part.is_empty())
                .ok_or(bad)?;
            let count = part.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&part[..count]);
            done += count;
        }
        Ok(())
    }

    /// Writes whole lines, each at one moment.
    pub(crate) fn write_lines(
        &self,
        addr: u64,
        (layout, first): (Layout, u32),
        bytes: &[u8],
    ) -> Result<(), BulkError> {
        self.to_lines()
            .map_err(|error| BulkError::writing(0, error.into()))?;
        let block = layout.line as usize;
        if !addr.is_multiple_of(block as u64) || !bytes.len().is_multiple_of(block) {
            let len = bytes.len();
            let bad = AccessError::BadRange { addr, len, block };
            return Err(BulkError::writing(0, bad));
        }
        for (nth, line) in bytes.chunks(block).enumerate() {
            let done = nth * block;
            let at = Tag(addr + done as u64);
            let written = self.inner.access.write_line(at, first, line.to_vec());
            written.map_err(|error| BulkError::writing(done, error))?;
        }
        Ok(())
    }
}
