//! Errors as a program meets them: each family, by its cause, with what has changed and what to do.

use rackmem::locked::{Mutex, RangesLock};
use rackmem::membership::{Memory, Role, remove};
use rackmem::{Changed, Config, Error, Node, Rack, RegionSpec, Result};
use std::time::Duration;

/// What `?` makes of the errors of a program's functions.
fn through(result: impl FnOnce() -> Result<()>) -> Error {
    result().expect_err("something is wrong with each of them")
}

fn rack() -> Rack {
    let patience = Duration::from_millis(50);
    Rack::builder(2)
        .memory(32 << 20)
        .patience(patience)
        .build()
        .unwrap()
}

/// A program that does one thing wrong.
type Wrong = fn(&Node) -> Result<()>;

/// Of each family, something that goes wrong: its family, its code, whether anything has changed.
const TABLE: &[(&str, &str, Changed, Wrong)] = &[
    ("open", "config", Changed::No, |_| {
        Config::parse("nodes = []")?;
        Rack::local(33)?;
        Ok(())
    }),
    ("membership", "not-held", Changed::No, |_| {
        remove(&Memory::default(), Role::Node(1), Duration::ZERO)?;
        Ok(())
    }),
    ("rack", "no-such-node", Changed::No, |node| {
        node.alloc_bytes_on(7, 8)?;
        Ok(())
    }),
    ("access", "bad-address", Changed::No, |node| {
        node.attach::<u64>(9 << 48)?;
        Ok(())
    }),
    ("access", "bad-range", Changed::No, |node| {
        Ok(node.store(4, 1)?)
    }),
    ("access", "bad-address", Changed::Yes, |node| {
        // The rack's last chunk ends within this range.
        let first = node.alloc_bytes(1 << 20)?;
        Ok(node.write(first, &vec![1; 64 << 20])?)
    }),
    ("access", "out-of-bounds", Changed::No, |node| {
        Ok(node.alloc_slice::<u8>(10)?.write_from(9, &[1, 2])?)
    }),
    ("alloc", "out-of-memory", Changed::No, |node| {
        node.alloc_bytes_on(1, 1 << 44)?;
        Ok(())
    }),
    ("alloc", "not-allocated", Changed::No, |node| {
        let value = node.alloc(1u64)?;
        value.clone().free()?;
        Ok(value.free()?)
    }),
    ("lock", "lock-freed", Changed::No, |node| {
        let lock = Mutex::create(node, 1u64)?;
        lock.clone().free()?;
        drop(lock.lock()?);
        Ok(())
    }),
    ("lock", "bad-shape", Changed::No, |node| {
        let addr = node.alloc_bytes(64)?;
        RangesLock::create(node, &[(addr, 8), (addr + 4, 8)])?;
        Ok(())
    }),
    ("region", "name-mismatch", Changed::No, |node| {
        Mutex::named(node, "one", 1u64)?;
        Mutex::named(node, "one", 1.0f64)?;
        Ok(())
    }),
    ("region", "region-removed", Changed::No, |node| {
        let region = node.create_region(&RegionSpec::new("two", 64))?;
        node.remove_region("two")?;
        Ok(region.write(0, &[1])?)
    }),
    ("leave", "memory-in-use", Changed::Yes, |_| {
        let rack = rack();
        rack.node(0).alloc(1u64)?;
        Ok(rack.leave()?)
    }),
];

#[test]
fn each_family_is_met_by_its_cause() {
    let rack = rack();
    for (family, code, changed, wrong) in TABLE {
        let error = through(|| wrong(&rack.node(0)));
        assert_eq!((error.family(), error.code()), (*family, *code), "{error}");
        assert_eq!(error.changed(), *changed, "{error}");
        let whole = error.to_string();
        let parts = [
            error.what(),
            error.changed().to_string(),
            error.next_step().into(),
        ];
        assert_eq!(whole, parts.join("; "));
    }
}

#[test]
fn the_table_has_every_family() {
    let families = [
        "open",
        "membership",
        "rack",
        "access",
        "alloc",
        "lock",
        "region",
        "leave",
    ];
    for family in families {
        assert!(TABLE.iter().any(|row| row.0 == family), "{family}");
    }
}
