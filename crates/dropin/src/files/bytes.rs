//! A file's bytes, for programs that read and write them.

use super::File;
use crate::answer::{Done, Errno};
use crate::inside::Inside;
use crate::settings;
use crate::table::Row;
use rackmem::{AccessError, Region, RegionError};

/// Times that something is tried while another node replaces the file's region.
const TRIES: usize = 8;

impl File {
    /// Does something with its bytes, again if its region was replaced meanwhile.
    fn insist<R>(&self, mut f: impl FnMut(&Row, &Region) -> Result<R, RegionError>) -> Done<R> {
        let mut left = TRIES;
        loop {
            let row = self.row()?;
            let region = self.region(&row)?;
            match f(&row, &region) {
                Err(RegionError::Access(AccessError::Lost { addr }))
                    if left > 0 && settings::get().keep =>
                {
                    self.member.node.accept_loss(addr)?;
                }
                Err(_) if left > 0 && self.row()?.version != row.version => {}
                done => return Ok(done?),
            }
            left -= 1;
        }
    }

    /// Reads from byte `at` on: how many there are.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Done<usize> {
        let _inside = Inside::enter();
        let size = self.row()?.size;
        let len = size.saturating_sub(at).min(into.len() as u64) as usize;
        if len == 0 {
            return Ok(0);
        }
        self.insist(|_, region| region.read(at as usize, &mut into[..len]))?;
        Ok(len)
    }

    /// Writes from byte `at` on, and makes it longer if need be.
    pub fn write(&self, at: u64, from: &[u8]) -> Done<usize> {
        let _inside = Inside::enter();
        if from.is_empty() {
            return Ok(0);
        }
        let end = at
            .checked_add(from.len() as u64)
            .ok_or(Errno(libc::EFBIG))?;
        self.reach(end)?;
        self.insist(|_, region| region.write(at as usize, from))?;
        Ok(from.len())
    }
}
