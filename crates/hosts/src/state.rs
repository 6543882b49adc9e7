//! Which racks there are: a small file each, which says who owns it. It is made before the first
//! namespace and removed after the last one, so a namespace without a file,
//! or whose owner has ended, is left over.

use crate::error::{Error, Result};
use crate::names;
use crate::run;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FOLDER: &str = "/run/rackmem-hosts";

/// A rack that was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its hosts; 0 when unknown.
    pub hosts: usize,
    /// The process that takes it down when it ends; none when it is to stay.
    pub owner: Option<u32>,
    /// Its owner has ended and it is still there.
    pub stale: bool,
}

/// The file of a rack.
pub fn file(rack: &str) -> PathBuf {
    Path::new(FOLDER).join(rack)
}

/// The folder of a rack; no rack has such a name.
pub fn folder(rack: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{rack}.d"))
}

/// A file of this process's own, whose name is none of a rack.
fn draft(rack: &str) -> PathBuf {
    Path::new(FOLDER).join(format!(".{rack}.{}", std::process::id()))
}

/// Takes a free name for a rack.
pub fn claim(rack: &str, hosts: usize) -> Result<()> {
    std::fs::create_dir_all(FOLDER)?;
    let owner = std::process::id();
    let since = started(owner).unwrap_or_default();
    let draft = draft(rack);
    std::fs::write(&draft, format!("{hosts} {owner} {since}\n"))?;
    // A link, so that the file is never seen without its text, and a second creator gets an error.
    let linked = std::fs::hard_link(&draft, file(rack));
    std::fs::remove_file(&draft)?;
    linked.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Taken(rack.into()),
        _ => error.into(),
    })
}

/// The rack has no owner from now on.
pub fn disown(rack: &str, hosts: usize) -> Result<()> {
    // By another name first: a reader sees one text or the other.
    let draft = draft(rack);
    std::fs::write(&draft, format!("{hosts} kept\n"))?;
    Ok(std::fs::rename(draft, file(rack))?)
}

/// Gives the name back.
pub fn release(rack: &str) {
    // They may be gone already.
    let _ = std::fs::remove_dir_all(folder(rack));
    let _ = std::fs::remove_file(file(rack));
}

/// What is known of a rack.
pub fn read(rack: &str) -> Option<Found> {
    let text = std::fs::read_to_string(file(rack)).ok()?;
    Some(parse(rack, &text, started))
}

fn parse(rack: &str, text: &str, started: impl Fn(u32) -> Option<u64>) -> Found {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let owner = number(1).and_then(|pid| u32::try_from(pid).ok());
    let kept = words.get(1) == Some(&"kept");
    let alive = owner.is_some_and(|owner| started(owner).is_some_and(|at| Some(at) == number(2)));
    Found {
        name: rack.into(),
        hosts: number(0).map_or(0, |hosts| (hosts as usize).min(names::MAX_HOSTS)),
        owner: owner.filter(|_| alive),
        stale: !kept && !alive,
    }
}

/// When a process started, in ticks since boot; none when there is none. It tells a process from a
/// later one of its number.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit(')').next()?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// All racks of this machine, by name.
pub fn found() -> Result<Vec<Found>> {
    let mut racks = BTreeSet::new();
    if let Ok(files) = std::fs::read_dir(FOLDER) {
        let known = files
            .flatten()
            .filter_map(|file| file.file_name().into_string().ok());
        racks.extend(known.filter(|name| names::check(name).is_ok()));
    }
    let namespaces = namespaces()?;
    let ours = namespaces.iter().filter_map(|name| names::rack_of(name));
    racks.extend(ours.map(String::from));
    let of = |name: String| {
        read(&name).unwrap_or(Found {
            name,
            hosts: 0,
            owner: None,
            stale: true,
        })
    };
    Ok(racks.into_iter().map(of).collect())
}

/// Removes what is left of racks whose owner has ended; their names.
/// Racks that are to stay are not touched.
pub fn cleanup() -> Result<Vec<String>> {
    run::check()?;
    let mut removed = Vec::new();
    for rack in found()?.into_iter().filter(|rack| rack.stale) {
        remove(&rack.name)?;
        removed.push(rack.name);
    }
    Ok(removed)
}

/// Times that a place's processes are looked for and killed: they may be starting others.
const ROUNDS: usize = 20;

/// Times that a rack is taken down before a failure counts: its guard may be at it as well,
/// and be faster here and there.
const TRIES: usize = 50;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(20);

/// Takes everything down that has this rack's name.
pub fn remove(rack: &str) -> Result<()> {
    let mut tries = 1;
    loop {
        let done = remove_once(rack);
        if namespaces_of(rack)?.is_empty() {
            release(rack);
            return Ok(());
        }
        if tries == TRIES {
            return done;
        }
        tries += 1;
        std::thread::sleep(PAUSE);
    }
}

fn remove_once(rack: &str) -> Result<()> {
    let there = namespaces_of(rack)?;
    there.iter().try_for_each(|name| kill(name).map(drop))?;
    for name in &there {
        // A cable goes with its end, at once; with the namespace it would go when the kernel has
        // time. The switch has no such interface.
        let _ = run::ip(&format!("-n {name} link del {}", names::UPLINK));
        run::ip(&format!("netns del {name}"))?;
    }
    Ok(())
}

/// All namespaces of this machine.
fn namespaces() -> Result<Vec<String>> {
    let list = run::ip("netns list")?;
    let name = |line: &str| line.split_whitespace().next().map(String::from);
    Ok(list.lines().filter_map(name).collect())
}

fn namespaces_of(rack: &str) -> Result<Vec<String>> {
    let mut all = namespaces()?;
    all.retain(|name| names::rack_of(name) == Some(rack));
    Ok(all)
}

/// SIGKILL to all processes of a namespace; how many there were.
pub fn kill(namespace: &str) -> Result<usize> {
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS {
        let alive = run::processes(namespace)?;
        if alive.is_empty() {
            break;
        }
        run::kill(&alive)?;
        killed.extend(alive);
        std::thread::yield_now();
    }
    Ok(killed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rack_is_stale_when_its_owner_is_gone_or_another() {
        let at = |pid: u32| (pid == 7).then_some(100);
        let read = |text: &str| {
            let found = parse("r", text, at);
            (found.hosts, found.owner, found.stale)
        };
        assert_eq!(read("4 7 100\n"), (4, Some(7), false));
        assert_eq!(read("4 7 99\n"), (4, None, true), "a later process");
        assert_eq!(read("4 8 100\n"), (4, None, true), "no such process");
        assert_eq!(read("4 kept\n"), (4, None, false));
        assert_eq!(read(""), (0, None, true), "its owner died while it wrote");
    }

    #[test]
    fn this_process_has_started() {
        let own = started(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0));
        assert_eq!(started(u32::MAX), None);
    }
}
