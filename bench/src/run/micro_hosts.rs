//! `bench micro --hosts`: the same workload on a rack of hosts: a process and a network namespace
//! each, packets of 1500 bytes through the switch, in user space or in the kernel (Figs. 9 and 10
//! of the Concordia paper).

use super::micro::{BLOCK, CACHE, Options};
use super::micro_member::Part;
use super::{BenchError, Progress, Result};
use crate::report::Report;
use crate::system::System;
use rackmem_hosts::rack::{HostRack, Plan, Switch, Work};
use rackmem_hosts::{Hosts, Place};
use std::path::PathBuf;
use std::process::Stdio;

/// Bytes of memory each node gives: allocators take whole chunks of it, but touch little.
const MEMORY: usize = 1 << 30;

/// Where to run it.
#[derive(Clone, Debug)]
pub struct Where {
    /// The command `rackmem`, which hosts run.
    pub program: PathBuf,
    /// The switches to measure, in mode `switch`.
    pub switches: Vec<Switch>,
}

/// Runs every case on hosts of its own.
pub fn run(
    options: &Options,
    place: &Where,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    Hosts::probe().map_err(explain)?;
    for &sharing in &options.sharing {
        let mut baseline: Option<String> = None;
        for (mode, switch) in variants(options, place) {
            let case = name(options, mode, &switch, sharing);
            progress(&case);
            let parts = once(options, place, mode, &switch, sharing)?;
            let Figures { rate, at_home } = Figures::of(&parts)?;
            match &baseline {
                Some(baseline) => report.add_against(&case, rate, "ops/s", baseline)?,
                None => report.add(&case, rate, "ops/s")?,
            }
            report.add(&format!("{case}/home-agent-packets"), at_home, "per op")?;
            baseline.get_or_insert(case);
        }
    }
    Ok(())
}

/// The strongest baseline first, and a row for every switch.
fn variants(options: &Options, place: &Where) -> Vec<(System, Switch)> {
    let mut modes = options.modes.clone();
    modes.retain(|&mode| mode != System::Delegate);
    modes.sort_by_key(|&mode| mode != System::HomeOnly);
    let of = |mode: System| match mode {
        System::Switch => place.switches.clone(),
        _ => vec![Switch::None],
    };
    let all = modes.into_iter();
    all.flat_map(|mode| of(mode).into_iter().map(move |switch| (mode, switch)))
        .collect()
}

fn name(options: &Options, mode: System, switch: &Switch, sharing: u8) -> String {
    let kind = match switch {
        Switch::None => String::new(),
        Switch::User => "-user".into(),
        Switch::Xdp(mode) => format!("-xdp-{mode}"),
    };
    let Options {
        nodes,
        threads,
        reads,
        locality,
        ..
    } = options;
    let mode = mode.name();
    format!(
        "hosts/{mode}{kind}/nodes-{nodes}/threads-{threads}/sharing-{sharing}/reads-{reads}/locality-{locality}"
    )
}

#[derive(Clone, Copy)]
struct Figures {
    /// Operations a second of all nodes.
    rate: f64,
    /// Packets at home agents an operation.
    at_home: f64,
}

impl Figures {
    fn of(parts: &[Part]) -> Result<Figures> {
        let sum = |of: fn(&Part) -> u64| parts.iter().map(of).sum::<u64>();
        let errors = sum(|part| part.errors);
        if errors > 0 {
            return Err(BenchError::Missing(format!("{errors} operations failed")));
        }
        Ok(Figures {
            rate: parts.iter().map(|part| part.per_second).sum(),
            at_home: sum(|part| part.at_home) as f64 / sum(|part| part.operations).max(1) as f64,
        })
    }
}

fn once(
    options: &Options,
    place: &Where,
    mode: System,
    switch: &Switch,
    sharing: u8,
) -> Result<Vec<Part>> {
    let plan = Plan {
        switch: switch.clone(),
        work: Work::Nothing,
        members: false,
        settings: format!(
            "mode = \"{}\"\nblock_size = {BLOCK}\ncache = {CACHE}\nmemory = {MEMORY}\n",
            mode.mode().name()
        ),
        ..Plan::new(&place.program)
    };
    let rack =
        HostRack::start(Hosts::start(options.nodes).map_err(explain)?, &plan).map_err(explain)?;
    let members: Vec<_> = (0..options.nodes)
        .map(|host| member(&rack, (options, mode), place, host, sharing).spawn())
        .collect::<std::io::Result<_>>()?;
    let mut parts = Vec::new();
    for (host, member) in members.into_iter().enumerate() {
        let output = member.wait_with_output()?;
        let part = output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout));
        let Some(Ok(part)) = part else {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(BenchError::Missing(format!("host {host} failed: {said}")));
        };
        parts.push(part);
    }
    rack.tear_down().map_err(explain)?;
    Ok(parts)
}

/// The command of one host.
fn member(
    rack: &HostRack,
    (options, system): (&Options, System),
    place: &Where,
    host: usize,
    sharing: u8,
) -> std::process::Command {
    let mut command = rack.hosts().command(Place::Host(host), &place.program);
    command
        .args([
            "--json",
            "bench",
            "micro",
            "--modes",
            system.name(),
            "--rack",
        ])
        .arg(rack.file());
    for (option, value) in [
        ("--node", host as u64),
        ("--threads", options.threads as u64),
        ("--sharing", sharing.into()),
        ("--reads", options.reads.into()),
        ("--locality", options.locality.into()),
        ("--duration", options.duration.as_millis() as u64),
    ] {
        command.args([option, &value.to_string()]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn explain(error: rackmem_hosts::Error) -> BenchError {
    BenchError::Missing(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_a_row_and_the_baseline_comes_first() {
        let place = Where {
            program: "rackmem".into(),
            switches: vec![Switch::User, Switch::Xdp("skb".into())],
        };
        let options = Options {
            modes: vec![System::Switch, System::Directory, System::HomeOnly],
            ..Options::default()
        };
        let names: Vec<String> = variants(&options, &place)
            .iter()
            .map(|(mode, switch)| name(&options, *mode, switch, 20))
            .map(|name| name.split('/').nth(1).unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            names,
            ["home-only", "switch-user", "switch-xdp-skb", "directory"]
        );
    }

    #[test]
    fn figures_of_all_nodes_are_one() {
        let part = |node, errors| Part {
            node,
            operations: 100,
            per_second: 50.0,
            at_home: 30,
            errors,
        };
        let figures = Figures::of(&[part(0, 0), part(1, 0)]).unwrap();
        assert_eq!((figures.rate, figures.at_home), (100.0, 0.3));
        assert!(Figures::of(&[part(0, 0), part(1, 2)]).is_err());
    }
}
