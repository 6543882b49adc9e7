//! Processes that are stopped or killed with all their threads.

use crate::child::ChildTest;
use crate::witness::{LEASE, PATIENCE, Scratch, join, last_view};
use rackmem::membership::{Events, Folder, Keeper, Role, Store, View};
use std::path::Path;
use std::sync::Arc;

/// Where the rack of a member process is.
const FOLDER: &str = "RACKMEM_TEST_FOLDER";

struct Print;

impl Events for Print {
    fn view(&self, _: &View) {}

    fn lease(&self, held: bool) {
        eprintln!("lease {held}");
    }

    fn fenced(&self) {
        eprintln!("fenced");
    }
}

/// Not a test but the process that the others start: node 1 of the rack, until its input ends.
#[test]
fn member_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let store: Arc<dyn Store> = Arc::new(Folder::open(Path::new(&folder)).unwrap());
    let _keeper = Keeper::join(store, Role::Node(1), LEASE, PATIENCE, Arc::new(Print)).unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn start(folder: &Path) -> ChildTest {
    ChildTest::start("stopped::member_process", (FOLDER, folder))
}

#[test]
fn one_that_is_stopped_for_long_is_excluded_and_fenced_when_it_goes_on() {
    let scratch = Scratch::new("stopped");
    let store: Arc<dyn Store> = Arc::new(Folder::open(scratch.path()).unwrap());
    let (_zero, seen) = join(&store, Role::Node(0)).unwrap();
    let mut one = start(scratch.path());
    assert_eq!(one.line(), "lease true");
    seen.wait_live(0b11);
    one.signal("-STOP");
    seen.wait_live(0b01);
    assert_eq!(last_view(&seen.told()).unwrap().epoch, 2);
    one.signal("-CONT");
    assert_eq!([one.line(), one.line()], ["lease false", "fenced"]);
}

/// Whatever it was doing: the folder is as good as before, and the next process takes the place.
#[test]
fn one_that_is_killed_again_and_again_leaves_a_good_folder() {
    let scratch = Scratch::new("killed");
    let store: Arc<dyn Store> = Arc::new(Folder::open(scratch.path()).unwrap());
    let (_zero, seen) = join(&store, Role::Node(0)).unwrap();
    for round in 1..=3 {
        let mut one = start(scratch.path());
        assert_eq!(one.line(), "lease true");
        let is_back = |view: View| view.incarnation(1) == Some(round);
        seen.wait("back", |told| last_view(told).is_some_and(is_back));
        one.signal("-KILL");
    }
    seen.wait_live(0b01);
}
