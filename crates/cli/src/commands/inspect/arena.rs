//! An arena of bounded memory: its nodes, and which one its memory waits for.

use super::{InspectArgs, clear};
use crate::failure::Result;
use crate::out;
use rackmem::bounded::{ArenaReport, DomainReport};
use rackmem::{Error, Size};
use rackmem_bench::table::{Align, Table};
use serde_json::{Value, json};

/// Shows it once.
pub fn show(args: &InspectArgs, json: bool) -> Result<()> {
    let Some(path) = &args.bounded else {
        return Ok(());
    };
    let report = ArenaReport::of(path).map_err(Error::from)?;
    if json {
        out::line(object(&report));
        return Ok(());
    }
    clear(args);
    let title = format!(
        "an arena of {} for {} nodes; what is read is {:?} old at most; the slowest node: {}",
        Size(report.bytes),
        report.nodes,
        report.bound,
        report
            .slowest()
            .map_or("none".into(), |node| node.to_string()),
    );
    let columns = ["node", "life", "state", "modified", "freed", "waiting"];
    let mut table = Table::new(&title, &columns.map(|name| (name, Align::Right)));
    for domain in &report.domains {
        table.row(&[
            &domain.node.to_string(),
            &domain.incarnation.to_string(),
            state(domain),
            &format!("{:?} ago", domain.modified),
            &format!("{:?} ago", domain.freed),
            &format!("{} of {}", domain.waiting, report.ring),
        ]);
    }
    out::table(&table);
    Ok(())
}

fn state(domain: &DomainReport) -> &'static str {
    match (domain.excluded, domain.runs) {
        (true, _) => "excluded",
        (_, true) => "running",
        _ => "joining",
    }
}

fn object(report: &ArenaReport) -> Value {
    let domains = report.domains.iter().map(|domain| {
        json!({
            "node": domain.node,
            "incarnation": domain.incarnation,
            "state": state(domain),
            "modified_ns": domain.modified.as_nanos() as u64,
            "freed_ns": domain.freed.as_nanos() as u64,
            "waiting": domain.waiting,
        })
    });
    json!({
        "rack": format!("{:016x}", report.rack),
        "bytes": report.bytes,
        "nodes": report.nodes,
        "bound_ns": report.bound.as_nanos() as u64,
        "ring": report.ring,
        "slowest": report.slowest(),
        "domains": domains.collect::<Vec<Value>>(),
    })
}
