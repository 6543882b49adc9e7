//! Folders with something wrong in them.

use crate::witness::{PATIENCE, Scratch, Witness, join};
use rackmem::Config;
use rackmem::membership::{Beat, Folder, Links, MembershipError, Role, Roster, Store};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn garbage_is_an_error_that_names_the_file() {
    let scratch = Scratch::new("folder-garbage");
    let store: Arc<dyn Store> = Arc::new(Folder::open(scratch.path()).unwrap());
    let first = Roster::first(Role::Node(0), 5);
    assert!(store.propose(&first, PATIENCE).unwrap());
    let beat = Beat {
        token: 5,
        incarnation: 1,
        counter: 1,
        links: Links::default(),
    };
    store.beat(Role::Node(0), beat, PATIENCE).unwrap();
    let good = std::fs::read(scratch.path().join("view-1")).unwrap();
    let bad: [(&str, &[u8]); 5] = [
        ("view-2", b""),
        ("view-2", b"\xff\xfe"),
        ("view-2", &good),
        ("view-18446744073709551615", b"{}"),
        ("beat-node-0", b"{\"token\":1}"),
    ];
    for (name, bytes) in bad {
        let path = scratch.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = store.load(PATIENCE).unwrap_err();
        assert!(
            matches!(error, MembershipError::Garbage { .. }),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        // A process that starts says so at once and does not wait for it to pass.
        assert!(matches!(
            join(&store, Role::Node(1)),
            Err(MembershipError::Garbage { .. })
        ));
        std::fs::remove_file(path).unwrap();
    }
    store.load(PATIENCE).unwrap();
}

/// A file system may write a file to the disk before it replaces another, and a disk may take
/// seconds.
#[test]
fn a_beat_is_written_over_the_last_one_and_is_whole_whenever_it_is_read() {
    use std::os::unix::fs::MetadataExt;
    const BEATS: u64 = 20_000;
    let scratch = Scratch::new("folder-beats");
    let store = Folder::open(scratch.path()).unwrap();
    let role = Role::Node(3);
    assert!(store.propose(&Roster::first(role, 5), PATIENCE).unwrap());
    let beat = |counter: u64| Beat {
        token: 5,
        incarnation: 1,
        counter,
        links: Links {
            starved: counter.is_multiple_of(2),
            ..Links::default()
        },
    };
    store.beat(role, beat(1), PATIENCE).unwrap();
    let file = || std::fs::metadata(scratch.path().join("beat-node-3")).unwrap();
    let first = file().ino();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (2..=BEATS).for_each(|counter| store.beat(role, beat(counter), PATIENCE).unwrap());
        });
        let mut newest = 0;
        while newest < BEATS {
            // Asked first: once it is over, the next look finds the last one.
            let over = writer.is_finished();
            let seen = store.load(PATIENCE).unwrap().beats[role.index()].unwrap();
            assert!(seen.counter >= newest && seen == beat(seen.counter));
            newest = seen.counter;
            assert!(!over || newest == BEATS, "the last beat is not there");
        }
    });
    assert_eq!(file().ino(), first, "nothing was renamed over it");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2);
}

/// What a process leaves that is killed while it writes, and what is no business of ours.
#[test]
fn files_that_nobody_reads_are_no_harm() {
    let scratch = Scratch::new("folder-rest");
    for name in ["draft-1-1", "view-", "view-x", "notes.txt"] {
        std::fs::write(scratch.path().join(name), "half a").unwrap();
    }
    let store = Folder::open(scratch.path()).unwrap();
    assert!(store.load(PATIENCE).unwrap().roster.is_none());
    assert!(
        store
            .propose(&Roster::first(Role::Switch, 1), PATIENCE)
            .unwrap()
    );
    assert!(store.load(PATIENCE).unwrap().roster.is_some());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let scratch = Scratch::new("folder-file");
    let path = scratch.path().join("file");
    std::fs::write(&path, "").unwrap();
    let error = Folder::open(&path.join("rack")).err().unwrap();
    assert!(error.to_string().contains("file/rack"), "{error}");
}

/// All members die at once, and one of them does not return. The others wait until it is dead,
/// also when they are less patient than a lease is long.
#[test]
fn who_returns_without_all_others_waits_for_their_leases() {
    let scratch = Scratch::new("folder-returns");
    let config = format!(
        "nodes = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3']\nlease = '500ms'\n\
         membership = 'dir:{}'",
        scratch.path().display()
    );
    let members = Config::parse(&config).unwrap().membership;
    let join = |node| members.join(Role::Node(node), PATIENCE, Arc::new(Witness::default()));
    let all: Vec<_> = (0..3).map(|node| join(node).unwrap()).collect();
    drop(all);
    let witness = Arc::new(Witness::default());
    let impatient = Duration::from_millis(1);
    let zero = members.join(Role::Node(0), impatient, witness.clone());
    let zero = zero.unwrap();
    witness.wait_live(0b001);
    assert!(zero.serves());
}
