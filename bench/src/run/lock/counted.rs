//! Coherence transactions of a strict hand-over between two nodes that write, counted one operation
//! after the other: in all, and on the way from one critical section to the next; for the lock
//! alone, and together with a block of 4 KiB that it protects.

use super::super::{Progress, Result};
use super::{DATA, Options};
use crate::locks::{AnyLock, LockKind, Progress as Came, Steps};
use crate::report::Report;
use rackmem::diagnostics::Kind;
use rackmem::{Fabric, Node, Rack};

/// Nodes of the rack: what each of them costs a writer is counted, too.
const NODES: usize = 3;
/// Hand-overs before it is counted.
const WARM: usize = 6;

/// What a hand-over has cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    all: u64,
    critical: u64,
    messages: u64,
}

pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &kind in &options.kinds {
        options.go_on()?;
        progress(&format!("{}: transactions", kind.name()));
        for (name, data) in [("lock", false), ("lock-and-data", true)] {
            let cost = match kind {
                LockKind::Gcp => gcp(options)?,
                _ => layered(options, kind, data)?,
            };
            let case = format!("counted/{}/{}/{name}", options.mode.name(), kind.name());
            report.add(&format!("{case}/in-all"), cost.all as f64, "per hand-over")?;
            report.add(
                &format!("{case}/critical"),
                cost.critical as f64,
                "per hand-over",
            )?;
            if cost.messages > 0 {
                let messages = cost.messages as f64;
                report.add(&format!("{case}/messages"), messages, "per hand-over")?;
            }
        }
    }
    Ok(())
}

fn sum(rack: &Rack) -> (u64, u64) {
    let metrics = rack.metrics();
    let packets = metrics.agent_packets();
    let service = |kind: &Kind| matches!(kind, Kind::GuestAsk | Kind::GuestTell);
    let messages = packets
        .0
        .iter()
        .filter(|row| service(&row.0))
        .map(|row| row.1)
        .sum();
    (metrics.events().misses(), messages)
}

fn layered(options: &Options, kind: LockKind, data: bool) -> Result<Cost> {
    let rack = options.rack(Fabric::Inline, NODES, kind)?;
    let made = AnyLock::create(&rack.node(0), DATA)?;
    let attach = |node| AnyLock::attach(&rack.node(node), made.addr());
    let locks = [attach(1)?, attach(2)?];
    let mut steps = [locks[0].steps()?, locks[1].steps()?];
    steps[0].enter(true);
    steps[0].run()?;
    let mut cost = Cost::default();
    for _ in 0..WARM {
        let [from, to] = &mut steps;
        cost = hand_over(&rack, from, to, data)?;
        steps.swap(0, 1);
    }
    Ok(cost)
}

fn hand_over(rack: &Rack, from: &mut Steps<'_>, to: &mut Steps<'_>, data: bool) -> Result<Cost> {
    let began = sum(rack);
    to.enter(true);
    to.run()?;
    let leaves = sum(rack);
    from.leave();
    let mut inside = None;
    loop {
        let left = from.step()? == Came::Outside;
        if inside.is_none() && to.run()? == Came::Inside {
            if data {
                to.write(0, &[1; DATA])?;
            }
            inside = Some(sum(rack));
        }
        if left {
            break;
        }
    }
    let end = sum(rack);
    Ok(Cost {
        all: end.0 - began.0,
        critical: inside.unwrap_or(end).0 - leaves.0,
        messages: end.1 - began.1,
    })
}

/// One acquisition by another node, which takes the lock from the one that has it.
/// GCP's data comes with it.
fn gcp(options: &Options) -> Result<Cost> {
    let rack = options.rack(Fabric::Inline, NODES, LockKind::Gcp)?;
    let made = AnyLock::create(&rack.node(0), DATA)?;
    let attach = |node| AnyLock::attach(&rack.node(node), made.addr());
    let locks = [attach(1)?, attach(2)?];
    let of = |node: Node| node.lock_metrics().granted;
    let count = || sum(&rack).0 + of(rack.node(1)) + of(rack.node(2));
    let mut cost = Cost::default();
    for nth in 0..WARM {
        let before = count();
        locks[nth % 2].write()?.write(0, &[1; DATA])?;
        let all = count() - before;
        // It is one transaction, and all of it is waited for.
        cost = Cost {
            all,
            critical: all,
            messages: 0,
        };
    }
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    #[test]
    fn a_lock_and_a_block_cost_one_transaction_by_gcp_and_more_by_the_others() {
        let expected = [
            (LockKind::Gcp, (1, 1), (1, 1)),
            (LockKind::Mcs, (5, 3), (6, 4)),
            (LockKind::Central, (4, 3), (5, 4)),
            (LockKind::PerNode, (6, 5), (7, 6)),
            (LockKind::Cohort, (3, 2), (4, 3)),
            (LockKind::Service, (0, 0), (1, 1)),
        ];
        for mode in [System::Switch, System::HomeOnly, System::Directory] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let mut report = Report::new("lock");
            run(&options, &mut report, &mut |_| ()).unwrap();
            for (kind, lock, data) in expected {
                for (name, (all, critical)) in [("lock", lock), ("lock-and-data", data)] {
                    let case = format!("counted/{}/{}/{name}", mode.name(), kind.name());
                    let of = |what| report.case(&format!("{case}/{what}")).unwrap().value as u64;
                    // GCP's lock does not come without its data.
                    assert_eq!((of("in-all"), of("critical")), (all, critical), "{case}");
                }
            }
        }
    }
}
