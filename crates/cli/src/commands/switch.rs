//! `rackmem switch`: the switch program behind a UDP socket, or in memory shared with the nodes.

use super::load;
use crate::ended::Ended;
use crate::failure::Result;
use crate::watch::{self, Watch};
use crate::wire_args::WireArgs;
use crate::{figures, out, size, stop::Stop};
use clap::Args;
use rackmem::membership::Role;
use rackmem::{Config, Rack, Resources};
use rackmem_bench::table::{Align, Table};
use serde_json::json;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
A rack.toml for this machine; for several, give their addresses:
  nodes  = [\"127.0.0.1:7401\", \"127.0.0.1:7402\"]   # agents, by node number
  switch = \"127.0.0.1:7400\"                       # leave out for a rack without a switch
  fabric = \"shm\"                                # all on this host, by shared memory; left out: UDP
  block_size = 4096
  cache  = 268435456                              # bytes, each node
  memory = 1073741824                             # bytes, each node
  membership = \"dir:/path\"                       # or \"etcd:http://host:2379\"; left out, nobody may die
  lease_ms = 1000                                 # who is silent for so long is declared dead

Examples:
  rackmem switch --rack rack.toml                 serve until Ctrl-C
  rackmem switch --rack rack.toml --resources     stages, arrays and bytes it asks of an ASIC";

/// Options of `rackmem switch`.
#[derive(Debug, Args)]
pub struct SwitchArgs {
    /// The file that describes the rack
    #[arg(long, value_name = "FILE")]
    rack: PathBuf,
    /// Print what the switch program asks of an ASIC, and end
    #[arg(long)]
    resources: bool,
    #[command(flatten)]
    wires: WireArgs,
}

/// Serves until told to stop.
pub fn run(args: &SwitchArgs, json: bool) -> Result<Ended> {
    let mut config = load(&args.rack)?;
    args.wires.apply(&mut config);
    let stop = Stop::on_signals()?;
    let rack = Rack::serve_switch(&config)?;
    if args.resources {
        if let Some(switch) = rack.switch() {
            print_resources(&switch.resources(), json);
        }
        return Ok(Ended::Done);
    }
    announce(&config, json);
    Watch::new(&rack, json).wait(&stop);
    let metrics = rack.metrics();
    let membership = &config.membership;
    watch::leave(
        rack,
        Role::Switch,
        membership.can_change(),
        membership.lease,
    );
    if let Some(switch) = metrics.switch {
        if json {
            out::line(json!({"switch": figures::switch(&switch)}));
        } else {
            let (packets, entries) = (switch.received.total(), switch.entries);
            eprintln!("switch: stopped after {packets} packets, owning {entries} entries");
        }
    }
    Ok(Ended::Interrupted)
}

fn announce(config: &Config, json: bool) {
    let addr = config.switch.map(|addr| addr.to_string());
    let nodes = config.nodes.len();
    if json {
        out::line(json!({"switch": addr, "nodes": nodes}));
    } else {
        let addr = addr.unwrap_or_default();
        out::line(format!(
            "switch: serving {nodes} nodes on {addr} (UDP). Ctrl-C ends it."
        ));
    }
}

fn print_resources(resources: &Resources, json: bool) {
    if json {
        let array = |&(name, stage, items, bytes): &(&str, u8, usize, usize)| json!({"array": name, "stage": stage, "items": items, "bytes_an_item": bytes});
        let arrays: Vec<_> = resources.arrays.iter().map(array).collect();
        let (stages, entries, bytes) = (resources.stages, resources.entries, resources.bytes);
        out::line(json!({"stages": stages, "entries": entries, "bytes": bytes, "arrays": arrays}));
        return;
    }
    out::table(&resource_table(resources));
}

fn resource_table(resources: &Resources) -> Table {
    let title = format!(
        "{} stages, {} directory entries, {} of register memory",
        resources.stages,
        resources.entries,
        size::show(resources.bytes as u64)
    );
    let mut table = Table::new(
        &title,
        &[
            ("array", Align::Left),
            ("stage", Align::Right),
            ("items", Align::Right),
            ("bytes an item", Align::Right),
        ],
    );
    for &(name, stage, items, bytes) in &resources.arrays {
        let cells = [stage.to_string(), items.to_string(), bytes.to_string()];
        table.row(&[name, &cells[0], &cells[1], &cells[2]]);
    }
    table
}
