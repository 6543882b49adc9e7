//! `rackmem inspect`: who holds the locks of a rack of processes, and who waits for them;
//! which regions it has.

use super::load;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use clap::Args;
use rackmem::locked::{Held, LockStatus};
use rackmem::{Config, RegionInfo};
use rackmem_bench::table::{Align, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem inspect --rack rack.toml                locks that are held or waited for
  rackmem inspect --rack rack.toml --watch        the same, every second, until Ctrl-C
  rackmem inspect --rack rack.toml --all --json   idle ones as well
  rackmem inspect --rack rack.toml --regions      named regions and named locks

Run it on a host of the rack; the fabric must be UDP. Nodes are queried one after the other and keep running. A
deadlock shows as two locks, each held by the waiter of the other.";

/// Options of `rackmem inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Read the rack's description from FILE
    #[arg(long, value_name = "FILE", alias = "config")]
    rack: PathBuf,
    /// Show idle locks as well
    #[arg(long)]
    all: bool,
    /// Show regions and named locks instead, with their contracts
    #[arg(long, conflicts_with = "all")]
    regions: bool,
    /// Refresh every SECONDS until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    watch: Option<u32>,
}

/// A lock, as the nodes that have answered tell of it.
type Told = Vec<(usize, LockStatus)>;

/// Shows, and ends.
pub fn run(args: &InspectArgs, json: bool) -> Result<Ended> {
    let config = load(&args.rack)?;
    loop {
        match args.regions {
            true => show_regions(&config, args, json)?,
            false => show(&config, args, json)?,
        }
        let Some(seconds) = args.watch else {
            return Ok(Ended::Done);
        };
        std::thread::sleep(Duration::from_secs(seconds.into()));
    }
}

fn show(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let answers = rackmem::diagnostics::inspect(config, args.all)?;
    let silent: Vec<usize> = (0..answers.len())
        .filter(|node| answers[*node].is_none())
        .collect();
    // "0 locks in use" would be a guess.
    if silent.len() == answers.len() && args.watch.is_none() {
        let cause = format!("none of the rack's {} nodes answers", silent.len());
        let next = "start its processes, or check the addresses in the file";
        return Err(Failure::new(cause, next));
    }
    let mut locks = BTreeMap::<u64, Told>::new();
    for (node, answer) in answers.into_iter().enumerate() {
        for lock in answer.into_iter().flatten() {
            locks.entry(lock.addr).or_default().push((node, lock));
        }
    }
    if json {
        let locks: Vec<Value> = locks
            .iter()
            .map(|(addr, told)| object(*addr, told))
            .collect();
        out::line(json!({"locks": locks, "unanswered": silent}));
        return Ok(());
    }
    clear(args);
    print(&locks, &silent, args.all);
    Ok(())
}

fn show_regions(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let regions = rackmem::diagnostics::inspect_regions(config)?;
    if regions.is_none() && args.watch.is_none() {
        let cause = "node 0, which has the table of regions, does not answer";
        let next = "start its process, or check its address in the file";
        return Err(Failure::new(cause, next));
    }
    if json {
        let told = regions.as_ref();
        let told = told.map(|regions| regions.iter().map(region_object).collect::<Vec<_>>());
        out::line(json!({"regions": told}));
        return Ok(());
    }
    clear(args);
    let Some(regions) = regions else {
        out::line("node 0, which has the table of regions, does not answer");
        return Ok(());
    };
    let columns = [
        ("name", Align::Left),
        ("bytes", Align::Right),
        ("contract", Align::Left),
        ("backing", Align::Left),
        ("home", Align::Right),
        ("address", Align::Left),
    ];
    let mut table = Table::new(
        &format!("{} regions and named locks", regions.len()),
        &columns,
    );
    for region in &regions {
        table.row(&[
            region.spec.name(),
            &region.spec.bytes().to_string(),
            region.spec.asks_contract().name(),
            region.spec.asks_backing().name(),
            &region.home().to_string(),
            &format!("{:#x}", region.addr),
        ]);
    }
    out::table(&table);
    Ok(())
}

fn region_object(region: &RegionInfo) -> Value {
    let spec = &region.spec;
    json!({
        "name": spec.name(),
        "bytes": spec.bytes(),
        "element_type": format!("{:#x}", spec.element_type()),
        "contract": spec.asks_contract().name(),
        "backing": spec.asks_backing().name(),
        "home": region.home().0,
        "addr": format!("{:#x}", region.addr),
        "generation": region.generation,
    })
}

/// With `--watch` on a terminal what was shown before goes.
fn clear(args: &InspectArgs) {
    if args.watch.is_some() && std::io::stdout().is_terminal() {
        // Home, and nothing below.
        out::line("\x1b[H\x1b[2J");
    }
}

fn object(addr: u64, told: &Told) -> Value {
    let nodes: Vec<Value> = told
        .iter()
        .map(|(node, lock)| {
            json!({
                "node": node,
                "right": match lock.right {
                    Held::Nothing => "none",
                    Held::ToRead => "read",
                    Held::ToWrite => "write",
                },
                "readers_inside": lock.readers,
                "writer_inside": lock.writer,
                "threads_waiting": lock.waiting,
                "nodes_waiting": lock.queue.iter().collect::<Vec<_>>(),
                "token": lock.token,
            })
        })
        .collect();
    let bytes = told.first().map_or(0, |(_, lock)| lock.bytes);
    json!({"addr": format!("{addr:#x}"), "bytes": bytes, "nodes": nodes})
}

fn print(locks: &BTreeMap<u64, Told>, silent: &[usize], all: bool) {
    let what = if all { "known" } else { "in use" };
    let columns = [
        ("lock", Align::Left),
        ("bytes", Align::Right),
        ("inside", Align::Left),
        ("right", Align::Left),
        ("waiting", Align::Left),
    ];
    let mut table = Table::new(&format!("{} locks {what}", locks.len()), &columns);
    for (addr, told) in locks {
        let list = |text: fn(usize, &LockStatus) -> Option<String>| {
            let texts: Vec<String> = told.iter().filter_map(|(n, lock)| text(*n, lock)).collect();
            if texts.is_empty() {
                "-".into()
            } else {
                texts.join(", ")
            }
        };
        let bytes = told.first().map_or(0, |(_, lock)| lock.bytes);
        table.row(&[
            &format!("{addr:#x}"),
            &bytes.to_string(),
            &list(inside),
            &list(right),
            &list(waiting),
        ]);
    }
    out::table(&table);
    for node in silent {
        out::line(format!(
            "node {node} does not answer: what it holds is not shown"
        ));
    }
}

fn inside(node: usize, lock: &LockStatus) -> Option<String> {
    match (lock.writer, lock.readers) {
        (true, _) => Some(format!("a writer of node {node} (token {})", lock.token)),
        (false, 0) => None,
        (false, 1) => Some(format!("a reader of node {node}")),
        (false, many) => Some(format!("{many} readers of node {node}")),
    }
}

fn right(node: usize, lock: &LockStatus) -> Option<String> {
    match lock.right {
        Held::Nothing => None,
        Held::ToRead => Some(format!("node {node} reads")),
        Held::ToWrite => Some(format!("node {node} writes")),
    }
}

fn waiting(node: usize, lock: &LockStatus) -> Option<String> {
    match lock.waiting {
        0 => None,
        1 => Some(format!("a thread of node {node}")),
        many => Some(format!("{many} threads of node {node}")),
    }
}
