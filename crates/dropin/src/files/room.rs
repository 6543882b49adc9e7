//! How long a file is, and the region that has room for it.

use super::{File, now, region_name};
use crate::answer::{Done, refuse};
use crate::inside::Inside;
use crate::settings;
use crate::table::Row;
use rackmem::{Region, RegionSpec};
use std::ops::Range;

/// Bytes that are copied, read and written at a time, while nobody opens or closes files.
pub(super) const PIECE: usize = 1 << 20;
/// The least room of a file that nobody maps: a journal is made for each transaction, and its room
/// is memory that is made zeros.
const LEAST: u64 = 64 << 10;
/// What a file that is written becomes longer by at once, at most: as much as it has, up to this.
const STEP: u64 = 64 << 20;

impl File {
    /// Sees to it that it has a region of so many bytes at least, and of `room` if there is a new
    /// one. Nobody else changes its row meanwhile.
    pub(super) fn make_room(&self, row: &mut Row, live: u64, (bytes, room): (u64, u64)) -> Done {
        if bytes <= row.room {
            return Ok(());
        }
        if row.mappers & live != 0 {
            let text = format!(
                "{}: it is mapped and has room for {} bytes, and {bytes} are wanted; let the first \
                 ftruncate() say how long it will be, or set {} to that",
                self.name,
                row.room,
                settings::ROOM
            );
            return refuse(libc::EFBIG, &text);
        }
        let node = &self.member.node;
        let whole = (node.block_size() as u64).max(LEAST);
        let name = region_name(self.row, row.version + 1);
        // One that a node has left: it died before it told of it, or before it had removed it.
        let _ = node.remove_region(&name);
        let create = |room: u64| {
            let room = room.next_multiple_of(whole);
            let spec = RegionSpec::new(&name, room as usize).on(settings::get().home);
            node.create_region(&spec.renew())
                .map(|region| (region, room))
        };
        let made = create(bytes.max(room)).or_else(|_| create(bytes));
        let (region, room) = made.or_else(|why| {
            let text = format!("{}: no room for {bytes} bytes: {why}", self.name);
            refuse(libc::ENOSPC, &text)
        })?;
        if row.room > 0 {
            let before = self.region(row)?;
            let len = row.size.min(row.room);
            self.copy(&before, &region, len as usize)?;
            // Some of it may have been synced by those who wrote it.
            self.sync_blocks(&region, 0..len)?;
        }
        row.version += 1;
        row.room = room;
        Ok(())
    }

    /// The same for a file that goes on to grow, as far as anybody knows.
    pub(super) fn grow(&self, row: &mut Row, live: u64, bytes: u64) -> Done {
        let room = row.room + row.room.min(STEP);
        self.make_room(row, live, (bytes, room))
    }

    /// Its region as of a row.
    pub(super) fn region(&self, row: &Row) -> Done<Region> {
        let mut here = self.here();
        if let Some((version, region)) = &here.region
            && *version == row.version
        {
            return Ok(region.clone());
        }
        let region = super::region(self.member, self.row, row)?;
        here.region = Some((row.version, region.clone()));
        Ok(region)
    }

    /// Its length from now on. What is cut off is zeros if it is ever there again.
    pub fn set_size(&self, size: u64) -> Done {
        let _inside = Inside::enter();
        self.change(|row, live| {
            self.make_room(row, live, (size, settings::get().room))?;
            if size < row.size {
                let region = self.region(row)?;
                self.zero(&region, size as usize..row.size.min(row.room) as usize)?;
            }
            row.size = size;
            row.changed = now();
            Ok(())
        })
    }

    /// Its length is this at least.
    pub fn reach(&self, size: u64) -> Done {
        match self.row()?.size < size {
            true => self.change(|row, live| {
                self.grow(row, live, size)?;
                row.size = row.size.max(size);
                row.changed = now();
                Ok(())
            }),
            false => Ok(()),
        }
    }
    fn copy(&self, from: &Region, to: &Region, len: usize) -> Done {
        let mut piece = vec![0; PIECE.min(len)];
        for at in (0..len).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(len - at)];
            self.insist(from, |from| from.read(at, piece))?;
            self.insist(to, |to| to.write(at, piece))?;
        }
        Ok(())
    }

    fn zero(&self, region: &Region, bytes: Range<usize>) -> Done {
        let zeros = vec![0; PIECE.min(bytes.len())];
        for at in bytes.clone().step_by(PIECE) {
            let piece = &zeros[..PIECE.min(bytes.end - at)];
            self.insist(region, |region| region.write(at, piece))?;
        }
        Ok(())
    }
}
