//! Every word of an object says which write it is of, so any tear is seen.

use crate::{FABRICS, rack, region};
use rackmem::object::{Object, Retry};
use rackmem::{Fabric, Mode, Node};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Writers at the home and elsewhere write until readers everywhere have read so often.
fn torn<const WORDS: usize>(fabric: Fabric, reads: u64) {
    let rack = rack(fabric, Mode::HomeOnly, 3);
    let home: Object<[u64; WORDS]> = region(&rack, 0, "objects").alloc([0; WORDS]).unwrap();
    let (over, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    let attach = |node: &Node| -> Object<[u64; WORDS]> { node.attach_object(home.at()).unwrap() };
    std::thread::scope(|scope| {
        for node in &rack.nodes()[..2] {
            let (mine, over, writes) = (attach(node), &over, &writes);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    let nth = writes.fetch_add(1, Relaxed) + 1;
                    mine.write(&[nth; WORDS]).unwrap();
                }
            });
        }
        let readers: Vec<_> = (rack.nodes().iter())
            .map(|node| {
                let mine = attach(node);
                scope.spawn(move || {
                    let (mut value, mut last) = ([0; WORDS], 0);
                    for nth in 0..reads {
                        let version = mine.read_into(&mut value, Retry::default()).unwrap();
                        let torn = value.iter().find(|word| **word != value[0]);
                        assert_eq!(torn, None, "read {nth} of {version}");
                        assert!(version >= last && version % 2 == 0);
                        last = version;
                    }
                })
            })
            .collect();
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        over.store(true, Relaxed);
        for reader in ended {
            reader.unwrap();
        }
    });
}

#[test]
fn no_read_has_parts_of_two_writes() {
    for fabric in FABRICS {
        let reads = if fabric == Fabric::Inline {
            20_000
        } else {
            400
        };
        torn::<7>(fabric, reads);
        torn::<128>(fabric, reads);
        torn::<3000>(fabric, reads / 4);
        torn::<8190>(fabric, reads / 10);
    }
}

/// 10^8 reads, in memory of this process, in memory that is mapped and by packets; some minutes:
/// `cargo test -p rackmem --test objects -- --ignored --nocapture`.
#[test]
#[ignore = "long: 10^8 reads"]
fn no_read_of_very_many_has_parts_of_two_writes() {
    let part = |what: &str, reads: u64| eprintln!("{what}: {} reads, none torn", 3 * reads);
    torn::<128>(Fabric::Udp, 30_000);
    part("1 KiB, by the home's agent", 30_000);
    torn::<1024>(Fabric::Inline, 330_000);
    part("8 KiB, in memory of this process", 330_000);
    torn::<16>(Fabric::Shm, 3_000_000);
    part("128 bytes, mapped", 3_000_000);
    torn::<16>(Fabric::Inline, 30_000_000);
    part("128 bytes, in memory of this process", 30_000_000);
}
