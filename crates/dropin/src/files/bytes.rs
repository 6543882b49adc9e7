//! A file's bytes, for programs that read and write them.

use super::room::PIECE;
use super::{File, now};
use crate::answer::{Done, Errno};
use crate::inside::Inside;
use rackmem::{AccessError, Error, Region, RegionError};

/// Blocks that died with a node are gone on with in one piece, at most: all that it has.
const TRIES: usize = 2 + PIECE / 64;

impl File {
    /// Does something with a piece of its bytes. Its region stays its region meanwhile,
    /// and what was written is in it: who replaces it by a longer one changes the table,
    /// and this reads that.
    fn within<R>(&self, f: impl FnMut(&Region) -> Result<R, RegionError>) -> Done<R> {
        self.read_row(|row| self.insist(&self.region(row)?, f))
    }

    /// Does something with its bytes, again where blocks of them have died.
    pub(super) fn insist<R>(
        &self,
        region: &Region,
        mut f: impl FnMut(&Region) -> Result<R, RegionError>,
    ) -> Done<R> {
        let mut left = TRIES;
        loop {
            let why = match f(region) {
                Ok(done) => return Ok(done),
                Err(why) => why,
            };
            match Error::from(why.clone()).access() {
                Some(AccessError::Lost { addr }) if left > 0 => self.goes_on(addr)?,
                _ => return Err(why.into()),
            }
            left -= 1;
        }
    }

    /// Reads from byte `at` on: how many there are.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Done<usize> {
        let _inside = Inside::enter();
        let size = self.row()?.size;
        let len = size.saturating_sub(at).min(into.len() as u64) as usize;
        for (piece, from) in into[..len]
            .chunks_mut(PIECE)
            .zip((at as usize..).step_by(PIECE))
        {
            self.within(|region| region.read(from, piece))?;
        }
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
        for (piece, to) in from.chunks(PIECE).zip((at as usize..).step_by(PIECE)) {
            self.within(|region| region.write(to, piece))?;
        }
        Ok(from.len())
    }

    /// Writes behind its end, wherever others have moved that: where its end is then.
    pub fn append(&self, from: &[u8]) -> Done<u64> {
        let _inside = Inside::enter();
        self.change(|row, live| {
            let start = row.size;
            let end = start + from.len() as u64;
            self.grow(row, live, end)?;
            // The row tells of the longer region, whatever becomes of the bytes.
            let write = |region: &Region| region.write(start as usize, from);
            Ok(self.insist(&self.region(row)?, write).map(|()| {
                row.size = end;
                row.changed = now();
                end
            }))
        })?
    }
}
