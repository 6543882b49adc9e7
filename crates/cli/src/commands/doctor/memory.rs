//! Memory, cores, and limits on them.

use super::procfs;
use super::{Check, Finding, State};
use crate::size;
use rackmem::FaultMode;
use rackmem::bounded::{CacheOps, LineOp};

pub const CHECKS: &[Check] = &[
    Check {
        name: "cores",
        probe: cores,
        enable: "run on a machine (or in a container) with at least two cores",
        without: "application threads and agents take turns: UDP racks are several times slower",
    },
    Check {
        name: "memory",
        probe: memory,
        enable: "close other programs, or give racks less: --cache 64M --memory 512M",
        without: "the demo and large stores may be ended by the kernel",
    },
    Check {
        name: "huge pages",
        probe: huge_pages,
        enable: "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        without: "more TLB misses on large caches: hits of cold blocks cost some 20 to 50 ns more",
    },
    Check {
        name: "open files",
        probe: open_files,
        enable: "in the shell before the start: ulimit -n 65536",
        without: "a server takes fewer connections, and a node fewer threads that miss at once over UDP",
    },
    Check {
        name: "userfaultfd",
        probe: userfaultfd,
        enable: "as root: sysctl -w vm.unprivileged_userfaultfd=1, or a readable /dev/userfaultfd",
        without: "system calls find pinned pages of mapped memory only (`CoherentPages::pin`)",
    },
    Check {
        name: "mapped memory",
        probe: mapped_memory,
        enable: "use Linux 5.19 or later, and do not filter the system call userfaultfd",
        without: "faults of mapped memory by mprotect alone (`FaultMode::Mprotect`), 30% slower",
    },
    Check {
        name: "cache operations",
        probe: cache_operations,
        enable: "run on x86-64; in a virtual machine, let it have the host's clwb and clflushopt",
        without: "no arenas of bounded memory: items at their home (`bounded::Domain`) need none",
    },
    Check {
        name: "memory of several machines",
        probe: shared_machines,
        enable: "attach CXL or GFAM memory as /dev/dax, or mount famfs on it",
        without: "arenas of bounded memory stay within one host (/dev/shm), whose caches are coherent",
    },
];

/// What a 4-node demo takes, with room to spare.
const DEMO_MEMORY: u64 = 2 << 30;
/// Files for a thousand connections, some for each requester and all else.
const WANTED_FILES: u64 = 4096;

fn cores() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let detail = format!("{cores} for this process");
    Finding::found_if(cores >= 2, State::Limited, detail)
}

fn memory() -> Finding {
    let text = procfs::text("/proc/meminfo").unwrap_or_default();
    let Some(available) = procfs::field(&text, "MemAvailable:") else {
        return Finding::new(State::Missing, "/proc/meminfo cannot be read");
    };
    let bytes = available.saturating_mul(1024);
    let detail = format!("{} available", size::show(bytes));
    Finding::found_if(bytes >= DEMO_MEMORY, State::Limited, detail)
}

fn huge_pages() -> Finding {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Some(text) = procfs::text(path) else {
        return Finding::new(State::Missing, "this kernel has no transparent huge pages");
    };
    let setting = chosen(&text).unwrap_or("unknown").to_owned();
    let reserved = procfs::number("/proc/sys/vm/nr_hugepages").unwrap_or(0);
    let detail = format!("transparent: {setting}, reserved: {reserved}");
    Finding::found_if(setting != "never", State::Denied, detail)
}

/// The word in brackets of the kernel's list of choices.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|pair| pair.0)
}

fn cache_operations() -> Finding {
    use LineOp::{Clflush, ClflushOpt, Clwb};
    let there = [Clwb, ClflushOpt, Clflush].into_iter();
    let names: Vec<&str> = there.filter(|op| op.is_there()).map(LineOp::name).collect();
    match CacheOps::detect() {
        Ok(ops) => {
            let all = ops.write_back == Clwb && ops.drop == ClflushOpt;
            Finding::found_if(all, State::Limited, names.join(", "))
        }
        Err(error) => Finding::new(State::Missing, error.what()),
    }
}

/// Devices of memory that programs map, and file systems on memory that machines share.
fn shared_machines() -> Finding {
    let devices = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let devices = devices.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> = devices.filter(|name| is_dax(name)).collect();
    found.sort_unstable();
    found = found.iter().map(|name| format!("/dev/{name}")).collect();
    let mounts = procfs::text("/proc/mounts").unwrap_or_default();
    found.extend(famfs(&mounts).map(|place| format!("famfs on {place}")));
    match found.is_empty() {
        true => Finding::new(State::Missing, "no /dev/dax, and no famfs is mounted"),
        false => Finding::new(State::Found, found.join(", ")),
    }
}

fn is_dax(name: &str) -> bool {
    let number = name.strip_prefix("dax");
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Where famfs is mounted.
fn famfs(mounts: &str) -> impl Iterator<Item = &str> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let place = words.next()?;
        (words.next()? == "famfs").then_some(place)
    })
}

fn open_files() -> Finding {
    let text = procfs::text("/proc/self/limits").unwrap_or_default();
    match procfs::field(&text, "Max open files") {
        Some(files) => Finding::found_if(files >= WANTED_FILES, State::Limited, format!("{files}")),
        None if text.contains("Max open files") => Finding::new(State::Found, "unlimited"),
        None => Finding::new(State::Missing, "/proc/self/limits cannot be read"),
    }
}

/// Ways in which faults of mapped memory can come to the library.
fn mapped_memory() -> Finding {
    let allowed = |mode: &FaultMode| mode.is_allowed().is_ok();
    let named = |mode: FaultMode| match mode {
        FaultMode::Thread if mode.serves_system_calls() => "thread (system calls too)".into(),
        FaultMode::Mprotect => match procfs::number("/proc/sys/vm/max_map_count") {
            Some(most) => format!("mprotect (at most {most} runs of pages)"),
            None => "mprotect".into(),
        },
        mode => mode.name().to_owned(),
    };
    let ways = FaultMode::ALL.into_iter().filter(allowed).map(named);
    let ways: Vec<String> = ways.collect();
    let detail = match ways.is_empty() {
        true => "this system does not let a process handle its faults".into(),
        false => format!("by {}", ways.join(", ")),
    };
    let signal = FaultMode::Signal.is_allowed().is_ok();
    Finding::found_if(signal, State::Limited, detail)
}

fn userfaultfd() -> Finding {
    let setting = procfs::number("/proc/sys/vm/unprivileged_userfaultfd");
    let device = std::fs::File::open("/dev/userfaultfd").is_ok();
    let privileged = procfs::capable(procfs::CAP_SYS_PTRACE);
    let way = [
        (setting == Some(1), "for all users"),
        (device, "through /dev/userfaultfd"),
        (privileged && setting.is_some(), "for this privileged user"),
    ];
    match way.iter().find(|row| row.0) {
        Some(row) => Finding::new(State::Found, row.1),
        None if setting.is_some() => Finding::new(State::Denied, "for privileged users only"),
        None => Finding::new(State::Missing, "this kernel does not have it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_several_machines_is_known_by_its_names() {
        let names = ["dax0.0", "dax", "daxctl", "dax1.2"];
        assert_eq!(names.map(is_dax), [true, false, false, true]);
        let mounts = "proc /proc proc rw 0 0\n/dev/dax0.0 /shared famfs rw 0 0\nbad";
        assert_eq!(famfs(mounts).collect::<Vec<_>>(), ["/shared"]);
    }

    #[test]
    fn the_choice_is_the_word_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always"), None);
    }
}
