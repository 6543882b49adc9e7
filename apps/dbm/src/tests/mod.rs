//! Databases beside the standard library's maps, under threads of several nodes, and under what
//! should not be: locks that do not exclude, memory that fails.

mod beside_maps;
mod together;
mod unlocked;

use crate::error::{DbmError, Result};
use crate::lock::{Lock, LockFailure};
use crate::memory::Memory;
use crate::page::PAGE;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Pages of this process.
#[derive(Clone, Debug)]
struct Heap {
    pages: Arc<Vec<Mutex<[u8; PAGE]>>>,
    /// Writes of pages after which all fail.
    writes: Arc<AtomicI64>,
}

impl Heap {
    fn new(pages: usize) -> Heap {
        let zeros = || Mutex::new([0; PAGE]);
        Heap {
            pages: Arc::new(std::iter::repeat_with(zeros).take(pages).collect()),
            writes: Arc::new(AtomicI64::new(i64::MAX)),
        }
    }
}

impl Memory for Heap {
    fn pages(&self) -> u32 {
        self.pages.len() as u32
    }

    fn read(&self, page: u32, out: &mut [u8; PAGE]) -> Result<()> {
        *out = *self.pages[page as usize].lock().unwrap();
        Ok(())
    }

    fn write(&self, page: u32, bytes: &[u8; PAGE]) -> Result<()> {
        if self.writes.fetch_sub(1, Relaxed) <= 0 {
            return Err(DbmError::Rack(
                rackmem::RackError::NodeLost { node: 0 }.into(),
            ));
        }
        *self.pages[page as usize].lock().unwrap() = *bytes;
        Ok(())
    }

    fn load(&self, word: usize) -> Result<u64> {
        let page = self.pages[0].lock().unwrap();
        Ok(u64::from_le_bytes(
            page[word * 8..][..8].try_into().unwrap(),
        ))
    }

    fn store(&self, word: usize, value: u64) -> Result<()> {
        let mut page = self.pages[0].lock().unwrap();
        page[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }
}

/// Excludes nobody.
#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {
    fn shared(&self, section: &mut dyn FnMut()) -> std::result::Result<(), LockFailure> {
        section();
        Ok(())
    }

    fn exclusive(&self, section: &mut dyn FnMut()) -> std::result::Result<(), LockFailure> {
        section();
        Ok(())
    }
}
