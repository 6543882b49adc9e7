//! What a member remembers after a restart, and when it must not count.
//!
//! | what is found | it is | so |
//! |---|---|---|
//! | a bad record, and none behind it | torn: cut off before its sync was over | the file is cut there |
//! | zeros as far as a block, and nothing or the first record of a batch behind them | the end of a batch | read on |
//! | a bad record, and a good one of the same batch behind it | torn likewise | cut there |
//! | a bad record, and a good one of a later batch behind it, or a later file | something is lost that was durable once | refused |
//! | a number that is missing | likewise | refused |
//! | a checkpoint that is not whole | it had its name when it was whole | refused |
//! | a line that is none of the group's | damaged, or not ours | refused |
//!
//! A tail that is lost whole, with nothing behind it, looks as if it had never been written: a disk
//! that lies about what it has synced can do that, and no member can see it by itself.

use super::record::{
    BLOCK, Entry, FILE_HEADER, FileHeader, FileKind, Identity, Record, Seed, read,
};
use crate::abd::{Defect, Replica, Stamp};
use crate::wire::Tag;
use alloc::collections::BTreeMap;

/// Why a store's member must not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lost {
    /// The file's header is damaged, or the file is none of a store.
    Header,
    /// The store is of another rack, group, or of other lines; or the file is another store's.
    Other(Identity),
    /// A record at this offset is damaged, and it was durable.
    Damaged {
        /// In the file.
        offset: u64,
    },
    /// A record is missing, from this number on.
    Missing {
        /// The first that is.
        number: u64,
    },
}

/// What a file's records are followed by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Found {
    /// Good bytes: the file is cut here if it is longer.
    pub good: u64,
    /// Whether something behind them was cut off.
    pub torn: bool,
}

/// The highest stamp of each line, and the config: what records say together. Their order says
/// nothing, since members make lines durable in any order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replay {
    /// Lines, by their tags.
    pub stamps: BTreeMap<Tag, Stamp>,
    /// The config that the member lives by.
    pub config: u32,
}

impl Replay {
    /// What a record says. `true`: the line's content is that of this record.
    pub fn take(&mut self, entry: &Entry<'_>, defect: Option<Defect>) -> bool {
        match *entry {
            Entry::Line { tag, stamp, .. } => {
                let known = self.stamps.entry(tag).or_default();
                let newer = stamp > *known || defect == Some(Defect::ReplayInOrder);
                if newer {
                    *known = stamp;
                }
                newer
            }
            Entry::Config(number) => {
                let forgets = defect == Some(Defect::ForgetConfig);
                self.config = if forgets { 0 } else { self.config.max(number) };
                false
            }
            Entry::End(_) => false,
        }
    }

    /// The member's copies, as far as they are not bytes.
    pub fn replica(&self) -> Replica {
        let mut replica = Replica::new(true);
        for (tag, stamp) in &self.stamps {
            replica.restore(*tag, *stamp);
        }
        replica.lives_by(self.config);
        replica
    }
}

/// Reads a store: first its newest checkpoint, if there is one, then its journals in order.
#[derive(Clone, Debug)]
pub struct Recovery {
    identity: Identity,
    /// The number that comes next.
    next: u64,
    /// The first one that is in no checkpoint, and whether the journal that begins with it is
    /// there.
    base: u64,
    has_base: bool,
    replay: Replay,
}

impl Recovery {
    /// Of a store whose files name it so.
    pub fn new(identity: Identity) -> Self {
        Recovery {
            identity,
            next: 1,
            base: 1,
            has_base: false,
            replay: Replay::default(),
        }
    }

    /// The number that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What was found.
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    fn header(&self, bytes: &[u8], named: (FileKind, u64)) -> Result<FileHeader, Lost> {
        let header = FileHeader::decode(bytes).ok_or(Lost::Header)?;
        if header.identity != self.identity {
            return Err(Lost::Other(header.identity));
        }
        match (header.kind, header.first) == named {
            true => Ok(header),
            false => Err(Lost::Header),
        }
    }

    /// Whether a record may be one of this store's.
    fn fits(&self, record: &Record<'_>) -> bool {
        let Identity { group, layout, .. } = self.identity;
        match record.entry {
            Entry::Line { tag, stamp, bytes } => {
                layout.has(group, tag)
                    && bytes.len() == layout.line as usize
                    && stamp != Stamp::NONE
            }
            Entry::Config(_) | Entry::End(_) => true,
        }
    }

    /// A checkpoint, by the number of its name: it is whole, or the store is damaged.
    pub fn checkpoint(
        &mut self,
        bytes: &[u8],
        first: u64,
        mut apply: impl FnMut(&Entry<'_>),
    ) -> Result<(), Lost> {
        let header = self.header(bytes, (FileKind::Checkpoint, first))?;
        let (seed, mut at, mut records) = (header.seed(), FILE_HEADER, 0u64);
        loop {
            let offset = at as u64;
            let rest = bytes.get(at..).unwrap_or_default();
            let record = read(rest, (seed, offset)).filter(|record| self.fits(record));
            let record = record.ok_or(Lost::Damaged { offset })?;
            at += record.len;
            match record.entry {
                Entry::End(count) if count == records && at == bytes.len() => break,
                Entry::End(_) => return Err(Lost::Damaged { offset }),
                _ => {}
            }
            records += 1;
            if self.replay.take(&record.entry, None) {
                apply(&record.entry);
            }
        }
        (self.next, self.base) = (header.first, header.first);
        Ok(())
    }

    /// A journal, by the number of its name: in the order of these.
    pub fn journal(
        &mut self,
        bytes: &[u8],
        first: u64,
        mut apply: impl FnMut(&Entry<'_>),
    ) -> Result<Found, Lost> {
        let header = self.header(bytes, (FileKind::Journal, first))?;
        if header.first > self.next {
            return Err(Lost::Missing { number: self.next });
        }
        let (seed, mut at, mut number) = (header.seed(), FILE_HEADER, header.first);
        while at < bytes.len() {
            let offset = at as u64;
            let record = read(&bytes[at..], (seed, offset));
            let Some(record) = record else {
                match behind_padding(bytes, (seed, at)) {
                    Some(next) => at = next,
                    None => break,
                }
                continue;
            };
            if record.number != number || record.batch > number || !self.fits(&record) {
                return Err(Lost::Damaged { offset });
            }
            at += record.len;
            number += 1;
            // What a checkpoint has is read for its numbers only.
            if record.number >= self.next && self.replay.take(&record.entry, None) {
                apply(&record.entry);
            }
        }
        let torn = at < bytes.len();
        if torn && promised(&bytes[at..], (seed, at as u64), number) {
            return Err(Lost::Damaged { offset: at as u64 });
        }
        // It goes over what another journal has, and ends before that: none was ever begun so, and
        // what the store writes next would not follow upon its last record.
        if header.first >= self.base && number < self.next {
            return Err(Lost::Damaged { offset: at as u64 });
        }
        self.has_base |= header.first == self.base;
        self.next = self.next.max(number);
        Ok(Found {
            good: at as u64,
            torn,
        })
    }

    /// All files have been read. The journal that begins where the checkpoint ends was there before
    /// that had its name, as was the first one: without it, what it had is missing.
    pub fn finish(&self) -> Result<(), Lost> {
        match self.has_base {
            true => Ok(()),
            false => Err(Lost::Missing { number: self.base }),
        }
    }
}

/// Where the next batch begins, if what follows is the rest of the last one's block.
fn behind_padding(bytes: &[u8], (seed, at): (Seed, usize)) -> Option<usize> {
    let next = at.next_multiple_of(BLOCK).min(bytes.len());
    let zeros = bytes[at..next].iter().all(|byte| *byte == 0);
    // A record in the middle of a batch: what is missing before it belongs to that.
    let goes_on = |record: Record<'_>| record.number != record.batch;
    let torn = read(&bytes[next..], (seed, next as u64)).is_some_and(goes_on);
    (next > at && zeros && !torn).then_some(next)
}

/// Whether behind a bad record, which should have this number, a good one of a later batch follows:
/// then the bad one was durable when that was written.
fn promised(bytes: &[u8], (seed, offset): (Seed, u64), number: u64) -> bool {
    let places = (8..bytes.len()).step_by(8);
    let mut records = places.filter_map(|at| read(&bytes[at..], (seed, offset + at as u64)));
    records.any(|record| record.batch > number)
}

#[cfg(test)]
mod tests {
    use super::super::log::Log;
    use super::super::record::RECORD_HEADER;
    use super::*;
    use crate::abd::{Layout, first_line};
    use alloc::{vec, vec::Vec};

    fn identity() -> Identity {
        Identity {
            rack: 1,
            group: 2,
            layout: Layout::new(64, 4096).unwrap(),
            store: 3,
        }
    }

    fn file(kind: FileKind, first: u64) -> FileHeader {
        let identity = identity();
        FileHeader {
            identity,
            kind,
            first,
        }
    }

    const LINE: [u8; 64] = [7; 64];

    fn line(nth: u64, stamp: u64) -> Entry<'static> {
        let tag = Tag(first_line(2).0 + nth * 64);
        let (stamp, bytes) = (Stamp(stamp), &LINE[..]);
        Entry::Line { tag, stamp, bytes }
    }

    /// A journal of batches, and where each begins.
    fn journal(first: u64, batches: &[&[Entry<'_>]]) -> (Vec<u8>, Vec<usize>) {
        let header = file(FileKind::Journal, first);
        let mut log = Log::new(header, 0, first);
        let (mut bytes, mut at) = (header.encode().to_vec(), vec![]);
        for batch in batches {
            at.push(bytes.len());
            for entry in *batch {
                log.put(entry, ()).unwrap();
            }
            bytes.extend(log.take().unwrap());
            log.durable();
        }
        (bytes, at)
    }

    fn recovered(files: &[&[u8]]) -> Result<(Recovery, Vec<Found>), Lost> {
        let mut recovery = Recovery::new(identity());
        let found = files.iter().map(|file| {
            let first = file
                .get(48..56)
                .map_or([0; 8], |first| first.try_into().unwrap());
            recovery.journal(file, u64::from_le_bytes(first), |_| ())
        });
        let found = found.collect::<Result<_, _>>()?;
        recovery.finish()?;
        Ok((recovery, found))
    }

    #[test]
    fn the_highest_stamp_stays_whatever_the_order() {
        let (bytes, _) = journal(1, &[&[line(0, 9)], &[line(0, 5), Entry::Config(4)]]);
        let (recovery, found) = recovered(&[&bytes]).unwrap();
        let replay = recovery.replay();
        assert_eq!(replay.stamps[&first_line(2)], Stamp(9));
        assert_eq!((replay.config, recovery.next()), (4, 4));
        assert!(!found[0].torn && found[0].good == bytes.len() as u64);
        assert_eq!(replay.replica().stamp(first_line(2)), Stamp(9));
    }

    /// The same with batches that take whole blocks.
    fn journal_in_blocks(batches: &[&[Entry<'_>]]) -> (Vec<u8>, Vec<usize>) {
        let header = file(FileKind::Journal, 1);
        let mut log = Log::new(header, 0, 1).in_blocks(BLOCK);
        let (mut bytes, mut at) = (header.encode().to_vec(), vec![]);
        for batch in batches {
            at.push(bytes.len());
            for entry in *batch {
                log.put(entry, ()).unwrap();
            }
            bytes.extend(log.take().unwrap());
            log.durable();
            assert_eq!(bytes.len() % BLOCK, 0);
        }
        (bytes, at)
    }

    #[test]
    fn a_batch_that_a_device_destroys_takes_nothing_of_others_with_it() {
        let many: Vec<Entry<'_>> = (0..60).map(|nth| line(nth, 2)).collect();
        let batches: [&[Entry<'_>]; 3] = [&[line(0, 1)], &many, &[Entry::Config(4), line(1, 3)]];
        let (bytes, at) = journal_in_blocks(&batches);
        let (recovery, found) = recovered(&[&bytes]).unwrap();
        assert_eq!((recovery.next(), found[0].torn), (64, false));
        assert_eq!(found[0].good as usize, bytes.len());
        // Any block of the last batch, as zeros, as anything else, or not there.
        for (nth, before) in [(2, 62), (1, 2)] {
            let end = at.get(nth + 1).copied().unwrap_or(bytes.len());
            let whole = &bytes[..end];
            for block in (at[nth]..end).step_by(BLOCK) {
                for garbage in [0, 0x5a] {
                    let mut bytes = whole.to_vec();
                    bytes[block..][..BLOCK].fill(garbage);
                    let (recovery, _) = recovered(&[&bytes]).unwrap();
                    assert!(recovery.next() >= before, "{nth} {block} {garbage}");
                }
                let (recovery, found) = recovered(&[&whole[..block]]).unwrap();
                assert!(recovery.next() >= before && found[0].good as usize <= block);
            }
        }
        // A block of one in the middle was durable, and is missed.
        for garbage in [0, 0x5a] {
            let mut bytes = bytes.clone();
            bytes[at[1]..][..BLOCK].fill(garbage);
            assert!(recovered(&[&bytes]).is_err(), "{garbage}");
        }
    }

    /// Zeros in place of a record of a batch are no end of a batch.
    #[test]
    fn a_hole_that_ends_with_a_block_is_torn() {
        let of_a_block = (BLOCK - FILE_HEADER) / (RECORD_HEADER + LINE.len());
        let many: Vec<Entry<'_>> = (0..60).map(|nth| line(nth, 2)).collect();
        let (bytes, _) = journal_in_blocks(&[&many]);
        for from in (0..of_a_block).map(|nth| FILE_HEADER + nth * (RECORD_HEADER + LINE.len())) {
            let mut bytes = bytes.clone();
            bytes[from..BLOCK].fill(0);
            let (recovery, found) = recovered(&[&bytes]).unwrap();
            assert!(found[0].torn && recovery.next() < 60, "{from}");
        }
    }

    #[test]
    fn a_torn_batch_is_cut_and_what_was_durable_before_it_stays() {
        let first: &[Entry<'_>] = &[line(0, 1), line(1, 2)];
        let last: &[Entry<'_>] = &[line(0, 3), line(1, 4), line(2, 5)];
        let (bytes, at) = journal(1, &[first, last]);
        for end in at[1]..bytes.len() {
            let (recovery, found) = recovered(&[&bytes[..end]]).unwrap();
            assert!(recovery.next() >= 3 && found[0].good as usize <= end);
            assert_eq!(found[0].torn, found[0].good as usize != end);
        }
        // Pages of a batch reach the disk in any order: its first record is bad, its last one is
        // good.
        for hole in (at[1]..bytes.len()).step_by(8) {
            let mut bytes = bytes.clone();
            bytes[hole] ^= 1;
            let (recovery, found) = recovered(&[&bytes]).unwrap();
            assert!(recovery.next() >= 3 && found[0].torn);
        }
    }

    #[test]
    fn a_journal_that_ends_before_another_is_refused() {
        let (whole, _) = journal(1, &[&[line(0, 1), line(1, 2), line(2, 3)]]);
        let (short, _) = journal(2, &[&[line(0, 4)]]);
        let refused = recovered(&[&whole, &short]).unwrap_err();
        assert!(matches!(refused, Lost::Damaged { .. }), "{refused:?}");
        let (next, _) = journal(4, &[&[line(0, 4)]]);
        assert_eq!(recovered(&[&whole, &next]).unwrap().0.next(), 5);
    }

    #[test]
    fn damage_before_a_later_batch_is_refused_wherever_it_is() {
        let (bytes, at) = journal(1, &[&[line(0, 1), line(1, 2)], &[line(0, 3)]]);
        for bit in 64 * 8..at[1] * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let lost = recovered(&[&bytes]).map(|_| ());
            assert!(
                matches!(lost, Err(Lost::Damaged { .. })),
                "bit {bit}: {lost:?}"
            );
        }
        for bit in 0..64 * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(recovered(&[&bytes]).map(|_| ()), Err(Lost::Header));
        }
    }

    #[test]
    fn a_number_that_is_missing_is_refused() {
        let (one, at) = journal(1, &[&[line(0, 1)], &[line(0, 2)]]);
        let (two, _) = journal(3, &[&[line(0, 3)]]);
        assert!(recovered(&[&one, &two]).is_ok());
        let missing = |files: &[&[u8]]| recovered(files).map(|_| ());
        let lost = |number| Err(Lost::Missing { number });
        assert_eq!(missing(&[&one[..at[1]], &two]), lost(2));
        assert_eq!(missing(&[&one[..at[0]], &two]), lost(1));
        assert_eq!(missing(&[&two]), lost(1));
        assert_eq!(missing(&[]), lost(1));
    }

    #[test]
    fn files_of_others_are_refused() {
        let (bytes, _) = journal(1, &[&[line(0, 1)]]);
        let mut other = identity();
        other.rack = 8;
        let lost = Recovery::new(other).journal(&bytes, 1, |_| ());
        assert_eq!(lost, Err(Lost::Other(identity())));
        // A line of another group in a file of this one.
        let tag = first_line(1);
        let (stamp, bytes) = (Stamp(1), &LINE[..]);
        let (bytes, _) = journal(1, &[&[Entry::Line { tag, stamp, bytes }]]);
        let lost = recovered(&[&bytes]).map(|_| ());
        assert_eq!(lost, Err(Lost::Damaged { offset: 64 }));
    }

    #[test]
    fn a_checkpoint_is_whole_or_refused_and_needs_the_journal_behind_it() {
        let header = file(FileKind::Checkpoint, 3);
        let mut bytes = header.encode().to_vec();
        let entries = [line(0, 9), Entry::Config(2), Entry::End(2)];
        for (nth, entry) in entries.iter().enumerate() {
            let at = (header.seed(), bytes.len() as u64);
            super::super::write(&mut bytes, at, (nth as u64, 0), entry);
        }
        let (behind, _) = journal(3, &[&[line(1, 4)]]);
        let (before, _) = journal(1, &[&[line(0, 1), line(0, 9)]]);
        let other = Recovery::new(identity()).checkpoint(&bytes, 4, |_| ());
        assert_eq!(other, Err(Lost::Header));
        for files in [&[(3, &behind[..])][..], &[(1, &before), (3, &behind)]] {
            let mut recovery = Recovery::new(identity());
            recovery.checkpoint(&bytes, 3, |_| ()).unwrap();
            for (first, file) in files {
                recovery.journal(file, *first, |_| ()).unwrap();
            }
            assert_eq!((recovery.finish(), recovery.next()), (Ok(()), 4));
            let stamps: Vec<u64> = recovery.replay().stamps.values().map(|s| s.0).collect();
            assert_eq!(stamps, [9, 4]);
        }
        let mut recovery = Recovery::new(identity());
        recovery.checkpoint(&bytes, 3, |_| ()).unwrap();
        recovery.journal(&before, 1, |_| ()).unwrap();
        assert_eq!(recovery.finish(), Err(Lost::Missing { number: 3 }));
        for end in 0..bytes.len() {
            let cut = Recovery::new(identity()).checkpoint(&bytes[..end], 3, |_| ());
            assert!(cut.is_err(), "{end}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let lost = Recovery::new(identity()).checkpoint(&bytes, 3, |_| ());
            assert!(lost.is_err(), "bit {bit}");
        }
    }
}
