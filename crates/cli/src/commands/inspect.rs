//! `rackmem inspect`: who holds the locks of a rack of processes, and who waits for them;
//! which regions it has, and who keeps copies of them.

mod arena;
pub mod hot;
pub mod locks;

use super::load;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::figures;
use crate::out;
use clap::Args;
use rackmem::{Config, CopyStatus, CopyStore, GroupStatus, RegionInfo, Size, SweepStatus};
use rackmem_bench::table::{Align, Table};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem inspect --rack rack.toml                locks that are held or waited for
  rackmem inspect --rack rack.toml --watch        the same, every second, until Ctrl-C
  rackmem inspect --rack rack.toml --all --json   idle ones as well
  rackmem inspect --rack rack.toml --regions      named regions and named locks
  rackmem inspect --rack rack.toml --groups       who keeps copies of regions, and how far members have filled
  rackmem inspect --rack rack.toml --objects      objects of each node, and which ways its reads of objects go
  rackmem inspect --rack rack.toml --hot          the blocks that nodes miss most, and who writes them
  rackmem inspect --bounded /dev/shm/prices       an arena of bounded memory: which node its memory waits for

Run it on a host of the rack; the fabric must be UDP. Nodes are queried one after the other and keep running. A
deadlock shows as two locks, each held by the waiter of the other.";

/// Options of `rackmem inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Read the rack's description from FILE
    #[arg(
        long,
        value_name = "FILE",
        alias = "config",
        required_unless_present = "bounded"
    )]
    rack: Option<PathBuf>,
    /// Show the arena of bounded memory in FILE instead: its nodes, and how late they are
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rack", "all", "regions", "groups", "objects", "hot"])]
    bounded: Option<PathBuf>,
    /// Show idle locks as well
    #[arg(long)]
    all: bool,
    /// Show regions and named locks instead, with their contracts
    #[arg(long, conflicts_with = "all")]
    regions: bool,
    /// Show who keeps copies of regions instead, and how far members have filled
    #[arg(long, conflicts_with_all = ["all", "regions"])]
    groups: bool,
    /// Show each node's objects instead, and which ways its reads of objects go
    #[arg(long, conflicts_with_all = ["all", "regions", "groups"])]
    objects: bool,
    /// Show the blocks that nodes miss most instead, with the misses of each
    #[arg(long, conflicts_with_all = ["all", "regions", "groups", "objects"])]
    hot: bool,
    /// Refresh every SECONDS until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    watch: Option<u32>,
}

/// Shows, and ends.
pub fn run(args: &InspectArgs, json: bool) -> Result<Ended> {
    let config = args.rack.as_deref().map(load).transpose()?;
    loop {
        match (&config, args.regions, args.groups) {
            (None, ..) => arena::show(args, json)?,
            (Some(config), true, _) => show_regions(config, args, json)?,
            (Some(config), _, true) => show_groups(config, args, json)?,
            (Some(config), ..) if args.objects => show_objects(config, args, json)?,
            (Some(config), ..) if args.hot => show_hot(config, args, json)?,
            (Some(config), ..) => show(config, args, json)?,
        }
        let Some(seconds) = args.watch else {
            return Ok(Ended::Done);
        };
        std::thread::sleep(Duration::from_secs(seconds.into()));
    }
}

fn show(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let answers = rackmem::diagnostics::inspect(config, args.all)?;
    let nodes = answers.len();
    let (locks, silent) = locks::by_address(answers);
    // "0 locks in use" would be a guess.
    if silent.len() == nodes && args.watch.is_none() {
        return Err(nobody_answers(silent.len()));
    }
    if json {
        let locks: Vec<Value> = locks
            .iter()
            .map(|(addr, told)| locks::object(*addr, told))
            .collect();
        out::line(json!({"locks": locks, "unanswered": silent}));
        return Ok(());
    }
    clear(args);
    out::table(&locks::table(&locks, args.all));
    for node in silent {
        out::line(format!(
            "node {node} does not answer: what it holds is not shown"
        ));
    }
    Ok(())
}

fn table_is_silent(config: &Config) -> &'static str {
    match config.copies() {
        0 => "node 0, which has the table of regions, does not answer",
        _ => "no node, of which one has the table of regions, answers",
    }
}

fn show_regions(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let regions = rackmem::diagnostics::inspect_regions(config)?;
    if regions.is_none() && args.watch.is_none() {
        let cause = table_is_silent(config);
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
        out::line(table_is_silent(config));
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

/// How long the membership's store may take to answer a person.
const WITHIN: Duration = Duration::from_secs(2);

fn show_groups(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let groups = rackmem::diagnostics::inspect_groups(config, WITHIN)?;
    if json {
        let groups: Vec<Value> = groups.iter().map(group_object).collect();
        out::line(json!({"groups": groups}));
        return Ok(());
    }
    clear(args);
    let columns = [
        ("region", Align::Left),
        ("bytes", Align::Right),
        ("line", Align::Right),
        ("config", Align::Right),
        ("majority", Align::Right),
        ("answering", Align::Left),
        ("writes", Align::Left),
        ("durability", Align::Left),
        ("node", Align::Right),
        ("copy", Align::Left),
    ];
    let mut table = Table::new(&format!("{} regions with copies", groups.len()), &columns);
    for group in &groups {
        let numbers = [
            group.bytes.to_string(),
            group.line.to_string(),
            group.config.to_string(),
            group.needed.to_string(),
            format!("{} of {}", answering(group), group.wanted),
            way(group).to_owned(),
            group.durability.to_string(),
        ];
        for (nth, copy) in group.copies.iter().enumerate() {
            let [bytes, line, config, needed, answering, writes, durability] =
                numbers.each_ref().map(|text| match nth {
                    0 => text.as_str(),
                    _ => "",
                });
            let name = if nth == 0 { group.name.as_str() } else { "" };
            let node = copy.node.to_string();
            table.row(&[
                name,
                bytes,
                line,
                config,
                needed,
                answering,
                writes,
                durability,
                &node,
                &state(group, copy),
            ]);
        }
    }
    out::table(&table);
    groups.iter().filter_map(swept).for_each(out::line);
    Ok(())
}

/// How far the sweep of coherent memory is.
fn swept(group: &GroupStatus) -> Option<String> {
    let SweepStatus {
        blocks,
        of,
        repaired,
        ..
    } = group.swept?;
    let name = &group.name;
    Some(format!(
        "{name}: {blocks} of {of} blocks swept since the rack changed last, {repaired} repaired"
    ))
}

fn show_objects(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let nodes = rackmem::diagnostics::inspect_objects(config)?;
    if nodes.iter().all(Option::is_none) && args.watch.is_none() {
        return Err(nobody_answers(nodes.len()));
    }
    if json {
        let nodes: Vec<Value> = (nodes.iter())
            .map(|counts| counts.as_ref().map_or(Value::Null, figures::objects))
            .collect();
        out::line(json!({"nodes": nodes}));
        return Ok(());
    }
    clear(args);
    let columns = [
        "node",
        "objects",
        "here",
        "mapped",
        "by packets",
        "by kernels",
        "by agents",
        "asked",
        "waits",
        "torn",
        "locked",
        "its kernel",
    ];
    let columns = columns.map(|name| (name, Align::Right));
    let title = "objects of each node; handles by the way their reads go; reads by who answered; what they met; what its own kernel answers";
    let mut table = Table::new(title, &columns);
    for (node, counts) in nodes.iter().enumerate() {
        let node = node.to_string();
        let Some(counts) = counts else {
            table.row(&[&node, "no answer", "", "", "", "", "", "", "", "", "", ""]);
            continue;
        };
        let figures = [
            counts.live,
            counts.here,
            counts.mapped,
            counts.elsewhere,
            counts.by_kernel,
            counts.by_agent,
            counts.asked,
            counts.rounds,
            counts.torn,
            counts.locked,
        ];
        let figures = figures.map(|figure| figure.to_string());
        let kernel = match counts.in_kernel {
            None => "no".to_owned(),
            Some(kernel) if !kernel.serves => "not now".to_owned(),
            Some(kernel) => {
                let all = kernel.answered + kernel.not_modified;
                format!("{all}, passed {}", kernel.passed())
            }
        };
        let row: Vec<&str> = [node.as_str()]
            .into_iter()
            .chain(figures.iter().map(String::as_str))
            .chain([kernel.as_str()])
            .collect();
        table.row(&row);
    }
    out::table(&table);
    Ok(())
}

/// Blocks that are shown to a person.
const HOTTEST: usize = 20;

fn show_hot(config: &Config, args: &InspectArgs, json: bool) -> Result<()> {
    let told = rackmem::diagnostics::inspect_hot(config)?;
    if told.iter().all(Option::is_none) && args.watch.is_none() {
        return Err(nobody_answers(told.len()));
    }
    let regions = rackmem::diagnostics::inspect_regions(config)?.unwrap_or_default();
    let blocks = hot::by_block(&told);
    if json {
        let blocks = blocks.iter().map(|block| hot::object(block, &regions));
        let silent: Vec<usize> = (0..told.len())
            .filter(|node| told[*node].is_none())
            .collect();
        out::line(json!({"hot": blocks.collect::<Vec<_>>(), "unanswered": silent}));
        return Ok(());
    }
    clear(args);
    let title = "blocks that nodes miss most, and misses of each since it is among them";
    out::table(&hot::table(title, &blocks, &regions, HOTTEST));
    Ok(())
}

fn nobody_answers(nodes: usize) -> Failure {
    let cause = format!("none of the rack's {nodes} nodes answers");
    let next = "start its processes, or check the addresses in the file";
    Failure::new(cause, next)
}

/// How many copies count.
fn counting(group: &GroupStatus) -> usize {
    group.copies.iter().filter(|copy| copy.counts).count()
}

/// How many of them a majority can be had with just now.
fn answering(group: &GroupStatus) -> usize {
    group.copies.iter().filter(|copy| copy.answers()).count()
}

/// How many rounds of the members a write takes, and who counts their answers.
fn way(group: &GroupStatus) -> &'static str {
    match (group.through_switch, group.one_round) {
        (_, true) => "one round",
        (true, false) => "two, by the switch",
        (false, false) => "two rounds",
    }
}

/// What a copy is, in words.
fn state(group: &GroupStatus, copy: &CopyStatus) -> String {
    let lines = || {
        copy.lines
            .map_or(String::new(), |lines| format!(", {lines} lines"))
    };
    let journal = match copy.store {
        Some(CopyStore::Journal(bytes)) => format!(", a journal of {}", Size(bytes)),
        Some(CopyStore::Ended) => {
            return "ended: its process says why; `rackmem members replace` gives it to another node"
                .into();
        }
        Some(CopyStore::Missing) => {
            return "its store is gone: after `replace_after` it fills anew".into();
        }
        _ => String::new(),
    };
    match (copy.live, copy.counts, copy.filling) {
        (false, ..) => "dead: `rackmem members replace` gives it to another node".into(),
        (true, true, _) => format!("counts{}{journal}", lines()),
        (true, false, Some((at, fetched))) => format!(
            "fills: {}%, {fetched} lines fetched",
            at.saturating_mul(100) / group.bytes.max(1)
        ),
        (true, false, None) => format!("fills{}{journal}", lines()),
    }
}

fn group_object(group: &GroupStatus) -> Value {
    let copy = |copy: &CopyStatus| {
        json!({
            "node": copy.node,
            "life": copy.life,
            "counts": copy.counts,
            "live": copy.live,
            "lines": copy.lines,
            "filled_bytes": copy.filling.map(|(at, _)| at),
            "fetched_lines": copy.filling.map(|(_, fetched)| fetched),
            "store": copy.store.map(|store| match store {
                CopyStore::Memory => "memory",
                CopyStore::Journal(_) => "journal",
                CopyStore::Ended => "ended",
                CopyStore::Missing => "missing",
            }),
            "journal_bytes": match copy.store {
                Some(CopyStore::Journal(bytes)) => Some(bytes),
                _ => None,
            },
        })
    };
    json!({
        "group": group.number,
        "region": group.name,
        "bytes": group.bytes,
        "line": group.line,
        "config": group.config,
        "majority": group.needed,
        "counting": counting(group),
        "answering": answering(group),
        "wanted": group.wanted,
        "durability": group.durability.name(),
        "through_switch": group.through_switch,
        "one_round": group.one_round,
        "swept_blocks": group.swept.map(|swept| swept.blocks),
        "blocks_to_sweep": group.swept.map(|swept| swept.of),
        "repaired_blocks": group.swept.map(|swept| swept.repaired),
        "copies": group.copies.iter().map(copy).collect::<Vec<_>>(),
    })
}

/// With `--watch` on a terminal what was shown before goes.
fn clear(args: &InspectArgs) {
    if args.watch.is_some() && std::io::stdout().is_terminal() {
        // Home, and nothing below.
        out::line("\x1b[H\x1b[2J");
    }
}
