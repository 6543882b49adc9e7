//! `cargo xtask rack`: a rack of hosts on this machine, to look at and to break.

mod act;
mod options;

use crate::Failure;
use crate::workspace::{Workspace, cargo};
use crate::xdp;
use act::{Next, act, print_help, where_things_are};
use options::Options;
use rackmem_hosts::rack::{HostRack, Plan, Switch};
use rackmem_hosts::{Hosts, Place};
use std::io::{BufRead, Write};
use std::path::PathBuf;

pub const HELP: &str = "\
A rack of hosts on this machine: a network namespace each, one for the switch, cables of 1500 bytes MTU between them.
It takes root, `ip` and `ethtool`. Everything runs the `rackmem` of this checkout, which is built first.

  cargo xtask rack [OPTIONS]                  start a rack, then read what to do with it from the terminal
  cargo xtask rack [OPTIONS] -- COMMAND...    start it, run a command in host 0, take it down; exits with the command's code
  cargo xtask rack --keep [OPTIONS]           start it and leave it there; then, from any shell:
  cargo xtask rack DEED...                    one of the deeds below, on the rack that was kept
  cargo xtask rack list                       all racks of this machine
  cargo xtask rack cleanup                    remove what is left of racks whose owner was killed with its guard

Options:
  --hosts N            hosts, 1 to 32; 4 unless told
  --switch KIND        user: a process behind a UDP socket (unless told); xdp: a program in the kernel; none
  --xdp-mode MODE      native, skb or auto (unless told)
  --mode MODE          switch or home-only: the protocol; by the switch unless told
  --run WHAT           store: every host is a node that serves Redis' protocol on its 127.0.0.1:7379 (unless told);
                       node: every host is a node; nothing: hosts and switch only
  --fixed              members are fixed; unless told they may die and come back, by a folder that all hosts see
  --set LINE           a further line of rack.toml, such as --set lease_ms=500; as often as wanted
  --loss SHARE         share of packets that every member loses, such as 0.01
  --in PLACE           where COMMAND runs: a host's number, or switch
  --name NAME          of the rack, where there are several; `rack` unless told
  --debug              the debug build of rackmem

Examples:
  cargo xtask rack -- redis-cli -p 7379 set greeting hello
  cargo xtask rack --hosts 2 --switch none --mode directory
  cargo xtask rack --keep && cargo xtask rack kill 2 && cargo xtask rack members && cargo xtask rack down
";

/// `cargo xtask rack`.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    if arguments
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--help" || word == "-h")
    {
        println!("{HELP}");
        print_help();
        return Ok(true);
    }
    match arguments.first().map(String::as_str) {
        Some("list") => list(),
        Some("cleanup") => cleanup(),
        Some(word) if !word.starts_with('-') => deed(arguments),
        _ => start(workspace, &Options::parse(arguments)?),
    }
}

fn list() -> Result<bool, Failure> {
    for rack in rackmem_hosts::found().map_err(text)? {
        let owner = match (rack.stale, rack.owner) {
            (true, _) => "left over: `cargo xtask rack cleanup` removes it".to_owned(),
            (false, Some(owner)) => format!("until process {owner} ends"),
            (false, None) => "kept".to_owned(),
        };
        println!("{:<20} {:>2} hosts  {owner}", rack.name, rack.hosts);
    }
    Ok(true)
}

fn cleanup() -> Result<bool, Failure> {
    for name in rackmem_hosts::cleanup().map_err(text)? {
        println!("removed {name}");
    }
    Ok(true)
}

/// One deed on a rack that was kept.
fn deed(arguments: &[String]) -> Result<bool, Failure> {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut name = options::NAME;
    if words.get(1) == Some(&"--name")
        && let Some(given) = words.get(2)
    {
        name = given;
        words.drain(1..3);
    }
    let rack = HostRack::open(name).map_err(|error| {
        format!("{error}; `cargo xtask rack --keep` makes one, and `list` tells what there is")
    })?;
    match act(&rack, &words)? {
        Next::Down => rack.tear_down().map(|()| true).map_err(text),
        Next::Ran(good) => Ok(good),
    }
}

fn start(workspace: &Workspace, options: &Options) -> Result<bool, Failure> {
    // Before the build, which takes longer than to be told.
    Hosts::probe().map_err(text)?;
    let program = build(workspace, options)?;
    let hosts = Hosts::start_as(&options.name, options.hosts).map_err(|error| {
        format!("{error}; `cargo xtask rack list` tells what there is, `cleanup` removes what is left over")
    })?;
    let plan = Plan {
        switch: options.switch.clone(),
        work: options.work,
        settings: options.settings(),
        members: !options.fixed,
        ..Plan::new(program)
    };
    let rack = HostRack::start(hosts, &plan).map_err(text)?;
    if !options.command.is_empty() {
        let command: Vec<&str> = options.command.iter().map(String::as_str).collect();
        let good = act::run_in(&rack, options.at, &command)?;
        rack.tear_down().map_err(text)?;
        return Ok(good);
    }
    where_things_are(&rack);
    if options.keep {
        let name = options.name.clone();
        rack.keep().map_err(text)?;
        let named = if name == options::NAME {
            String::new()
        } else {
            format!(" --name {name}")
        };
        println!(
            "\nIt stays. `cargo xtask rack down{named}` takes it down; `cargo xtask rack --help` lists the other deeds."
        );
        return Ok(true);
    }
    println!(
        "\n`help` lists what can be done; the end of the input, `quit` or Ctrl-C takes everything down."
    );
    converse(&rack)?;
    rack.tear_down().map(|()| true).map_err(text)
}

/// Does what it is told, a line at a time.
fn converse(rack: &HostRack) -> Result<(), Failure> {
    let mut lines = std::io::stdin().lock().lines();
    loop {
        print!("rack> ");
        // A prompt that cannot be shown is no reason to end.
        let _ = std::io::stdout().flush();
        let Some(Ok(line)) = lines.next() else {
            println!();
            return Ok(());
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match act(rack, &words) {
            Ok(Next::Down) => return Ok(()),
            Ok(Next::Ran(_)) => {}
            Err(failure) => println!("{failure}"),
        }
    }
}

fn build(workspace: &Workspace, options: &Options) -> Result<PathBuf, Failure> {
    let mut words = vec!["build", "--quiet", "--package", "rackmem-cli"];
    let folder = if options.debug { "debug" } else { "release" };
    if !options.debug {
        words.push("--release");
    }
    // The same for every switch, where that can be: to go from one to another builds nothing anew.
    if xdp::can_be_built() || matches!(options.switch, Switch::Xdp(_)) {
        words.extend(["--features", "xdp"]);
    }
    println!("building rackmem ({folder})");
    let built = workspace.command(cargo()).args(&words).status();
    match built {
        Ok(status) if status.success() => Ok(workspace.target.join(folder).join("rackmem")),
        Ok(_) => Err("rackmem could not be built".into()),
        Err(error) => Err(format!("cargo did not start: {error}")),
    }
}

fn text(error: rackmem_hosts::Error) -> Failure {
    error.to_string()
}

fn place(word: &str) -> Result<Place, Failure> {
    word.parse().map_err(text)
}
