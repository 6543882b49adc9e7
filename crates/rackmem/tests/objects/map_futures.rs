//! Maps by futures: one thread has many changes under way.

use crate::executor::{beside, block_on, drop_at_any_moment, join, poll_once};
use crate::map::{add, count_of, handles, small_map, value};
use crate::processes::{Member, config};
use crate::{FABRICS, LONG, region, until};
use rackmem::diagnostics::{End, Faults};
use rackmem::object::{MAX_OBJECT, Map, MapSpec, Object};
use rackmem::{
    AccessError, AllocError, Config, Contract, Fabric, Mode, Rack, RackError, RegionSpec,
};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::{Duration, Instant};

const NODES: usize = 3;

fn rack(fabric: Fabric, faults: Option<Faults>) -> Rack {
    let rack = Rack::builder(NODES).fabric(fabric).mode(Mode::HomeOnly);
    let rack = rack.memory(64 << 20).cache(1 << 20).patience(LONG);
    match faults {
        Some(faults) => rack.mtu(1500).faults(faults).build().unwrap(),
        None => rack.build().unwrap(),
    }
}

/// One whose buckets have copies, so small that many have tails.
fn kept_map(rack: &Rack) -> Map {
    let spec = RegionSpec::new("kept", 400 * 256).line(256);
    let spec = spec.contract(Contract::Object).copies(3);
    let kept = rack.node(1).create_region(&spec).unwrap();
    let spec = MapSpec::new(20, 30);
    rack.node(0).create_map(&[kept.addr()], spec).unwrap()
}

/// On all fabrics, also where packets are lost, doubled and late; of homes, and with copies.
fn everywhere(claim: impl Fn(&str, &Rack, Map)) {
    for fabric in FABRICS {
        for faults in [None, Some(Faults::rough(0.02))] {
            if faults.is_none() || fabric != Fabric::Inline {
                for (map, name) in [(small_map as fn(&Rack) -> Map, "homes"), (kept_map, "kept")] {
                    let what = format!("{fabric:?} {} {name}", faults.is_some());
                    let rack = rack(fabric, faults);
                    let map = map(&rack);
                    claim(&what, &rack, map);
                }
            }
        }
    }
}

/// Objects that are there, all together.
fn live(rack: &Rack) -> u64 {
    rack.nodes().iter().map(|n| n.metrics().objects.live).sum()
}

/// No object is left that no bucket names: none is there when the map is freed.
fn nothing_is_left(what: &str, rack: &Rack, map: Map) {
    // What nobody awaits goes on to its end.
    let walk = || map.entries().map(Result::unwrap).count();
    until("all changes are over", || {
        let now = (live(rack), walk());
        std::thread::sleep(Duration::from_millis(20));
        now == (live(rack), walk())
    });
    map.free().unwrap();
    assert_eq!(live(rack), 0, "{what}");
}

#[test]
fn a_map_by_futures_is_a_map_at_every_node() {
    everywhere(|what, rack, first| {
        let maps = handles(rack, &first);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(15);
        for _ in 0..250 {
            let map = random.choice(&maps).unwrap();
            let key = vec![b'k'; random.usize(..24)];
            let key = [&key[..], &[random.u8(..3)]].concat();
            let value: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
            let before = model.get(&key).cloned();
            match random.u8(..5) {
                0 => assert_eq!(block_on(map.remove_async(&key)), Ok(model.remove(&key))),
                1 => {
                    let seen = before.clone();
                    let done = block_on(map.update_async(&key, move |old| {
                        assert_eq!(old, seen.as_deref());
                        old.map(|old| [old, b"!"].concat())
                    }));
                    assert_eq!(done, Ok(before), "{what}");
                    let value = model.get_mut(&key);
                    value.into_iter().for_each(|value| value.push(b'!'));
                }
                2 | 3 => {
                    let done = block_on(map.insert_async(&key, value.clone()));
                    assert_eq!(done, Ok(before), "{what}");
                    model.insert(key, value);
                }
                _ => assert_eq!(block_on(map.get_async(&key)), Ok(before), "{what}"),
            }
        }
        for map in &maps {
            for (key, value) in &model {
                assert_eq!(map.get(key).as_ref(), Ok(&Some(value.clone())), "{what}");
            }
            let all: BTreeMap<_, _> = map.entries().collect::<Result<_, _>>().unwrap();
            assert_eq!(all, model, "{what}");
            assert_eq!(block_on(walked(map)), model, "{what}");
        }
        // In heads, in tails and nowhere; more than are looked up at a time.
        let mut keys: Vec<&[u8]> = model.keys().map(Vec::as_slice).collect();
        keys.insert(2, b"nowhere");
        for map in &maps {
            let found = block_on(map.get_many_async(&keys));
            assert_eq!(found, map.get_many(&keys), "{what}");
            assert!(found.len() > 16 && found[2] == Ok(None), "{what}");
        }
        // What no object holds, and what is no more.
        let long = vec![1; MAX_OBJECT];
        let error = block_on(maps[1].insert_async(b"long", long.clone())).unwrap_err();
        assert!(matches!(error, AllocError::TooLarge { .. }), "{error}");
        assert_eq!(maps[1].insert(b"long", &long), Err(error), "{what}");
        nothing_is_left(what, rack, first);
        for map in &maps {
            let gone = block_on(map.get_async(b"kk")).unwrap_err();
            assert!(matches!(gone, AccessError::Gone { .. }), "{gone}");
            assert_eq!(map.get(b"kk"), Err(gone));
            let many = block_on(map.get_many_async(&[b"kk", b"k"]));
            assert_eq!(many, map.get_many(&[b"kk", b"k"]), "{what}");
            let gone = Err(AllocError::Access(gone));
            assert_eq!(block_on(map.insert_async(b"kk", vec![1])), gone, "{what}");
        }
    });
}

/// What a walk finds whose futures are dropped now and then.
async fn walked(map: &Map) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut walk, mut all) = (map.entries(), BTreeMap::new());
    loop {
        let mut first = None;
        if fastrand::u8(..4) == 0 {
            first = poll_once(std::pin::pin!(walk.next_async())).0;
        }
        let next = match first {
            Some(ready) => ready,
            None => walk.next_async().await,
        };
        let Some(entry) = next else {
            return all;
        };
        let (key, value) = entry.unwrap();
        assert_eq!(all.insert(key, value), None, "twice");
    }
}

fn add_by_future(
    map: &Map,
    key: &[u8],
) -> impl Future<Output = Result<Option<Vec<u8>>, AllocError>> + Send + use<> {
    map.update_async(key, |old| Some(value(old.map_or(0, count_of) + 1)))
}

/// Whose values grow and shrink: they go to tails and come back while others read them.
#[test]
fn tasks_of_all_nodes_count_in_a_map() {
    const TASKS: usize = 6;
    const ROUNDS: usize = 10;
    const KEYS: usize = 9;
    everywhere(|what, rack, first| {
        let maps = handles(rack, &first);
        let key = |nth: usize| [b'a' + (nth % KEYS) as u8; 9];
        std::thread::scope(|scope| {
            for map in &maps {
                scope.spawn(move || {
                    join((0..TASKS).map(|nth| async move {
                        let mut last = [0; KEYS];
                        for round in 0..ROUNDS {
                            let at = nth + round;
                            let before = add_by_future(map, &key(at)).await.unwrap();
                            let before = before.map_or(0, |value| count_of(&value));
                            assert!(before >= last[at % KEYS], "{what}");
                            last[at % KEYS] = before + 1;
                            let at = at + 1;
                            let now = map.get_async(&key(at)).await.unwrap();
                            let now = now.map_or(0, |value| count_of(&value));
                            assert!(now >= last[at % KEYS], "{what}");
                            last[at % KEYS] = now;
                        }
                    }));
                });
            }
        });
        let counts = (0..KEYS).map(|nth| count_of(&maps[0].get(&key(nth)).unwrap().unwrap()));
        assert_eq!(
            counts.sum::<u64>(),
            (NODES * TASKS * ROUNDS) as u64,
            "{what}"
        );
        nothing_is_left(what, rack, first);
    });
}

/// At any moment: before it is polled, while a tail is made or freed, and when all is done.
#[test]
fn dropped_futures_of_maps_leave_nothing_behind() {
    const ROUNDS: u64 = 90;
    everywhere(|what, rack, first| {
        let (begun, done) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let maps = handles(rack, &first);
        std::thread::scope(|scope| {
            for map in &maps {
                scope.spawn(move || {
                    let (some, ended) = drop_at_any_moment(ROUNDS, |nth| {
                        let update = add_by_future(map, &[b'a' + (nth % 9) as u8; 9]);
                        let get = map.get_async(&[b'b'; 9]);
                        async { beside(get, update).await.unwrap() }
                    });
                    begun.fetch_add(some, SeqCst);
                    done.fetch_add(ended, SeqCst);
                });
            }
        });
        // Whoever had left something locked would stop these.
        for key in 0..9 {
            add(&maps[2], &[b'a' + key; 9]).unwrap();
        }
        let rest = nothing_changes(&maps[1], rack);
        let (begun, done) = (begun.load(SeqCst) + 9, done.load(SeqCst) + 9);
        assert!(
            (done..=begun).contains(&rest),
            "{what}: {done} {rest} {begun}"
        );
        nothing_is_left(what, rack, first);
    });
}

/// The sum of all counts, when all changes are over.
fn nothing_changes(map: &Map, rack: &Rack) -> u64 {
    let sum = || -> u64 {
        let all = map.entries().map(|entry| count_of(&entry.unwrap().1));
        all.sum()
    };
    let mut last = (live(rack), sum());
    until("all changes are over", || {
        std::thread::sleep(Duration::from_millis(20));
        let now = (live(rack), sum());
        std::mem::replace(&mut last, now) == now
    });
    last.1
}

/// A network through which nothing comes: as many as may be wait there, and no more.
#[test]
fn as_many_changes_of_maps_as_may_be_wait_and_no_more() {
    for dropped in [false, true] {
        let rack = rack(Fabric::Udp, Some(Faults::NONE));
        let near = region(&rack, 0, "objects").addr();
        let spec = MapSpec::new(20, 30).bucket(112);
        let map = rack.node(0).create_map(&[near], spec).unwrap();
        map.insert(b"there", b"before").unwrap();
        let far = rack.node(1).attach_map(map.at()).unwrap();
        let other = region(&rack, 1, "other").alloc(1u64).unwrap();
        let network = rack.faults().unwrap();
        network.part(&[End::Node(0)], &[End::Node(1)]);
        let mut waiting: Vec<_> = (0..4096u64)
            .map(|nth| Box::pin(far.insert_async(&nth.to_le_bytes(), vec![7; 40])))
            .collect();
        for insert in &mut waiting {
            assert!(poll_once(insert).0.is_none());
        }
        let refused = AccessError::TooManyAsked { most: 4096 };
        let error = Some(Err(AllocError::Access(refused)));
        let insert = Box::pin(far.insert_async(b"refused", vec![1]));
        assert_eq!(poll_once(insert).0, error);
        assert_eq!(poll_once(far.get_async(b"there")).0, Some(Err(refused)));
        let here = map.get_async(b"there");
        assert_eq!(poll_once(here).0, Some(Ok(Some(b"before".to_vec()))));
        // One that needs a tail is a thread's, at home as well: nothing is made without room.
        let other: Object<u64> = rack.node(0).attach_object(other.at()).unwrap();
        let mut full: Vec<_> = (0..4096).map(|_| other.read_async()).collect();
        for read in &mut full {
            assert!(poll_once(read).0.is_none());
        }
        let before = live(&rack);
        let insert = Box::pin(map.insert_async(b"refused", vec![1; 500]));
        assert_eq!(poll_once(insert).0, error);
        assert_eq!(live(&rack), before);
        drop(full);
        // Those that were not asked for yet are not made.
        waiting.truncate(if dropped { 0 } else { 200 });
        network.heal();
        assert!(join(waiting).into_iter().all(|insert| insert == Ok(None)));
        until("there is room", || {
            block_on(far.get_async(b"there")) == Ok(Some(b"before".to_vec()))
        });
        let there = map.entries().map(Result::unwrap).count();
        assert!((1..=217).contains(&there), "{there}");
        assert!(dropped || there >= 201, "{there}");
        assert_eq!(map.get(b"refused"), Ok(None));
        rack.node(1)
            .attach_object::<u64>(other.at())
            .unwrap()
            .free()
            .unwrap();
        nothing_is_left("", &rack, map);
    }
}

#[test]
fn a_panic_of_a_change_of_a_map_is_its_futures() {
    for fabric in FABRICS {
        let rack = rack(fabric, None);
        let first = small_map(&rack);
        for map in handles(&rack, &first) {
            let panics = map.update_async(b"key", |_| std::panic::resume_unwind(Box::new("meant")));
            let panicked = catch_unwind(AssertUnwindSafe(|| block_on(panics)));
            let panic = panicked.unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"meant"), "{fabric:?}");
            assert!(block_on(add_by_future(&map, b"key")).is_ok());
        }
        let count = first.get(b"key").unwrap().unwrap();
        assert_eq!(count_of(&count), NODES as u64, "{fabric:?}");
    }
}

/// Lets the thread's other tasks go on: what needs nobody is ready at once, for ever.
async fn others_go_on() {
    let mut polled = false;
    let pause = std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    pause.await;
}

/// Tasks on keys of a home that dies are told so, and those on others go on.
#[test]
fn tasks_on_keys_of_other_homes_outlive_a_home() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config(fabric, 2);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let node = rack.node(0);
        let mut home = Member::start("map::map_home_process", &text, 1, "");
        let far: u64 = home.line().rsplit(' ').next().unwrap().parse().unwrap();
        let spec = RegionSpec::new("near", 4 << 20).contract(Contract::Object);
        let near = node.create_region(&spec).unwrap().addr();
        let spec = MapSpec::new(20, 30).bucket(112);
        let map = &node.create_map(&[near, far], spec).unwrap();
        let (rounds, lost) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let tasks = scope.spawn(move || {
                join((0..40u8).map(|nth| async move {
                    let end = Instant::now() + 2 * LONG;
                    while !over.load(SeqCst) {
                        assert!(Instant::now() < end, "nobody says that it is over");
                        let done = match nth % 4 {
                            0 => (map.get_async(&[nth / 4]).await).map_err(AllocError::from),
                            _ => add_by_future(map, &[nth / 4]).await,
                        };
                        rounds.fetch_add(1, SeqCst);
                        others_go_on().await;
                        if let Err(error) = done {
                            let rack = AllocError::Rack(RackError::NodeLost { node: 1 });
                            assert_eq!(error, rack, "{fabric}");
                            lost.fetch_add(1, SeqCst);
                            break;
                        }
                    }
                }));
            });
            until("they count", || rounds.load(SeqCst) > 400);
            home.signal("-KILL");
            until("some are told of the death", || lost.load(SeqCst) > 0);
            let before = rounds.load(SeqCst);
            until("the others go on", || rounds.load(SeqCst) > before + 200);
            over.store(true, SeqCst);
            tasks.join().unwrap();
        });
    }
}
