//! The figures for people: sizes by rows, what is compared by columns.

use super::Points;
use super::figures::{
    DEPTHS, ENTRIES, Figure, LIGHT, LONG, Outcome, Point, SERIAL, SIZES, THREE, WRITERS, Way,
    depth_of, entries_of,
};
use crate::report::number;
use crate::table::{Align, Table};
use rackmem_sim::sabre::soc::{After, Layout};

/// The points of a figure.
pub(super) fn figure(figure: Figure, points: &Points) -> Table {
    match figure {
        Figure::Fig8 => beside(points),
        Figure::Sizing => sizing(points),
        figure => by_size(figure, points),
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or(String::new(), number)
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let first = columns.iter().take(1).map(|name| (*name, Align::Left));
    let rest = columns.iter().skip(1).map(|name| (*name, Align::Right));
    let columns: Vec<(&str, Align)> = first.chain(rest).collect();
    let mut table = Table::new(title, &columns);
    for row in rows {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        table.row(&row);
    }
    table
}

fn by_size(figure: Figure, points: &Points) -> Table {
    let outcome = |point: Point| points.get(&point).copied().unwrap_or_default();
    let alone = |way, after| move |size| Point::alone(way, after, size);
    let time = |o: Outcome| o.transfer;
    let mut columns: Vec<(&str, Vec<f64>)> = Vec::new();
    let sizes: Vec<u32> = match figure {
        Figure::Fig7 => [64].into_iter().chain(SIZES).collect(),
        _ => SIZES.to_vec(),
    };
    let mut add = |name, of: &dyn Fn(u32) -> f64| {
        columns.push((name, sizes.iter().map(|size| of(*size)).collect()));
    };
    match figure {
        Figure::Fig1 => {
            let at = alone(Way::Versions, After::Store);
            add("transfer, ns", &|size| time(outcome(at(size))));
            add("check", &|size| outcome(at(size)).check);
            add("store and application", &|size| {
                let o = outcome(at(size));
                o.latency - o.transfer - o.check
            });
            add("check, %", &|size| {
                let o = outcome(at(size));
                100.0 * o.check / o.latency
            });
        }
        Figure::Fig7 => {
            let ways = [
                ("reads", Way::Plain),
                ("LightSABRes", LIGHT),
                ("no speculation", SERIAL),
            ];
            for (name, way) in ways {
                add(name, &|size| {
                    time(outcome(Point::alone(way, After::Nothing, size)))
                });
            }
            for (name, way) in ways {
                add(name, &|size| {
                    outcome(Point::many(way, size)).gigabytes / 4.0
                });
            }
        }
        Figure::Fig9 => {
            for (name, way) in [("versions, ns", Way::Versions), ("LightSABRes, ns", LIGHT)] {
                add(name, &|size| {
                    outcome(Point::alone(way, After::Store, size)).latency
                });
            }
            for (name, way) in [
                ("versions, Mops", Way::Versions),
                ("LightSABRes, Mops", LIGHT),
            ] {
                add(name, &|size| outcome(Point::store(way, size)).rate);
            }
        }
        _ => {
            for (name, layout) in [
                ("versions, Mops", Layout::Versions),
                ("clean, Mops", Layout::Clean),
            ] {
                add(name, &|size| outcome(Point::Local(layout, size)).rate);
            }
        }
    }
    let title = match figure {
        Figure::Fig7 => format!("{figure}; ns, and GB/s of an R2P2"),
        figure => figure.to_string(),
    };
    let names: Vec<&str> = ["bytes"]
        .into_iter()
        .chain(columns.iter().map(|c| c.0))
        .collect();
    let row = |(nth, size): (usize, &u32)| {
        let cells = columns.iter().map(|column| number(column.1[nth]));
        [size.to_string()].into_iter().chain(cells).collect()
    };
    table(&title, &names, sizes.iter().enumerate().map(row).collect())
}

fn beside(points: &Points) -> Table {
    let mut rows = Vec::new();
    for size in THREE {
        for writers in WRITERS {
            let at = |way| points.get(&Point::beside(way, size, writers));
            let (versions, light) = (at(Way::Versions), at(LIGHT));
            let above = versions
                .zip(light)
                .map(|(v, l)| 100.0 * (l.rate / v.rate - 1.0));
            rows.push(vec![
                format!("{size}, {writers} writers"),
                cell(versions.map(|o| o.rate)),
                cell(light.map(|o| o.rate)),
                cell(above),
                cell(versions.map(|o| o.conflicts)),
                cell(light.map(|o| o.conflicts)),
            ]);
        }
    }
    let columns = [
        "bytes",
        "versions, Mops",
        "LightSABRes, Mops",
        "above, %",
        "conflicts/op",
        "aborts/op",
    ];
    table(&Figure::Fig8.to_string(), &columns, rows)
}

fn sizing(points: &Points) -> Table {
    let row = |entries: usize, depth: u16| {
        let many = points.get(&Point::many(entries_of(entries), 128));
        let deep = points.get(&Point::alone(depth_of(depth), After::Nothing, LONG));
        vec![
            entries.to_string(),
            cell(many.map(|o| o.gigabytes / 4.0)),
            depth.to_string(),
            cell(deep.map(|o| o.transfer)),
        ]
    };
    let rows = ENTRIES
        .into_iter()
        .zip(DEPTHS)
        .map(|(entries, depth)| row(entries, depth));
    let columns = ["entries", "128 B: GB/s of an R2P2", "depth", "4 KB: ns"];
    table(&Figure::Sizing.to_string(), &columns, rows.collect())
}
