//! Members and homes that are processes: stopped for longer than the bound, and killed.

use crate::LONG;
use crate::child::ChildTest;
use rackmem::bounded::Domain;
use rackmem::{AccessError, Config, Contract, Rack, RegionError, RegionSpec};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub const CONFIG: &str = "RACKMEM_TEST_BOUNDED";
const BOUND: Duration = Duration::from_millis(100);
pub const LEASE: Duration = Duration::from_secs(2);

/// A folder that goes with this value.
pub struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn config(test: &str, fabric: &str, [patience, lease]: [Duration; 2]) -> (String, Folder) {
    let addresses = rackmem_hosts::addresses(2);
    let folder = format!("rackmem-bounded-{test}-{fabric}-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "fabric = \"{fabric}\"\nnodes = [\"{}\", \"{}\"]\nmembership = \"dir:{}\"\nmemory = {}\n\
         cache = {}\npatience = \"{}ms\"\nlease = \"{}ms\"\n",
        addresses[0],
        addresses[1],
        folder.display(),
        64 << 20,
        1 << 20,
        patience.as_millis(),
        lease.as_millis(),
    );
    (text, Folder(folder))
}

fn spec() -> RegionSpec {
    RegionSpec::new("items", 64 * 8).contract(Contract::Bounded)
}

/// In such a process: node 1 of its rack.
pub fn joined() -> Option<Rack> {
    let text = std::env::var_os(CONFIG)?;
    let config = Config::parse(text.to_str().unwrap()).unwrap();
    Some(Rack::join(&config, 1).unwrap())
}

fn next(child: &mut ChildTest) -> String {
    child
        .child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"\n")
        .unwrap();
    child.line()
}

/// What a read has come to, in a word.
fn word(read: Result<u64, AccessError>) -> String {
    match read {
        Ok(value) => value.to_string(),
        Err(AccessError::Stale { .. }) => "stale".into(),
        Err(error) => match error.rack() {
            Some(_) => "rack".into(),
            None => panic!("{error}"),
        },
    }
}

/// Not a test but the process that another one starts: a member that reads in a section, and then
/// for each line that it is given: in that section, and in another one.
#[test]
fn member_process() {
    let Some(rack) = joined() else {
        return;
    };
    let end = Instant::now() + LONG;
    let region = loop {
        match rack.node(1).open_region(&spec()) {
            Ok(region) => break region,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    };
    let items = Domain::<u64>::of(&region, BOUND).unwrap();
    let section = loop {
        assert!(Instant::now() < end);
        if let Ok(section) = items.enter()
            && section.get(0) == Ok(1)
        {
            break section;
        }
    };
    eprintln!("reads");
    for _ in std::io::stdin().lines() {
        eprintln!("{} {}", word(section.get(0)), word(items.read(0)));
    }
}

/// For less than the lease, and for longer: its copy of item 0 is there all the time.
#[test]
fn a_member_that_was_stopped_reads_nothing_old() {
    for (fabric, stopped, lease) in [
        ("shm", 1, LONG),
        ("udp", 1, LONG),
        ("shm", 5, LEASE),
        ("udp", 5, LEASE),
    ] {
        let (text, _folder) = config(&format!("member-{stopped}"), fabric, [LONG, lease]);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let items = Domain::<u64>::of(&rack.node(0).create_region(&spec()).unwrap(), BOUND);
        let items = items.unwrap();
        items.writer().unwrap().set(0, &1).unwrap();
        let mut member = ChildTest::start("processes::member_process", (CONFIG, &text));
        assert_eq!(member.line(), "reads");
        member.signal("-STOP");
        // Nobody waits for it, nor until the rack has excluded it.
        items.writer().unwrap().set(0, &2).unwrap();
        assert!(lease < LONG || rack.node(0).is_member(1));
        std::thread::sleep(Duration::from_secs(stopped));
        member.signal("-CONT");
        for _ in 0..20 {
            let words = next(&mut member);
            let (in_section, after) = words.split_once(' ').unwrap();
            assert!(
                ["stale", "rack"].contains(&in_section),
                "{fabric} {stopped}: {words}"
            );
            assert!(
                ["2", "stale", "rack"].contains(&after),
                "{fabric} {stopped}: {words}"
            );
        }
        drop(member);
        // One that was killed holds nothing up either.
        items.writer().unwrap().set(0, &3).unwrap();
        assert_eq!(items.writer().unwrap().get(0), Ok(3));
    }
}

/// Not a test but the process that another one starts: node 1, the home of the items.
#[test]
fn home_process() {
    let Some(rack) = joined() else {
        return;
    };
    let region = rack.node(1).create_region(&spec().on(1)).unwrap();
    let items = Domain::<u64>::of(&region, BOUND).unwrap();
    items.writer().unwrap().set(0, &1).unwrap();
    eprintln!("there");
    let _ = std::io::stdin().lines().count();
}

#[test]
fn a_home_that_is_stopped_leaves_errors_and_no_old_values() {
    for fabric in ["shm", "udp"] {
        let patience = Duration::from_secs(2);
        let (text, _folder) = config("home", fabric, [patience, LEASE]);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let mut home = ChildTest::start("processes::home_process", (CONFIG, &text));
        assert_eq!(home.line(), "there");
        let region = rack.node(0).open_region(&spec()).unwrap();
        let items = Domain::<u64>::of(&region, BOUND).unwrap();
        let end = Instant::now() + LONG;
        while items.read(0) != Ok(1) {
            assert!(Instant::now() < end);
        }
        home.signal("-STOP");
        let stopped = Instant::now();
        // A copy is there. It is read for as long as it may be, and no longer.
        loop {
            let began = Instant::now();
            let read = items.read(0);
            let since = began - stopped;
            match word(read).as_str() {
                "1" => assert!(since <= BOUND, "{fabric}: read {since:?} after the stop"),
                _ if since > BOUND => break,
                _ => {}
            }
        }
        home.signal("-KILL");
        let lost = |error: &AccessError| {
            matches!(
                error,
                AccessError::Rack(rackmem::RackError::NodeLost { node: 1 })
            )
        };
        while !items.read(0).is_err_and(|error| lost(&error)) {
            assert!(Instant::now() < end, "{fabric}: its death is not told");
        }
    }
}

/// Not a test but the process that another one starts: node 1 makes a region of node 0, and so the
/// writers' lock.
#[test]
fn making_process() {
    let Some(rack) = joined() else {
        return;
    };
    let region = rack.node(1).create_region(&spec().on(0)).unwrap();
    let items = Domain::<u64>::of(&region, BOUND).unwrap();
    items.writer().unwrap().set(0, &1).unwrap();
    eprintln!("made");
    let _ = std::io::stdin().lines().count();
}

/// The items are there, and a domain that is opened after the death has another lock.
#[test]
fn a_writers_lock_dies_with_the_node_that_made_the_region() {
    let (text, _folder) = config("maker", "shm", [LONG, LEASE]);
    let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
    let mut maker = ChildTest::start("processes::making_process", (CONFIG, &text));
    assert_eq!(maker.line(), "made");
    let region = rack.node(0).open_region(&spec()).unwrap();
    let items = Domain::<u64>::of(&region, BOUND).unwrap();
    items.writer().unwrap().set(0, &2).unwrap();
    maker.signal("-KILL");
    let end = Instant::now() + LONG;
    while items.writer().is_ok() {
        assert!(Instant::now() < end, "its death is not told");
        std::thread::sleep(Duration::from_millis(10));
    }
    let again = Domain::<u64>::of(&region, BOUND).unwrap();
    let write = || again.writer()?.set(0, &3).map_err(RegionError::from);
    while let Err(error) = write() {
        assert!(Instant::now() < end, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(again.writer().unwrap().get(0), Ok(3));
    assert!(items.writer().is_err());
}
