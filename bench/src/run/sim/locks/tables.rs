//! The figures for people: what is compared by rows, blades by columns.

use super::super::tables::times;
use super::Outcome;
use super::figures::{BLADES, Figure, MOST, Point, READS, WAREHOUSES, YCSB, is_alone};
use super::points::Points;
use crate::report::number;
use crate::table::{Align, Table};
use rackmem_sim::model::{Platform, Scheme, System};

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// A group of rows: its name, and for each system of the figure a point of the largest rack.
type Groups = Vec<(String, Vec<(&'static str, Point)>)>;

/// The points of a figure.
pub fn figure(figure: Figure, points: &Points) -> impl Iterator<Item = Table> {
    let platforms = figure.platforms().iter();
    platforms.map(move |platform| on(figure, platform, points))
}

fn on(figure: Figure, platform: &Platform, points: &Points) -> Table {
    let columns = columns(figure);
    let names: Vec<(&str, Align)> = columns.iter().map(|(n, a)| (n.as_str(), *a)).collect();
    let title = match platform.system == System::Directory {
        true => format!("{figure}; what is dirty goes by way of its directory (Fig. 1)"),
        false => figure.to_string(),
    };
    let mut table = Table::new(&title, &names);
    for (nth, (group, systems)) in groups(figure, platform).into_iter().enumerate() {
        if nth > 0 {
            table.rule();
        }
        let first = systems.first().map(|row| row.1);
        for (nth, (system, point)) in systems.into_iter().enumerate() {
            let group = if nth == 0 { group.as_str() } else { "" };
            let mut row = vec![group.to_owned(), system.to_owned()];
            row.extend(cells(figure, &point, first, points));
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            table.row(&row);
        }
    }
    table
}

fn columns(figure: Figure) -> Vec<(String, Align)> {
    let at = |what: &str, list: &[u16]| -> Vec<String> {
        list.iter().map(|n| format!("{what}{n}")).collect()
    };
    let own =
        |list: &[&str]| -> Vec<String> { list.iter().map(|name| (*name).to_owned()).collect() };
    let rest = match figure {
        Figure::Fig7 => [
            at("Mops ×", &BLADES),
            own(&["8 by 1", "GCP by it", "share"]),
        ]
        .concat(),
        Figure::Fig8 => [
            at("k tx/s ×", &BLADES),
            own(&["8 by 1", "GCP by it", "coherence tx", "share"]),
        ]
        .concat(),
        Figure::Fig9 => [
            at("tx ×", &BLADES[1..]),
            at("µs ×", &BLADES[1..]),
            own(&["by GCP's", "all µs", "Mops", "share"]),
        ]
        .concat(),
        Figure::Fig10 => own(&["p10", "p50", "p90", "p99", "under 1 µs", "tx"]),
        Figure::Fig11 => [at("Mops ×", &BLADES), own(&["8 by 1", "of Ethernet's"])].concat(),
    };
    let heads = own(&[
        if figure == Figure::Fig8 {
            "data"
        } else {
            "reads"
        },
        "lock",
    ])
    .into_iter()
    .map(|name| (name, LEFT));
    heads
        .chain(rest.into_iter().map(|name| (name, RIGHT)))
        .collect()
}

fn groups(figure: Figure, platform: &Platform) -> Groups {
    let schemes = figure.schemes();
    let contended = |reads: u8| -> Vec<(&'static str, Point)> {
        let point = |&(scheme, name): &(Scheme, _)| {
            (name, Point::contended(scheme, MOST, reads).on(*platform))
        };
        schemes.iter().map(point).collect()
    };
    match figure {
        Figure::Fig7 => YCSB
            .map(|(reads, letter)| {
                let point =
                    |&(scheme, name): &(Scheme, _)| (name, Point::store(scheme, MOST, reads));
                (
                    format!("YCSB-{letter}"),
                    schemes.iter().map(point).collect(),
                )
            })
            .into(),
        Figure::Fig8 => WAREHOUSES
            .map(|warehouses| {
                let point = |&(scheme, name): &(Scheme, _)| {
                    (name, Point::database(scheme, MOST, warehouses))
                };
                (
                    format!("{warehouses} wh."),
                    schemes.iter().map(point).collect(),
                )
            })
            .into(),
        Figure::Fig9 | Figure::Fig10 => READS
            .map(|reads| (format!("{reads}%"), contended(reads)))
            .into(),
        Figure::Fig11 => READS
            .map(|reads| {
                let on = |platform| Point::contended(Scheme::Gcp, MOST, reads).on(platform);
                let both = vec![
                    ("Ethernet", on(Platform::ETHERNET)),
                    ("CXL", on(Platform::CXL)),
                ];
                (format!("{reads}%"), both)
            })
            .into(),
    }
}

fn cells(figure: Figure, point: &Point, first: Option<Point>, points: &Points) -> Vec<String> {
    let at = |blades| points.get(&Point { blades, ..*point });
    let (Some(most), Some(one)) = (at(MOST), at(BLADES[0]).or(at(MOST))) else {
        return Vec::new();
    };
    let base = first.and_then(|first| points.get(&first)).unwrap_or(most);
    let each = |list: &[u16], of: &dyn Fn(&Outcome) -> String| -> Vec<String> {
        let cell = |&blades| at(blades).map_or(String::new(), of);
        list.iter().map(cell).collect()
    };
    let mops = |outcome: &Outcome| number(outcome.mops());
    let micros = |nanoseconds: f64| number(nanoseconds / 1e3);
    let share = format!("{:.2}", most.fairness);
    // Where nothing came from another blade, there is nothing to tell.
    let remote = |of: &dyn Fn(&Outcome) -> String, outcome: &Outcome| match outcome.of.remote {
        0 => "–".to_owned(),
        _ if is_alone(outcome) => "alone".to_owned(),
        _ => of(outcome),
    };
    match figure {
        Figure::Fig7 => {
            let mut row = each(&BLADES, &mops);
            row.push(times(most.mops() / one.mops()));
            row.push(times(base.mops() / most.mops()));
            row.push(share);
            row
        }
        Figure::Fig8 => {
            let mut row = each(&BLADES, &|o| number(o.mops() * 1e3));
            row.push(times(most.mops() / one.mops()));
            row.push(times(base.mops() / most.mops()));
            row.push(remote(&|o| format!("{:.1}", o.transactions_each()), most));
            row.push(share);
            row
        }
        Figure::Fig9 => {
            let transactions = |o: &Outcome| format!("{:.2}", o.transactions_each());
            let wait = |o: &Outcome| micros(o.remote_mean());
            let mut row = each(&BLADES[1..], &|o| remote(&transactions, o));
            row.extend(each(&BLADES[1..], &|o| remote(&wait, o)));
            let by = |o: &Outcome| match base.of.remote {
                0 => "–".to_owned(),
                _ => times(o.remote_mean() / base.remote_mean()),
            };
            row.push(remote(&by, most));
            row.extend([micros(most.mean()), mops(most), share]);
            row
        }
        Figure::Fig10 => {
            let mut row: Vec<String> = [10.0, 50.0, 90.0, 99.0]
                .map(|percent| format!("{} µs", micros(most.percentile(percent) as f64)))
                .into();
            let quick = most.of.latencies.partition_point(|&time| time < 1_000);
            let percent = 100.0 * quick as f64 / most.of.latencies.len().max(1) as f64;
            row.push(format!("{percent:.0}%"));
            row.push(remote(&|o| format!("{:.2}", o.transactions_each()), most));
            row
        }
        Figure::Fig11 => {
            let mut row = each(&BLADES, &mops);
            row.push(times(most.mops() / one.mops()));
            row.push(times(most.mops() / base.mops()));
            row
        }
    }
}
