//! A store in a folder that all processes of the rack see.
//!
//! Every version of the roster is a file of its own, `view-N`, and so is every version of the
//! groups, `groups-N`; the newest is the highest.
//! It is written beside and linked to its name, which fails when the name exists: that is the
//! compare-and-set, and there is no lock that a stopped process could hold. A process may be killed
//! at any moment; what it leaves is at worst a file that nobody reads. Nothing replaces a file by a
//! rename, for which some file systems wait for the disk (`beat_file.rs`).

use super::{Beat, Groups, MembershipError, Result, Role, Roster, Snapshot, Store};
use super::{beat_file, group_text, text};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Versions that are kept, so that whoever is reading an old one finds it.
const KEPT: u64 = 64;
/// How often a look begins again when the version it was about to read has been removed meanwhile.
const ATTEMPTS: usize = 16;
/// How names of versions of the roster begin.
const VIEW: &str = "view-";
/// How those of the groups do.
const GROUPS: &str = "groups-";
/// How names of files begin that are being written.
const DRAFT: &str = "draft-";
/// Nobody writes one for so long.
const ABANDONED: Duration = Duration::from_secs(3600);

/// For the processes of one machine, or of several that share a file system on which links are
/// atomic.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::membership::{Folder, Store};
/// use std::time::Duration;
///
/// let path = std::env::temp_dir().join(format!("rackmem-doc-{}", std::process::id()));
/// let store = Folder::open(&path)?;
/// assert!(store.load(Duration::from_secs(1))?.roster.is_none());
/// # let _ = std::fs::remove_dir_all(&path);
/// # Ok(())
/// # }
/// ```
pub struct Folder {
    path: PathBuf,
    /// What this store's own files are called while they are written.
    token: u64,
    drafts: AtomicU64,
}

impl Folder {
    /// In this folder, which is made if it is not there.
    pub fn open(path: &Path) -> Result<Folder> {
        fs::create_dir_all(path).map_err(|error| file(path, error))?;
        let folder = Folder {
            path: path.to_path_buf(),
            token: fastrand::u64(..),
            drafts: AtomicU64::new(0),
        };
        folder.remove_drafts();
        Ok(folder)
    }

    /// The highest version of this of which there is a file.
    fn newest(&self, of: &str) -> Result<Option<u64>> {
        let entries = fs::read_dir(&self.path).map_err(|error| file(&self.path, error))?;
        let mut newest = None;
        for entry in entries {
            let name = entry.map_err(|error| file(&self.path, error))?.file_name();
            newest = newest.max(version(of, &name.to_string_lossy()));
        }
        Ok(newest)
    }

    /// The newest version of this.
    fn load_newest<T>(
        &self,
        of: &str,
        max: usize,
        parse: impl Fn(&[u8]) -> std::result::Result<(u64, T), String>,
    ) -> Result<Option<T>> {
        for _ in 0..ATTEMPTS {
            let Some(version) = self.newest(of)? else {
                return Ok(None);
            };
            let path = self.path.join(version_name(of, version));
            let read = read(&path, max).map_err(|error| file(&path, error))?;
            let Some(bytes) = read else {
                continue;
            };
            let (says, found) = parse(&bytes).map_err(|why| garbage(&path, why))?;
            if says != version {
                return Err(garbage(&path, "it is another version".into()));
            }
            return Ok(Some(found));
        }
        let error = std::io::Error::other("it changes faster than it can be read");
        Err(file(&self.path, error))
    }

    fn roster(&self) -> Result<Option<Roster>> {
        self.load_newest(VIEW, text::MAX, |bytes| {
            text::to_roster(bytes).map(|roster| (roster.view.version, roster))
        })
    }

    /// Gives a version its name, if it is the one after the newest.
    fn put_version(&self, of: &str, version: u64, text: &str) -> Result<bool> {
        if self.newest(of)?.unwrap_or(0).checked_add(1) != Some(version) {
            return Ok(false);
        }
        let path = self.path.join(version_name(of, version));
        match self.publish(text, |draft| fs::hard_link(draft, &path)) {
            Ok(()) => {
                let newest = self.newest(of)?.unwrap_or(version);
                self.clean(of, newest);
                // Since we looked, others may have stored so many that the file of this version was
                // removed as old, and we have made it anew. That does no harm:
                // it is not the newest.
                Ok(version.saturating_add(KEPT) >= newest)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(file(&path, error)),
        }
    }

    /// Writes a text beside, and gives it its name by `place`.
    fn publish(
        &self,
        text: &str,
        place: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let number = self.drafts.fetch_add(1, Relaxed);
        let draft = self
            .path
            .join(format!("{DRAFT}{:016x}-{number}", self.token));
        let done = fs::write(&draft, text).and_then(|()| place(&draft));
        let _ = fs::remove_file(&draft);
        done
    }

    /// Removes what processes left that were killed while they wrote.
    fn remove_drafts(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|it| it.modified());
            let age = modified.ok().and_then(|time| time.elapsed().ok());
            let is_draft = entry.file_name().to_string_lossy().starts_with(DRAFT);
            if is_draft && age.is_some_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes what is so old that nobody reads it. Whoever is just storing such a version has lost
    /// anyway.
    fn clean(&self, of: &str, newest: u64) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let version = version(of, &entry.file_name().to_string_lossy());
            if version.is_some_and(|version| version.saturating_add(KEPT) < newest) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Store for Folder {
    fn load(&self, _: Duration) -> Result<Snapshot> {
        let mut snapshot = Snapshot {
            roster: self.roster()?,
            ..Snapshot::default()
        };
        for role in snapshot.roster.iter().flat_map(Roster::held) {
            let path = self.path.join(text::name(role));
            let beat = beat_file::load(&path).map_err(|error| file(&path, error))?;
            let whole = beat.transpose().map_err(|why| garbage(&path, why))?;
            snapshot.beats[role.index()] = whole;
        }
        Ok(snapshot)
    }

    fn propose(&self, next: &Roster, _: Duration) -> Result<bool> {
        self.put_version(VIEW, next.view.version, &text::of_roster(next))
    }

    fn beat(&self, role: Role, beat: Beat, _: Duration) -> Result<()> {
        let path = self.path.join(text::name(role));
        let text = beat_file::text_of(beat);
        let done = match beat_file::overwrite(&path, &text) {
            Ok(false) => self.publish(&text, |draft| fs::rename(draft, &path)),
            done => done.map(drop),
        };
        done.map_err(|error| file(&path, error))
    }

    fn groups(&self, _: Duration) -> Result<Option<Groups>> {
        self.load_newest(GROUPS, group_text::MAX, |bytes| {
            group_text::to_groups(bytes).map(|groups| (groups.version, groups))
        })
    }

    fn propose_groups(&self, next: &Groups, _: Duration) -> Result<bool> {
        self.put_version(GROUPS, next.version, &group_text::of_groups(next))
    }
}

fn version_name(of: &str, version: u64) -> String {
    format!("{of}{version}")
}

fn version(of: &str, name: &str) -> Option<u64> {
    name.strip_prefix(of)?.parse().ok()
}

/// The bytes of a file, or none if it is not there. Reads little more than a text may have.
pub(super) fn read(path: &Path, max: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(path);
    match opened.and_then(|it| it.take(max as u64 + 1).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn file(path: &Path, error: std::io::Error) -> MembershipError {
    let path = path.to_path_buf();
    MembershipError::File { path, error }
}

fn garbage(path: &Path, why: String) -> MembershipError {
    let place = path.display().to_string();
    MembershipError::Garbage { place, why }
}
