//! What a fault costs in each way for it to come: of a block that is here, and of one that another
//! node has stored to; and what it costs to take a page out of a mapping, with and without a thread
//! of the process on the other processor, which is interrupted then.

use super::{Called, Mapped, Options, PAGE, Progress, Result, Site, WORDS, Words};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Fabric, FaultMode};
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Blocks that fault one after the other.
const BLOCKS: usize = 64;

/// What is measured.
#[derive(Clone, Copy)]
enum Fault {
    /// The block is here; a call has taken the right to store.
    Here,
    Read,
    Write,
    /// No fault: another node takes the page by a call.
    Taken,
}

/// With their names, and whether another thread of the process is busy meanwhile.
const FAULTS: [(&str, Fault, bool); 5] = [
    ("here", Fault::Here, false),
    ("read-miss", Fault::Read, false),
    ("write-miss", Fault::Write, false),
    ("taken", Fault::Taken, false),
    ("taken/beside-a-busy-thread", Fault::Taken, true),
];

/// Medians, beside a system call.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for mode in FaultMode::ALL {
        // What this system does not allow has no row.
        if mode.is_allowed().is_err() {
            continue;
        }
        let site = Site::new(options, Fabric::Inline)?;
        let [region, other] = site.region(&format!("faults-{}", mode.name()), BLOCKS * PAGE)?;
        let (mine, theirs) = (site.called(1, &region), site.called(2, &other));
        let mapped = Mapped(region.map_with(mode)?);
        // A page that is taken does not rest before.
        mapped.0.set_hold(Duration::ZERO);
        for (name, fault, busy) in FAULTS {
            let case = format!("fault/{}/{name}", mode.name());
            progress(&case);
            let over = AtomicBool::new(!busy);
            let times = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                let times = times(options, fault, &mapped, [&mine, &theirs]);
                over.store(true, Relaxed);
                times
            });
            report.add_against(&case, times.percentile(50.0) as f64, "ns", "fault/getppid")?;
        }
    }
    Ok(())
}

fn times(options: &Options, fault: Fault, mapped: &Mapped, nodes: [&Called; 2]) -> Histogram {
    let [mine, theirs] = nodes;
    let (mut times, began) = (Histogram::new(), Instant::now());
    let mut round = 0;
    while round < 2 || began.elapsed() < options.duration && !stop::requested() {
        // None is behind the one before: it would come with it.
        for block in (0..BLOCKS).map(|nth| nth * 23 % BLOCKS * WORDS) {
            match fault {
                Fault::Here => {
                    mapped.store(block, round);
                    mine.load(block);
                }
                Fault::Read | Fault::Write => drop(theirs.store(block, round)),
                Fault::Taken => drop(mapped.store(block, round)),
            }
            let start = Instant::now();
            match fault {
                Fault::Read => drop(black_box(mapped.load(block))),
                Fault::Here | Fault::Write => drop(mapped.store(block, 7)),
                Fault::Taken => drop(theirs.store(block, 7)),
            }
            // In the first round pages get their places.
            if round > 0 {
                times.record(start.elapsed().as_nanos() as u64);
            }
        }
        round += 1;
    }
    times
}
