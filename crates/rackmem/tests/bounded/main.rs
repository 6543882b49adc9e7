//! Bounded memory: what programs see of it, on every fabric, and in processes that are stopped.

#[path = "../support/child.rs"]
mod child;
#[path = "../support/executor.rs"]
mod executor;
mod futures;
mod histories;
mod mapped;
mod mapped_processes;
mod mapped_refused;
mod mapped_writers;
mod processes;
mod steering;

use rackmem::bounded::Domain;
use rackmem::{AccessError, AllocError, Contract, Fabric, Mode, Rack, RegionError, RegionSpec};
use std::time::{Duration, Instant};

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

fn rack(fabric: Fabric, nodes: usize) -> Rack {
    let rack = Rack::builder(nodes).fabric(fabric).mode(Mode::HomeOnly);
    let rack = rack.memory(64 << 20).cache(1 << 20).patience(LONG);
    rack.build().unwrap()
}

fn spec(items: usize) -> RegionSpec {
    RegionSpec::new("items", 64 * items).contract(Contract::Bounded)
}

/// The items of a region of the first node, at each node.
fn domains(rack: &Rack, items: usize, bound: Duration) -> Vec<Domain<u64>> {
    let region = rack.node(0).create_region(&spec(items)).unwrap();
    let first = Domain::of(&region, bound).unwrap();
    let others = rack.nodes()[1..].iter();
    let others = others.map(|node| {
        let region = node.open_region(&spec(items)).unwrap();
        Domain::of(&region, bound).unwrap()
    });
    std::iter::once(first).chain(others).collect()
}

/// A value, or nothing where the machine is so slow that there was none within the bound.
fn read(domain: &Domain<u64>, index: usize) -> Option<u64> {
    match domain.read(index) {
        Ok(value) => Some(value),
        Err(AccessError::Stale { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_read_is_a_hit_and_what_others_write_is_seen() {
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let all = domains(&rack, 10, LONG);
        assert_eq!((all[1].len(), all[1].bound()), (10, LONG));
        for _ in 0..1000 {
            assert_eq!(all[1].read(3), Ok(0));
        }
        let counts = rack.node(1).metrics().bounded;
        assert_eq!((counts.misses, counts.hits), (1, 999), "{fabric:?}");
        all[0].writer().unwrap().set(3, &7).unwrap();
        // Within the bound an old value is what was promised; on demand there is none.
        assert_eq!(all[1].read(3), Ok(0));
        all[1].quiesce().unwrap();
        assert_eq!((all[1].read(3), all[1].read(4)), (Ok(7), Ok(0)));
        // What it is now came with the news.
        let counts = rack.node(1).metrics().bounded;
        assert_eq!((counts.refreshed, counts.misses), (1, 2));
        assert_eq!((counts.dropped, counts.everything), (0, 0));
        // Own writes are seen at once, with no news.
        let mut writer = all[1].writer().unwrap();
        writer.set(3, &8).unwrap();
        assert_eq!(writer.update(4, |value| value + 2), Ok(2));
        assert_eq!(writer.writes(), 3);
        assert_eq!((all[1].read(3), all[1].read(4)), (Ok(8), Ok(2)));
    }
}

/// More than one answer names, and than it has values of: nothing old stays, and not all is read
/// again.
#[test]
fn much_that_was_written_comes_in_parts() {
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let all = domains(&rack, 600, LONG);
        for item in 0..600 {
            assert_eq!(all[1].read(item), Ok(0));
        }
        let mut writer = all[0].writer().unwrap();
        for item in 0..600 {
            writer.set(item, &(item as u64 + 1)).unwrap();
        }
        let before = rack.node(1).metrics().bounded;
        all[1].quiesce().unwrap();
        let now = rack.node(1).metrics().bounded;
        assert_eq!(now.refreshed + now.dropped, 600);
        assert!(
            now.refreshed > 300 && now.news >= before.news + 3,
            "{now:?}"
        );
        for item in 0..600 {
            assert_eq!(all[1].read(item), Ok(item as u64 + 1));
        }
        assert_eq!(rack.node(1).metrics().bounded.misses, 600 + now.dropped);
    }
}

#[test]
fn what_is_written_comes_by_itself() {
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let all = domains(&rack, 10, Duration::from_millis(50));
        for value in 1..=5 {
            all[0].writer().unwrap().set(1, &value).unwrap();
            let end = Instant::now() + LONG;
            while read(&all[1], 1) != Some(value) {
                assert!(Instant::now() < end, "{fabric:?}: {value} never comes");
            }
        }
    }
}

/// A thread that is held back in its section for longer than a section may last.
#[test]
fn a_section_that_lasts_too_long_is_not_believed() {
    for fabric in FABRICS {
        let rack = rack(fabric, 2);
        let all = domains(&rack, 4, Duration::from_millis(500));
        let end = Instant::now() + LONG;
        let section = loop {
            assert!(Instant::now() < end);
            if let Ok(section) = all[1].enter()
                && section.get(0) == Ok(0)
            {
                break section;
            }
        };
        all[0].writer().unwrap().set(0, &1).unwrap();
        let longest = all[1].longest_section();
        std::thread::sleep(longest + longest / 5 + Duration::from_millis(1));
        let stale = |error| matches!(error, Err(AccessError::Stale { .. }));
        assert!(stale(section.get(0).map(drop)), "{fabric:?}");
        assert!(stale(section.finish()), "{fabric:?}");
        assert!(rack.node(1).metrics().bounded.stale >= 2);
        while read(&all[1], 0) != Some(1) {
            assert!(Instant::now() < end);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let rack = rack(Fabric::Inline, 2);
    let (here, there) = (rack.node(0), rack.node(1));
    let region = here.create_region(&spec(10)).unwrap();
    let access = |result: Result<_, RegionError>| match result.err() {
        Some(RegionError::Access(error)) => error,
        other => panic!("{other:?}"),
    };
    let tight = Domain::<u64>::of(&region, Duration::from_millis(4)).map(drop);
    assert!(matches!(access(tight), AccessError::TightBound { .. }));
    let long = Domain::<[u64; 9]>::of(&region, LONG).map(drop);
    assert!(matches!(
        access(long),
        AccessError::OtherSize {
            len: 72,
            is: 64,
            ..
        }
    ));
    // As many bytes, in other lines.
    let other = there.open_region(&spec(10).line(128)).unwrap();
    let other = Domain::<u64>::of(&other, LONG).map(drop);
    assert!(matches!(access(other), AccessError::OtherSize { .. }));
    let coherent = there.create_region(&RegionSpec::new("other", 640)).unwrap();
    let coherent = Domain::<u64>::of(&coherent, LONG).map(drop);
    assert!(matches!(
        access(coherent),
        AccessError::WrongContract { .. }
    ));
    for (bytes, line) in [(0, 64), (100, 64), (640, 96), (4096, 2048), (640, 0)] {
        let spec = RegionSpec::new("bad", bytes).contract(Contract::Bounded);
        let error = here.create_region(&spec.line(line)).err().unwrap();
        assert_eq!(error, RegionError::BadLines { line, bytes });
    }
    let large = RegionSpec::new("large", 128 << 20).contract(Contract::Bounded);
    let error = here.create_region(&large.line(1024)).err().unwrap();
    let full = RegionError::Alloc(AllocError::OutOfMemory { node: 0 });
    assert_eq!(error, full);

    let items = Domain::<u64>::of(&there.open_region(&spec(10)).unwrap(), LONG).unwrap();
    let outside = AccessError::OutOfBounds {
        at: 10,
        len: 1,
        of: 10,
    };
    assert_eq!(items.read(10), Err(outside));
    assert_eq!(items.writer().unwrap().set(10, &1), Err(outside));
    // It has no bytes of coherent memory.
    let read = region.read(0, &mut [0; 8]);
    assert!(matches!(access(read), AccessError::WrongContract { .. }));
    // It is removed, and another one has its name.
    there.remove_region("items").unwrap();
    let addr = region.addr();
    assert_eq!(items.quiesce(), Err(AccessError::Gone { addr }));
    assert_eq!(
        items.writer().unwrap().set(1, &1),
        Err(AccessError::Gone { addr })
    );
    let again = there.create_region(&spec(10)).unwrap();
    assert_ne!(again.addr(), addr);
    assert_eq!(items.quiesce(), Err(AccessError::Gone { addr }));
    assert_eq!(Domain::<u64>::of(&again, LONG).unwrap().read(1), Ok(0));
}
