//! Keys out of a file before clients are served, and into one when the rack ends.

use crate::failure::{Failure, Result};
use crate::stop::Stop;
use clap::Args;
use rackmem_kv::Store;
use rackmem_kv::memory::Memory;
use rackmem_kv::rdb::Reader;
use rackmem_kv::snapshot::{self, LoadCause, LoadError, LoadInto, Loaded, Moment};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two words of progress.
const PROGRESS: Duration = Duration::from_secs(2);
const MIB: u64 = 1 << 20;

/// Files that keys come from and go to.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Snapshots")]
pub struct SnapshotArgs {
    /// Load FILE, a snapshot of Redis (RDB), into a store without keys; need not be there yet if
    /// --save-to names it
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Let SAVE and BGSAVE write FILE, which Redis 7 loads; nodes of one process save when they
    /// stop, too
    #[arg(long, value_name = "FILE")]
    save_to: Option<PathBuf>,
}

impl SnapshotArgs {
    /// Where SAVE and BGSAVE write, as a whole path.
    pub fn file(&self) -> Option<PathBuf> {
        let file = self.save_to.as_ref()?;
        Some(std::path::absolute(file).unwrap_or_else(|_| file.clone()))
    }

    /// What would be wrong with the files later is wrong now.
    pub fn check(&self) -> Result<()> {
        self.open()?;
        let folder = self
            .file()
            .and_then(|file| file.parent().map(Path::to_owned));
        match folder.filter(|folder| !folder.is_dir()) {
            None => Ok(()),
            Some(folder) => Err(Failure::new(
                format!("--save-to: there is no folder {}", folder.display()),
                "create it, or name another file",
            )),
        }
    }

    /// The file to load, which begins as one of Redis.
    fn open(&self) -> Result<Option<(File, &Path)>> {
        let Some(path) = self.load.as_deref() else {
            return Ok(None);
        };
        let shown = path.display();
        let same = self.save_to.as_deref() == Some(path);
        let file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && same => return Ok(None),
            opened => opened,
        };
        let opened = file.map_err(|error| format!("--load: {shown}: {error}"));
        let read = opened.and_then(|file| {
            let reader = Reader::new(&file).map(drop);
            reader.map_err(|error| format!("--load: {shown}: {}", error.cause))?;
            File::open(path).map_err(|error| format!("--load: {shown}: {error}"))
        });
        let next = "name a file that SAVE or BGSAVE of Redis or of a store has written";
        let file = read.map_err(|cause| Failure::new(cause, next))?;
        Ok(Some((file, path)))
    }

    /// Loads the file, if the store has no keys. `false`: somebody wanted to stop meanwhile.
    pub fn load<M: Memory>(&self, store: &Store<M>, stop: &Stop) -> Result<bool> {
        let Some((file, path)) = self.open()? else {
            return Ok(true);
        };
        let shown = path.display();
        let all = file.metadata().map_or(0, |about| about.len());
        let mut told = Instant::now();
        let go_on = |loaded: &Loaded| {
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                let (keys, done) = (loaded.keys, loaded.bytes / MIB);
                eprintln!("loading {shown}: {keys} keys, {done} of {} MiB", all / MIB);
            }
            !stop.requested()
        };
        match snapshot::load(store, file, LoadInto::Empty, go_on) {
            Ok(loaded) => tell(&loaded, path),
            Err(error) => match error.cause {
                LoadCause::NotEmpty(keys) => {
                    eprintln!("{shown} was not loaded: the store has {keys} keys already");
                }
                LoadCause::Stopped => return Ok(false),
                _ => {
                    return Err(Failure::new(
                        format!("--load: {shown}: {error}"),
                        next(&error),
                    ));
                }
            },
        }
        Ok(true)
    }

    /// Saves the store of a rack that nobody uses any more.
    pub fn save<M: Memory>(&self, store: &Store<M>) -> Result<()> {
        let Some(file) = self.file() else {
            return Ok(());
        };
        let saved = snapshot::save_file(store, Moment::All, &file, |_| true);
        let saved = saved.map_err(|error| {
            Failure::new(
                format!("the store was not saved to {}: {error}", file.display()),
                "what was saved there before is still there",
            )
        })?;
        eprintln!("saved {} keys to {}", saved.keys, file.display());
        Ok(())
    }
}

/// What to do about a file that was not loaded whole.
fn next(error: &LoadError) -> &'static str {
    match &error.cause {
        LoadCause::Store(error) if error.is_node_lost() => {
            "when the node is back, remove what was loaded (FLUSHALL) and start this one again"
        }
        LoadCause::Store(_) => {
            "see `rackmem kv --help` for memory; what was loaded stays until FLUSHALL"
        }
        _ => {
            "repair or replace the file; a rack of processes keeps what was loaded, \
             FLUSHALL removes it"
        }
    }
}

fn tell(loaded: &Loaded, path: &Path) {
    let Loaded {
        keys,
        expired,
        functions,
        modules,
        ..
    } = *loaded;
    eprintln!("loaded {keys} keys from {}", path.display());
    for (count, what) in [
        (expired, "keys that had expired"),
        (
            functions,
            "libraries of functions, for which there is FUNCTION LOAD",
        ),
        (modules, "modules' data, which stores do not have"),
    ] {
        if count != 0 {
            eprintln!("left out: {count} {what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;
    use rackmem_kv::memory::MemoryError;

    fn args(load: &Path, save_to: Option<&Path>) -> SnapshotArgs {
        SnapshotArgs {
            load: Some(load.to_owned()),
            save_to: save_to.map(Path::to_owned),
        }
    }

    #[test]
    fn a_store_is_kept_over_restarts() {
        let stop = Stop::default();
        let folder = std::env::temp_dir().join(format!("rackmem-kept-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("kept.rdb");
        let kept = args(&file, Some(&file));
        assert!(args(&file, None).check().is_err());
        for run in 0..3u8 {
            kept.check().unwrap();
            let rack = Rack::local(2).unwrap();
            let store = crate::store::open(rack.node(if run == 1 { 1 } else { 0 }), 64).unwrap();
            assert!(kept.load(&store, &stop).unwrap());
            assert_eq!(store.first().len().unwrap(), usize::from(run));
            store.set(&[run], b"x").unwrap();
            kept.save(&store).unwrap();
            // A store with keys keeps them.
            assert!(kept.load(&store, &stop).unwrap());
            assert_eq!(store.first().len().unwrap(), usize::from(run) + 1);
        }
        std::fs::write(&file, "no snapshot").unwrap();
        let failure = kept.check().unwrap_err();
        assert!(failure.to_string().contains("not an RDB file"), "{failure}");
        assert!(
            args(&file, Some(&folder.join("none/kept.rdb")))
                .check()
                .is_err()
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_to_do_depends_on_whether_the_file_or_a_node_is_at_fault() {
        let of = |cause| {
            next(&LoadError {
                offset: 0,
                key: None,
                cause,
            })
        };
        let away = MemoryError::NodeLost(2);
        assert!(of(LoadCause::Store(away.into())).contains("the node is back"));
        let full = MemoryError::OutOfMemory;
        assert!(of(LoadCause::Store(full.into())).contains("memory"));
        assert!(of(LoadCause::Database(99)).contains("file"));
    }
}
