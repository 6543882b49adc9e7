//! Lines, and objects with copies, by futures: one thread has many under way, also while members
//! die.

use crate::executor::{block_on, drop_at_any_moment, join, poll_once};
use crate::history::{self, LINES, WORDS, judge, record_task};
use crate::homes::replaced;
use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, MODES, Stop, eventually, rack};
use rackmem::diagnostics::{End, Faults};
use rackmem::object::{Object, ObjectRef};
use rackmem::{
    AccessError, AllocError, Contract, Fabric, Mode, Node, Rack, RackError, Region, RegionSpec,
    Replicated,
};
use rackmem_sim::history::Recorder;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

type Line = [u64; WORDS];

const MORE: &str = "lease = '1500ms'\npatience = '60s'\nreplace_after = '200ms'\n";
const PATIENT: &str = "lease = '20s'\npatience = '60s'\n";
/// Tasks of a thread.
const TASKS: u32 = 4;

fn lines(region: &Region) -> Vec<Replicated<Line>> {
    let line = |line| region.replicated(line).unwrap();
    (0..LINES).map(line).collect()
}

fn objects(node: &Node, all: &[ObjectRef]) -> Vec<Object<Line>> {
    let attach = |at: &ObjectRef| node.attach_object(*at).unwrap();
    all.iter().map(attach).collect()
}

/// One thread's tasks use lines; all of it is recorded.
fn use_lines(region: &Region, first: u32, recorder: &Recorder, most: usize) {
    let lines = &lines(region);
    join((first..first + TASKS).map(|client| async move {
        let mut log = recorder.client(client);
        let read = async |at: usize| lines[at].read_async().await.ok();
        let write = async |at: usize, words| lines[at].write_async(words).await.is_ok();
        record_task(LINES, (client, &mut log, most), read, write).await;
    }));
}

/// One thread's tasks use objects; all of it is recorded.
fn use_objects(all: &[Object<Line>], first: u32, recorder: &Recorder, most: usize) {
    join((first..first + TASKS).map(|client| async move {
        let mut log = recorder.client(client);
        let read = async |at: usize| all[at].read_async().await.ok();
        let write = async |at: usize, words| all[at].write_async(words).await.is_ok();
        record_task(LINES, (client, &mut log, most), read, write).await;
    }));
}

fn weather(fabric: Fabric, mode: Mode) -> Rack {
    let rack = Rack::builder(4).fabric(fabric).mode(mode).patience(LONG);
    match fabric {
        Fabric::Inline => rack.build().unwrap(),
        _ => rack.mtu(1500).faults(Faults::rough(0.02)).build().unwrap(),
    }
}

#[test]
fn histories_of_tasks_are_linearizable() {
    const OPERATIONS: usize = 60;
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = weather(fabric, mode);
        let spec = history::spec();
        rack.node(0).create_region(&spec).unwrap();
        let kept = RegionSpec::new("objects", 4096 * LINES).contract(Contract::Object);
        let kept = rack.node(1).create_region(&kept.copies(3).line(4096));
        let kept = kept.unwrap();
        let all: Vec<ObjectRef> = (0..LINES)
            .map(|_| kept.alloc([0u64; WORDS]).unwrap().at())
            .collect();
        let recorders = [Recorder::new(OPERATIONS), Recorder::new(OPERATIONS)];
        std::thread::scope(|scope| {
            for id in [0, 3] {
                let (node, spec, all) = (rack.node(id), &spec, &all);
                let [of_lines, of_objects] = &recorders;
                scope.spawn(move || {
                    let first = id as u32 * TASKS;
                    let region = node.open_region(spec).unwrap();
                    use_lines(&region, first, of_lines, OPERATIONS);
                    use_objects(&objects(&node, all), first, of_objects, OPERATIONS);
                });
            }
        });
        for (what, recorder) in ["lines", "objects"].into_iter().zip(recorders) {
            let history = recorder.into_history();
            assert_eq!(history.len(), 2 * TASKS as usize * OPERATIONS);
            judge(&format!("{what}, {fabric:?} {mode:?}"), &history);
        }
    }
}

/// A member dies, which is noticed much later: nothing stops.
#[test]
fn tasks_use_lines_while_a_minority_dies() {
    const OPERATIONS: usize = 120;
    for fabric in NETWORKS {
        let cluster = Cluster::new("tasks-death", fabric, 4, PATIENT);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = history::spec();
        nodes[1].create_region(&spec).unwrap();
        let recorder = Recorder::new(OPERATIONS);
        std::thread::scope(|scope| {
            for (node, first) in nodes[..3].iter().zip((0..).step_by(TASKS as usize)) {
                let (spec, recorder) = (&spec, &recorder);
                scope.spawn(move || {
                    let region = node.open_region(spec).unwrap();
                    use_lines(&region, first, recorder, OPERATIONS);
                });
            }
            std::thread::sleep(Duration::from_millis(30));
            racks[3] = None;
        });
        let history = recorder.into_history();
        assert_eq!(history.len(), 3 * TASKS as usize * OPERATIONS);
        judge(fabric, &history);
    }
}

/// The node that serves objects with copies dies and comes back: updates by tasks of one thread
/// count once. Those of an object without copies end with its home, by the call's error.
#[test]
fn updates_by_tasks_count_once_while_the_home_dies() {
    const COUNTERS: usize = 3;
    for fabric in NETWORKS {
        let cluster = Cluster::new("tasks-counters", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = RegionSpec::new("counters", 16 * 64).contract(Contract::Object);
        let spec = spec.copies(3).line(64);
        let region = nodes[3].create_region(&spec).unwrap();
        let all: Vec<ObjectRef> = (0..COUNTERS)
            .map(|_| region.alloc(0u64).unwrap().at())
            .collect();
        let own = RegionSpec::new("own", 64 << 10).contract(Contract::Object);
        let own = nodes[0].create_region(&own.on(0)).unwrap();
        let lost = own.alloc([0u64; 2]).unwrap().at();
        let (done, stop, ended) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            for id in [1, 2] {
                let (node, all, stop) = (&nodes[id], &all, &stop);
                let (done, ended) = (&done, &ended);
                scope.spawn(move || {
                    let attach = |at: &ObjectRef| node.attach_object(*at).unwrap();
                    let counters: &Vec<Object<u64>> = &all.iter().map(attach).collect();
                    let lost: Object<[u64; 2]> = node.attach_object(lost).unwrap();
                    let count = |nth: usize| async move {
                        while !stop.load(SeqCst) {
                            let counter = &counters[nth % COUNTERS];
                            counter.update_async(|count| *count += 1).await.unwrap();
                            done.fetch_add(1, SeqCst);
                        }
                    };
                    let end = || async {
                        let change = |pair: &mut [u64; 2]| pair[0] += 1;
                        let error = loop {
                            if let Err(error) = lost.update_async(change).await {
                                break error;
                            }
                        };
                        let is = AccessError::Rack(RackError::NodeLost { node: 0 });
                        assert!(
                            error == is || matches!(error, AccessError::Interrupted { .. }),
                            "{error}"
                        );
                        assert_eq!(lost.read_async().await, Err(is));
                        ended.fetch_add(1, SeqCst);
                    };
                    let counting = (0..6).map(|nth| boxed(count(nth)));
                    join(counting.chain((0..3).map(|_| boxed(end()))));
                });
            }
            for _ in 0..2 {
                let before = done.load(SeqCst);
                eventually("they count", || done.load(SeqCst) > before + 50);
                racks[0] = None;
                eventually("the death is noticed", || !nodes[1].is_member(0));
                let before = done.load(SeqCst);
                eventually("they go on", || done.load(SeqCst) > before + 50);
                eventually("the others have ended", || ended.load(SeqCst) == 6);
                replaced(&nodes[1], "counters");
                racks[0] = Some(cluster.node(0));
            }
        });
        let attach = |at: &ObjectRef| nodes[1].attach_object::<u64>(*at).unwrap();
        let sum: u64 = all.iter().map(|at| attach(at).read().unwrap()).sum();
        assert_eq!(sum, done.load(SeqCst), "{fabric}");
    }
}

/// Makings are dropped at any moment while the node that serves the objects dies: no place is lost,
/// and none is given to two.
#[test]
fn dropped_makings_lose_no_place_while_the_home_dies() {
    const PLACES: usize = 48;
    for fabric in NETWORKS {
        let cluster = Cluster::new("dropped-places", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = RegionSpec::new("places", PLACES * 64).contract(Contract::Object);
        let spec = &spec.copies(3).line(64);
        nodes[3].create_region(spec).unwrap();
        let (done, stop) = (&AtomicU64::new(0), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _stop = Stop(stop);
            for node in &nodes[1..] {
                scope.spawn(move || {
                    let region = &node.open_region(spec).unwrap();
                    let made = &Mutex::new(Vec::<Object<u64>>::new());
                    while !stop.load(SeqCst) {
                        drop_at_any_moment(8, |nth| async move {
                            match region.alloc_async(nth).await {
                                Ok(object) => made.lock().unwrap().push(object),
                                // Those that are to be freed are in the way.
                                Err(AllocError::OutOfMemory { .. }) => {}
                                Err(error) => panic!("{error}"),
                            }
                        });
                        let made = std::mem::take(&mut *made.lock().unwrap());
                        join(made.into_iter().map(|object| async move {
                            object.free_async().await.unwrap();
                        }));
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
            let go_on = |what| {
                let before = done.load(SeqCst);
                eventually(what, || done.load(SeqCst) > before + 20);
            };
            go_on("they are made");
            racks[0] = None;
            eventually("the death is noticed", || !nodes[1].is_member(0));
            go_on("they go on");
            replaced(&nodes[1], "places");
            racks[0] = Some(cluster.node(0));
        });
        let (region, mut all) = (nodes[1].open_region(spec).unwrap(), BTreeSet::new());
        eventually("no place is lost", || {
            let made = region.alloc(1u64);
            assert!(made.is_err() || all.insert(made.unwrap().addr()));
            all.len() == PLACES
        });
    }
}

fn boxed<'a>(
    task: impl Future<Output = ()> + 'a,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(task)
}

/// Dropped at any moment: a line is written whole or not at all, and others use it.
#[test]
fn dropped_futures_of_lines_leave_them_whole() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = weather(fabric, mode);
        let spec = history::spec();
        rack.node(0).create_region(&spec).unwrap();
        let of = |id: usize| lines(&rack.node(id).open_region(&spec).unwrap());
        std::thread::scope(|scope| {
            for id in 0..4 {
                let of = &of;
                scope.spawn(move || {
                    for (nth, line) in (1..40u64).zip(of(id).iter().cycle()) {
                        let mut write = line.write_async([id as u64 * 100 + nth; WORDS]);
                        let mut read = line.read_async();
                        if nth % 3 != 0 {
                            let ready = (poll_once(&mut write).0, poll_once(&mut read).0);
                            assert!(ready.0.is_none_or(|done| done.is_ok()));
                            let moment = fastrand::u64(0..300);
                            std::thread::sleep(Duration::from_micros(moment));
                        }
                    }
                });
            }
        });
        for line in of(2) {
            // A write whose future was dropped may still come, after this one, until it is over.
            eventually("no dropped write is under way", || {
                let value = block_on(line.read_async()).unwrap();
                assert!(value.iter().all(|word| *word == value[0]), "torn");
                block_on(line.write_async([7; WORDS])).unwrap();
                let value = line.read().unwrap();
                assert!(value.iter().all(|word| *word == value[0]), "torn");
                value == [7; WORDS]
            });
        }
    }
}

/// Without a majority as many as may be wait, and no more; each ends as its call does.
#[test]
fn without_a_majority_futures_end_as_calls_do() {
    let patience = Duration::from_millis(300);
    let rack = Rack::builder(4).fabric(Fabric::Udp).mode(Mode::HomeOnly);
    let rack = rack.patience(patience).faults(Faults::NONE);
    let rack = rack.build().unwrap();
    let spec = RegionSpec::new("few", 64).copies(3).on(0);
    let line = rack.node(0).create_region(&spec).unwrap();
    let line = line.replicated::<u64>(0).unwrap();
    let far = rack.node(3).attach_replicated::<u64>(line.addr()).unwrap();
    far.write(5).unwrap();
    let network = rack.faults().unwrap();
    let others = [0, 1, 2].map(End::Node);
    network.part(&[End::Node(3)], &others);
    let mut waiting: Vec<_> = (0..4096).map(|_| far.read_async()).collect();
    for read in &mut waiting {
        assert!(poll_once(read).0.is_none());
    }
    let refused = AccessError::TooManyAsked { most: 4096 };
    assert_eq!(poll_once(far.write_async(6)).0, Some(Err(refused)));
    // Those that are under way, and no others, for they have waited.
    waiting.truncate(16);
    for read in join(waiting) {
        assert!(
            matches!(read, Err(AccessError::NoQuorum { .. })),
            "{read:?}"
        );
    }
    network.heal();
    assert_eq!(block_on(far.read_async()), Ok(5));
    block_on(far.write_async(6)).unwrap();
    assert_eq!(line.read(), Ok(6));
}

#[test]
fn a_line_of_a_removed_region_is_said_to_be() {
    for fabric in FABRICS {
        let rack = rack(fabric, MODES[0], 3);
        let spec = RegionSpec::new("old", 64).copies(3);
        let region = rack.node(0).create_region(&spec).unwrap();
        let line = region.replicated::<u64>(0).unwrap();
        block_on(line.write_async(1)).unwrap();
        rack.node(0).remove_region(spec.name()).unwrap();
        let addr = line.addr();
        let removed = AccessError::Removed { addr };
        assert_eq!(block_on(line.read_async()), Err(removed), "{fabric:?}");
        assert_eq!(block_on(line.write_async(2)), Err(removed), "{fabric:?}");
    }
}
