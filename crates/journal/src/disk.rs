//! What a store needs of a file system, in one folder.

use crate::StoreError;
use crate::files::{FRONT, PUBLISHED, name, parsed};
use rackmem_proto::abd::journal::{FILE_HEADER, FileHeader, Identity};
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a store needs of a file system, in one folder. Names have no separators.
pub trait Disk {
    /// Where it is, for messages.
    fn place(&self) -> String;
    /// All files.
    fn names(&mut self) -> io::Result<Vec<String>>;
    /// A whole file.
    fn read(&mut self, name: &str) -> io::Result<Vec<u8>>;
    /// An empty file of this name, in place of another one.
    fn create(&mut self, name: &str) -> io::Result<()>;
    /// Writes behind what a file has. Says how many bytes it took.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<usize>;
    /// Makes what a file has durable.
    fn sync(&mut self, name: &str) -> io::Result<()>;
    /// Gives a file another name, in place of the file of that name.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Makes names durable.
    fn sync_names(&mut self) -> io::Result<()>;
}

impl<D: Disk + ?Sized> Disk for Box<D> {
    fn place(&self) -> String {
        (**self).place()
    }

    fn names(&mut self) -> io::Result<Vec<String>> {
        (**self).names()
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        (**self).read(name)
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        (**self).create(name)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<usize> {
        (**self).append(name, bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        (**self).sync(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        (**self).sync_names()
    }
}

/// A folder of this machine. One process has it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    open: HashMap<String, File>,
    /// Whether what is made durable is on the medium, or in the page cache.
    syncs: bool,
    lock: File,
}

impl Drop for Folder {
    /// A child that has just been forked has the lock's file, until it runs its own program:
    /// closing this one would leave the folder locked for so long.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl Folder {
    /// Makes the folder if there is none, and takes it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let folder = path.display().to_string();
        Self::taken(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::WouldBlock => StoreError::InUse { folder },
            _ => StoreError::io("open it", folder, cause),
        })
    }

    /// What is made durable here is in the page cache: it survives the processes, and not the
    /// machine.
    #[must_use]
    pub fn unsynced(mut self) -> Self {
        self.syncs = false;
        self
    }

    /// Whose store is in a folder, as its newest file says; none where there is no store, or its
    /// newest file is damaged.
    pub fn identity(path: &Path) -> Option<Identity> {
        let names = std::fs::read_dir(path).ok()?.flatten();
        let named = |entry: std::fs::DirEntry| parsed(&entry.file_name().to_string_lossy());
        let (kind, first) = names.filter_map(named).max_by_key(|(_, first)| *first)?;
        let mut header = [0; FILE_HEADER];
        let mut file = File::open(path.join(name(kind, first))).ok()?;
        file.read_exact(&mut header).ok()?;
        if header.starts_with(PUBLISHED) {
            file.seek(SeekFrom::Start(FRONT)).ok()?;
            file.read_exact(&mut header).ok()?;
        }
        FileHeader::decode(&header).map(|header| header.identity)
    }

    /// Whether a folder has files of a store.
    pub fn has_store(path: &Path) -> bool {
        let names = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut stores = names.map(|entry| entry.file_name());
        stores.any(|name| parsed(&name.to_string_lossy()).is_some())
    }

    fn taken(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        // The folder's own name has to outlive a power failure too.
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            File::open(parent)?.sync_all()?;
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        let lock = options.open(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Folder {
            path: path.to_owned(),
            open: HashMap::new(),
            syncs: true,
            lock,
        })
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        if !self.open.contains_key(name) {
            let file = OpenOptions::new().append(true).open(self.path.join(name))?;
            self.open.insert(name.to_owned(), file);
        }
        let file = self.open.get_mut(name);
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn names(&mut self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.path)?;
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path.join(name))?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true);
        options.open(self.path.join(name))?;
        self.open.remove(name);
        self.file(name).map(|_| ())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<usize> {
        self.file(name)?.write(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        match self.syncs {
            true => self.file(name)?.sync_data(),
            false => Ok(()),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))?;
        self.open.remove(to);
        if let Some(file) = self.open.remove(from) {
            self.open.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.open.remove(name);
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        match self.syncs {
            true => File::open(&self.path)?.sync_all(),
            false => Ok(()),
        }
    }
}
