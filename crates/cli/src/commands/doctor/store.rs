//! The folder of a rack's durable copies: what its file system does when it is told to sync.

use super::{Check, Finding, State};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Looked at when there is a file that names the folder.
pub const CHECK: Check = Check {
    name: "durable copies",
    probe: || Finding::new(State::Missing, "no file of a rack was given"),
    enable: "set `store` in the file to a folder on a disk, which this user may write",
    without: "regions of durability `file` or `sync` cannot be created or kept here",
};

/// Batches that are written and synced.
const BATCHES: usize = 16;
/// File systems that are gone with the machine's power.
const VOLATILE: [&str; 2] = ["tmpfs", "ramfs"];

/// Looks at a folder, or at the one that it would be made in, by a file that is removed again.
pub fn look(folder: Option<&Path>) -> Finding {
    let Some(folder) = folder else {
        let what = "the file names no `store`: copies are in memory";
        return Finding::new(State::Limited, what);
    };
    let there = folder.ancestors().find(|path| path.is_dir());
    let Some(there) = there else {
        let what = format!("{}: there is no such folder", folder.display());
        return Finding::new(State::Missing, what);
    };
    let system = file_system(there);
    match syncs(there) {
        Err(error) => {
            let what = format!("{}: {error}", there.display());
            Finding::new(State::Denied, what)
        }
        Ok(took) => {
            let gone = VOLATILE.contains(&system.as_str());
            let ms = took.as_secs_f64() * 1000.0;
            let more = match gone {
                true => "; it is in memory, so `sync` survives no power failure",
                false => "",
            };
            let what = format!(
                "{} is on {system}: a batch of 4 KiB is synced in {ms:.2} ms{more}",
                there.display()
            );
            Finding::found_if(!gone, State::Limited, what)
        }
    }
}

/// How long a batch takes, in the middle.
fn syncs(folder: &Path) -> std::io::Result<Duration> {
    // Not what an earlier process of this number has left behind.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let path = folder.join(format!("rackmem-doctor-{}-{now}.sync", std::process::id()));
    let measure = || {
        let mut file = File::create_new(&path)?;
        let mut times = [Duration::ZERO; BATCHES];
        for time in &mut times {
            let began = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            *time = began.elapsed();
        }
        times.sort_unstable();
        Ok(times[BATCHES / 2])
    };
    let measured = measure();
    let _ = std::fs::remove_file(&path);
    measured
}

/// The type of the file system that a folder is on, as the kernel lists it.
fn file_system(folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let path = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let rows = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = rows.filter(|(at, _)| path.starts_with(at));
    let nearest = above.max_by_key(|(at, _)| at.len());
    nearest.map_or_else(|| "an unknown file system".into(), |row| row.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_what_a_sync_is() {
        assert_eq!(look(None).state, State::Limited);
        let folder = std::env::temp_dir().join("rackmem-doctor-none/below");
        let found = look(Some(&folder));
        assert!(found.detail.contains("is synced in"), "{}", found.detail);
        assert!(!folder.exists(), "it makes nothing");
        let memory = look(Some(Path::new("/dev/shm")));
        assert_eq!(memory.state, State::Limited, "{}", memory.detail);
        assert!(memory.detail.contains("no power failure"));
        assert_eq!(look(Some(Path::new("/proc/1"))).state, State::Denied);
    }
}
