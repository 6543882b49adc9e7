//! What the kernel lets this user do.

use super::procfs;
use super::{Check, Finding, State};
use rackmem_bench::machine;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

pub const CHECKS: &[Check] = &[
    Check {
        name: "xdp",
        probe: xdp,
        enable: "run as root, or give the program CAP_BPF and CAP_NET_ADMIN (setcap)",
        without: "nothing yet: this release's switch runs in user space and needs no privilege",
    },
    Check {
        name: "network namespaces",
        probe: namespaces,
        enable: "as root: sysctl -w user.max_net_namespaces=1000",
        without: "racks with emulated delay and loss on one machine; loopback racks still run",
    },
    Check {
        name: "clock",
        probe: clock,
        enable: "boot with a stable time stamp counter: clocksource=tsc tsc=reliable",
        without: "reading the time is a system call: measured latencies grow by up to a microsecond",
    },
    Check {
        name: "wake-ups",
        probe: wake_ups,
        enable: "on a virtual machine whose idle driver is haltpoll, as root: \
                 echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns",
        without: "a thread that waits for another one wakes late: misses over shared memory take two \
                  to three times as long, and those over UDP up to twice",
    },
    Check {
        name: "short turns",
        probe: short_turns,
        enable: "boot Linux 6.12 or later",
        without: "where other programs want the processors, agents and the switch wait for the end \
                  of their turns: a miss takes milliseconds instead of microseconds",
    },
];

fn short_turns() -> Finding {
    // By a thread of its own, since it would keep them.
    let given = std::thread::spawn(|| rackmem::waiting::short_turns(true)).join();
    let given = given.unwrap_or(false);
    let detail = match given {
        true => "threads that others wait for have the processor at once",
        false => "the kernel gives turns of one length",
    };
    Finding::found_if(given, State::Limited, detail)
}

fn xdp() -> Finding {
    let named = [
        (procfs::CAP_BPF, "CAP_BPF"),
        (procfs::CAP_NET_ADMIN, "CAP_NET_ADMIN"),
    ];
    let kernel = procfs::text("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !procfs::exists("/proc/sys/kernel/unprivileged_bpf_disabled") {
        return Finding::new(State::Missing, format!("kernel {kernel} has no BPF"));
    }
    let may_all = procfs::capable(procfs::CAP_SYS_ADMIN);
    let lacking: Vec<&str> = named
        .iter()
        .filter(|row| !may_all && !procfs::capable(row.0))
        .map(|row| row.1)
        .collect();
    if lacking.is_empty() {
        Finding::new(State::Found, format!("kernel {kernel}, permitted"))
    } else {
        Finding::new(State::Denied, format!("lacks {}", lacking.join(" and ")))
    }
}

/// Ways to a network namespace of one's own, from the less to the more roundabout.
const UNSHARE: [(&[&str], &str); 2] = [
    (&["--net", "true"], "permitted"),
    (
        &["--user", "--map-root-user", "--net", "true"],
        "permitted within a user namespace",
    ),
];

fn namespaces() -> Finding {
    if !procfs::exists("/proc/self/ns/net") {
        return Finding::new(State::Missing, "this kernel does not have them");
    }
    match UNSHARE.iter().find(|way| succeeds("unshare", way.0)) {
        Some(way) => Finding::new(State::Found, way.1),
        None => Finding::new(State::Denied, "`unshare --net` is refused or not installed"),
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Round trips between two threads that are timed.
const ROUNDS: usize = 200;
/// Waking a thread on a core that has not halted takes less than this.
const AWAKE: Duration = Duration::from_micros(15);

/// How long two threads take that wake each other in turns.
fn wake_ups() -> Finding {
    let first = std::thread::current();
    let turns = AtomicUsize::new(0);
    // A thread may wake without cause: the number says whose turn it is.
    let wait = |mine: usize| {
        while turns.load(SeqCst) < mine {
            std::thread::park();
        }
    };
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            for round in 0..ROUNDS {
                wait(2 * round + 1);
                turns.fetch_add(1, SeqCst);
                first.unpark();
            }
        });
        let second = second.thread();
        let rounds = (0..ROUNDS).map(|round| {
            let began = Instant::now();
            turns.fetch_add(1, SeqCst);
            second.unpark();
            wait(2 * round + 2);
            began.elapsed()
        });
        rounds.collect()
    });
    times.sort();
    let median = times[ROUNDS / 2];
    let mut told = format!("{:.0} µs there and back", median.as_secs_f64() * 1e6);
    if let Some(ns) = machine::halt_poll_ns() {
        told.push_str(&format!("; idle cores halt after {ns} ns"));
    }
    Finding::found_if(median < AWAKE, State::Limited, told)
}

/// Sources that are read without entering the kernel.
const FAST_CLOCKS: [&str; 4] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
];

fn clock() -> Finding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match procfs::text(path) {
        None => Finding::new(State::Limited, "unknown"),
        Some(source) => {
            let fast = FAST_CLOCKS.contains(&source.as_str());
            Finding::found_if(fast, State::Limited, source)
        }
    }
}
