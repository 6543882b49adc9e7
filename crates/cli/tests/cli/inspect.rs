//! `rackmem inspect`, beside members that the test keeps itself.

use crate::process::{TempFile, run, stderr, stdout};
use rackmem::locked::{Mutex, RwLock};
use rackmem::{Config, Contract, Rack, RegionSpec};
use rackmem_hosts::addresses;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// More than one packet tells of.
const IDLE: usize = 150;

fn inspect(file: &TempFile, more: &[&str]) -> Value {
    let output = run(&[&["inspect", "--json", "--rack", file.path()], more].concat());
    serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// Three nodes, of which two are there.
pub fn rack() -> (TempFile, [Rack; 2]) {
    let nodes: Vec<String> = addresses(3)
        .iter()
        .map(|addr| format!("'{addr}'"))
        .collect();
    let text = format!(
        "nodes = [{}]\nmode = 'home-only'\nmtu = 1500\n",
        nodes.join(", ")
    );
    let config = Config::parse(&text).unwrap();
    let racks = [0, 1].map(|node| Rack::join(&config, node).unwrap());
    (TempFile::new(&text), racks)
}

#[test]
fn who_holds_locks_and_who_waits_is_shown() {
    let (file, [first, second]) = rack();
    assert_eq!(inspect(&file, &[]), json!({"locks": [], "unanswered": [2]}));
    let made: Mutex<u64> = Mutex::create(&first.node(0), 7).unwrap();
    let far: Mutex<u64> = Mutex::attach(&second.node(1), made.addr()).unwrap();
    let read: RwLock<u64> = RwLock::create(&first.node(0), 7).unwrap();
    let idle = (0..IDLE).map(|_| Mutex::create(&second.node(1), 0u32).unwrap());
    let idle: Vec<Mutex<u32>> = idle.collect();
    let (_one, _other) = (read.read().unwrap(), read.read().unwrap());
    let held = made.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| far.lock().unwrap().set(8));
        let began = Instant::now();
        while made.waiting().nodes == 0 {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        let shown = inspect(&file, &[]);
        assert_eq!(shown["unanswered"], json!([2]));
        let locks = shown["locks"].as_array().unwrap();
        let addrs: Vec<String> = [made.addr(), read.addr()].map(|a| format!("{a:#x}")).into();
        let shown: Vec<&Value> = locks.iter().map(|lock| &lock["addr"]).collect();
        assert_eq!(shown, addrs.iter().collect::<Vec<_>>());
        let [holder, waits] = [0, 1].map(|at| &locks[0]["nodes"][at]);
        assert_eq!(
            (&holder["node"], &holder["right"], &holder["writer_inside"]),
            (&json!(0), &json!("write"), &json!(true))
        );
        assert_eq!(holder["nodes_waiting"], json!([1]));
        assert_eq!(holder["token"], json!(held.token()));
        assert_eq!(
            (&waits["node"], &waits["right"], &waits["threads_waiting"]),
            (&json!(1), &json!("none"), &json!(1))
        );
        assert_eq!(locks[1]["nodes"][0]["readers_inside"], json!(2));
        let text = stdout(&run(&["inspect", "--rack", file.path()]));
        for part in [
            "2 locks in use",
            "a writer of node 0",
            "a thread of node 1",
            "2 readers of node 0",
            "node 2 does not answer",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        drop(held);
    });
    let shown = inspect(&file, &["--all"]);
    let known = shown["locks"].as_array().unwrap();
    assert_eq!(known.len(), IDLE + 2);
    for lock in &idle {
        let addr = json!(format!("{:#x}", lock.addr()));
        assert!(known.iter().any(|known| known["addr"] == addr));
    }
}

/// Each node says how many objects its home has, and by which way its handles read.
#[test]
fn which_way_reads_of_objects_go_is_shown() {
    let (file, [first, second]) = rack();
    let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
    let region = first.node(0).create_region(&spec).unwrap();
    let object = region.alloc(7u64).unwrap();
    let far = second.node(1).attach_object::<u64>(object.at()).unwrap();
    assert_eq!((object.read(), far.read()), (Ok(7), Ok(7)));
    let shown = inspect(&file, &["--objects"]);
    let [home, reader] = [0, 1].map(|node| &shown["nodes"][node]);
    assert_eq!(
        (&home["live"], &home["handles"]["here"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        (&reader["live"], &reader["handles"]["elsewhere"]),
        (&json!(0), &json!(1))
    );
    assert_eq!((&reader["asked"], &home["asked"]), (&json!(1), &json!(0)));
    assert_eq!(shown["nodes"][2], Value::Null);
    let text = stdout(&run(&["inspect", "--objects", "--rack", file.path()]));
    assert!(
        text.contains("by packets") && text.contains("no answer"),
        "{text}"
    );
}

/// Two nodes write words of one block, and one of them another block alone.
#[test]
fn blocks_that_nodes_take_from_each_other_are_shown() {
    let (file, [first, second]) = rack();
    let spec = RegionSpec::new("counters", 1 << 16);
    let here = first.node(0).create_region(&spec).unwrap();
    let block = first.node(0).block_size() as u64;
    let at = here.addr() + 2 * block;
    for _ in 0..20 {
        first.node(0).fetch_add(at, 1).unwrap();
        second.node(1).fetch_add(at + 8, 1).unwrap();
    }
    for _ in 0..20 {
        first.node(0).fetch_add(here.addr(), 1).unwrap();
    }
    let shown = inspect(&file, &["--hot"]);
    let hot = &shown["hot"][0];
    assert_eq!(hot["addr"], json!(format!("{at:#x}")), "{shown}");
    assert_eq!(
        (&hot["region"], &hot["offset"]),
        (&json!("counters"), &json!(2 * block))
    );
    for node in 0..2 {
        assert_eq!(hot["nodes"][node]["node"], json!(node));
        let [writes, at_home] = ["writes", "at_home"].map(|key| hot["nodes"][node][key].as_u64());
        assert!(writes.unwrap() + at_home.unwrap() >= 19, "{hot}");
    }
    assert_eq!(shown["unanswered"], json!([2]));
    let alone = json!(format!("{:#x}", here.addr()));
    let blocks = shown["hot"].as_array().unwrap();
    assert!(blocks.iter().all(|hot| hot["addr"] != alone), "{shown}");
    let text = stdout(&run(&["inspect", "--hot", "--rack", file.path()]));
    let told = format!("counters + {:#x}", 2 * block);
    assert!(
        text.contains(&told) && text.contains("0 1, 2 write it"),
        "{text}"
    );
}

#[test]
fn racks_that_share_memory_are_asked_from_inside() {
    let file = TempFile::new("nodes = ['127.0.0.1:1']\nfabric = 'shm'\nmode = 'home-only'\n");
    let output = run(&["inspect", "--rack", file.path()]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("Node::locks"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_rack_that_does_not_answer_has_no_number_of_locks() {
    let ports = addresses(2);
    let text = format!("nodes = ['{}', '{}']\n", ports[0], ports[1]);
    let file = TempFile::new(&text);
    for json in [&[][..], &["--json"]] {
        let output = run(&[&["inspect", "--rack", file.path()], json].concat());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stdout(&output), "");
        let error = stderr(&output);
        assert!(
            error.contains("none of the rack's 2 nodes answers"),
            "{error}"
        );
    }
}

#[test]
fn regions_are_shown_with_their_contracts() {
    let (file, [first, second]) = rack();
    assert_eq!(inspect(&file, &["--regions"]), json!({"regions": []}));
    let bytes = RegionSpec::new("tables/users", 5000).element(66);
    let made = second.node(1).create_region(&bytes).unwrap();
    let locks = RegionSpec::new("buckets", 160).contract(Contract::Locked);
    let locks = first.node(0).create_region(&locks).unwrap();
    let shown = json!({"regions": [
        {"name": "buckets", "bytes": 160, "element_type": "0x0", "contract": "locked",
         "backing": "heap", "home": 0, "addr": format!("{:#x}", locks.addr()), "generation": 1},
        {"name": "tables/users", "bytes": 5000, "element_type": "0x42", "contract": "coherent",
         "backing": "heap", "home": 1, "addr": format!("{:#x}", made.addr()), "generation": 1},
    ]});
    assert_eq!(inspect(&file, &["--regions"]), shown);
    let text = stdout(&run(&["inspect", "--regions", "--rack", file.path()]));
    for part in ["2 regions", "tables/users", "coherent", "locked", "heap"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    second.node(1).remove_region("tables/users").unwrap();
    // More than one packet tells of.
    let names: Vec<String> = (0..40).map(|n| format!("many/{n:02}")).collect();
    for name in &names {
        second.node(1).region(name, 8, 0).unwrap();
    }
    let shown = inspect(&file, &["--regions"]);
    let shown = shown["regions"].as_array().unwrap();
    let shown: Vec<_> = shown.iter().map(|region| region["name"].clone()).collect();
    let wanted = std::iter::once("buckets".to_owned()).chain(names);
    assert_eq!(shown, wanted.collect::<Vec<_>>());
}

/// A file of a test, in memory that processes map.
struct ArenaFile(std::path::PathBuf);

impl Drop for ArenaFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn an_arena_shows_its_nodes_and_which_one_memory_waits_for() {
    use rackmem::bounded::{Arena, ArenaSpec};
    let name = format!("rackmem-inspected-{}", std::process::id());
    let file = ArenaFile(std::env::temp_dir().join(name));
    let path = file.0.to_str().unwrap();
    let missing = run(&["inspect", "--bounded", path]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("open"), "{}", stderr(&missing));

    let rack = Rack::local(3).unwrap();
    let minute = Duration::from_secs(60);
    let spec = ArenaSpec::new(&file.0, 1 << 20).bound(minute).emulated();
    let here = Arena::create(&rack.node(0), &spec).unwrap();
    let _there = Arena::open(&rack.node(2), &spec).unwrap();
    let lock = rackmem::locked::Lock::create(&rack.node(0), ()).unwrap();
    let mut writer = here.writer(&lock).unwrap();
    for price in [250u64, 260] {
        let new = writer.alloc(&price).unwrap();
        if let Some(old) = writer.assign(here.slot(0).unwrap(), new).unwrap() {
            writer.free(old).unwrap();
        }
    }
    let output = run(&["inspect", "--json", "--bounded", path]);
    let shown: Value = serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    assert_eq!(shown["nodes"], 3);
    assert_eq!(shown["bound_ns"], json!(minute.as_nanos() as u64));
    let domains = shown["domains"].as_array().unwrap();
    let about = |nth: usize| {
        let row: &Value = &domains[nth];
        (
            row["node"].clone(),
            row["state"].clone(),
            row["waiting"].clone(),
        )
    };
    assert_eq!(domains.len(), 2);
    assert_eq!(about(0), (json!(0), json!("running"), json!(1)));
    assert_eq!(about(1), (json!(2), json!("running"), json!(0)));
    let text = stdout(&run(&["inspect", "--bounded", path]));
    assert!(text.contains("an arena of 1 MiB for 3 nodes"), "{text}");
    assert!(text.contains("1 of "), "{text}");
}
