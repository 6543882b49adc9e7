//! The results for a person, and for a script.

use super::kills::Survived;
use super::outside::Outside;
use super::play::{Judged, Played, Task};
use crate::out;
use crate::size::count;
use rackmem_bench::table::{Align, Table};
use rackmem_txn::transactions::Kind;
use rackmem_txn::{Cause, Condition, Remote, Row};
use serde_json::{Value, json};

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// Prints all of it.
pub fn print(task: &Task<'_>, played: &Played, outside: Option<&Outside>) {
    if task.json {
        out::line(object(task, played, outside));
        return;
    }
    let (args, done) = (task.args, &played.done);
    let of = match args.scale().is_full() {
        true => "as the specification has them",
        false => "not the specification's: another benchmark",
    };
    out::line(format!(
        "{} warehouses, {} items, {} customers a district ({of}); loaded in {:.1} s",
        args.warehouses,
        count(args.scale.items.into()),
        count(args.scale.customers.into()),
        played.loading.as_secs_f64(),
    ));
    out::line(format!(
        "{}; {} terminals a node, engine {}, {}\n",
        args.describe(),
        args.threads,
        played.engine,
        remote(args.remote()),
    ));
    out::table(&transactions(played));
    out::line(format!(
        "{} new orders a minute (tpmC, without think times: no TPC result), for {:.1} s.",
        count(done.tpm_c().round() as u64),
        done.time.as_secs_f64(),
    ));
    out::line(format!(
        "{:.1} packets a transaction; {} orders delivered, {} districts had none to deliver.\n",
        played.packets as f64 / all(played).max(1) as f64,
        count(done.tally.delivered),
        count(done.tally.of(Kind::Delivery).skipped),
    ));
    if let (Some(copies), Some(survived)) = (args.copies, &played.survived) {
        out::line(deaths(copies, survived));
    }
    out::table(&conditions(played));
    out::line(match &played.judged {
        None => "The history was not judged (--judge).".to_owned(),
        Some(judged) => judgement(judged, args.processes),
    });
    if let Some(outside) = outside {
        out::line(beside(outside));
    }
}

fn judgement(judged: &Judged, is_of_processes: bool) -> String {
    let mut text = format!("{} transactions judged", count(judged.told as u64));
    if judged.cut_off > 0 {
        let cut_off = count(judged.cut_off as u64);
        text += &format!(", and {cut_off} that a death cut off and others have seen");
    }
    if is_of_processes {
        text += ", by the clock of this host, which has all nodes";
    }
    match &judged.why {
        None => text + ": strictly serializable.",
        Some(why) => format!("{text}: {why}."),
    }
}

fn deaths(copies: u8, survived: &Survived) -> String {
    let mut text = format!("{copies} copies of the database.");
    for (node, at) in &survived.killed {
        text += &format!(" Node {node} was killed after {at:.1} s.");
    }
    for node in &survived.lost {
        text += &format!(
            " Node {node} died while the database was loaded: another one has loaded what is its."
        );
    }
    if !survived.gap.is_zero() {
        let gap = survived.gap.as_secs_f64();
        text += &format!(
            " The longest time in which a node that lives finished no transaction: {gap:.2} s."
        );
    }
    if let Some(counted) = survived.counted.filter(|_| !survived.killed.is_empty()) {
        text += &format!(
            " The figures are those of the nodes that live; by their logs all have placed {} orders and made {} payments.",
            count(counted.orders),
            count(counted.payments),
        );
    }
    text + "\n"
}

fn judged(judged: &Judged) -> Value {
    json!({"transactions": judged.told, "cut_off": judged.cut_off, "disorder": judged.why})
}

fn survived(survived: &Survived) -> Value {
    let killed = survived.killed.iter();
    let killed: Vec<Value> = killed
        .map(|(node, at)| json!({"node": node, "seconds": at}))
        .collect();
    let counted = survived
        .counted
        .map(|it| json!({"orders": it.orders, "payments": it.payments, "delivered": it.delivered}));
    json!({
        "killed": killed,
        "lost_while_loading": survived.lost,
        "gap_seconds": survived.gap.as_secs_f64(),
        "counted": counted,
    })
}

fn beside(outside: &Outside) -> String {
    let first = outside.transactions.first();
    let median = first.map_or(0.0, |it| it.p50_us);
    let is_whole = if outside.holds {
        ""
    } else {
        " Its sums do not agree."
    };
    format!(
        "{} {}, in memory, one connection of one process: {} new orders a minute, p50 {median:.0} µs; loaded in {:.1} s.{is_whole}",
        outside.name,
        outside.version,
        count(outside.tpm_c.round() as u64),
        outside.loading_seconds,
    )
}

fn remote(remote: Remote) -> String {
    match remote {
        Remote::Specification => "1% of lines and 15% of payments remote".into(),
        Remote::Share(share) => format!("{share}% of orders and payments remote"),
    }
}

/// Transactions that have committed.
fn all(played: &Played) -> u64 {
    let rows = Kind::ALL.iter();
    rows.map(|row| played.done.tally.of(row.0).committed).sum()
}

fn transactions(played: &Played) -> Table {
    let columns = [
        ("transaction", LEFT),
        ("committed", RIGHT),
        ("a second", RIGHT),
        ("rolled back", RIGHT),
        ("aborts: lock", RIGHT),
        ("changed", RIGHT),
        ("death", RIGHT),
        ("p50", RIGHT),
        ("p99", RIGHT),
    ];
    let mut table = Table::new("transactions", &columns);
    for (kind, ..) in Kind::ALL {
        let row = played.done.tally.of(kind);
        let rate = row.committed as f64 / played.done.time.as_secs_f64();
        table.row(&[
            kind.name(),
            &count(row.committed),
            &format!("{rate:.1}"),
            &count(row.rolled_back),
            &count(row.aborts[Cause::Lock as usize]),
            &count(row.aborts[Cause::Changed as usize]),
            &count(row.aborts[Cause::Death as usize]),
            &within(row, 50.0),
            &within(row, 99.0),
        ]);
    }
    table
}

fn within(row: &Row, percent: f64) -> String {
    let micros = row.within(percent).as_secs_f64() * 1e6;
    match micros {
        it if it < 1e3 => format!("{it:.0} µs"),
        it => format!("{:.1} ms", it / 1e3),
    }
}

fn conditions(played: &Played) -> Table {
    let columns = [("", RIGHT), ("condition", LEFT), ("holds", LEFT)];
    let mut table = Table::new("consistency (clause 3.3.2)", &columns);
    for (condition, number, text) in Condition::ALL {
        let finding = played.report.of(*condition);
        let holds = match &finding.first {
            None => "yes".to_owned(),
            Some(first) => format!("no, at {} places: {first}", finding.broken),
        };
        table.row(&[number, text, &holds]);
    }
    table
}

fn object(task: &Task<'_>, played: &Played, outside: Option<&Outside>) -> Value {
    let (args, done) = (task.args, &played.done);
    let micros = |row: &Row, percent| row.within(percent).as_secs_f64() * 1e6;
    let transaction = |kind: Kind| {
        let row = done.tally.of(kind);
        let aborts = Cause::ALL.map(|cause| (cause.name(), row.aborts[cause as usize]));
        json!({
            "transaction": kind.name(),
            "committed": row.committed,
            "rolled_back": row.rolled_back,
            "skipped": row.skipped,
            "aborts": aborts.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "p50_us": micros(row, 50.0),
            "p99_us": micros(row, 99.0),
        })
    };
    let condition = |(condition, number, text): &(Condition, &str, &str)| {
        let finding = played.report.of(*condition);
        json!({"condition": number, "text": text, "broken": finding.broken, "first": finding.first})
    };
    json!({
        "warehouses": args.warehouses,
        "items": args.scale.items,
        "customers": args.scale.customers,
        "is_scale_of_specification": args.scale().is_full(),
        "rack": args.describe(),
        "processes": args.processes,
        "threads": args.threads,
        "engine": played.engine,
        "remote": remote(args.remote()),
        "seed": args.seed,
        "loading_seconds": played.loading.as_secs_f64(),
        "seconds": done.time.as_secs_f64(),
        "tpmC": done.tpm_c(),
        "packets": played.packets,
        "delivered": done.tally.delivered,
        "transactions": Kind::ALL.map(|row| transaction(row.0)),
        "holds": played.report.holds(),
        "conditions": Condition::ALL.iter().map(condition).collect::<Vec<_>>(),
        "judged": played.judged.as_ref().map(judged),
        "outside": outside,
        "copies": args.copies,
        "survived": played.survived.as_ref().map(survived),
    })
}
