//! `Shared<T>`: one value that every node reads from its own cache and any node may change.

use crate::error::{Error, Result};
use crate::node::Node;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What can be shared between machines: plain bytes, no pointers, every bit pattern a value. Integers, floats
/// and arrays of them are; a struct is when it derives zerocopy's `FromBytes`, `IntoBytes` and `Immutable`.
pub trait Value: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Value for T {}

/// A value of at most one block in coherent memory. Reads and writes are linearizable across the rack.
///
/// The handle is an address and a node. Dropping it frees nothing: other nodes may have the address.
#[derive(Clone)]
pub struct Shared<T> {
    node: Node,
    addr: u64,
    value: PhantomData<fn() -> T>,
}

impl<T: Value> Shared<T> {
    pub(crate) fn attach(node: &Node, addr: u64) -> Result<Self> {
        let block = node.block_size();
        let len = size_of::<T>();
        let aligned = len <= 8 && addr.is_multiple_of(8);
        let inside = addr as usize % block + len <= block;
        if len > block || !inside || !(aligned || addr.is_multiple_of(8)) {
            return Err(Error::BadRange { addr, len, block });
        }
        // A first read tells a wrong address now rather than later.
        let shared = Shared {
            node: node.clone(),
            addr,
            value: PhantomData,
        };
        shared.read()?;
        Ok(shared)
    }

    pub(crate) fn create(node: &Node, addr: u64, value: T) -> Result<Self> {
        if size_of::<T>() > node.block_size() {
            node.free_bytes(addr, size_of::<T>());
            return Err(Error::BadRange {
                addr,
                len: size_of::<T>(),
                block: node.block_size(),
            });
        }
        let shared = Shared {
            node: node.clone(),
            addr,
            value: PhantomData,
        };
        shared.write(value)?;
        Ok(shared)
    }

    /// Its global address, which [`Node::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// The last value written, anywhere.
    #[inline]
    pub fn read(&self) -> Result<T> {
        let mut value = T::new_zeroed();
        if size_of::<T>() == 8 {
            let word = self.node.load(self.addr)?;
            value.as_mut_bytes_of().copy_from_slice(&word.to_ne_bytes());
        } else {
            self.node.read(self.addr, value.as_mut_bytes_of())?;
        }
        Ok(value)
    }

    /// Replaces the value, everywhere.
    #[inline]
    pub fn write(&self, value: T) -> Result<()> {
        match <[u8; 8]>::try_from(value.as_bytes()) {
            Ok(bytes) => self.node.store(self.addr, u64::from_ne_bytes(bytes)),
            Err(_) => self.node.write(self.addr, value.as_bytes()),
        }
    }

    /// Replaces the value by what `f` makes of it, as one step; what was there before.
    pub fn update(&self, f: impl FnOnce(T) -> T) -> Result<T> {
        self.node.update(self.addr, size_of::<T>(), |view| {
            let mut old = T::new_zeroed();
            view.read(0, old.as_mut_bytes_of());
            view.write(0, f(old).as_bytes());
            old
        })
    }

    /// Gives the memory back. Other handles on it must not be used any more.
    pub fn free(self) {
        self.node.free_bytes(self.addr, size_of::<T>().max(8));
    }
}

/// Bytes of a `Value` to write into, without asking for more than a `Value` promises.
trait BytesOf {
    fn as_mut_bytes_of(&mut self) -> &mut [u8];
}

impl<T: Value> BytesOf for T {
    fn as_mut_bytes_of(&mut self) -> &mut [u8] {
        self.as_mut_bytes()
    }
}

macro_rules! arithmetic {
    ($($int:ty),*) => {$(
        impl Shared<$int> {
            /// Adds, wrapping around; what was there before.
            pub fn fetch_add(&self, n: $int) -> Result<$int> {
                self.node.fetch_add(self.addr, n as u64).map(|old| old as $int)
            }

            /// Puts `new` where `expected` is, as one step. `Ok(Err(seen))` when something else was there.
            pub fn compare_exchange(&self, expected: $int, new: $int) -> Result<std::result::Result<$int, $int>> {
                let swap = |old: u64| (old == expected as u64).then_some(new as u64);
                let old = self.node.fetch_update(self.addr, swap)? as $int;
                Ok(if old == expected { Ok(old) } else { Err(old) })
            }
        }
    )*};
}

arithmetic!(u64, i64, usize, isize);
