//! What a fault costs in each way for it to come: of a block that is here, and of one that another
//! node has stored to.

use super::{Mapped, Options, PAGE, Progress, Result, Site, WORDS, Words};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Fabric, FaultMode};
use std::hint::black_box;
use std::time::Instant;

/// Blocks that fault one after the other.
const BLOCKS: usize = 64;

/// What is measured.
#[derive(Clone, Copy)]
enum Fault {
    /// The block is here; a call has taken the right to store.
    Here,
    Read,
    Write,
}

const FAULTS: [(&str, Fault); 3] = [
    ("here", Fault::Here),
    ("read-miss", Fault::Read),
    ("write-miss", Fault::Write),
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
        for (name, fault) in FAULTS {
            let case = format!("fault/{}/{name}", mode.name());
            progress(&case);
            let (mut times, began) = (Histogram::new(), Instant::now());
            let mut round = 0;
            while round < 2 || began.elapsed() < options.duration && !stop::requested() {
                for block in (0..BLOCKS).map(|block| block * WORDS) {
                    match fault {
                        Fault::Here => {
                            mapped.store(block, round);
                            mine.load(block);
                        }
                        Fault::Read | Fault::Write => drop(theirs.store(block, round)),
                    }
                    let start = Instant::now();
                    match fault {
                        Fault::Read => drop(black_box(mapped.load(block))),
                        Fault::Here | Fault::Write => drop(mapped.store(block, 7)),
                    }
                    // In the first round pages get their places.
                    if round > 0 {
                        times.record(start.elapsed().as_nanos() as u64);
                    }
                }
                round += 1;
            }
            report.add_against(&case, times.percentile(50.0) as f64, "ns", "fault/getppid")?;
        }
    }
    Ok(())
}
