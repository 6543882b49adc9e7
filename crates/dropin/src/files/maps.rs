//! Files as memory of the process.

use super::File;
use crate::answer::{Done, Errno, refuse};
use crate::inside::Inside;
use crate::settings;
use rackmem::Region;
use std::ops::Range;
use std::sync::Arc;

/// The rack has lost what was at an address of a mapped file. Whether the program goes on with what
/// the file's home has.
pub fn goes_on(at: usize) -> bool {
    let Some((file, offset)) = crate::ranges::find(at) else {
        return false;
    };
    let _inside = Inside::enter();
    let region = file.here().region.clone();
    region.is_some_and(|(_, region)| file.goes_on(region.addr() + offset as u64).is_ok())
}

impl File {
    /// The program goes on with what the home has of a block that died with a node, or is told why
    /// not.
    pub(super) fn goes_on(&self, addr: u64) -> Done {
        if settings::get().keep {
            return Ok(self.member.node.accept_loss(addr)?);
        }
        let text = format!(
            "{}: what a dead node had written was nowhere else; with {}=unlock in every node's \
             environment the others would go on with what is at home: what was synced, or written \
             before a pthread_mutex_unlock()",
            self.name,
            settings::KEEP
        );
        refuse(libc::EIO, &text)
    }

    /// Maps it: where byte `at` is. As long as it is mapped it becomes no longer than what it has
    /// room for then, which is `room` at least.
    pub fn map(self: &Arc<Self>, at: u64, len: usize, room: u64) -> Done<usize> {
        let _inside = Inside::enter();
        let end = at.checked_add(len as u64).ok_or(Errno(libc::EOVERFLOW))?;
        let ours = 1u64 << self.member.node.id();
        let row = self.change(|row, live| {
            let first = row.mappers & live == 0;
            let bytes = end.max(row.size).max(if first { room } else { 0 });
            self.make_room(row, live, (bytes, room))?;
            row.mappers |= ours;
            Ok(row.clone())
        })?;
        let region = self.region(&row)?;
        let mut here = self.here();
        let pages = match &here.pages {
            Some(pages) => pages.clone(),
            None => {
                let pages = region.map().or_else(|why| {
                    let text = format!("{}: it cannot be mapped: {why}", self.name);
                    refuse(libc::ENODEV, &text)
                })?;
                here.pages.insert(Arc::new(pages)).clone()
            }
        };
        let start = pages.as_ptr() as usize;
        if !crate::ranges::add((start, pages.len()), self) {
            return refuse(
                libc::ENOMEM,
                "this process has mapped as many files as it can",
            );
        }
        let place = start + at as usize;
        here.maps.push((place, len));
        Ok(place)
    }

    /// Ends a mapping that begins there. Others of the same bytes stay.
    pub fn unmap(&self, place: usize) -> Done {
        let _inside = Inside::enter();
        let (pages, last) = {
            let mut here = self.here();
            if let Some(nth) = here.maps.iter().position(|map| map.0 == place) {
                here.maps.swap_remove(nth);
            }
            let over = here.maps.is_empty();
            (
                over.then(|| here.pages.take()).flatten(),
                over && here.opened == 0,
            )
        };
        let Some(pages) = pages else {
            return Ok(());
        };
        // Its pages go home.
        drop(pages);
        if last {
            return self.forget(self.member);
        }
        let ours = 1u64 << self.member.node.id();
        self.change(|row, _| {
            row.mappers &= !ours;
            Ok(())
        })
    }

    /// What this node has written of it goes home.
    pub fn keep(&self) -> Done {
        let _inside = Inside::enter();
        let pages = self.here().pages.clone();
        if let Some(pages) = pages {
            pages.bring_home()?;
        }
        self.member.sync()
    }

    /// The same of some of its bytes, mapped or not, for a program that asks for it.
    pub fn sync(&self, bytes: Range<u64>) -> Done {
        let _inside = Inside::enter();
        let (pages, region) = {
            let here = self.here();
            let region = here.region.as_ref().map(|(_, region)| region.clone());
            (here.pages.clone(), region)
        };
        // A process that has no region has written nothing.
        if let Some(region) = region {
            let end = bytes.end.min(self.row()?.room);
            let bytes = bytes.start.min(end)..end;
            match pages {
                Some(pages) => {
                    pages.bring_home_of(bytes.start as usize..bytes.end as usize)?;
                }
                None => self.sync_blocks(&region, bytes)?,
            }
        }
        self.member.sync()
    }

    pub(super) fn sync_blocks(&self, region: &Region, bytes: Range<u64>) -> Done {
        let node = &self.member.node;
        for at in bytes.step_by(node.block_size()) {
            node.evict(region.addr() + at)?;
        }
        Ok(())
    }
}
