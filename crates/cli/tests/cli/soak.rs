//! `rackmem soak`, for a few kills: a real rack of processes over UDP, real kills,
//! a history that is judged.

use crate::process::{Running, TempFile, has, run, stderr, stdout};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Runs it and demands that nobody was told anything wrong; the last line.
fn soak(options: &[&str]) -> Value {
    soak_in_full(options).1
}

/// The same: the lines before the last, and that one.
fn soak_in_full(options: &[&str]) -> (Vec<Value>, Value) {
    // Other tests share the processors: a member that gets none for a while is not dead.
    let patient = ["soak", "--json", "--lease-ms", "3000"];
    let output = run(&[&patient[..], options].concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    let lines = text.lines().map(serde_json::from_str);
    let mut kills: Vec<Value> = lines.collect::<Result<_, _>>().expect("objects");
    let totals = kills.pop().expect("the last line");
    assert_eq!(totals["violations"].as_array().map(Vec::len), Some(0));
    assert_eq!(totals["undecided"].as_u64().unwrap_or(0), 0);
    (kills, totals)
}

#[test]
fn locks_live_through_kills_and_nobody_is_inside_beside_a_writer() {
    let bad = ["--locks", "--loss", "0.01", "--delay", "0.01"];
    let totals = soak(
        &[
            &bad[..],
            &["--kills", "4", "--seconds", "120", "--seed", "1"],
        ]
        .concat(),
    );
    assert_eq!(totals["kills"], 4);
    assert!(totals["entries"].as_u64() > Some(500), "{totals}");
    assert!(totals["hand_overs"].as_u64() > Some(100), "{totals}");
}

#[test]
fn nor_in_shared_memory_without_a_switch() {
    let rack = ["--locks", "--fabric", "shm", "--no-switch"];
    let totals = soak(&[&rack[..], &["--kills", "3", "--seconds", "120"]].concat());
    assert!(totals["entries"].as_u64() > Some(500), "{totals}");
}

#[test]
fn a_rack_whose_members_are_killed_tells_nobody_anything_wrong() {
    // This seed kills a node, the switch, two nodes at once, and a node again.
    let totals = soak(&["--kills", "4", "--seconds", "120", "--seed", "1"]);
    assert_eq!(totals["kills"], 4);
    assert!(totals["operations"].as_u64() > Some(1000), "{totals}");
    assert!(totals["lost_buckets"].as_u64() > Some(0), "{totals}");
    for flow in ["put", "taken", "heard"] {
        assert!(totals[flow].as_u64() > Some(50), "{flow}: {totals}");
    }
}

#[test]
fn nor_does_a_store_with_copies_whose_nodes_are_killed() {
    let copies = ["--nodes", "4", "--copies", "3", "--keys", "8"];
    let totals = soak(&[&copies[..], &["--kills", "3", "--seconds", "120"]].concat());
    assert_eq!(totals["kills"], 3);
    assert_eq!(totals["lost_buckets"], 0);
    assert!(totals["put"].as_u64() > Some(20), "{totals}");
}

/// What a dead node alone had is lost, and nothing else: of node 0, too.
#[test]
fn nor_does_one_whose_root_has_copies_and_whose_node_0_is_killed() {
    let rack = ["--root-copies", "3", "--nodes", "4", "--seed", "2"];
    let (kills, totals) =
        soak_in_full(&[&rack[..], &["--kills", "3", "--seconds", "120"]].concat());
    assert_eq!(totals["kills"], 3);
    assert!(totals["operations"].as_u64() > Some(1000), "{totals}");
    let of_node_0 = |kill: &&Value| kill["victims"][0] == "node 0";
    assert!(kills.iter().filter(of_node_0).count() > 0, "{kills:?}");
}

#[test]
fn nor_does_one_whose_members_share_memory() {
    let rack = ["--fabric", "shm", "--loss", "0.01"];
    let totals = soak(&[&rack[..], &["--kills", "3", "--seconds", "120"]].concat());
    assert_eq!(totals["kills"], 3);
    assert!(totals["operations"].as_u64() > Some(1000), "{totals}");
}

#[test]
fn so_does_one_that_agrees_through_etcd_on_a_bad_network() {
    if has("etcd") {
        let bad = ["--membership", "etcd", "--loss", "0.01", "--delay", "0.01"];
        let totals = soak(&[&bad[..], &["--kills", "2", "--seconds", "120"]].concat());
        assert_eq!(totals["kills"], 2);
    }
}

#[test]
fn no_shared_memory_is_left_after_an_interrupt() {
    let options = ["soak", "--fabric", "shm", "--locks", "--seconds", "600"];
    let mut soak = Running::start(&[&options[..], &["--lease-ms", "3000"]].concat());
    assert_eq!(soak.line()["kill"], 1);
    let maps = |number: &u32| std::fs::read_to_string(format!("/proc/{number}/maps")).ok();
    let mapped: String = soak.children().iter().filter_map(maps).collect();
    let files = mapped
        .lines()
        .filter_map(|line| line.find("/dev/shm/rackmem-").map(|at| &line[at..]));
    let folders = files.filter_map(|file| std::path::Path::new(file).parent());
    let folders: std::collections::BTreeSet<_> = folders.collect();
    assert_eq!(folders.len(), 1, "{mapped}");
    assert_eq!(soak.interrupt(), Some(130));
    assert!(folders.iter().all(|folder| !folder.exists()), "{folders:?}");
}

#[test]
fn nothing_is_left_running_after_an_interrupt() {
    let mut soak = Running::start(&["soak", "--seconds", "600", "--seed", "1"]);
    assert_eq!(soak.line()["kill"], 1);
    let children = soak.children();
    assert!(children.len() >= 2, "{children:?}");
    assert_eq!(soak.interrupt(), Some(130));
    let left = |number: &u32| std::path::Path::new(&format!("/proc/{number}")).exists();
    assert!(!children.iter().any(left), "{children:?}");
}

/// Whether a process is there, and not only as an exit status that nobody has asked for.
fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_soak_that_is_killed_leaves_no_process_behind() {
    let mut soak = Running::start(&["soak", "--starve", "--seconds", "600", "--clients", "1"]);
    // Two nodes of three, the switch and busy processes at least are there when the first kill is
    // told.
    soak.line();
    let family = soak.children();
    assert!(family.len() > 3, "{family:?}");
    soak.send("KILL");
    let end = Instant::now() + Duration::from_secs(60);
    while family.iter().any(|process| lives(*process)) {
        assert!(Instant::now() < end, "of {family:?} some live on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a soak of copies: its exit code, what it said of events, and its totals.
fn replicated(options: &[&str]) -> (Option<i32>, Vec<Value>, Value) {
    let patient = ["soak", "--json", "--replicated", "--lease-ms", "3000"];
    let output = run(&[&patient[..], options].concat());
    let text = stdout(&output);
    let said = text.lines().map(serde_json::from_str::<Value>);
    let mut said: Vec<Value> = said.map(|line| line.expect("an object")).collect();
    let totals = said
        .pop()
        .unwrap_or_else(|| panic!("it says why: {}", stderr(&output)));
    if output.status.code() != Some(0) {
        eprint!("{}", stderr(&output));
    }
    (output.status.code(), said, totals)
}

/// One copy becomes three, a replica is killed, another one paused, one replaced,
/// and the switch starts again, while all processes use lines; a checker outside would be given
/// what they have recorded.
#[test]
fn lines_with_copies_live_through_all_that_is_done_to_their_members() {
    let file = std::env::temp_dir().join(format!("rackmem-soak-{}.jsonl", std::process::id()));
    let history = file.to_string_lossy();
    let options = ["--kills", "5", "--seconds", "120", "--history", &history];
    let (code, events, totals) = replicated(&options);
    assert_eq!(code, Some(0), "{totals}");
    let what: Vec<&str> = events.iter().filter_map(|e| e["what"].as_str()).collect();
    let all = ["grown", "killed", "paused", "replaced", "switch restarts"];
    assert_eq!(what, all);
    assert_eq!(totals["violations"].as_array().map(Vec::len), Some(0));
    assert_eq!(totals["undecided"], 0);
    assert!(totals["operations"].as_u64() > Some(500), "{totals}");
    let text = std::fs::read_to_string(&file).expect("a history");
    let _ = std::fs::remove_file(&file);
    let of = |kind: &str| {
        let kind = format!("\"type\":\"{kind}\"");
        text.lines().filter(|line| line.contains(&kind)).count() as u64
    };
    assert_eq!(of("invoke"), totals["operations"].as_u64().unwrap());
    assert_eq!(of("info"), totals["unknown"].as_u64().unwrap());
    assert_eq!(of("invoke"), of("ok") + of("info"));
}

/// All processes at once, which have journals.
#[test]
fn lines_with_journals_live_through_the_death_of_all_processes() {
    let options = ["--kills", "6", "--seconds", "120", "--durability", "file"];
    let (code, events, totals) = replicated(&options);
    assert_eq!(code, Some(0), "{totals}");
    assert_eq!(events[5]["what"], "all killed");
    assert!(totals["operations"].as_u64() > Some(500), "{totals}");
}

/// The same with objects and transactions over them, in one region and in two.
#[test]
fn durable_objects_live_through_the_death_of_all_processes() {
    let options = ["--objects", "--lease-ms", "3000", "--durability", "sync"];
    let output = run(&[
        &["soak", "--json"],
        &options[..],
        &["--kills", "5", "--seconds", "120"],
    ]
    .concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("\"what\":\"all killed\""), "{text}");
}

/// A store that is on disk, all of whose servers are killed at once, under clients.
#[test]
fn a_durable_store_lives_through_the_death_of_all_processes() {
    // By this seed node 0 is killed, and then all at once.
    let options = ["--copies", "3", "--durability", "sync", "--seed", "3"];
    let totals = soak(&[&options[..], &["--kills", "2", "--seconds", "120"]].concat());
    assert_eq!(totals["kills"], 2, "{totals}");
    assert!(totals["restarts"].as_u64() >= Some(4), "{totals}");
    assert_eq!(totals["nodelost"], 0, "{totals}");
    assert_eq!(totals["lost_buckets"], 0, "{totals}");
}

/// What a soak must find, or it shows nothing: a member counts that has forgotten, and disks lose
/// what they called durable.
#[test]
fn a_soak_of_copies_finds_what_is_planted() {
    for (planted, durability) in [("forgetful", "memory"), ("rollback", "file")] {
        let planted = ["--planted", planted, "--durability", durability];
        let (code, _, totals) =
            replicated(&[&planted[..], &["--kills", "6", "--seconds", "120"]].concat());
        assert_eq!(code, Some(1), "{totals}");
        let found = totals["violations"].as_array().map(Vec::len);
        assert_eq!(found, Some(1), "{totals}");
    }
}

#[test]
fn bounded_memory_is_within_its_bound_while_processes_are_stopped_and_killed() {
    let file = TempFile::new("");
    // One is stopped, one for longer than its lease, one is killed.
    let what = ["--bounded", "--stop", "--kill", "--kills", "3", "--history"];
    let totals = soak(&[&what[..], &[file.path(), "--seconds", "300"]].concat());
    assert_eq!(totals["events"], 3, "{totals}");
    assert_eq!(
        totals["done"].as_object().map(serde_json::Map::len),
        Some(3)
    );
    let count = |name: &str| totals[name].as_u64().unwrap_or_default();
    assert!(count("in_arena") > 50, "{totals}");
    assert!(count("operations") > count("in_arena") + 50, "{totals}");
    assert!(count("old") > 0, "{totals}");
    // What it has written is judged alike.
    let judged = run(&[
        "--json",
        "history",
        "check",
        "--bounded",
        "50ms",
        file.path(),
    ]);
    let judged: Value = serde_json::from_str(&stdout(&judged)).expect("an object");
    assert_eq!(judged["verdict"], "bounded");
    assert_eq!(judged["detail"]["reads"], totals["reads"]);
}

#[test]
fn memory_that_is_older_than_its_bound_is_found() {
    let old = [
        "soak",
        "--json",
        "--bounded",
        "--old",
        "--stop",
        "--kills",
        "2",
    ];
    let output = run(&[&old[..], &["--lease-ms", "3000", "--seconds", "120"]].concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        stderr(&output).contains("superseded"),
        "{}",
        stderr(&output)
    );
}
