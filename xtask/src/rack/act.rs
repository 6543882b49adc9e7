//! What can be done with a rack that runs. The prompt and the command line share it.

use super::{place, text};
use crate::Failure;
use rackmem_hosts::rack::{HostRack, PORT};
use rackmem_hosts::{Place, address};
use std::process::Command;

const DEEDS: &[(&str, &str)] = &[
    (
        "in PLACE COMMAND...",
        "run a command in a host, or in the switch's place: in 0 redis-cli -p 7379",
    ),
    ("kill PLACE", "SIGKILL to all its processes"),
    ("start PLACE", "start again what was killed"),
    ("cut HOST", "pull its cable"),
    ("mend HOST", "put it in again"),
    (
        "members",
        "the members of the rack, and the age of each heartbeat",
    ),
    ("log PLACE", "what its process has written"),
    (
        "dump PLACE [N]",
        "the next N packets (default 20) at a host, or that the switch's bridge sees",
    ),
    ("where", "what is where"),
    ("help", "this"),
    ("down, quit", "take everything down"),
];

/// What comes after a deed.
pub enum Next {
    /// It is done; whether what it ran ended well.
    Ran(bool),
    /// The rack is to be taken down.
    Down,
}

pub fn print_help() {
    println!("Deeds, where PLACE is a host's number or `switch`:");
    for (deed, about) in DEEDS {
        println!("  {deed:<20} {about}");
    }
}

pub fn act(rack: &HostRack, words: &[&str]) -> Result<Next, Failure> {
    let done = |result: rackmem_hosts::Result<()>| result.map_err(text);
    match words {
        [] => {}
        ["help"] => print_help(),
        ["where"] => where_things_are(rack),
        ["down" | "quit" | "exit"] => return Ok(Next::Down),
        ["in", at, command @ ..] if !command.is_empty() => {
            return run_in(rack, place(at)?, command).map(Next::Ran);
        }
        ["kill", at] => {
            let killed = rack.kill(place(at)?).map_err(text)?;
            println!("{killed} processes killed");
        }
        ["start", at] => done(rack.restart(place(at)?))?,
        ["cut", host] => done(rack.hosts().cut(number(host)?))?,
        ["mend", host] => done(rack.hosts().mend(number(host)?))?,
        ["members"] => {
            let file = rack.file().display().to_string();
            let command = ["rackmem", "members", "--rack", &file];
            return run_in(rack, Place::Switch, &command).map(Next::Ran);
        }
        ["log", at] => {
            let log = rack.log(place(at)?);
            let said = std::fs::read_to_string(&log)
                .map_err(|error| format!("{}: {error}", log.display()))?;
            print!("{said}");
        }
        ["dump", at] => return dump(rack, place(at)?, "20"),
        ["dump", at, count] => return dump(rack, place(at)?, count),
        _ => {
            return Err(format!(
                "`{}` is no deed; `help` lists them",
                words.join(" ")
            ));
        }
    }
    Ok(Next::Ran(true))
}

fn dump(rack: &HostRack, at: Place, count: &str) -> Result<Next, Failure> {
    let device = if at == Place::Switch {
        "any"
    } else {
        rackmem_hosts::UPLINK
    };
    let port = PORT.to_string();
    let command = [
        "tcpdump", "-nn", "-c", count, "-i", device, "udp", "port", &port,
    ];
    run_in(rack, at, &command).map(Next::Ran)
}

fn number(word: &str) -> Result<usize, Failure> {
    match place(word)? {
        Place::Host(host) => Ok(host),
        Place::Switch => Err("the switch has a cable to every host: say which host's".into()),
    }
}

/// Runs a command in a place, with the terminal. It finds this rack's `rackmem` as such,
/// and its file in `RACKMEM_RACK`.
pub fn run_in(rack: &HostRack, at: Place, command: &[&str]) -> Result<bool, Failure> {
    let [program, args @ ..] = command else {
        return Err("no command".into());
    };
    let mut command: Command = rack.hosts().command(at, program);
    command.args(args).env("RACKMEM_RACK", rack.file());
    if let Some(folder) = program_folder(rack) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder).chain(std::env::split_paths(&path));
        if let Ok(all) = std::env::join_paths(all) {
            command.env("PATH", all);
        }
    }
    let status = command.status().map_err(|error| format!("ip: {error}"))?;
    Ok(status.success())
}

/// Where the `rackmem` is that the rack runs.
fn program_folder(rack: &HostRack) -> Option<std::path::PathBuf> {
    let line = rack
        .hosts()
        .places()
        .find_map(|place| rack.command_line(place))?;
    let program = line.split_whitespace().next()?;
    std::path::Path::new(program).parent().map(Into::into)
}

/// Says what is where and how to look at it.
pub fn where_things_are(rack: &HostRack) {
    let hosts = rack.hosts();
    println!("rack {}: {}", hosts.name(), rack.file().display());
    for place in hosts.places() {
        let runs = match rack.command_line(place) {
            Some(line) => line.split_whitespace().skip(2).take(1).collect(),
            None => "nothing".to_owned(),
        };
        let cable = match place {
            Place::Switch => "br0".to_owned(),
            Place::Host(host) => {
                format!("{} = {}", rackmem_hosts::UPLINK, rackmem_hosts::port(host))
            }
        };
        println!(
            "  {:<7} {:<12} {:<10} runs {runs:<8} ip netns exec {} sh",
            place.to_string(),
            address(place).to_string(),
            cable,
            hosts.namespace(place)
        );
    }
    println!("  logs    {}/*.log", hosts.folder().display());
}
