//! A rack whose nodes are all in this process, and whose durable copies stay in a folder.

use crate::error::OpenError;
use rackmem_proto::abd::Writer;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;

/// The folder of such a rack while it is open.
pub(super) struct Folder {
    /// How often a rack has been opened on it, so the incarnation of all its nodes: what had
    /// forgotten can be told from what is new.
    pub starts: u32,
    _lock: File,
}

impl Folder {
    /// Takes it, and counts.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let why = |what: &str| {
            let place = path.display();
            OpenError::Config(format!("store: {place}: {what}"))
        };
        let failed = |error: std::io::Error| why(&error.to_string());
        std::fs::create_dir_all(path).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        let lock = options.open(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(why("another rack has it open")),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let counter = path.join("starts");
        let before = match std::fs::read_to_string(&counter) {
            Ok(text) => {
                let number = text.trim().parse::<u32>().ok();
                number.ok_or_else(|| why("`starts` in it is no number"))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(failed(error)),
        };
        let starts = before + 1;
        if starts > Writer::LAST_INCARNATION {
            return Err(why("it has been opened too often for one more stamp"));
        }
        // Durable before a copy is: nobody counts the same start twice.
        let draft = path.join("starts.new");
        let write = || {
            let mut file = File::create(&draft)?;
            writeln!(file, "{starts}")?;
            file.sync_all()?;
            std::fs::rename(&draft, &counter)?;
            File::open(path)?.sync_all()
        };
        write().map_err(failed)?;
        Ok(Folder {
            starts,
            _lock: lock,
        })
    }
}
