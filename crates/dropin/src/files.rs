//! Files of the rack: a row of the table, a region with the bytes, and locks.

use crate::answer::{Done, Errno, refuse};
use crate::inside::Inside;
use crate::member::{self, Member};
use crate::settings;
use crate::sync::objects::Objects;
use crate::table::{self, Row, State};
use rackmem::locked::RwLockArray;
use rackmem::{AccessError, CoherentPages, Region, RegionError, RegionSpec};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;
/// Times that something is tried while another node replaces the file's region.
const TRIES: usize = 8;

/// A file that this process uses.
pub struct File {
    pub member: &'static Member,
    row: usize,
    life: u64,
    pub name: String,
    pub locks: RwLockArray,
    pub objects: Objects,
    here: Mutex<Here>,
    /// This process has locked a part of it, at some time.
    locked: AtomicBool,
}

/// What this process has of it.
#[derive(Default)]
struct Here {
    /// Handles of the program's.
    opened: usize,
    /// What the program has mapped: where, and how much.
    maps: Vec<(usize, usize)>,
    region: Option<(u64, Region)>,
    pages: Option<Arc<CoherentPages>>,
}

/// Files by row and life.
type Known = Option<HashMap<(usize, u64), Arc<File>>>;

static FILES: Mutex<Known> = Mutex::new(None);

fn known() -> MutexGuard<'static, Known> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    pub create: bool,
    pub exclusive: bool,
    pub truncate: bool,
    pub mode: u32,
}

/// Opens a file, and makes it if it is wanted and not there. [`File::close`] ends that.
pub fn open(name: &str, how: How) -> Done<Arc<File>> {
    if name.len() > table::NAME {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    let member = member::join()?;
    let _inside = Inside::enter();
    let ours = 1u64 << member.node.id();
    let (at, row) = member.change(|view| {
        let (at, mut row) = match table::find(view, name) {
            Some(_) if how.create && how.exclusive => return Err(Errno(libc::EEXIST)),
            Some(at) => (at, table::row(view, at)),
            None if !how.create => return Err(Errno(libc::ENOENT)),
            None => {
                let Some(at) = table::free(view, member.live(view)) else {
                    let text = format!(
                        "{name}: the rack has {} files, which is as many as it can have; unlink some",
                        table::FILES
                    );
                    return refuse(libc::ENOSPC, &text);
                };
                (at, table::make(view, at, name, how.mode))
            }
        };
        row.users |= ours;
        table::put(view, at, &row);
        Ok((at, row))
    })?;
    let file = {
        let mut known = known();
        let known = known.get_or_insert_default();
        match known.get(&(at, row.life)) {
            Some(file) => file.clone(),
            None => {
                let file = Arc::new(File {
                    member,
                    row: at,
                    life: row.life,
                    name: name.into(),
                    locks: member.locks(at)?,
                    objects: Objects::default(),
                    here: Mutex::default(),
                    locked: AtomicBool::new(false),
                });
                known.insert((at, row.life), file.clone());
                file
            }
        }
    };
    file.here().opened += 1;
    if how.truncate && row.size > 0 {
        file.set_size(0)?;
    }
    Ok(file)
}

/// What is known of a file by its name.
pub fn look_up(name: &str) -> Done<Row> {
    let member = member::join()?;
    let _inside = Inside::enter();
    let found = member.look(|view| table::find(view, name).map(|at| table::row(view, at)))?;
    found.ok_or(Errno(libc::ENOENT))
}

/// Takes a name away. The file is there as long as somebody uses it.
pub fn unlink(name: &str) -> Done {
    let member = member::join()?;
    let _inside = Inside::enter();
    let over = member.change(|view| {
        let at = table::find(view, name).ok_or(Errno(libc::ENOENT))?;
        let mut row = table::row(view, at);
        row.state = State::Unlinked;
        table::put(view, at, &row);
        Ok((row.users & member.live(view) == 0).then_some(at))
    })?;
    over.map_or(Ok(()), |at| free(member, at))
}

/// Gives a file another name; the one that had it has none any more. `alone`: nobody may have it.
pub fn rename(from: &str, to: &str, alone: bool) -> Done {
    if to.len() > table::NAME {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    let member = member::join()?;
    let _inside = Inside::enter();
    let over = member.change(|view| {
        let at = table::find(view, from).ok_or(Errno(libc::ENOENT))?;
        let other = table::find(view, to);
        if alone && other.is_some() {
            return Err(Errno(libc::EEXIST));
        }
        let mut over = None;
        if let Some(other) = other.filter(|other| *other != at) {
            let mut row = table::row(view, other);
            row.state = State::Unlinked;
            table::put(view, other, &row);
            over = (row.users & member.live(view) == 0).then_some(other);
        }
        let mut row = table::row(view, at);
        row.name = to.into();
        table::put(view, at, &row);
        Ok(over)
    })?;
    over.map_or(Ok(()), |at| free(member, at))
}

/// A file without a name and users: its memory is free, and its row.
fn free(member: &Member, at: usize) -> Done {
    member.change(|view| {
        let mut row = table::row(view, at);
        if row.state != State::Unlinked || row.users & member.live(view) != 0 {
            return Ok(());
        }
        if row.room > 0 {
            // Whoever makes the next region of this name removes what is there.
            let _ = member.node.remove_region(&region_name(at, row.version));
        }
        row.state = State::Free;
        row.room = 0;
        table::put(view, at, &row);
        Ok(())
    })
}

/// The region of a version: two names take turns.
fn region_name(row: usize, version: u64) -> String {
    format!("rackmem-file-{row}-{}", version % 2)
}

/// The rack has lost what was at an address of a mapped file. Whether the program goes on with what
/// the file's home has.
pub fn goes_on(at: usize) -> bool {
    let Some((file, offset)) = crate::ranges::find(at) else {
        return false;
    };
    let _inside = Inside::enter();
    let region = file.here().region.clone();
    let Some((_, region)) = region.filter(|_| settings::get().keep) else {
        crate::say::line(&format!(
            "{}: what a dead node had written was nowhere else; with {}=unlock in every node's \
             environment it would be home since that node's last pthread_mutex_unlock()",
            file.name,
            settings::KEEP
        ));
        return false;
    };
    file.member
        .node
        .accept_loss(region.addr() + offset as u64)
        .is_ok()
}

/// All files of this process, when it ends.
pub fn close_all(member: &'static Member) {
    let files: Vec<Arc<File>> = known().iter().flat_map(HashMap::values).cloned().collect();
    for file in files {
        file.abandon();
        // What cannot be sent home is told when the rack is left.
        let _ = file.release_locks();
        let mut here = file.here();
        here.pages = None;
        here.opened = 0;
        here.maps.clear();
        drop(here);
        let _ = file.forget(member);
    }
}

impl File {
    fn here(&self) -> MutexGuard<'_, Here> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which file of its row it is: what lies in its locks' pages is of this one, or of none.
    pub fn life(&self) -> u64 {
        self.life
    }

    pub fn has_locked(&self) {
        self.locked.store(true, Relaxed);
    }

    /// Whether this process may have locked a part of it.
    pub fn is_locked(&self) -> bool {
        self.locked.load(Relaxed)
    }

    /// Its row, as it is now.
    pub fn row(&self) -> Done<Row> {
        let row = self.member.look(|view| table::row(view, self.row))?;
        match row.life == self.life {
            true => Ok(row),
            false => Err(Errno(libc::ESTALE)),
        }
    }

    /// Changes it; `f` is told which nodes live.
    fn change<R>(&self, f: impl FnOnce(&mut Row, u64) -> Done<R>) -> Done<R> {
        self.member.change(|view| {
            let mut row = table::row(view, self.row);
            if row.life != self.life {
                return Err(Errno(libc::ESTALE));
            }
            let before = row.clone();
            let done = f(&mut row, self.member.live(view))?;
            if row != before {
                table::put(view, self.row, &row);
            }
            Ok(done)
        })
    }

    pub fn set_mode(&self, mode: u32) -> Done {
        let _inside = Inside::enter();
        self.change(|row, _| {
            row.mode = mode & 0o7777;
            Ok(())
        })
    }

    /// One handle less.
    pub fn close(&self) -> Done {
        let _inside = Inside::enter();
        let last = {
            let mut here = self.here();
            here.opened = here.opened.saturating_sub(1);
            here.opened == 0 && here.maps.is_empty()
        };
        match last {
            true => self.forget(self.member),
            false => Ok(()),
        }
    }

    /// This node does not use it any more.
    fn forget(&self, member: &'static Member) -> Done {
        let ours = 1u64 << member.node.id();
        let over = self.change(|row, live| {
            row.users &= !ours;
            row.mappers &= !ours;
            Ok(row.state == State::Unlinked && row.users & live == 0)
        })?;
        known()
            .as_mut()
            .map(|known| known.remove(&(self.row, self.life)));
        match over {
            true => free(member, self.row),
            false => Ok(()),
        }
    }

    /// Sees to it that it has a region of so many bytes at least. Nobody else changes its row
    /// meanwhile.
    fn make_room(&self, row: &mut Row, live: u64, bytes: u64) -> Done {
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
        let whole = (node.block_size() as u64).max(64 << 10);
        let room = bytes.max(settings::get().room).next_multiple_of(whole);
        let name = region_name(self.row, row.version + 1);
        // One that a node has left unfinished.
        let _ = node.remove_region(&name);
        let spec = RegionSpec::new(&name, room as usize)
            .on(settings::get().home)
            .renew();
        let region = node.create_region(&spec).or_else(|why| {
            let text = format!("{}: no room for {room} bytes: {why}", self.name);
            refuse(libc::ENOSPC, &text)
        })?;
        if row.room > 0 {
            let before = self.region(row)?;
            copy(&before, &region, row.size.min(row.room) as usize)?;
            let _ = node.remove_region(before.name());
        }
        row.version += 1;
        row.room = room;
        Ok(())
    }

    /// Its region as of a row.
    fn region(&self, row: &Row) -> Done<Region> {
        let mut here = self.here();
        if let Some((version, region)) = &here.region
            && *version == row.version
        {
            return Ok(region.clone());
        }
        let name = region_name(self.row, row.version);
        let spec = RegionSpec::new(&name, row.room as usize).on(settings::get().home);
        let region = self.member.node.open_region(&spec)?;
        here.region = Some((row.version, region.clone()));
        Ok(region)
    }

    /// Its length from now on. What is cut off is zeros if it is ever there again.
    pub fn set_size(&self, size: u64) -> Done {
        let _inside = Inside::enter();
        self.change(|row, live| {
            self.make_room(row, live, size)?;
            if size < row.size {
                let region = self.region(row)?;
                zero(&region, size as usize..row.size.min(row.room) as usize)?;
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
                self.make_room(row, live, size)?;
                row.size = row.size.max(size);
                row.changed = now();
                Ok(())
            }),
            false => Ok(()),
        }
    }

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

    /// Maps it: where byte `at` is.
    pub fn map(self: &Arc<Self>, at: u64, len: usize) -> Done<usize> {
        let _inside = Inside::enter();
        let end = at.checked_add(len as u64).ok_or(Errno(libc::EOVERFLOW))?;
        let ours = 1u64 << self.member.node.id();
        let row = self.change(|row, live| {
            self.make_room(row, live, end.max(row.size))?;
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
        pages.map_or(Ok(()), |pages| Ok(pages.bring_home()?))
    }
}

fn copy(from: &Region, to: &Region, len: usize) -> Done {
    let mut piece = vec![0; PIECE.min(len)];
    for at in (0..len).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(len - at)];
        from.read(at, piece)?;
        to.write(at, piece)?;
    }
    Ok(())
}

fn zero(region: &Region, bytes: Range<usize>) -> Done {
    let zeros = vec![0; PIECE.min(bytes.len())];
    for at in bytes.clone().step_by(PIECE) {
        region.write(at, &zeros[..PIECE.min(bytes.end - at)])?;
    }
    Ok(())
}
