//! Changes to a page. The page is held exclusively, so nothing here is torn.

use rackmem::window::WindowMut;

use super::kind::Kind;
use super::page::*;

/// Bytes or a place to be stored as a record's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Inline(&'a [u8]),
    Extent {
        extent: Extent,
        len: usize,
    },
    /// A collection's trees.
    Head {
        kind: Kind,
        bytes: &'a [u8],
    },
}

impl Payload<'_> {
    /// Bytes it takes in the record.
    pub fn stored_len(&self) -> usize {
        match self {
            Self::Inline(bytes) | Self::Head { bytes, .. } => bytes.len(),
            Self::Extent { .. } => EXTENT_REF,
        }
    }
}

/// A page to change.
pub(crate) struct PageMut<'a, 'v> {
    view: &'a mut WindowMut<'v>,
    geometry: &'a Geometry,
}

impl<'a, 'v> PageMut<'a, 'v> {
    /// The page, or as much of it as its header takes and more when it is needed; made an empty one
    /// when it is not one yet.
    #[inline]
    pub fn new(view: &'a mut WindowMut<'v>, geometry: &'a Geometry) -> Self {
        let mut page = Self { view, geometry };
        if !page.page().initialized() {
            page.format();
        }
        page
    }

    /// Empties the page, whatever it held.
    pub fn format(&mut self) {
        for at in (0..HEADER).step_by(8) {
            self.view.set_u64(at, 0);
        }
        self.view.set_u64(0, self.geometry.magic);
        // A bucket that is lost and made anew must not come by a version that somebody remembers.
        self.view.set_u64(VERSION, fastrand::u64(..) >> 16);
        self.set_used(HEADER, 0);
    }

    #[inline]
    pub fn page(&self) -> Page<'_> {
        Page::new(**self.view, self.geometry)
    }

    pub fn set_version(&mut self, version: u64) {
        self.view.set_u64(VERSION, version);
    }

    pub fn set_epoch(&mut self, epoch: u64) {
        self.view.set_u64(EPOCH, epoch);
    }

    pub fn set_next(&mut self, addr: u64) {
        self.view.set_u64(NEXT, addr);
    }

    pub fn set_deleted(&mut self, version: u64) {
        self.view.set_u64(DELETED, version);
    }

    pub fn set_soonest(&mut self, time: u64) {
        self.view.set_u64(SOONEST, time);
    }

    pub fn set_watchers(&mut self, nodes: u64) {
        self.view.set_u64(WATCHERS, nodes);
    }

    /// Lowers the time of the first expiry to `expiry`, unless that means never; whether it was
    /// later.
    #[inline]
    pub fn note_expiry(&mut self, expiry: u64) -> bool {
        let soonest = self.page().soonest();
        let nearer = expiry != 0 && (soonest == 0 || expiry < soonest);
        if nearer {
            self.set_soonest(expiry);
        }
        nearer
    }

    fn set_used(&mut self, used: usize, count: usize) {
        const { assert!(COUNT == USED + 4) };
        let rest = self.view.u64(USED) & 0xffff_0000;
        self.view
            .set_u64(USED, used as u64 | rest | (count as u64) << 32);
    }

    /// Which of its number's bits are those of its keys' hashes, and whether that is doubtful.
    pub fn set_depth(&mut self, depth: u8, doubt: bool) {
        let rest = self.view.u64(USED) & !0xffff_0000;
        let depth = u64::from(depth) << 16 | u64::from(doubt) << 24;
        self.view.set_u64(USED, rest | depth);
    }

    /// The page is as if it was never written.
    pub fn erased(view: &mut WindowMut<'_>) {
        for at in (0..HEADER).step_by(8) {
            view.set_u64(at, 0);
        }
    }

    /// The bucket's head page is elsewhere from now on.
    pub fn moved(view: &mut WindowMut<'_>, geometry: &Geometry) {
        Self::erased(view);
        view.set_u64(0, geometry.magic);
        view.set_u64(USED, HEADER as u64 | MOVED << 24);
    }

    /// Takes these records in the place of its own, packed as they are in pages.
    pub fn replace_records(&mut self, records: &[u8], count: usize, next: u64) {
        self.view.grow(HEADER + records.len());
        self.view.write(HEADER, records);
        self.set_used(HEADER + records.len(), count);
        self.set_next(next);
    }

    /// Takes over all that a bucket's head page says of the bucket.
    pub fn set_header(&mut self, header: &[u64; HEADER / 8]) {
        for (word, value) in header.iter().enumerate() {
            self.view.set_u64(word * 8, *value);
        }
    }

    /// Is again what it was, of which these are the bytes; but for its version, which goes on, and
    /// the nodes that watch it, which are no fewer.
    pub fn put_back(&mut self, bytes: &[u8]) {
        let (version, watchers) = (self.page().version(), self.page().watchers());
        match bytes.is_empty() {
            true => {
                self.set_used(HEADER, 0);
                self.set_next(0);
                self.set_soonest(0);
            }
            false => {
                self.view.grow(bytes.len());
                self.view.write(0, bytes);
            }
        }
        self.set_version(version + 1);
        self.set_watchers(self.page().watchers() | watchers);
    }

    /// Whether a record of `size` bytes fits once `old` is gone.
    pub fn fits(&self, size: usize, old: Option<&Record>) -> bool {
        self.page().used() - old.map_or(0, |r| r.size) + size <= self.geometry.page
    }

    /// Stores a record in the place of `old`; `false`, and nothing changed,
    /// when the page has no room.
    pub fn put(
        &mut self,
        id: &KeyId<'_>,
        old: Option<&Record>,
        payload: &Payload<'_>,
        expiry: u64,
        stamp: u64,
    ) -> bool {
        let size = record_size(id.key.len(), payload.stored_len());
        let (at, size) = match old {
            // Room to spare stays with the record, unless it is most of it.
            Some(old) if size <= old.size && old.size <= size * 2 => (old.at, old.size),
            _ => {
                if !self.fits(size, old) {
                    return false;
                }
                if let Some(old) = old {
                    self.remove(old);
                }
                let (used, count) = (self.page().used(), self.page().count());
                self.view.grow(used + size);
                self.set_used(used + size, count + 1);
                (used, size)
            }
        };
        self.fill(at, size, id, payload, expiry, stamp);
        true
    }

    fn fill(
        &mut self,
        at: usize,
        size: usize,
        id: &KeyId<'_>,
        payload: &Payload<'_>,
        expiry: u64,
        stamp: u64,
    ) {
        let value_at = at + RECORD + id.key.len().next_multiple_of(8);
        let (flags, len) = match payload {
            Payload::Inline(bytes) => {
                self.view.write(value_at, bytes);
                (0, bytes.len())
            }
            Payload::Head { kind, bytes } => {
                self.view.write(value_at, bytes);
                ((*kind as u64) << 1, bytes.len())
            }
            Payload::Extent { extent, len } => {
                self.view.set_u64(value_at, extent.addr);
                self.view.set_u64(value_at + 8, extent.capacity as u64);
                (EXTENT, *len)
            }
        };
        self.view.set_u64(at, id.word() | flags << 56);
        self.view.set_u64(at + 8, len as u64 | (size as u64) << 32);
        self.view.set_u64(at + 16, expiry);
        self.view.set_u64(at + 24, stamp);
        self.view.write(at + RECORD, id.key);
    }

    /// Takes a record out and closes the gap.
    pub fn remove(&mut self, record: &Record) {
        let (used, count) = (self.page().used(), self.page().count());
        let end = record.at + record.size;
        self.view.copy_within(end, record.at, used - end);
        self.set_used(used - record.size, count.saturating_sub(1));
    }

    pub fn set_record_expiry(&mut self, record: &Record, expiry: u64, stamp: u64) {
        self.view.set_u64(record.at + 16, expiry);
        self.view.set_u64(record.at + 24, stamp);
    }

    /// A record's key is of this database.
    pub fn set_record_db(&mut self, record: &Record, db: u8, stamp: u64) {
        let rest = self.view.u64(record.at) & !(0xff << DB_SHIFT);
        self.view
            .set_u64(record.at, rest | u64::from(db) << DB_SHIFT);
        self.view.set_u64(record.at + 24, stamp);
    }

    /// A record's value lies elsewhere, as long as before and the same.
    pub fn set_record_addr(&mut self, record: &Record, addr: u64) {
        self.view.set_u64(record.value_at(), addr);
    }

    /// A record's value in the page is this, as long as before, and means the same.
    pub fn set_record_bytes(&mut self, record: &Record, bytes: &[u8]) {
        let len = bytes.len().min(record.val_len);
        self.view.write(record.value_at(), &bytes[..len]);
    }

    /// Tells a record that its extent now holds `len` bytes.
    pub fn set_record_len(&mut self, record: &Record, len: usize, stamp: u64) {
        self.view
            .set_u64(record.at + 8, len as u64 | (record.size as u64) << 32);
        self.view.set_u64(record.at + 24, stamp);
    }
}
