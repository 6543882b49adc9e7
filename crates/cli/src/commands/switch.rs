//! `rackmem switch`: the switch program behind a UDP socket, or in memory shared with the nodes.

use super::load;
use super::resources::{self, ResourceArgs};
use super::switch_live::{self, Live};
use crate::ended::Ended;
use crate::failure::Result;
use crate::fence::FenceArgs;
use crate::watch::{self, Over, Watch};
use crate::watching::MetricsArgs;
use crate::wire_args::WireArgs;
use crate::{figures, out, stop::Stop};
use clap::Args;
use rackmem::diagnostics::KernelPlace;
use rackmem::membership::Role;
use rackmem::{Config, Fabric, KernelMode, KernelSwitch, Rack};
use serde_json::json;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
A rack.toml for one machine; for several machines use their addresses:
  nodes  = [\"127.0.0.1:7401\", \"127.0.0.1:7402\"]   # agents, by node number
  switch = \"127.0.0.1:7400\"                       # omit for a rack without a switch
  fabric = \"shm\"                                # all processes on one host; omitted: UDP
  block_size = 4096
  cache  = \"256M\"                                # per node: bytes, or a number and K, M, G or T
  memory = \"1G\"                                  # per node
  membership = \"dir:/path\"                       # or \"etcd:http://host:2379\"; omitted: no member may die
  lease = \"1s\"                                   # a member without a heartbeat for this long is declared dead

Examples:
  rackmem switch --rack rack.toml                 serve until Ctrl-C
  rackmem switch --rack rack.toml --xdp eth0 eth1 the same in the kernel (docs/xdp.md)
  rackmem switch --rack rack.toml --metrics 127.0.0.1:9399
  rackmem switch --resources                      its ASIC resources, beside the paper's
  rackmem switch --resources --ways 10 --sets 65536";

/// Options of `rackmem switch`.
#[derive(Debug, Args)]
pub struct SwitchArgs {
    /// Read the rack's description from FILE
    #[arg(long, value_name = "FILE", required_unless_present = "resources")]
    rack: Option<PathBuf>,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Load the switch program into the kernel (XDP) on these interfaces; needs root
    #[arg(long, value_name = "IFACE", num_args = 1.., conflicts_with = "resources")]
    xdp: Vec<String>,
    /// Attach in MODE: native (the driver), skb (the network stack) or auto
    #[arg(long, value_name = "MODE", default_value = "auto", requires = "xdp")]
    xdp_mode: KernelMode,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    fence: FenceArgs,
    #[command(flatten)]
    wires: WireArgs,
}

/// Serves until told to stop.
pub fn run(args: &SwitchArgs, json: bool) -> Result<Ended> {
    let config = args.rack.as_deref().map(load).transpose()?;
    if args.resources.resources {
        resources::print(&args.resources, config.as_ref(), json);
        return Ok(Ended::Done);
    }
    // Without --resources, clap asks for it.
    let Some(mut config) = config else {
        return Ok(Ended::Done);
    };
    args.wires.apply(&mut config);
    let socket = args.metrics.bind()?;
    let stop = Stop::on_signals()?;
    let kernel = KernelSwitch {
        interfaces: args.xdp.clone(),
        mode: args.xdp_mode,
    };
    let serve = || match args.xdp.is_empty() {
        true => Rack::serve_switch(&config),
        false => Rack::serve_switch_in_kernel(&config, &kernel),
    };
    let Some(rack) = args.fence.join(&stop, serve)? else {
        return Ok(Ended::Interrupted);
    };
    let place = rack.switch().and_then(|switch| switch.kernel());
    announce(&config, place, json);
    let in_kernel = place.is_some();
    let watched = socket.serve(rack, json)?;
    let rack = watched.rack();
    let mut watch = Watch::new(rack, json);
    let over = if in_kernel {
        let mut live = Live::new(json);
        let over = loop {
            if let Some(over) = watch.sleep(switch_live::PERIOD, &stop) {
                break over;
            }
            rack.metrics()
                .switch
                .iter()
                .for_each(|switch| live.show(switch));
        };
        live.end();
        over
    } else {
        watch.wait(&stop)
    };
    let rack = watched.end();
    if over == Over::Fenced {
        return args.fence.go_on(Role::Switch, json, &[], || drop(rack));
    }
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

fn announce(config: &Config, place: Option<&KernelPlace>, json: bool) {
    if json {
        let addr = config.switch.map(|addr| addr.to_string());
        let (nodes, fabric) = (config.nodes.len(), config.fabric.name());
        let mut line = json!({"switch": addr, "nodes": nodes, "fabric": fabric});
        if let Some(place) = place {
            line["kernel"] = switch_live::place_json(place);
        }
        out::line(line);
    } else {
        out::line(format!("{} Ctrl-C stops it.", serving(config)));
        place
            .iter()
            .for_each(|place| out::line(switch_live::place(place)));
    }
}

/// How many nodes it serves, and how they reach it.
fn serving(config: &Config) -> String {
    let nodes = config.nodes.len();
    let addr = config.switch.map(|addr| addr.to_string());
    let addr = addr.unwrap_or_default();
    match config.fabric {
        Fabric::Shm => format!(
            "switch: serving {nodes} nodes by shared memory on this host ({addr} in the file is only its name)."
        ),
        _ => format!("switch: serving {nodes} nodes on {addr} (UDP)."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_names_the_fabric_that_nodes_reach_it_by() {
        let file = "nodes = ['127.0.0.1:7401']\nswitch = '127.0.0.1:7400'";
        let said = |more: &str| serving(&Config::parse(&format!("{file}\n{more}")).unwrap());
        let udp = said("");
        assert!(udp.contains("127.0.0.1:7400 (UDP)"), "{udp}");
        let shm = said("fabric = 'shm'");
        assert!(
            shm.contains("shared memory") && !shm.contains("UDP"),
            "{shm}"
        );
    }
}
