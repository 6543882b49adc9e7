//! Which way reads of objects go in a rack, and why not through the kernel where they do not.

use super::procfs;
use super::{Check, Finding, State};
use rackmem::diagnostics::{ObjectCounts, inspect_objects};
use rackmem::{Config, Fabric, Size};
use std::path::Path;

/// Looked at when there is a file of a rack.
pub const CHECK: Check = Check {
    name: "object reads",
    probe: || Finding::new(State::Missing, "no file of a rack was given"),
    enable: "over UDP: `kernel_reads = \"IFACE\"` in the file, a build with the feature `xdp`, root; docs/xdp.md",
    without: "the home's agent answers reads of objects: a thread is woken, and a home that is stopped answers none",
};

/// What this host lacks for reads in the kernel at this interface.
fn lacks(interface: &str) -> Option<String> {
    let may = |capability| procfs::capable(procfs::CAP_SYS_ADMIN) || procfs::capable(capability);
    let lacks = [
        (cfg!(feature = "xdp"), "this build has no program for it"),
        (cfg!(target_arch = "x86_64"), "its program needs x86-64"),
        (
            may(procfs::CAP_BPF) && may(procfs::CAP_NET_ADMIN),
            "this user may not load programs",
        ),
    ];
    let why = lacks.iter().find(|row| !row.0).map(|row| row.1.to_owned());
    let device = Path::new("/sys/class/net").join(interface);
    why.or_else(|| (!device.exists()).then(|| format!("this host has no `{interface}`")))
}

/// What the rack's nodes say, if some answer.
fn told(nodes: &[Option<ObjectCounts>]) -> Option<String> {
    let told: Vec<&ObjectCounts> = nodes.iter().flatten().collect();
    let sum = |of: fn(&ObjectCounts) -> u64| told.iter().map(|counts| of(counts)).sum::<u64>();
    let serve = |counts: &&&ObjectCounts| counts.in_kernel.is_some_and(|kernel| kernel.serves);
    let serves = told.iter().filter(serve).count();
    (!told.is_empty()).then(|| {
        format!(
            "{} of {} nodes answer, {serves} in the kernel; reads: {} by kernels, {} by agents; handles: {} own, {} mapped",
            told.len(),
            nodes.len(),
            sum(|counts| counts.by_kernel),
            sum(|counts| counts.by_agent),
            sum(|counts| counts.here),
            sum(|counts| counts.mapped),
        )
    })
}

/// Looks at one rack, and at this host.
pub fn look(config: &Config) -> Finding {
    if config.fabric == Fabric::Shm {
        let what = "mapped: readers copy from the home's memory, and ask nobody";
        return Finding::new(State::Found, what);
    }
    let nodes = inspect_objects(config).unwrap_or_default();
    let told = told(&nodes).map_or(String::new(), |told| format!("; {told}"));
    let Some(reads) = config.kernel_reads() else {
        let what = format!("by agents: the file names no `kernel_reads`{told}");
        return Finding::new(State::Limited, what);
    };
    let interface = &reads.interface;
    match lacks(interface) {
        Some(why) => {
            let what = format!("by agents: {why}{told}");
            Finding::new(State::Denied, what)
        }
        None => {
            let [memory, items, lines] = [reads.memory, reads.bounded, reads.replicated].map(Size);
            let blocks = match config.kernel_blocks() {
                0 => String::new(),
                blocks => format!(", {} for blocks", Size(blocks)),
            };
            let cache = match (config.kernel_cache(), config.kernel_copies()) {
                (false, _) => String::new(),
                (true, 0) => "; cached copies are invalidated there, too".into(),
                (true, bytes) => format!(
                    "; cached copies, in {} of its memory, are invalidated there and given to readers",
                    Size(bytes)
                ),
            };
            let what = format!(
                "by the kernel at {interface}, {memory} for objects, {items} for items, {lines} for lines{blocks}{told}{cache}"
            );
            Finding::new(State::Found, what)
        }
    }
}
