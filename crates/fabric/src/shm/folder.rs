//! The files by which processes find each other's memory: `/dev/shm/rackmem-USER-RACK/MEMBER`,
//! for this user only.
//!
//! A member's file belongs to the process that holds the lock on it,
//! which the system takes back when the process has ended. Making and removing files happens under
//! one lock a user, so that nobody removes what another has just made.

use super::map::Mapping;
use super::segment::{START, close};
use super::system;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where Linux keeps files in memory that processes share.
pub(super) const ROOT: &str = "/dev/shm";
/// How long to wait for others who make or remove files. They are quick, unless they are stopped.
const PATIENCE: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(1);

/// Removes the memory that dead members of racks have left behind, of all racks of this user. A
/// process that joins a rack over shared memory does the same first.
///
/// # Errors
/// Those of the system; nothing where there is no shared memory.
pub fn sweep() -> io::Result<()> {
    match Path::new(ROOT).is_dir() {
        true => Folder::open(Path::new(ROOT), "").map(drop),
        false => Ok(()),
    }
}

/// A rack's files.
pub(super) struct Folder {
    root: PathBuf,
    path: PathBuf,
}

impl Folder {
    /// The files of the rack of this name, which is a part of a file name.
    /// Removes what dead racks have left behind.
    pub fn open(root: &Path, rack: &str) -> io::Result<Folder> {
        if !root.is_dir() {
            let what = format!("{}: not there, and shared memory needs it", root.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let path = root.join(format!("{}{rack}", prefix()));
        let folder = Folder {
            root: root.to_owned(),
            path,
        };
        let _lock = folder.lock()?;
        folder.sweep()?;
        Ok(folder)
    }

    /// Makes the file of a member, so many bytes long and ours. [`io::ErrorKind::AddrInUse`] when a
    /// living process has it. Senders to a dead one get an error.
    pub fn claim(&self, member: &str, bytes: u64) -> io::Result<File> {
        let _lock = self.lock()?;
        self.make_folder()?;
        let path = self.path.join(member);
        if !bury(&path)? {
            let what = format!("{}: another process has this place", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)?;
        if !system::claim(&file)? {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        file.set_len(bytes)?;
        Ok(file)
    }

    /// Opens the file of a member, if its owner lives.
    pub fn find(&self, member: &str) -> io::Result<File> {
        let file = open(&self.path.join(member))?;
        match system::claimed(&file) {
            true => Ok(file),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Removes the file of a member, which is ours.
    pub fn release(&self, member: &str, file: &File) -> io::Result<()> {
        let _lock = self.lock()?;
        let path = self.path.join(member);
        let (ours, there) = (file.metadata()?, path.symlink_metadata()?);
        system::disclaim(file)?;
        if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
            std::fs::remove_file(&path)?;
        }
        // Others may have files in it.
        let _ = std::fs::remove_dir(&self.path);
        Ok(())
    }

    fn make_folder(&self) -> io::Result<()> {
        let made = DirBuilder::new().mode(0o700).create(&self.path);
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        let found = self.path.symlink_metadata()?;
        if found.is_dir() && found.uid() == system::user() && found.mode() & 0o077 == 0 {
            return Ok(());
        }
        let what = format!("{}: not a folder of this user alone", self.path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    }

    /// One lock for all racks of a user; its file is never removed.
    fn lock(&self) -> io::Result<File> {
        let name = format!("rackmem-{}.lock", system::user());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.root.join(name))?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(NAP),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Removes files whose owners are dead, and folders that are empty then,
    /// of all racks of this user.
    fn sweep(&self) -> io::Result<()> {
        for folder in std::fs::read_dir(&self.root)?.flatten() {
            let name = folder.file_name();
            let ours = name
                .to_str()
                .is_some_and(|name| name.starts_with(&prefix()));
            let is_folder = folder.file_type().is_ok_and(|kind| kind.is_dir());
            if !ours || !is_folder {
                continue;
            }
            // What cannot be read or removed is another user's, or was removed by hand just now.
            let Ok(files) = std::fs::read_dir(folder.path()) else {
                continue;
            };
            for file in files.flatten() {
                let _ = bury(&file.path());
            }
            let _ = std::fs::remove_dir(folder.path());
        }
        Ok(())
    }
}

fn prefix() -> String {
    format!("rackmem-{}-", system::user())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Removes a file whose owner is dead, and tells all who have it mapped.
/// False when the owner lives.
fn bury(path: &Path) -> io::Result<bool> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if system::claimed(&file) {
        return Ok(false);
    }
    // A file that is too short to be mapped has no users.
    if let Ok(mapping) = Mapping::of(file, START) {
        close(&mapping);
    }
    std::fs::remove_file(path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Root {
            let path = std::env::temp_dir().join(format!("rackmem-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).unwrap();
            Root(path)
        }

        fn files(&self, rack: &str) -> Vec<String> {
            let folder = self.0.join(format!("{}{rack}", prefix()));
            let mut names: Vec<String> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_place_is_had_by_one_and_free_when_it_ends() {
        let root = Root::new("place");
        let folder = Folder::open(&root.0, "a").unwrap();
        let first = folder.claim("node-0", 4096).unwrap();
        assert_eq!(first.metadata().unwrap().mode() & 0o777, 0o600);
        let second = folder.claim("node-0", 4096).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        assert!(folder.find("node-0").is_ok() && folder.find("node-1").is_err());
        // As when its process is killed: the file stays, the lock does not.
        drop(first);
        assert!(folder.find("node-0").is_err());
        let again = folder.claim("node-0", 4096).unwrap();
        assert!(folder.find("node-0").is_ok());
        folder.release("node-0", &again).unwrap();
        assert!(folder.find("node-0").is_err());
        assert!(!folder.path.exists(), "an empty folder is left");
    }

    #[test]
    fn a_successor_tells_those_who_send_to_the_dead() {
        let root = Root::new("successor");
        let folder = Folder::open(&root.0, "a").unwrap();
        let first = folder.claim("switch", 4096).unwrap();
        let sender = Mapping::of(folder.find("switch").unwrap(), START).unwrap();
        let closed = || {
            let words = sender.words().iter();
            words
                .map(|word| word.load(std::sync::atomic::Ordering::SeqCst))
                .sum::<u64>()
        };
        assert_eq!(closed(), 0);
        drop(first);
        let _next = folder.claim("switch", 4096).unwrap();
        assert_eq!(closed(), 1);
    }

    #[test]
    fn what_dead_racks_have_left_is_removed_and_what_lives_is_not() {
        let root = Root::new("sweep");
        let living = Folder::open(&root.0, "living").unwrap();
        let _kept = living.claim("node-0", 4096).unwrap();
        drop(living.claim("node-1", 4096).unwrap());
        let dead = Folder::open(&root.0, "dead").unwrap();
        drop(dead.claim("node-0", 4096).unwrap());
        std::fs::create_dir(root.0.join("somebody-elses")).unwrap();
        Folder::open(&root.0, "other").unwrap();
        assert_eq!(root.files("living"), ["node-0"]);
        assert!(!dead.path.exists());
        assert!(root.0.join("somebody-elses").exists());
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let root = Root::new("folder");
        let folder = Folder::open(&root.0, "a").unwrap();
        std::fs::create_dir(&folder.path).unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&folder.path, open).unwrap();
        let refused = folder.claim("node-0", 4096).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
