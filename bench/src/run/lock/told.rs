//! The report as people read it: a table of locks, and one of contention for each fabric.

use super::{Options, Part, contended, store};
use crate::report::{Report, number};
use crate::table::{Align, Table};
use crate::ycsb::Mix;
use rackmem::Fabric;

/// What `bench lock` tells.
#[derive(Clone, Debug)]
pub struct LockReport {
    /// Every case.
    pub report: Report,
    /// What was left out, and why.
    pub missing: Vec<String>,
    options: Options,
}

impl LockReport {
    /// What a bench with these options has given.
    pub fn new(options: &Options, report: Report, missing: Vec<String>) -> Self {
        LockReport {
            report,
            missing,
            options: options.clone(),
        }
    }

    /// The cases, side by side.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        let is_of_many = |part: &Part| matches!(part, Part::Contended | Part::Store);
        if !self.options.parts.iter().all(is_of_many) {
            tables.push(self.locks());
        }
        if self.options.wants(Part::Contended) {
            let fabrics = self.options.fabrics.iter();
            tables.extend(fabrics.map(|fabric| self.contention(*fabric)));
        }
        if self.options.wants(Part::Store) {
            let fabrics = self.options.fabrics.iter();
            tables.extend(fabrics.map(|fabric| self.store(*fabric)));
        }
        tables
    }

    fn value(&self, case: &str) -> String {
        let found = self.report.case(case);
        found.map_or(String::new(), |case| number(case.value))
    }

    fn time(&self, case: &str) -> String {
        let found = self.report.case(case);
        found.map_or(String::new(), |case| match case.unit.as_str() {
            "us" => format!("{} µs", number(case.value)),
            unit => format!("{} {unit}", number(case.value)),
        })
    }

    /// A row a lock, a column for what it costs.
    fn locks(&self) -> Table {
        let (options, right) = (&self.options, Align::Right);
        let mut columns = vec![("lock".to_owned(), Align::Left), ("here".to_owned(), right)];
        for fabric in &options.fabrics {
            let fabric = fabric.name();
            columns.extend([
                (format!("{fabric}: idle elsewhere"), right),
                (format!("{fabric}: hand-over"), right),
                ("with 4 KiB".to_owned(), right),
            ]);
        }
        columns.push(("transactions (critical)".to_owned(), right));
        let columns: Vec<(&str, Align)> = columns.iter().map(|(n, a)| (n.as_str(), *a)).collect();
        let mut table = Table::new("what a lock costs", &columns);
        for kind in options.kinds.iter().map(|kind| kind.name()) {
            let mut row = vec![kind.to_owned(), self.time(&format!("cached/{kind}/write"))];
            for fabric in &options.fabrics {
                let of = options.name(*fabric);
                row.push(self.time(&format!("{of}/idle/{kind}")));
                row.push(self.time(&format!("{of}/hand-over/{kind}")));
                row.push(self.time(&format!("{of}/hand-over/{kind}/data")));
            }
            let counted = format!("counted/{}/{kind}/lock-and-data", options.mode.name());
            let (all, critical) = (
                self.value(&format!("{counted}/in-all")),
                self.value(&format!("{counted}/critical")),
            );
            row.push(match all.is_empty() {
                true => all,
                false => format!("{all} ({critical})"),
            });
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            table.row(&row);
        }
        self.peers(&mut table);
        table
    }

    /// Servers: they have no lock that is here, and their fabric is TCP, beside UDP.
    fn peers(&self, table: &mut Table) {
        let fabrics = &self.options.fabrics;
        let last = fabrics.iter().rposition(|fabric| *fabric != Fabric::Inline);
        let Some(last) = last else { return };
        let mut ruled = false;
        for (peer, ..) in super::peers::ALL {
            let idle = self.time(&format!("{peer}/uncontended"));
            if idle.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut ruled, true) {
                table.rule();
            }
            let mut row = vec![String::new(); 2 + 3 * last];
            peer.clone_into(&mut row[0]);
            row.push(idle);
            row.push(self.time(&format!("{peer}/hand-over")));
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            table.row(&row);
        }
    }

    /// A row a lock and mix, a column for each number of nodes.
    fn store(&self, fabric: Fabric) -> Table {
        let nodes = &self.options.nodes;
        let left = |name: &str| (name.to_owned(), Align::Left);
        let mut columns = vec![left("YCSB"), left("lock")];
        let right = |name: String| (name, Align::Right);
        columns.extend(nodes.iter().map(|nodes| right(format!("ops/s ×{nodes}"))));
        columns.push(right("transactions".to_owned()));
        let columns: Vec<(&str, Align)> = columns.iter().map(|(n, a)| (n.as_str(), *a)).collect();
        let title = format!(
            "a hash table, a lock a bucket · {}",
            self.options.name(fabric)
        );
        let mut table = Table::new(&title, &columns);
        for (nth, mix) in Mix::ALL.into_iter().enumerate() {
            if nth > 0 {
                table.rule();
            }
            for &kind in &self.options.kinds {
                let case = |nodes: usize| store::name(&self.options, fabric, kind, nodes, mix);
                let mut row = vec![mix.to_string(), kind.name().to_owned()];
                row.extend(nodes.iter().map(|&nodes| self.value(&case(nodes))));
                let most = nodes.last().copied().unwrap_or_default();
                row.push(self.value(&format!("{}/transactions", case(most))));
                let row: Vec<&str> = row.iter().map(String::as_str).collect();
                table.row(&row);
            }
        }
        table
    }

    /// A row for every case of contention.
    fn contention(&self, fabric: Fabric) -> Table {
        let right = Align::Right;
        let mut table = Table::new(
            &format!("all nodes want one lock · {}", self.options.name(fabric)),
            &[
                ("nodes", right),
                ("reads", right),
                ("lock", Align::Left),
                ("acquisitions/s", right),
                ("mean µs", right),
                ("p50 µs", right),
                ("p99 µs", right),
                ("transactions", right),
                ("least share", right),
            ],
        );
        let mut first = true;
        for &nodes in &self.options.nodes {
            for &reads in &self.options.reads {
                if !std::mem::take(&mut first) {
                    table.rule();
                }
                for &kind in &self.options.kinds {
                    let case = contended::name(&self.options, fabric, kind, nodes, reads);
                    let of = |what: &str| self.value(&format!("{case}/{what}"));
                    table.row(&[
                        &nodes.to_string(),
                        &format!("{reads}%"),
                        kind.name(),
                        &self.value(&case),
                        &of("mean"),
                        &of("p50"),
                        &of("p99"),
                        &of("transactions"),
                        &format!("{}%", of("least-share")),
                    ]);
                }
            }
        }
        table
    }
}
