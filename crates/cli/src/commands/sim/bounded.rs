//! `rackmem sim --bounded`: seeded worlds of members of bounded memory, judged by the ages of what
//! they read, and of as many ways through arenas of 8 to 32 nodes.

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::size::count;
use crate::stop::Stop;
use rackmem_sim::bi::crowd::{CrowdConfig, run};
use rackmem_sim::bi::walk;
use serde_json::json;

/// What all worlds had together.
#[derive(Default)]
struct Figures {
    worlds: u64,
    reads: u64,
    writes: u64,
    old: u64,
    oldest: u64,
    hits: u64,
    refused: u64,
    packets: u64,
    slept: u64,
    died: u64,
    moves: u64,
}

/// Runs the worlds of these seeds, and tells.
pub fn worlds((from, to): (u64, u64), json: bool) -> Result<Ended> {
    let stop = Stop::on_signals()?;
    let mut all = Figures::default();
    for seed in from..to {
        if stop.requested() {
            break;
        }
        let config = CrowdConfig::of(seed);
        let (report, ages) = run(seed, &config).map_err(|failure| {
            let cause = format!("seed {seed}, {config:?}: {failure}");
            let hint = format!("`rackmem sim --bounded --seed {seed}` runs this world again");
            Failure::new(cause, hint)
        })?;
        all.worlds += 1;
        all.reads += ages.reads as u64;
        all.writes += ages.writes as u64;
        all.old += ages.old as u64;
        all.oldest = all.oldest.max(ages.oldest);
        all.hits += report.hits;
        all.refused += report.refused;
        all.packets += report.packets;
        all.slept += report.slept;
        all.died += report.died;
        let scenario = walk::of(seed);
        let walked = walk::walk(&scenario, seed, None).map_err(|broken| {
            let cause = format!("seed {seed}, an arena: {broken}");
            let hint = format!("`rackmem sim --bounded --seed {seed}` goes this way again");
            Failure::new(cause, hint)
        })?;
        all.moves += walked.moves as u64;
    }
    tell(&all, json);
    Ok(match stop.requested() {
        true => Ended::Interrupted,
        false => Ended::Done,
    })
}

fn tell(all: &Figures, json: bool) {
    if json {
        return out::line(json!({
            "worlds": all.worlds, "reads": all.reads, "writes": all.writes, "old": all.old, "oldest_ns": all.oldest,
            "hits": all.hits, "refused": all.refused, "packets": all.packets, "slept": all.slept, "died": all.died,
            "moves_in_arenas": all.moves, "violations": 0,
        }));
    }
    out::line(format!(
        "{} worlds: {} reads and {} writes, {} packets; members slept {} times and died {} times. {} reads were of what had been superseded, by {:.1} ms at most; \
         {} were refused as too old. As many arenas: {} moves",
        count(all.worlds),
        count(all.reads),
        count(all.writes),
        count(all.packets),
        count(all.slept),
        count(all.died),
        count(all.old),
        all.oldest as f64 / 1e6,
        count(all.refused),
        count(all.moves),
    ));
}
