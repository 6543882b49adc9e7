//! Histories that processes write down, and one judges: also those that a death has cut off.

use super::dying::{DEAD, LIVES, database, rack as of_three};
use super::{Defect, Dying, layout, plan};
use crate::access::{Access, get, update};
use crate::schema::Takings;
use crate::{
    Deed, Engine, History, Locks, Recorder, Remember, Unwatched, Watch, drive_since, load,
};
use rackmem::Rack;
use rackmem_sim::serial;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

/// A folder that is gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("rackmem-txn-history-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, node: usize) -> PathBuf {
        self.0.join(node.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A clock that all have.
fn clock() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

const REMEMBER: Remember = Remember {
    deeds: 2_000,
    outlives: true,
};

/// How many are known and were seen, and whether they have an order.
fn judged(history: History) -> (usize, usize, bool) {
    let deed = |deed: Deed| serial::Deed {
        invoke: deed.invoke,
        returned: deed.returned,
        reads: deed.footprint.reads,
        writes: deed.footprint.writes,
    };
    let mut deeds: Vec<_> = history.deeds.into_iter().map(deed).collect();
    let known = deeds.len();
    let seen = serial::seen(&deeds, history.open.into_iter().map(deed).collect());
    let cut_off = seen.len();
    deeds.extend(seen);
    (known, cut_off, serial::check(&deeds).is_ok())
}

/// Two nodes as processes have them, each with a history of its own.
fn apart(name: &str, defect: Option<Defect>) -> (usize, usize, bool) {
    let rack = Rack::local(2).unwrap();
    let folder = Folder::new(name);
    let engines = [0, 1].map(|node| {
        let mut engine = Locks::new(&[rack.node(node)], layout(&rack)).unwrap();
        load(&engine, 7, &Unwatched).unwrap();
        engine.defect = defect;
        engine
    });
    std::thread::scope(|scope| {
        for (node, engine) in engines.iter().enumerate() {
            let file = folder.file(node);
            scope.spawn(move || {
                let recorder = Recorder::create(&file, REMEMBER, &clock, &Unwatched).unwrap();
                // One that is broken may end early.
                let _ = drive_since(engine, &plan(300), &recorder, recorder.began());
                recorder.finish().unwrap();
            });
        }
    });
    let mut all = History::default();
    for node in [0, 1] {
        all.add(History::read(&folder.file(node)).unwrap());
    }
    judged(all)
}

#[test]
fn histories_of_two_processes_have_one_order() {
    let (known, cut_off, has_order) = apart("whole", None);
    assert!(known > 1_000 && has_order, "{known}");
    assert_eq!(cut_off, 0);
}

#[test]
fn a_broken_engine_is_noticed_by_histories_of_processes() {
    let (known, _, has_order) = apart("broken", Some(Defect::WritesUnlocked));
    assert!(!has_order, "{known}");
}

/// A node dies when it has written one of two cells; another one has settled its log, and reads
/// both.
fn cut_off(name: &str, (steps, defect): (usize, Option<Defect>)) -> (usize, usize, bool) {
    let rack = of_three();
    let mut engine = database(&rack);
    let layout = engine.layout();
    let both = [layout.takings(1), layout.takings(2)];
    let folder = Folder::new(name);
    let file = folder.file(0);
    let recorder = Recorder::create(&file, REMEMBER, &clock, &Unwatched).unwrap();
    let now = || recorder.began().elapsed().as_nanos() as u64;
    let set = |engine: &Locks, ytd| {
        let invoke = now();
        let put = |it: &mut Takings| it.ytd = ytd;
        let body = &mut |access: &mut dyn Access| {
            let [one, other] = both.map(|cell| update(access, cell, put));
            one.and(other)?;
            let (returned, footprint) = (None, access.footprint());
            recorder.commits(
                DEAD,
                &Deed {
                    invoke,
                    returned,
                    footprint,
                },
            );
            Ok(())
        };
        let footprint = engine.transact(DEAD, body)?.footprint;
        let returned = Some(now());
        recorder.committed(
            DEAD,
            &Deed {
                invoke,
                returned,
                footprint,
            },
        );
        crate::Result::Ok(())
    };
    set(&engine, 1).unwrap();
    engine.defect = defect;
    engine.dying = Some(Dying::after(steps, DEAD));
    set(&engine, 2).unwrap_err();
    engine.dying = None;
    engine.bury(LIVES, DEAD as u16).unwrap();
    let invoke = now();
    let body = &mut |access: &mut dyn Access| {
        let [one, other] = both.map(|cell| get::<Takings>(access, cell));
        one.and(other)
    };
    let footprint = engine.transact(LIVES, body).unwrap().footprint;
    let returned = Some(now());
    recorder.committed(
        LIVES,
        &Deed {
            invoke,
            returned,
            footprint,
        },
    );
    recorder.finish().unwrap();
    judged(History::read(&file).unwrap())
}

#[test]
fn what_a_death_cuts_off_has_committed_if_it_was_seen() {
    assert_eq!(cut_off("before", (0, None)), (2, 0, true), "no log yet");
    assert_eq!(cut_off("between", (3, None)), (2, 1, true), "one cell");
}

#[test]
fn half_of_what_a_death_has_cut_off_is_noticed() {
    let unlogged = (1, Some(Defect::Unlogged));
    assert_eq!(cut_off("half", unlogged), (2, 1, false));
}

#[test]
fn a_record_that_was_cut_off_is_left_out() {
    let folder = Folder::new("short");
    let file = folder.file(0);
    let recorder = Recorder::create(&file, REMEMBER, &clock, &Unwatched).unwrap();
    let deed = |returned| Deed {
        invoke: 1,
        returned,
        footprint: crate::Footprint {
            reads: vec![(1, 2), (3, 4)],
            writes: vec![(3, 5)],
        },
    };
    recorder.commits(0, &deed(None));
    recorder.committed(0, &deed(Some(2)));
    recorder.commits(1, &deed(None));
    recorder.finish().unwrap();
    let whole = History::read(&file).unwrap();
    assert_eq!((whole.deeds.len(), whole.open.len()), (1, 1));
    assert_eq!(whole.deeds[0].footprint, deed(None).footprint);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 9]).unwrap();
    let short = History::read(&file).unwrap();
    assert_eq!((short.deeds.len(), short.open.len()), (1, 0));
}
