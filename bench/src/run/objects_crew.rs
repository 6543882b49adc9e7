//! Readers beside many writers, each of which writes objects of its own: the paper's Fig. 8 on this
//! machine's cores.

use super::Result;
use crate::objects::{Layout, Versions};
use crate::report::Report;
use crate::timing;
use rackmem::object::{Object, Retry};
use rackmem::{Contract, Fabric, Mode, Rack, RegionSpec};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Objects that a reader chooses from.
const OBJECTS: usize = 100;
/// Threads that write them.
const WRITERS: [usize; 6] = [0, 1, 2, 4, 8, 16];

/// Runs it for objects of so many bytes.
pub fn run((size, time): (usize, Duration), report: &mut Report) -> Result<()> {
    let rack = Rack::builder(1).fabric(Fabric::Inline).mode(Mode::HomeOnly);
    let rack = rack.memory(32 << 20).cache(8 << 20).build()?;
    let spec = RegionSpec::new("objects", 16 << 20).contract(Contract::Object);
    let region = rack.node(0).create_region(&spec)?;
    let made = (0..OBJECTS).map(|_| region.alloc_bytes(&vec![7; size], 0));
    let ours = made.collect::<rackmem::Result<Vec<Object<[u8]>>, rackmem::AllocError>>()?;
    let theirs: Vec<Versions> = (0..OBJECTS).map(|_| Versions::new(size)).collect();
    for writers in WRITERS {
        let failed = || {
            let counts = rack.node(0).metrics().objects;
            counts.torn + counts.locked
        };
        let before = failed();
        let write = |nth: usize, bytes: &[u8]| {
            let _ = ours[nth].write(bytes);
        };
        let read = |nth: usize, out: &mut [u8]| {
            let _ = black_box(ours[nth].read_into(out, Retry::default()));
        };
        let objects = (
            beside((size, time), writers, &write, &read),
            failed() - before,
        );
        let failed = AtomicU64::new(0);
        let write = |nth: usize, bytes: &[u8]| theirs[nth].write(bytes);
        let read = |nth: usize, out: &mut [u8]| {
            while !theirs[nth].read(black_box(out)) {
                failed.fetch_add(1, Relaxed);
                std::hint::spin_loop();
            }
        };
        let versions = beside((size, time), writers, &write, &read);
        let versions = (versions, failed.load(Relaxed));
        let name = |who: &str| format!("crew-{writers}/{size}/{who}");
        report.add(&name("versions"), versions.0.0, "reads/s")?;
        report.add_against(&name("ours"), objects.0.0, "reads/s", &name("versions"))?;
        for (who, ((_, reads), failed)) in [("versions", versions), ("ours", objects)] {
            let share = 100.0 * failed as f64 / (failed + reads).max(1) as f64;
            report.add(&format!("{}/failed", name(who)), share, "%")?;
        }
    }
    Ok(())
}

/// Reads a second of one reader, and how many.
fn beside(
    (size, time): (usize, Duration),
    writers: usize,
    write: &(dyn Fn(usize, &[u8]) + Sync),
    read: &(dyn Fn(usize, &mut [u8]) + Sync),
) -> (f64, u64) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let over = &over;
            scope.spawn(move || {
                let own = (writer..OBJECTS).step_by(writers.max(1)).cycle();
                for (count, nth) in own.enumerate() {
                    if over.load(Relaxed) {
                        return;
                    }
                    write(nth, &vec![count as u8; size]);
                }
            });
        }
        let done = timing::run(1, time, |_| {
            let mut out = vec![0; size];
            let mut random = fastrand::Rng::with_seed(1);
            move || {
                for _ in 0..64 {
                    read(random.usize(..OBJECTS), &mut out);
                }
                64
            }
        });
        over.store(true, Relaxed);
        (done.per_second(), done.operations())
    })
}
