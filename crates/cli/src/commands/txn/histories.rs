//! Histories of processes: each writes down what its terminals do, and the one that has started
//! them judges all of it. Times are of this host's clock, which all of them see.

use super::copies::Folder;
use super::play::Judged;
use crate::failure::{Failure, Result};
use nix::time::{ClockId, clock_gettime};
use rackmem_sim::serial;
use rackmem_txn::{Deed, History, Recorder, Remember, Watch};
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

/// Where they are; gone with the value.
pub struct Histories(Folder);

impl Histories {
    /// None yet.
    pub fn new() -> Result<Histories> {
        Folder::new().map(Histories)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Judges the histories of so many nodes, and of those of them that were killed.
    pub fn judge(&self, nodes: usize, killed: &[usize]) -> Result<Judged> {
        let mut all = History::default();
        for node in 0..nodes {
            let file = file(self.folder(), node);
            match History::read(&file) {
                Ok(history) => all.add(history),
                // Killed before it has begun.
                Err(error) if error.kind() == NotFound && killed.contains(&node) => {}
                Err(error) => return Err(broken(&file, &error)),
            }
        }
        Ok(judge(all))
    }
}

/// Whether a history has an order.
pub fn judge(history: History) -> Judged {
    let mut deeds: Vec<_> = history.deeds.into_iter().map(deed).collect();
    let unknown = history.open.into_iter().map(deed).collect();
    let (told, seen) = (deeds.len(), serial::seen(&deeds, unknown));
    let cut_off = seen.len();
    deeds.extend(seen);
    let disorder = serial::check(&deeds).err();
    let why = disorder.map(|why| format!("the history is not strictly serializable: {why:?}"));
    Judged { told, cut_off, why }
}

fn deed(deed: Deed) -> serial::Deed<u64> {
    serial::Deed {
        invoke: deed.invoke,
        returned: deed.returned,
        reads: deed.footprint.reads,
        writes: deed.footprint.writes,
    }
}

/// That of a node, into this folder.
pub fn recorder<'w>(
    folder: &Path,
    node: usize,
    remember: Remember,
    inner: &'w dyn Watch,
) -> Result<Recorder<'w>> {
    let file = file(folder, node);
    // A host without this clock has no processes to judge.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(std::io::Error::from)?;
    Recorder::create(&file, remember, &now, inner).map_err(|error| broken(&file, &error))
}

/// The host's clock, in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |it| {
        it.tv_sec() as u64 * 1_000_000_000 + it.tv_nsec() as u64
    })
}

fn file(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("history-{node}"))
}

/// A history that cannot be written or read.
pub fn broken(file: &Path, error: &std::io::Error) -> Failure {
    let cause = format!("{}: {error}", file.display());
    Failure::new(cause, "see whether the folder for temporary files has room")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_txn::{Footprint, Unwatched};

    fn deed(times: (u64, Option<u64>), reads: &[(u64, u64)], writes: &[(u64, u64)]) -> Deed {
        Deed {
            invoke: times.0,
            returned: times.1,
            footprint: Footprint {
                reads: reads.to_vec(),
                writes: writes.to_vec(),
            },
        }
    }

    /// Of two nodes, one of which is cut off in the middle of what the other has seen.
    #[test]
    fn histories_of_processes_are_one() {
        let histories = Histories::new().unwrap();
        let remember = Remember {
            deeds: 2,
            outlives: true,
        };
        let folder = histories.folder();
        let dead = recorder(folder, 0, remember, &Unwatched).unwrap();
        dead.committed(0, &deed((1, Some(2)), &[(1, 1)], &[(1, 2)]));
        dead.commits(0, &deed((3, None), &[(1, 2), (2, 1)], &[(1, 3), (2, 2)]));
        // As a process that is killed: nothing is written at its end.
        std::mem::forget(dead);
        let lives = recorder(folder, 1, remember, &Unwatched).unwrap();
        lives.committed(7, &deed((5, Some(6)), &[(1, 3)], &[]));
        lives.committed(7, &deed((7, Some(8)), &[(2, 2)], &[]));
        lives.committed(7, &deed((9, Some(9)), &[(2, 1)], &[]));
        lives.finish().unwrap();
        let judged = histories.judge(2, &[]).unwrap();
        assert_eq!((judged.told, judged.cut_off), (3, 1), "two of a terminal");
        assert_eq!(judged.why, None);
        assert!(histories.judge(3, &[]).is_err(), "a node without a history");
        assert!(histories.judge(3, &[2]).is_ok(), "that was killed");
    }

    /// What has returned before another began is seen, by the clock of the host.
    #[test]
    fn a_process_that_does_not_see_what_another_has_done_is_noticed() {
        let histories = Histories::new().unwrap();
        let remember = Remember {
            deeds: 2,
            outlives: false,
        };
        let writes = recorder(histories.folder(), 0, remember, &Unwatched).unwrap();
        writes.committed(0, &deed((0, Some(1)), &[(1, 1)], &[(1, 2)]));
        writes.finish().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let reads = recorder(histories.folder(), 1, remember, &Unwatched).unwrap();
        reads.committed(0, &deed((0, Some(1)), &[(1, 1)], &[]));
        reads.finish().unwrap();
        let judged = histories.judge(2, &[]).unwrap();
        assert!(judged.why.is_some(), "{:?}", judged.told);
    }
}
