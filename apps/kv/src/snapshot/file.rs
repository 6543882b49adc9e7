//! A snapshot's file: there whole, or not at all.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::save::{Moment, SaveError, Saved, View, save_as};
use crate::memory::Memory;
use crate::store::Store;

/// Bytes written at a time.
const BUFFER: usize = 1 << 20;

/// Writes a snapshot to a file beside `path`, which takes its place when it is complete and on the
/// disk. Until then, and when that fails, `path` stays as it was.
///
/// # Errors
/// As [`save`](fn@super::save); the disk is full; the folder does not exist.
pub fn save_file<M: Memory>(
    store: &Store<M>,
    moment: Moment,
    path: &Path,
    mut go_on: impl FnMut(&Saved) -> bool,
) -> Result<Saved, SaveError> {
    if moment == Moment::Each {
        return write(store, View::Each, path, &mut go_on);
    }
    match write(store, View::Shared, path, &mut go_on) {
        // A reader cannot mend what has died.
        Err(SaveError::Store(error)) if error.is_node_lost() => {
            write(store, View::Alone, path, &mut go_on)
        }
        done => done,
    }
}

fn write<M: Memory>(
    store: &Store<M>,
    view: View,
    path: &Path,
    go_on: &mut impl FnMut(&Saved) -> bool,
) -> Result<Saved, SaveError> {
    let fresh = Fresh::beside(path)?;
    let out = BufWriter::with_capacity(BUFFER, File::create(&fresh.0)?);
    let (out, saved) = save_as(store, view, out, go_on)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    std::fs::rename(&fresh.0, path)?;
    File::open(folder(path))?.sync_all()?;
    Ok(saved)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that goes when it has not been renamed.
struct Fresh(PathBuf);

impl Fresh {
    fn beside(path: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "a path that ends in no name");
        let mut name = path.file_name().ok_or_else(no_name)?.to_owned();
        name.push(format!(".{}-{number}.part", std::process::id()));
        Ok(Self(folder(path).join(name)))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // It is not there any more if it has been renamed.
        let _ = std::fs::remove_file(&self.0);
    }
}
