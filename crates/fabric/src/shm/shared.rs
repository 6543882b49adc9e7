//! Memory of a member's process that other processes of the host may read and not write: nobody
//! need run there for that.
//!
//! It has a file of its own beside the member's, by the same rules: whose process has it holds the
//! lock on it, the next process of the member makes another one, and the first words are those that
//! all versions of such files can read (the third says that its owner is dead).

use super::hub::{Hub, Member};
use super::map::{Mapping, nameless, reserve};
use crate::Whole;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

/// Words at the beginning that are not the owner's.
pub const FRONT: usize = super::segment::START;
/// The word that says that the owner is dead.
const CLOSED: usize = 2;

/// What this process lets others read.
pub struct Published {
    mapping: Mapping,
    hub: Arc<Hub>,
    name: String,
}

impl Published {
    /// All words; the first [`FRONT`] are not for use, but for the two in front.
    pub fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    /// Has the system set aside memory for these words. Without, a file system that is full would
    /// end whoever writes or reads there.
    pub fn reserve(&self, words: Range<usize>) -> io::Result<()> {
        reserve(self.mapping.file(), words.start, words.len())
    }
}

impl Published {
    /// Others find it no more, and those who have it are told that its owner is dead. It stays
    /// where it is for this process.
    pub fn withdraw(&self) {
        let word = &self.mapping.words()[CLOSED];
        if word.load(Acquire) == 0 {
            super::segment::close(&self.mapping);
            self.hub.withdraw(&self.name, self.mapping.file());
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// What another process lets this one read. To write there ends this process.
pub struct Seen {
    mapping: Mapping,
}

impl Seen {
    /// All words.
    pub fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    /// Whether its owner has gone, and it is known.
    pub fn is_closed(&self) -> bool {
        self.words()[CLOSED].load(Acquire) != 0
    }
}

/// Memory that a program in the kernel reads, mapped by the process that writes it.
pub struct Lent {
    mapping: Mapping,
}

impl Lent {
    /// Maps so many words of a map that the kernel shares.
    pub fn map(descriptor: File, words: usize) -> io::Result<Lent> {
        let mapping = Mapping::of_kernel(descriptor, words)?;
        Ok(Lent { mapping })
    }

    /// All words.
    pub fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }
}

impl Member {
    /// Memory of so many bytes, all zeros, that others of this host can read under this name.
    pub fn publish(&self, name: &str, bytes: u64) -> io::Result<Published> {
        let hub = self.hub_shared();
        let (name, file) = (name.to_owned(), hub.make(name, bytes)?);
        reserve(&file, 0, FRONT)?;
        let words = usize::try_from(bytes / 8).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mapping = Mapping::of(file, words)?;
        Ok(Published { mapping, hub, name })
    }

    /// What a living process has published under this name.
    pub fn see(&self, name: &str) -> io::Result<Seen> {
        let file = self.hub_shared().look(name)?;
        let words = usize::try_from(file.metadata()?.len() / 8);
        let words = words.map_err(|_| io::ErrorKind::InvalidData)?;
        if words < FRONT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mapping = Mapping::read_only(file, words)?;
        Ok(Seen { mapping })
    }
}

impl Hub {
    fn make(&self, name: &str, bytes: u64) -> io::Result<File> {
        match self.folder() {
            Some(folder) => folder.claim(name, bytes),
            None => {
                let file = nameless(bytes)?;
                let mut published = self.published().lock().whole();
                published.insert(name.to_owned(), file.try_clone()?);
                Ok(file)
            }
        }
    }

    fn look(&self, name: &str) -> io::Result<File> {
        match self.folder() {
            Some(folder) => folder.find(name),
            None => {
                let published = self.published().lock().whole();
                let file = published.get(name).ok_or(io::ErrorKind::NotFound)?;
                file.try_clone()
            }
        }
    }

    fn withdraw(&self, name: &str, file: &File) {
        match self.folder() {
            // The next process removes what stays behind.
            Some(folder) => drop(folder.release(name, file)),
            None => drop(self.published().lock().whole().remove(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::End;
    use crate::shm::Geometry;
    use std::sync::atomic::Ordering::Release;

    fn hubs(name: &str) -> (Vec<Arc<Hub>>, Option<std::path::PathBuf>) {
        let geometry = Geometry::new(2, 4096);
        let root = format!("rackmem-shared-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(root);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir(&root).unwrap();
        let named = || Hub::in_folder(&root, "a", geometry).unwrap();
        (vec![named(), named()], Some(root))
    }

    #[test]
    fn what_is_published_is_read_by_others_until_its_owner_goes() {
        let (named, root) = hubs("read");
        let unnamed = Hub::in_process(Geometry::new(2, 4096));
        for hubs in [named, vec![unnamed.clone(), unnamed]] {
            let owner = hubs[0].claim(End::Node(0)).unwrap();
            let other = hubs[1].claim(End::Node(1)).unwrap();
            assert!(other.see("objects-0").is_err());
            let published = owner.publish("objects-0", 1 << 20).unwrap();
            published.reserve(1000..1010).unwrap();
            published.words()[1000].store(7, Release);
            let seen = other.see("objects-0").unwrap();
            assert_eq!(seen.words().len(), 1 << 17);
            assert_eq!(seen.words()[1000].load(Acquire), 7);
            published.words()[1001].store(8, Release);
            assert_eq!(seen.words()[1001].load(Acquire), 8);
            assert!(!seen.is_closed());
            drop(published);
            assert!(seen.is_closed());
            assert_eq!(seen.words()[1001].load(Acquire), 8);
            assert!(other.see("objects-0").is_err());
        }
        let _ = root.map(std::fs::remove_dir_all);
    }
}
