//! A rack of processes: this side starts them and tells them when to do what; each loads the rows
//! of its node and has its terminals, and the first one checks all rows.

use super::copies::{self, Folder};
use super::histories::{self, Histories, recorder};
use super::kills::{self, Gap};
use super::loading;
use super::play::{Played, Task, Watcher};
use super::{EngineArg, failure};
use crate::commands::load as read_file;
use crate::crew::{Crew, Start};
use crate::ended::Ended;
use crate::failure::Result;
use crate::halt::{self, Halt, wrong};
use crate::out;
use crate::rack_args::packets;
use rackmem::Rack;
use rackmem_txn::transactions::Kind;
use rackmem_txn::{
    Counts, Delegated, Done, Engine, Finding, Layout, Locks, Objects, OneLock, Plan, RackLock,
    Remember, Report, Tally, check, drive, drive_since, load, load_for,
};
use serde_json::{Value, json};
use std::io::BufRead;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long loading, or a check, may take beside the run itself.
const PATIENCE: Duration = Duration::from_secs(600);
/// Lines of the rack's file beside those that all such racks have. A busy process answers late.
const LINES: &str = "patience = \"1m\"\n";

/// Starts the processes, and has them do all of it; nothing if the user wants the end.
pub fn run(task: &Task<'_>) -> Result<Option<Played>> {
    match play(task) {
        Ok(played) => Ok(Some(played)),
        Err(Halt::Stopped) => Ok(None),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

fn play(task: &Task<'_>) -> halt::Played<Played> {
    let (rack, stop) = (&task.args.rack, &task.stop);
    let members = task.args.copies.map(|_| Folder::new()).transpose()?;
    let more = members.as_ref().map(copies::lines).unwrap_or_default();
    let histories = task.args.judge.then(Histories::new).transpose()?;
    let lines = format!("{LINES}{}{more}", rack.fabric_of_processes()?);
    let start = Start {
        rack,
        lines: &lines,
        member: &arguments,
        patience: PATIENCE + Duration::from_secs(task.args.seconds),
        next: "see its message above; without --processes the nodes are threads",
    };
    let mut crew = Crew::start(&start, stop)?;
    let began = Instant::now();
    let watcher = Watcher::new(task, "loading, in processes");
    let lost = loading::run(&mut crew, task.args, stop)?;
    drop(watcher);
    let loading = began.elapsed();
    let watcher = Watcher::new(task, "running, in processes");
    let (ran, mut survived) = kills::run(&mut crew, task.args, histories.as_ref(), stop)?;
    drop(watcher);
    let (done, packets) = together(&ran)?;
    let counts = done.tally.counts();
    let (orders, payments, delivered) = (counts.orders, counts.payments, counts.delivered);
    let watcher = Watcher::new(task, "checking all rows");
    let first = crew.living().first().copied().unwrap_or_default();
    crew.tell(first, &format!("check {orders} {payments} {delivered}"))?;
    let checked = crew.answer(first, stop)?;
    drop(watcher);
    let report = findings(&checked["findings"]);
    let report = report.ok_or_else(|| wrong("a node does not say what it has found"))?;
    survived.gap = ran.iter().map(gap).max().unwrap_or_default();
    survived.counted = counts_of(&checked["counted"]);
    if let Some(counted) = survived.counted {
        // Who has died while the database was loaded has done nothing.
        kills::compare(counts, counted, !survived.killed.is_empty())?;
    }
    let killed: Vec<usize> = survived.killed.iter().map(|it| it.0).collect();
    let killed = [killed, lost.clone()].concat();
    survived.lost = lost;
    let judged = histories.map(|it| it.judge(rack.nodes, &killed));
    let judged = judged.transpose()?;
    let engine = match task.args.engine {
        EngineArg::Locks => Locks::NAME,
        EngineArg::Objects => Objects::NAME,
        EngineArg::Delegate => Delegated::NAME,
        EngineArg::OneLock => OneLock::<RackLock>::NAME,
    };
    Ok(Played {
        engine,
        loading,
        done,
        packets,
        report,
        judged,
        survived: task.args.copies.map(|_| survived),
    })
}

/// What this process was asked for, as a node.
fn arguments(file: &Path, node: usize) -> Vec<String> {
    let own = std::env::args().skip(1).filter(|it| it != "--json");
    let (file, node) = (file.to_string_lossy(), node.to_string());
    let more = ["--member", &file, "--as-node", &node].map(String::from);
    own.chain(more).collect()
}

/// What all have done, and the packets of all.
fn together(ran: &[Value]) -> halt::Played<(Done, u64)> {
    let (mut tally, mut time, mut packets) = (Tally::default(), Duration::ZERO, 0);
    for said in ran {
        let one = tally_of(&said["tally"]);
        tally.add(one.ok_or_else(|| wrong(format!("a node says {said}")))?);
        let seconds = said["seconds"].as_f64().unwrap_or_default();
        time = time.max(Duration::from_secs_f64(seconds.max(0.0)));
        packets += said["packets"].as_u64().unwrap_or_default();
    }
    Ok((Done { tally, time }, packets))
}

/// One node: it does what it is told, and ends when the process that has started it does.
pub fn member(task: &Task<'_>, (file, node): (&Path, usize), layout: Layout) -> Result<Ended> {
    let told = commands();
    let mut config = read_file(file)?;
    task.args.rack.wires.apply_faults(&mut config);
    if let Some(owners) = task.owners(&layout) {
        config = config.guests(owners);
    }
    let rack = Rack::join(&config, node)?;
    let nodes = [rack.node(node)];
    if task.args.copies.is_some() {
        copies::await_members(&nodes[0])?;
    }
    match task.args.engine {
        EngineArg::Locks => {
            let engine = copies::locks(task.args, &nodes, layout)?;
            serve(task, &rack, &engine, &told)
        }
        EngineArg::Objects => {
            let engine = Objects::new(&nodes, layout).map_err(failure)?;
            serve(task, &rack, &engine, &told)
        }
        EngineArg::Delegate => {
            let engine = Delegated::new(&nodes, layout).map_err(failure)?;
            serve(task, &rack, &engine, &told)
        }
        EngineArg::OneLock => {
            let engine = OneLock::new(&nodes, layout).map_err(failure)?;
            serve(task, &rack, &engine, &told)
        }
    }
}

/// Lines of standard input, which closes when that process is gone, however it has ended.
fn commands() -> Receiver<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines();
        for line in lines.map_while(std::result::Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
        std::process::exit(1);
    });
    told
}

fn serve<E: Engine>(
    task: &Task<'_>,
    rack: &Rack,
    engine: &E,
    told: &Receiver<String>,
) -> Result<Ended> {
    let watcher = Watcher::new(task, "");
    for line in told {
        let mut words = line.split(' ');
        let answer = match words.next() {
            Some("load") => {
                out::line(loading::begins());
                load(engine, task.args.seed, &watcher).map_err(failure)?;
                json!({"loaded": true})
            }
            Some("load-for") => {
                let home = words.next().and_then(|it| it.parse().ok()).unwrap_or(0);
                load_for(engine, home, task.args.seed, &watcher).map_err(failure)?;
                json!({"loaded": true})
            }
            Some("run") => {
                let folder = line.strip_prefix("run ").map(Path::new);
                run_terminals(task, rack, engine, folder)?
            }
            Some("check") => {
                let mut next = || words.next().and_then(|it| it.parse().ok()).unwrap_or(0);
                let counts = Counts {
                    orders: next(),
                    payments: next(),
                    delivered: next(),
                };
                let counted = engine.counted(0).map_err(failure)?;
                let done = counted.filter(|_| task.args.kill.is_some());
                let report = check(engine, &done.unwrap_or(counts)).map_err(failure)?;
                let found = |it: &Finding| json!({"broken": it.broken, "first": it.first});
                let findings: Vec<_> = report.findings().iter().map(found).collect();
                let counted = counted.map(|it| [it.orders, it.payments, it.delivered]);
                json!({"findings": findings, "counted": counted})
            }
            _ => json!({}),
        };
        out::line(answer);
    }
    Ok(Ended::Done)
}

/// Has the terminals run, and their history written into a folder.
fn run_terminals<E: Engine>(
    task: &Task<'_>,
    rack: &Rack,
    engine: &E,
    folder: Option<&Path>,
) -> Result<Value> {
    let watcher = Watcher::new(task, "");
    let (before, gap, plan) = (packets(rack), Gap::new(&watcher), task.plan());
    let done = match folder {
        None => drive(engine, &plan, &gap).map_err(failure)?,
        Some(folder) => {
            let remember = Remember {
                deeds: plan.deeds,
                outlives: task.args.kill.is_some(),
            };
            let id = usize::from(engine.nodes()[0].id());
            let recorder = recorder(folder, id, remember, &gap)?;
            // What is in the file is not kept here as well.
            let plan = Plan { deeds: 0, ..plan };
            let (done, error) = drive_since(engine, &plan, &recorder, recorder.began());
            if let Some(error) = error {
                return Err(failure(error));
            }
            let written = recorder.finish();
            written.map_err(|error| histories::broken(folder, &error))?;
            done
        }
    };
    Ok(json!({
        "tally": tally(&done.tally),
        "seconds": done.time.as_secs_f64(),
        "packets": packets(rack) - before,
        "gap": gap.longest().as_secs_f64(),
    }))
}

fn gap(said: &Value) -> Duration {
    let seconds = said["gap"].as_f64().unwrap_or_default();
    Duration::from_secs_f64(seconds.max(0.0))
}

fn counts_of(said: &Value) -> Option<Counts> {
    Some(Counts {
        orders: said[0].as_u64()?,
        payments: said[1].as_u64()?,
        delivered: said[2].as_u64()?,
    })
}

fn findings(said: &Value) -> Option<Report> {
    let finding = |it: &Value| {
        Some(Finding {
            broken: it["broken"].as_u64()?,
            first: it["first"].as_str().map(String::from),
        })
    };
    let findings: Option<Vec<_>> = said.as_array()?.iter().map(finding).collect();
    findings.map(Report::of_findings)
}

fn tally(tally: &Tally) -> Value {
    let rows = Kind::ALL.map(|(kind, ..)| {
        let row = tally.of(kind);
        json!({
            "committed": row.committed,
            "rolled_back": row.rolled_back,
            "skipped": row.skipped,
            "aborts": row.aborts,
            "times": row.times().collect::<Vec<_>>(),
        })
    });
    json!({"rows": rows, "delivered": tally.delivered})
}

fn tally_of(said: &Value) -> Option<Tally> {
    let mut tally = Tally::default();
    tally.delivered = said["delivered"].as_u64()?;
    for ((kind, ..), of) in Kind::ALL.into_iter().zip(said["rows"].as_array()?) {
        let row = tally.row(kind);
        row.committed = of["committed"].as_u64()?;
        row.rolled_back = of["rolled_back"].as_u64()?;
        row.skipped = of["skipped"].as_u64()?;
        for (sum, aborts) in row.aborts.iter_mut().zip(of["aborts"].as_array()?) {
            *sum = aborts.as_u64()?;
        }
        for time in of["times"].as_array()? {
            row.add_times(time[0].as_u64()?, time[1].as_u64()?);
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_has_done_is_told() {
        let mut one = Tally::default();
        one.delivered = 7;
        for (nth, (kind, ..)) in (1..).zip(Kind::ALL) {
            let row = one.row(kind);
            row.committed = nth;
            row.aborts = [nth, 2 * nth, 3 * nth];
            row.took(Duration::from_micros(nth * 100));
        }
        let same = tally_of(&tally(&one)).expect("a tally");
        assert_eq!(same.counts(), one.counts());
        for (kind, ..) in Kind::ALL {
            let (is, was) = (same.of(kind), one.of(kind));
            assert_eq!((is.committed, is.aborts), (was.committed, was.aborts));
            assert_eq!(is.within(50.0), was.within(50.0));
        }
        assert!(tally_of(&json!({"rows": []})).is_none());
    }
}
