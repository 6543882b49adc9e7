//! A process that reads an arena and is stopped: what that takes of the reads of another one, how
//! much memory waits for it, and when the rack goes on without it.

use super::super::child::{Running, ends_with_us, signal};
use super::super::{BenchError, Result};
use super::Options;
use super::arenas::{ArenaFile, read, replace};
use super::waiting::reads;
use crate::report::Report;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec};
use rackmem::locked::Lock;
use rackmem::{Config, Rack};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Its node, and that of the process that measures.
const STOPPED: usize = 1;
const OTHER: usize = 0;
const LEASE: Duration = Duration::from_secs(2);
/// How long it may take until the rack goes on, on a machine that does other things as well.
const EXCLUDED: Duration = Duration::from_secs(60);
/// It ends with its standard input.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Entries of a ring: freed objects that wait for readers, at most.
const RING: u64 = 1024;
/// Between two changes, and two looks.
const PAUSE: Duration = Duration::from_micros(200);
/// How old what is read may be: so long that a busy machine keeps it.
const BOUND: Duration = Duration::from_millis(50);

fn spec(arena: &Path) -> ArenaSpec {
    let spec = ArenaSpec::new(arena, 16 << 20).bound(BOUND);
    spec.ring(RING).emulated()
}

/// The arena beside the file that describes a rack.
fn arena_of(file: &Path) -> PathBuf {
    file.with_extension("")
}

/// Plays the process that is stopped: reads in sections until its standard input ends, or the rack
/// goes on without it.
pub fn play(file: &Path) -> Result<()> {
    let rack = Rack::join(&Config::load(file)?, STOPPED)?;
    let arena = Arena::open(&rack.node(STOPPED), &spec(&arena_of(file)))?;
    let slot = arena.slot(0)?;
    read(&arena, slot)?;
    let mut out = std::io::stdout();
    writeln!(out, "reads").and_then(|()| out.flush())?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Whatever it says: it is over.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            over.store(true, Relaxed);
        });
        while !over.load(Relaxed) && read(&arena, slot).is_ok() {
            std::thread::sleep(PAUSE);
        }
    });
    Ok(())
}

/// A rack of two processes: its file and its members, which go with this value.
struct Files {
    file: PathBuf,
    members: PathBuf,
    _arena: ArenaFile,
}

impl Files {
    fn new() -> Result<Self> {
        let arena = ArenaFile::new("stopped");
        let (file, members) = (
            arena.0.with_extension("toml"),
            arena.0.with_extension("members"),
        );
        let nodes = rackmem_hosts::addresses(2);
        let text = format!(
            "fabric = \"shm\"\nnodes = [\"{}\", \"{}\"]\nmembership = \"dir:{}\"\n\
             cache = 1048576\nmemory = 33554432\npatience = \"{}ms\"\nlease = \"{}ms\"\n",
            nodes[OTHER],
            nodes[STOPPED],
            members.display(),
            EXCLUDED.as_millis(),
            LEASE.as_millis(),
        );
        std::fs::create_dir_all(&members)?;
        std::fs::write(&file, &text)?;
        Ok(Files {
            file,
            members,
            _arena: arena,
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
        let _ = std::fs::remove_dir_all(&self.members);
    }
}

/// Measures it: one thread changes the object that another one, and the other process, read.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let files = Files::new()?;
    let rack = Rack::join(&Config::load(&files.file)?, OTHER)?;
    let node = rack.node(OTHER);
    let arena = Arena::create(&node, &spec(&arena_of(&files.file)))?;
    let slot: ArenaSlot<u64> = arena.slot(0)?;
    let lock = Lock::create(&node, ())?;
    replace(&arena, &lock, slot, &0)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "bounded", "--member"]);
    let command = ends_with_us(command.arg(&files.file));
    let (reader, _) = Running::start_saying(command, ENDS_WITHIN)?;

    let during = options.duration.min(LEASE / 3);
    let (over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let measured = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for value in 1.. {
                if over.load(Relaxed) {
                    break;
                }
                replace(&arena, &lock, slot, &value)?;
                most.fetch_max(arena.counts().waiting, Relaxed);
                std::thread::sleep(PAUSE);
            }
            Result::Ok(())
        });
        let until = |is_member: bool| {
            let began = Instant::now();
            while node.is_member(STOPPED as u16) != is_member {
                if began.elapsed() > EXCLUDED {
                    let what = format!("what becomes of a process is not known after {EXCLUDED:?}");
                    return Err(BenchError::Missing(what));
                }
                std::thread::sleep(PAUSE);
            }
            Ok(())
        };
        let measure = || {
            until(true)?;
            let none = reads(&arena, slot, during)?;
            signal(reader.id(), libc::SIGSTOP);
            let stopped = Instant::now();
            let beside = reads(&arena, slot, during)?;
            until(false)?;
            let after = stopped.elapsed();
            Ok((none, beside, after, reads(&arena, slot, during)?))
        };
        let measured = measure();
        over.store(true, Relaxed);
        // It waits for memory that comes back when the rack has gone on.
        let wrote = match writer.join() {
            Ok(wrote) => wrote,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        measured.and_then(|measured| wrote.map(|()| measured))
    });
    let (none, beside, after, without) = measured?;
    let case = "stopped-process/none";
    report.add(case, none, "sections/s")?;
    report.add_against("stopped-process/stopped", beside, "sections/s", case)?;
    report.add_against("stopped-process/excluded", without, "sections/s", case)?;
    let case = "stopped-process/ring";
    report.add(case, RING as f64, "objects")?;
    let most = most.into_inner() as f64;
    report.add_against("stopped-process/waiting", most, "objects", case)?;
    let case = "stopped-process/lease";
    report.add(case, LEASE.as_secs_f64() * 1e3, "ms")?;
    let after = after.as_secs_f64() * 1e3;
    report.add_against("stopped-process/excluded-after", after, "ms", case)?;
    Ok(())
}
