//! Coherent memory whose home a group keeps, beside memory whose entries the switch has: the node
//! that serves the first dies, and no write that has returned is lost.

use crate::rig::{HOSTS, Rig, eventually};
use rackmem::membership::Role;
use rackmem::{AccessError, RegionSpec, Shared, Survives};
use rackmem_hosts::Place;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const COUNTERS: usize = 4;
const BLOCK: usize = 4096;
const ADDS: usize = 40;

/// What a thread counts: what has returned, and what may have happened.
#[derive(Default)]
struct Count {
    done: AtomicU64,
    doubtful: AtomicU64,
}

impl Count {
    fn add(&self, counter: &Shared<u64>) {
        match counter.fetch_add(1) {
            Ok(_) => self.done.fetch_add(1, SeqCst),
            Err(AccessError::Interrupted { .. }) => self.doubtful.fetch_add(1, SeqCst),
            Err(error) => panic!("{error}"),
        };
    }

    fn judge(&self, mode: &str, sum: u64) {
        let (done, doubtful) = (self.done.load(SeqCst), self.doubtful.load(SeqCst));
        let right = (done..=done + doubtful).contains(&sum);
        assert!(right, "{mode}: {done} + {doubtful} made {sum}");
    }
}

pub fn story(rig: &mut Rig) {
    work(rig);
    let figures = rig.end_switch();
    // Blocks of the other memory were asked for there, and so were lines of the group.
    let asked = figures.misses > 0 && figures.answers > 0;
    assert!(asked, "{}: {figures:?}", rig.mode);
}

fn work(rig: &Rig) {
    let kept = RegionSpec::new("kept", COUNTERS * BLOCK).copies(3);
    let kept = &kept.survives(Survives::Writes);
    let own = &RegionSpec::new("own", BLOCK).on(1);
    let (made, half, over) = (
        &Barrier::new(HOSTS),
        &Barrier::new(HOSTS),
        &Barrier::new(HOSTS - 1),
    );
    let (of_kept, of_own) = (&Count::default(), &Count::default());
    let lives = |host: usize| {
        let (rack, node) = rig.join(host);
        if host == 0 {
            node.create_region(kept).expect("a region");
            node.create_region(own).expect("a region");
        }
        made.wait();
        let region = node.open_region(kept).expect("the region");
        let shared = |nth| region.shared(nth * BLOCK / 8).expect("a counter");
        let counters: Vec<Shared<u64>> = (0..COUNTERS).map(shared).collect();
        let beside: Shared<u64> = node.open_region(own).expect("one").shared(0).expect("one");
        for nth in 0..ADDS {
            if nth == ADDS / 2 {
                half.wait();
                if host == 0 {
                    // It serves the homes of all groups.
                    drop((rack, node, region, counters, beside));
                    return rig.bury(Role::Node(0));
                }
            }
            of_kept.add(&counters[(host + nth) % COUNTERS]);
            // What only the dead node had of it would be lost.
            if host != 0 {
                of_own.add(&beside);
            }
        }
        over.wait();
        if host == 1 {
            eventually("its death is known", || !node.is_member(0));
            let read = |counter: &Shared<u64>| counter.read().expect("its value");
            of_kept.judge(rig.mode, counters.iter().map(read).sum());
            of_own.judge(rig.mode, read(&beside));
        }
        over.wait();
    };
    let lives = &lives;
    std::thread::scope(|scope| {
        let thread =
            |host| scope.spawn(move || rig.hosts.within(Place::Host(host), || lives(host)));
        let threads: Vec<_> = (0..HOSTS).map(thread).collect();
        for thread in threads {
            thread.join().expect("it ends").expect("a namespace");
        }
    });
}
