//! `rackmem node`: this process as one node, which gives its memory and its directory to the rack.

use super::{load, soak};
use crate::ended::Ended;
use crate::failure::Result;
use crate::fence::FenceArgs;
use crate::rack_args::node;
use crate::watch::{self, Over, Watch};
use crate::watching::MetricsArgs;
use crate::wire_args::WireArgs;
use crate::{figures, out, stop::Stop};
use clap::Args;
use rackmem::diagnostics::NodeMetrics;
use rackmem::membership::Role;
use rackmem::{Config, Rack, Size};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem node --rack rack.toml --node 1                 contribute memory to the rack
  rackmem node --rack rack.toml --node 1 --stats 5       print metrics every five seconds
  rackmem --json node --rack rack.toml --node 1 --stats 5
  rackmem node --rack rack.toml --node 1 --metrics 127.0.0.1:9400          for Prometheus: /metrics
  rackmem node --rack rack.toml --node 1 --kernel-reads eth0               the kernel answers reads of objects (root)
  rackmem node --rack rack.toml --node 1 --loss 0.01 --pcap node1.pcap      lose packets, capture for Wireshark

With a `membership` in the file members may die and return; each change prints a line.
`rackmem switch --help` shows a rack.toml. `rackmem kv --rack` runs a node that also serves the store.";

/// Options of `rackmem node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Read the rack's description from FILE
    #[arg(long, value_name = "FILE")]
    rack: PathBuf,
    /// Run as node N of the rack, counted from 0
    #[arg(long, value_name = "N", value_parser = node)]
    node: usize,
    /// Print metrics every SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    stats: Option<u64>,
    /// Let the kernel answer reads of what this node has at IFACE, IFACE/native or IFACE/skb
    #[arg(long, value_name = "IFACE")]
    kernel_reads: Option<String>,
    /// Let the kernel invalidate and give this node's cached copies, too (with --kernel-reads)
    #[arg(long)]
    kernel_cache: bool,
    /// Hold locks and report them, for `rackmem soak --locks`
    #[arg(long, hide = true)]
    hold_locks: bool,
    /// Use lines with copies and report it, for `rackmem soak --replicated`
    #[arg(long, value_name = "WORK", hide = true)]
    use_copies: Option<soak::copies::Work>,
    /// Use bounded memory and report it, for `rackmem soak --bounded`
    #[arg(long, value_name = "WORK", hide = true)]
    use_bounded: Option<soak::bounded::BoundedWork>,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    fence: FenceArgs,
    #[command(flatten)]
    wires: WireArgs,
}

/// Serves until told to stop.
pub fn run(args: &NodeArgs, json: bool) -> Result<Ended> {
    let mut config = load(&args.rack)?;
    args.wires.apply(&mut config);
    if let Some(interface) = &args.kernel_reads {
        config.set_kernel_reads(interface)?;
    }
    if args.kernel_cache {
        config.set_kernel_cache()?;
    }
    let socket = args.metrics.bind()?;
    let stop = Stop::on_signals()?;
    let join = || Rack::join(&config, args.node);
    let Some(rack) = args.fence.join(&stop, join)? else {
        return Ok(Ended::Interrupted);
    };
    let addr = config.nodes[args.node];
    if json {
        out::line(json!({"node": args.node, "address": addr.to_string()}));
    } else {
        let (node, mode) = (args.node, config.mode().name());
        let fabric = config.fabric.name();
        out::line(format!(
            "node {node}: in the rack on {addr} ({fabric}), mode {mode}. Ctrl-C stops it."
        ));
    }
    tell_kernel_reads(&rack, &config, json);
    if args.hold_locks {
        soak::locks::work(&rack.node(args.node), &stop)?;
        return Ok(Ended::Interrupted);
    }
    if let Some(work) = args.use_copies {
        soak::copies::work(&rack.node(args.node), work, &stop)?;
        return Ok(Ended::Interrupted);
    }
    if let Some(work) = &args.use_bounded {
        soak::bounded::work(&rack.node(args.node), work, &stop)?;
        return Ok(Ended::Interrupted);
    }
    let watched = socket.serve(rack, json)?;
    let rack = watched.rack();
    let mut watch = Watch::new(rack, json);
    let over = match args.stats {
        None => watch.wait(&stop),
        Some(seconds) => report(rack, &mut watch, &stop, Duration::from_secs(seconds), json),
    };
    let rack = watched.end();
    let membership = &config.membership;
    let role = Role::Node(args.node as u16);
    if over == Over::Fenced {
        return args.fence.go_on(role, json, &[], || drop(rack));
    }
    watch::leave(rack, role, membership.can_change(), membership.lease);
    Ok(Ended::Interrupted)
}

/// Where the kernel answers reads of objects, and what that costs.
pub fn tell_kernel_reads(rack: &Rack, config: &Config, json: bool) {
    let (Some(place), Some(reads)) = (rack.kernel_reads(), config.kernel_reads()) else {
        return;
    };
    let (mode, memory) = (&place.mode, Size(reads.memory));
    let interface = &reads.interface;
    match json {
        true => out::line(json!({
            "kernel_reads": {
                "interface": interface,
                "mode": mode,
                "memory": reads.memory,
                "no_blocks": place.no_blocks,
                "no_copies": place.no_copies,
            },
            "kernel_cache": config.kernel_cache(),
        })),
        false => {
            out::line(format!(
                "objects are read in the kernel at {interface}, {mode}; {memory} of memory is taken for them"
            ));
            if let Some(why) = &place.no_blocks {
                out::line(format!("blocks are not given there: {why}"));
            }
            if config.kernel_cache() {
                out::line("cached copies are invalidated there, too");
                if let Some(why) = &place.no_copies {
                    out::line(format!("they are not given there: {why}"));
                }
            }
        }
    }
}

fn report(rack: &Rack, watch: &mut Watch<'_>, stop: &Stop, every: Duration, json: bool) -> Over {
    let mut before = NodeMetrics::default();
    loop {
        if let Some(over) = watch.sleep(every, stop) {
            return over;
        }
        let Some(now) = rack.metrics().nodes.into_iter().next() else {
            return watch.wait(stop);
        };
        if json {
            out::line(figures::node(&now));
        } else {
            out::line(line(&before, &now, every));
        }
        before = now;
    }
}

fn line(before: &NodeMetrics, now: &NodeMetrics, every: Duration) -> String {
    let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 / every.as_secs_f64();
    format!(
        "{:>10.0} packets/s  {:>10.0} coherence events/s  {:>6} chunks  {} retransmissions",
        rate(now.received.total(), before.received.total()),
        rate(now.events.total(), before.events.total()),
        now.chunks,
        now.retransmissions,
    )
}
