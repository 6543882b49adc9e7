//! Racks whose nodes are all in this process.

use crate::{FABRICS, MODES, rack};
use rackmem::{AccessError, AllocError, Error, Rack, RegionError, RegionSpec, Replicated};

#[test]
fn what_one_node_writes_all_read() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        for copies in [1, 3, 5, 7] {
            let rack = rack(fabric, mode, 8);
            let spec = RegionSpec::new("ledger", 64 * 16).copies(copies);
            let ledger = rack.node(2).create_region(&spec).unwrap();
            assert!(ledger.is_new());
            for node in rack.nodes() {
                let same = node.open_region(&spec).unwrap();
                assert_eq!((same.addr(), same.is_new()), (ledger.addr(), false));
                let mine: Replicated<u64> = same.replicated(usize::from(node.id())).unwrap();
                assert_eq!(mine.read().unwrap(), 0, "{fabric:?} {mode:?} {copies}");
                mine.write(u64::from(node.id()) + 100).unwrap();
            }
            for node in rack.nodes() {
                for line in 0..8 {
                    let addr = ledger.addr() + 64 * line;
                    let value = node.attach_replicated::<u64>(addr).unwrap();
                    assert_eq!(value.read().unwrap(), line + 100, "{fabric:?} {mode:?}");
                }
            }
            let status = &rack.node(7).groups()[0];
            assert_eq!(status.copies.len(), usize::from(copies));
            let through = mode == rackmem::Mode::Switch && copies > 1;
            assert_eq!(status.through_switch, through);
        }
    }
}

/// Lines of many packets, and the longest there are.
#[test]
fn lines_of_all_lengths_are_whole() {
    for fabric in FABRICS {
        for line in [64, 256, 4096, 65_536] {
            let rack = Rack::builder(3).fabric(fabric).patience(crate::LONG);
            let rack = rack.build().unwrap();
            let len = line as usize * 3;
            let spec = RegionSpec::new("lines", len).copies(3).line(line);
            let lines = rack.node(0).create_region(&spec).unwrap();
            let bytes: Vec<u8> = (0..len).map(|nth| (nth % 251) as u8).collect();
            lines.write(0, &bytes).unwrap();
            let same = rack.node(2).open_region(&spec).unwrap();
            let mut read = vec![0; len - 7];
            same.read(5, &mut read).unwrap();
            assert_eq!(read, bytes[5..len - 2], "{fabric:?} {line}");
        }
    }
}

#[test]
fn what_cannot_be_had_is_said() {
    let rack = Rack::local(4).unwrap();
    let node = rack.node(0);
    let spec = |copies| RegionSpec::new("log", 640).copies(copies);
    for copies in [0, 2, 4, 6, 8, 255] {
        let error = node.create_region(&spec(copies)).unwrap_err();
        assert!(matches!(error, RegionError::BadCopies { copies: c } if c == copies));
    }
    let error = node.create_region(&spec(5)).unwrap_err();
    let few = RegionError::FewMembers { copies: 5, live: 4 };
    assert_eq!(error, few);
    for (len, line) in [
        (0, 64),
        (100, 64),
        (640, 100),
        (640, 32),
        (1 << 20, 1 << 17),
    ] {
        let bad = RegionSpec::new("log", len).copies(3).line(line);
        let error = node.create_region(&bad).unwrap_err();
        assert!(matches!(error, RegionError::BadLines { .. }), "{error}");
    }
    let error = node.open_region(&spec(3)).unwrap_err();
    assert!(matches!(error, RegionError::NotFound { .. }));
    let log = node.create_region(&spec(3)).unwrap();
    assert!(!node.create_region(&spec(3)).unwrap().is_new());
    let other = rack.node(3);
    let error = other.open_region(&spec(1)).unwrap_err();
    assert!(matches!(error, RegionError::OtherCopies { has: 3, .. }));
    let error = other.create_region(&spec(1)).unwrap_err();
    assert!(matches!(error, RegionError::OtherCopies { has: 3, .. }));
    for spec in [spec(3).line(128), spec(3).element(9)] {
        let error = other.open_region(&spec).unwrap_err();
        assert!(matches!(error, RegionError::Mismatch { .. }), "{error}");
    }
    // A line is written whole, and a value is in one.
    let bad = |error: RegionError| {
        matches!(
            error.into(),
            Error::Access(AccessError::BadRange { block: 64, .. }) | Error::Bulk(_)
        )
    };
    assert!(bad(log.write(8, &[1; 64]).unwrap_err()));
    assert!(bad(log.write(0, &[1; 65]).unwrap_err()));
    assert!(bad(log.replicated::<[u64; 9]>(0).unwrap_err()));
    assert!(log.replicated::<u64>(10).is_err());
    let error = log.read(600, &mut [0; 64]).unwrap_err();
    assert!(matches!(error, RegionError::OutOfBounds { .. }));
    let mut zeros = [7; 640];
    log.read(0, &mut zeros).unwrap();
    assert_eq!(zeros, [0; 640]);
    // More than a node has room for.
    let rack = Rack::builder(3).memory(32 << 20).build().unwrap();
    let large = |name| RegionSpec::new(name, 24 << 20).copies(3);
    rack.node(0).create_region(&large("one")).unwrap();
    let error = rack.node(0).create_region(&large("two")).unwrap_err();
    assert!(matches!(
        error,
        RegionError::Alloc(AllocError::OutOfMemory { .. })
    ));
}

/// A region that has been made is the same for all who make it at one time.
#[test]
fn of_several_creators_one_creates() {
    for fabric in FABRICS {
        let rack = rack(fabric, rackmem::Mode::Switch, 4);
        let spec = RegionSpec::new("one", 64).copies(3);
        let made: Vec<bool> = std::thread::scope(|scope| {
            let nodes = rack.nodes().iter();
            let threads = nodes.map(|node| scope.spawn(|| node.create_region(&spec).unwrap()));
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap().is_new())
                .collect()
        });
        assert_eq!(made.iter().filter(|new| **new).count(), 1, "{fabric:?}");
    }
}
