//! The report as people read it: a table of locks for each database and share of writes.

use super::{Options, Point, Way, tpcc};
use crate::report::{Report, number};
use crate::table::{Align, Table};
use rackmem_dbm::Kind;

/// What `bench dbm` tells.
#[derive(Clone, Debug)]
pub struct DbmReport {
    /// Every case.
    pub report: Report,
    options: Options,
}

impl DbmReport {
    /// What a bench with these options has given.
    pub fn new(options: &Options, report: Report) -> Self {
        DbmReport {
            report,
            options: options.clone(),
        }
    }

    /// The cases, side by side.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        for &way in &self.options.ways {
            for &kind in &self.options.kinds {
                let writes = self.options.writes.iter();
                tables.extend(writes.map(|writes| self.table(way, kind, *writes)));
            }
        }
        let warehouses = self.options.warehouses.iter();
        tables.extend(warehouses.map(|warehouses| self.tpcc(*warehouses)));
        tables
    }

    fn value(&self, case: &str) -> String {
        let case = self.report.case(case);
        case.map_or(String::new(), |case| number(case.value))
    }

    fn tpcc(&self, warehouses: u32) -> Table {
        let nodes = &self.options.nodes;
        let mut columns = vec![("lock".to_owned(), Align::Left)];
        let right = |name: String| (name, Align::Right);
        columns.extend(nodes.iter().map(|nodes| right(format!("tx/s ×{nodes}"))));
        columns.push(right("coherence transactions".to_owned()));
        let columns: Vec<(&str, Align)> = columns.iter().map(|(n, a)| (n.as_str(), *a)).collect();
        let mut table = Table::new(&format!("TPC-C, {warehouses} warehouses"), &columns);
        for &lock in &self.options.locks {
            let case = |nodes: usize| tpcc::case(&self.options, lock, warehouses, nodes);
            let mut row = vec![lock.name().to_owned()];
            row.extend(nodes.iter().map(|&nodes| self.value(&case(nodes))));
            let most = nodes.last().copied().unwrap_or_default();
            row.push(self.value(&format!("{}/transactions", case(most))));
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            table.row(&row);
        }
        table
    }

    /// A row a lock, a column for each number of nodes, and what an operation is at the most.
    fn table(&self, way: Way, kind: Kind, writes: u8) -> Table {
        let nodes = &self.options.nodes;
        let mut columns = vec![("lock".to_owned(), Align::Left)];
        let right = |name: String| (name, Align::Right);
        columns.extend(nodes.iter().map(|nodes| right(format!("ops/s ×{nodes}"))));
        let rest = ["p50 µs", "p99 µs", "transactions", "least share"];
        columns.extend(rest.map(|name| right(name.to_owned())));
        let columns: Vec<(&str, Align)> = columns.iter().map(|(n, a)| (n.as_str(), *a)).collect();
        let of = format!("{}, {writes}% writes", kind.name());
        let mut table = Table::new(&format!("{of}, by {}", way.name()), &columns);
        for &lock in &self.options.locks {
            let value = |nodes: usize, what: &str| {
                let point = Point {
                    kind,
                    way,
                    nodes,
                    lock,
                };
                let case = self.options.case(&point, writes);
                self.value(&format!("{case}{what}"))
            };
            let mut row = vec![lock.name().to_owned()];
            row.extend(nodes.iter().map(|&nodes| value(nodes, "")));
            if let Some(&most) = nodes.last() {
                let rest = ["/p50", "/p99", "/transactions"].map(|what| value(most, what));
                row.extend(rest);
                row.push(format!("{}%", value(most, "/least-share")));
            }
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            table.row(&row);
        }
        table
    }
}
