//! Figures of many worlds.

use crate::out;
use rackmem_sim::world::Report;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// How often there is a line on standard error, if worlds are not longer than that.
const EVERY: Duration = Duration::from_secs(2);

/// Figures of the worlds so far.
pub struct Sum {
    worlds: u64,
    figures: Vec<(&'static str, u64)>,
    most_refused: u64,
    began: Instant,
    told: Instant,
}

fn figures(report: &Report) -> Vec<(&'static str, u64)> {
    let (work, traffic) = (report.work, report.traffic);
    let (broken, seen, locks) = (report.broken, report.seen, report.locks);
    vec![
        ("operations", work.operations),
        ("packets", traffic.packets),
        ("packets_lost", traffic.lost),
        ("packets_duplicated", traffic.duplicated),
        ("packets_late", traffic.late),
        ("packets_overtaken", traffic.reordered),
        ("packets_partitioned", traffic.one_way),
        ("packets_cut_off", traffic.parted),
        ("switches_died", broken.switches),
        ("nodes_died", broken.nodes),
        ("nodes_died_with_shadow", broken.shadows),
        ("nodes_fenced", broken.fenced),
        ("nodes_left", broken.left),
        ("nodes_slow", broken.slow),
        ("nodes_stopped", broken.stopped),
        ("keepers_starved", broken.starved),
        ("nodes_excluded", broken.excluded),
        ("partitions", broken.partitions),
        ("rebuilds", seen.rebuilds),
        ("blocks_rescued", seen.rescued),
        ("blocks_lost", seen.lost),
        ("blocks_doubted", seen.doubted),
        ("locks_entered", locks.entries),
        ("guards_owner_died", locks.owner_died),
        ("guards_lost", locks.lost),
        ("locks_lost_with_home", locks.gone),
        ("inside_over_an_epoch", locks.inside_over_epochs),
        ("fenced_inside", locks.fenced_inside),
        ("owners_of_both_died", locks.owners_of_both_died),
        ("homes_that_owned_died", locks.homes_that_owned_died),
        ("losses_accepted_inside", locks.accepted_inside),
        ("mixed_lists_lost", locks.mixed_lists_lost),
        ("copied_blocks_placed", report.copies.placed),
        ("copied_blocks_home", report.copies.came_home),
        ("copied_blocks_reverted", report.copies.reverted),
        ("copied_writes_untold", report.copies.untold),
        ("keepers_died", report.copies.keepers_died),
        ("copies_replaced", report.copies.replaced),
        ("regions_removed", report.copies.removals.removed),
    ]
}

impl Sum {
    /// Of no worlds.
    pub fn new() -> Self {
        let now = Instant::now();
        Sum {
            worlds: 0,
            figures: Vec::new(),
            most_refused: 0,
            began: now,
            told: now,
        }
    }

    /// One more.
    pub fn add(&mut self, report: &Report) {
        self.worlds += 1;
        self.most_refused = self.most_refused.max(report.seen.worst);
        let more = figures(report);
        if self.figures.is_empty() {
            self.figures = more;
        } else {
            let sums = self.figures.iter_mut().zip(more);
            sums.for_each(|(sum, (_, n))| sum.1 += n);
        }
    }

    /// A line on standard error, if the last one is long ago.
    pub fn tell(&mut self, of: u64) {
        if self.told.elapsed() >= EVERY {
            self.told = Instant::now();
            let operations = self.figures.first().map_or(0, |figure| figure.1);
            eprintln!(
                "sim: {} of {of} worlds, {operations} operations, {:.0} s",
                self.worlds,
                self.began.elapsed().as_secs_f64()
            );
        }
    }

    /// The table, or the object.
    pub fn show(&self, json: bool, violations: u64) {
        let operations = self.figures.first().map_or(0, |figure| figure.1);
        let rate = operations as f64 / self.began.elapsed().as_secs_f64().max(1e-9);
        let rows = std::iter::once(("worlds", self.worlds))
            .chain(self.figures.iter().copied())
            .chain([
                ("most_refusals_when_calm", self.most_refused),
                ("violations", violations),
            ]);
        if json {
            let mut object: Map<String, Value> =
                rows.map(|(name, n)| (name.to_owned(), json!(n))).collect();
            object.insert("operations_per_second".to_owned(), json!(rate));
            return out::line(Value::Object(object));
        }
        for (name, number) in rows {
            out::line(format!("{:<28}{number:>14}", name.replace('_', " ")));
        }
        out::line(format!("{:<28}{rate:>14.0}", "operations a second"));
    }
}
