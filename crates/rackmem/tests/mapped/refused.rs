//! Mapped memory that cannot be had says what to do instead.

use super::{BLOCK, as_a_child, spec};
use rackmem::{FaultMode, Rack, RackError, RegionError, RegionSpec};
use std::sync::atomic::Ordering::SeqCst;

/// From here on the system refuses userfaultfd to this process, as filters of containers do.
fn without_userfaultfd() {
    /// A load of a word of the call, a test of it, and an answer.
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    /// Where the number of the call and its second argument are.
    const NUMBER: u32 = 0;
    const SECOND: u32 = 24;
    /// `USERFAULTFD_IOC_NEW`, by which the device gives one.
    const NEW: u32 = 0xaa00;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let line = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        line(LOAD, NUMBER, 0, 0),
        line(IS, libc::SYS_userfaultfd as u32, 3, 0),
        line(IS, libc::SYS_ioctl as u32, 0, 3),
        line(LOAD, SECOND, 0, 0),
        line(IS, NEW, 0, 1),
        line(RETURN, refuse, 0, 0),
        line(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: numbers, and a program that lives for the length of the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
    };
    assert_eq!(done, 0);
}

const AS_A_CHILD: &str = "RACKMEM_TEST_NO_USERFAULTFD";

/// The child is this test again.
#[test]
fn without_userfaultfd_there_is_mprotect() {
    if std::env::var_os(AS_A_CHILD).is_none() {
        let ended = as_a_child(
            "refused::without_userfaultfd_there_is_mprotect",
            (AS_A_CHILD, "1"),
        );
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{told}");
        return;
    }
    without_userfaultfd();
    let rack = Rack::local(2).unwrap();
    let region = rack.node(0).create_region(&spec(BLOCK)).unwrap();
    for mode in [FaultMode::Signal, FaultMode::Thread] {
        let refused = region.map_with(mode).unwrap_err();
        assert!(
            matches!(
                refused,
                RegionError::NoPaging {
                    os: libc::EPERM,
                    ..
                }
            ),
            "{refused}"
        );
        assert!(mode.is_allowed().is_err() && !mode.serves_system_calls());
        let text = refused.to_string();
        assert!(text.contains("userfaultfd"), "{text}");
    }
    let here = region.map_with(FaultMode::Mprotect).unwrap();
    let there = rack.node(1).open_region(&spec(BLOCK)).unwrap();
    let there = there.map_with(FaultMode::Mprotect).unwrap();
    here.words()[3].store(7, SeqCst);
    assert_eq!(there.words()[3].fetch_add(1, SeqCst), 7);
    assert_eq!(here.words()[3].load(SeqCst), 8);
}

#[test]
fn a_region_of_a_closed_rack_is_not_mapped() {
    let rack = Rack::local(2).unwrap();
    let region = rack.node(1).create_region(&spec(2 * BLOCK)).unwrap();
    let pages = region.map().unwrap();
    pages.words()[0].store(1, SeqCst);
    rack.close().unwrap();
    // A page that is here as one that is not.
    for nth in [0, 1] {
        let closed = pages.touch(nth * BLOCK..(nth + 1) * BLOCK, true);
        assert!(
            matches!(closed, Err(RegionError::Rack(RackError::Closed))),
            "{closed:?}"
        );
    }
    let closed = region.map();
    assert!(
        matches!(closed, Err(RegionError::Rack(RackError::Closed))),
        "{closed:?}"
    );
}

#[test]
fn a_rack_has_so_many_nodes() {
    let refused = Rack::local(33).unwrap_err().to_string();
    assert!(
        refused.contains("a rack has 1 to 32 nodes, not 33"),
        "{refused}"
    );
}

#[test]
fn a_process_maps_so_many_regions() {
    const MOST: usize = 256;
    let rack = Rack::local(1).unwrap();
    let node = rack.node(0);
    let map = |nth: usize| {
        let region = node.create_region(&RegionSpec::new(&nth.to_string(), BLOCK));
        region.unwrap().map()
    };
    let all: Vec<_> = (0..MOST).map(|nth| map(nth).unwrap()).collect();
    let refused = map(MOST).unwrap_err();
    assert!(
        matches!(refused, RegionError::TooManyMappings { most: MOST }),
        "{refused}"
    );
    // Those that there are go on, and one is mapped again.
    all[7].words()[0].store(1, SeqCst);
    assert_eq!(map(7).unwrap().words()[0].load(SeqCst), 1);
}
