//! Sockets and what carries them.

use super::procfs;
use super::{Check, Finding, State};
use crate::size;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

pub const CHECKS: &[Check] = &[
    Check {
        name: "loopback",
        probe: loopback,
        enable: "bring it up as root: ip link set lo up",
        without: "no rack of processes on this machine; the inline fabric still runs",
    },
    Check {
        name: "udp receive buffer",
        probe: || buffer("/proc/sys/net/core/rmem_max"),
        enable: "as root: sysctl -w net.core.rmem_max=8388608",
        without: "bursts of blocks are lost and sent again: slower misses over UDP under load",
    },
    Check {
        name: "udp send buffer",
        probe: || buffer("/proc/sys/net/core/wmem_max"),
        enable: "as root: sysctl -w net.core.wmem_max=8388608",
        without: "a sender of many blocks waits for the network card",
    },
    Check {
        name: "mtu",
        probe: mtu,
        enable: "jumbo frames on every card and port of the rack: ip link set DEVICE mtu 9000",
        without: "a 4 KiB block travels in three or four packets instead of one",
    },
    Check {
        name: "shared memory",
        probe: shared_memory,
        enable: "as root: mount -t tmpfs -o size=1g tmpfs /dev/shm; for a container, its option --shm-size",
        without: "processes on one host talk by UDP, or lose packets that find no room: `fabric = \"shm\"` needs a few MiB a node",
    },
    Check {
        name: "rdma",
        probe: rdma,
        enable: "an RDMA card and its kernel driver",
        without: "nothing yet: this release moves packets by function calls, shared memory and UDP",
    },
];

/// What the UDP fabric asks the kernel for.
const WANTED_BUFFER: u64 = 8 << 20;
/// The MTU that carries a 4 KiB block with its headers in one packet.
const WHOLE_BLOCK: u64 = 4096 + 128;
/// Datagrams sent to measure the loopback.
const PROBES: u32 = 200;

fn loopback() -> Finding {
    match round_trip() {
        Ok(time) => {
            let micros = time.as_nanos() as f64 / 1000.0;
            Finding::new(
                State::Found,
                format!("a datagram to itself takes {micros:.1} µs"),
            )
        }
        Err(error) => Finding::new(State::Missing, error.to_string()),
    }
}

fn round_trip() -> io::Result<Duration> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.connect(socket.local_addr()?)?;
    let mut buffer = [0; 64];
    let start = Instant::now();
    for _ in 0..PROBES {
        socket.send(&buffer)?;
        socket.recv(&mut buffer)?;
    }
    Ok(start.elapsed() / PROBES)
}

fn buffer(path: &str) -> Finding {
    match procfs::number(path) {
        None => Finding::new(State::Missing, format!("{path} cannot be read")),
        Some(bytes) => Finding::found_if(
            bytes >= WANTED_BUFFER,
            State::Limited,
            format!(
                "{}, of {} wanted",
                size::show(bytes),
                size::show(WANTED_BUFFER)
            ),
        ),
    }
}

/// Where processes of a host share memory.
const SHARED: &str = "/dev/shm";
/// What a rack of a few nodes needs there, with room for more.
const WANTED_SHARED: u64 = 256 << 20;

fn shared_memory() -> Finding {
    if !fs::metadata(SHARED).is_ok_and(|found| found.is_dir()) {
        return Finding::new(State::Missing, format!("there is no {SHARED}"));
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    match size_of_mount(&mounts, SHARED) {
        // Half of all memory, unless the mount says otherwise.
        None => Finding::new(State::Found, SHARED.to_owned()),
        Some(bytes) => Finding::found_if(
            bytes >= WANTED_SHARED,
            State::Limited,
            format!("{SHARED}, {} at most", size::show(bytes)),
        ),
    }
}

/// What the options of a mount say of its size, in KiB as the kernel prints it.
fn size_of_mount(mounts: &str, folder: &str) -> Option<u64> {
    // What is mounted last lies over the others.
    let line = mounts
        .lines()
        .rev()
        .find(|line| line.split(' ').nth(1) == Some(folder))?;
    let options = line.split(' ').nth(3)?.split(',');
    let size = options
        .filter_map(|option| option.strip_prefix("size="))
        .next()?;
    let kib: u64 = size.strip_suffix('k')?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The names in a folder of the kernel's, in order; none if there is no such folder.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn mtu() -> Finding {
    let cards = names("/sys/class/net").into_iter();
    let cards: Vec<(String, u64)> = cards
        .filter(|name| name != "lo")
        .filter_map(|name| {
            let mtu = procfs::number(&format!("/sys/class/net/{name}/mtu"))?;
            Some((name, mtu))
        })
        .collect();
    if cards.is_empty() {
        return Finding::new(State::Limited, "only the loopback");
    }
    let list: Vec<String> = cards
        .iter()
        .map(|(name, mtu)| format!("{name} {mtu}"))
        .collect();
    let whole = cards.iter().any(|card| card.1 >= WHOLE_BLOCK);
    Finding::found_if(whole, State::Limited, list.join(", "))
}

fn rdma() -> Finding {
    match names("/sys/class/infiniband") {
        cards if cards.is_empty() => Finding::new(State::Missing, "no card"),
        cards => Finding::new(State::Found, cards.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_mount_on_top_counts() {
        let mounts = "tmpfs /dev/shm tmpfs rw,size=1024k 0 0\nshm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n\
                      /dev/vda / ext4 rw 0 0\n";
        assert_eq!(size_of_mount(mounts, SHARED), Some(64 << 20));
        assert_eq!(size_of_mount(mounts, "/"), None);
        assert_eq!(size_of_mount("", SHARED), None);
        let far = "tmpfs /dev/shm tmpfs size=99999999999999999999k 0 0";
        assert_eq!(size_of_mount(far, SHARED), None);
    }
}
