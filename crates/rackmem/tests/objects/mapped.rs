//! Memory of a home that is mapped by other processes of the host: nobody at the home is asked.

use crate::child::ChildTest;
use crate::{LONG, rack};
use rackmem::object::{Object, ObjectRef};
use rackmem::{AccessError, Config, Contract, Fabric, Mode, Rack, RegionSpec};
use std::io::Write;

type Words = [u64; 1024];

#[test]
fn reads_over_shared_memory_ask_nobody() {
    let rack = rack(Fabric::Shm, Mode::HomeOnly, 2);
    let near: Object<Words> = crate::region(&rack, 0, "objects").alloc([7; 1024]).unwrap();
    let far: Object<Words> = rack.node(1).attach_object(near.at()).unwrap();
    let asked = || rack.node(1).metrics().objects.asked;
    let before = asked();
    let (version, value) = far.read_versioned().unwrap();
    assert_eq!(value, [7; 1024]);
    assert_eq!(far.read_if_newer(version), Ok(None));
    near.write(&[8; 1024]).unwrap();
    assert_eq!(far.with(|view| view.u64(8)), Ok(8));
    assert_eq!(asked(), before);
    // A write is the home's.
    far.write(&[9; 1024]).unwrap();
    assert_eq!((near.read(), asked()), (Ok([9; 1024]), before + 1));
    let addr = near.addr();
    near.free().unwrap();
    assert_eq!(far.read(), Err(AccessError::Gone { addr }));
    assert_eq!(asked(), before + 1);
}

/// Where the rack of the home's process is.
const CONFIG: &str = "RACKMEM_TEST_OBJECTS";

/// Not a test but the process that another one starts: node 0, which has an object and changes it
/// for every line that it is given.
#[test]
fn home_process() {
    let Some(text) = std::env::var_os(CONFIG) else {
        return;
    };
    let config = Config::parse(text.to_str().unwrap()).unwrap();
    let rack = Rack::join(&config, 0).unwrap();
    let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
    let region = rack.node(0).create_region(&spec).unwrap();
    let object: Object<Words> = region.alloc([0; 1024]).unwrap();
    let at = object.at();
    eprintln!("at {} {}", at.addr(), at.generation());
    for (nth, _) in std::io::stdin().lines().enumerate() {
        object.write(&[nth as u64 + 1; 1024]).unwrap();
        eprintln!("written");
    }
}

/// The home's process writes once more.
fn change(home: &mut ChildTest) {
    home.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(home.line(), "written");
}

#[test]
fn a_home_that_is_stopped_or_dead_is_read() {
    let addresses = rackmem_hosts::addresses(2);
    let folder = format!("rackmem-objects-mapped-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "fabric = \"shm\"\nnodes = [\"{}\", \"{}\"]\nmembership = \"dir:{}\"\nmemory = {}\n\
         cache = {}\npatience = \"{}s\"\nlease = \"2s\"\n",
        addresses[0],
        addresses[1],
        folder.display(),
        64 << 20,
        1 << 20,
        LONG.as_secs(),
    );
    let mut home = ChildTest::start("mapped::home_process", (CONFIG, &text));
    let rack = Rack::join(&Config::parse(&text).unwrap(), 1).unwrap();
    let line = home.line();
    let numbers: Vec<u64> = (line.split(' ').skip(1))
        .map(|number| number.parse().unwrap())
        .collect();
    let at = ObjectRef::new(numbers[0], numbers[1] as u32);
    let object: Object<Words> = rack.node(1).attach_object(at).unwrap();
    change(&mut home);
    assert_eq!(object.read(), Ok([1; 1024]));
    change(&mut home);
    home.signal("-STOP");
    for _ in 0..10_000 {
        assert_eq!(object.read(), Ok([2; 1024]));
    }
    assert_eq!(rack.node(1).metrics().objects.asked, 0);
    home.signal("-CONT");
    // Until the rack knows of its death, what it had is there; then the reader is told.
    home.signal("-KILL");
    crate::until("the home is lost", || match object.read() {
        Ok(value) => {
            assert_eq!(value, [2; 1024]);
            false
        }
        Err(error) => {
            let lost = matches!(
                error,
                AccessError::Rack(rackmem::RackError::NodeLost { node: 0 })
            );
            assert!(lost || error.rack().is_some(), "{error}");
            lost
        }
    });
    drop(rack);
    let _ = std::fs::remove_dir_all(&folder);
}
