//! Files of the rack: a row of the table, a region with the bytes, and locks.
//!
//! | what | where |
//! |---|---|
//! | names that go, and that are others' | `names.rs` |
//! | how long a file is, and its region | `room.rs` |
//! | reading and writing | `bytes.rs` |
//! | mappings, and what is lost of them | `maps.rs` |

mod bytes;
mod maps;
mod names;
mod room;

pub use maps::goes_on;
pub use names::{rename, unlink};

use crate::answer::{Done, Errno, refuse};
use crate::inside::Inside;
use crate::member::{self, Member};
use crate::settings;
use crate::sync::objects::Objects;
use crate::table::{self, Row, State};
use names::free;
use rackmem::locked::RwLockArray;
use rackmem::{CoherentPages, Region, RegionSpec};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

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

/// The region of a version: two names take turns.
fn region_name(row: usize, version: u64) -> String {
    format!("rackmem-file-{row}-{}", version % 2)
}

/// The region that a row of the table tells of.
fn region(member: &Member, at: usize, row: &Row) -> Done<Region> {
    let name = region_name(at, row.version);
    let spec = RegionSpec::new(&name, row.room as usize).on(settings::get().home);
    Ok(member.node.open_region(&spec)?)
}

/// Removes a region that the table does not tell of any more. Who dies before the table is home has
/// changed nothing, so until then it stays; whoever makes the next region of its name removes it.
fn remove(member: &Member, over: Option<Region>) {
    if let Some(over) = over
        && member.sync().is_ok()
    {
        let _ = over.remove();
    }
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
        self.read_row(|row| Ok(row.clone()))
    }

    /// Does something while nobody changes its row.
    fn read_row<R>(&self, f: impl FnOnce(&Row) -> Done<R>) -> Done<R> {
        self.member.look(|view| {
            let row = table::row(view, self.row);
            match row.life == self.life {
                true => f(&row),
                false => Err(Errno(libc::ESTALE)),
            }
        })?
    }

    /// Changes it; `f` is told which nodes live.
    fn change<R>(&self, f: impl FnOnce(&mut Row, u64) -> Done<R>) -> Done<R> {
        let (done, over) = self.member.change(|view| {
            let mut row = table::row(view, self.row);
            if row.life != self.life {
                return Err(Errno(libc::ESTALE));
            }
            let before = row.clone();
            let done = f(&mut row, self.member.live(view))?;
            if row != before {
                table::put(view, self.row, &row);
            }
            let replaced = before.room > 0 && row.version != before.version;
            let over = replaced.then(|| region(self.member, self.row, &before).ok());
            Ok((done, over.flatten()))
        })?;
        remove(self.member, over);
        Ok(done)
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
}
