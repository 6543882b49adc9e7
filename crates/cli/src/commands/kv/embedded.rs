//! All nodes in this process, one listener each.

use super::{ServeArgs, listen};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::rack_args::{FabricArg, RackArgs};
use crate::stop::Stop;
use crate::store::{self, AtNode};
use crate::watching::MetricsArgs;
use rackmem::{Durability, KvCopies, Node, Rack, check_kv_copies};
use rackmem_kv::{Server, ServerConfig, Store};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub fn run(
    rack_args: &RackArgs,
    serve: &ServeArgs,
    metrics: &MetricsArgs,
    json: bool,
) -> Result<Ended> {
    let socket = metrics.bind()?;
    serve.snapshots.check()?;
    let stop = Stop::on_signals()?;
    let copies = copies(serve)?;
    let rack = rack_args.build_with(|rack| match &serve.store {
        Some(folder) => rack.store(folder),
        None => rack,
    })?;
    let ports = ports(serve.port, rack.nodes().len())?;
    // Elsewhere a fetch costs no more than a connection.
    let here = (rack_args.fabric == FabricArg::Udp).then_some(Ipv4Addr::LOCALHOST.into());
    let places = Places {
        ports: &ports,
        links: here,
    };
    let started = match copies {
        None => {
            let open = |node| store::open(node, serve.buckets);
            start(&rack, serve, places, &stop, open)
        }
        Some(copies) => {
            check_kv_copies(copies.count, rack.nodes().len())?;
            let open = |node| store::open_copied(&node, copies, serve.buckets);
            start(&rack, serve, places, &stop, open)
        }
    }?;
    let Some((servers, save)) = started else {
        return Ok(Ended::Interrupted);
    };
    listen::announce(&servers, &rack_args.describe(), json);
    let watched = socket.serve(rack, json)?;
    stop.wait();
    listen::shutdown(servers);
    let saved = save();
    drop(watched.end());
    saved.map(|()| Ended::Interrupted)
}

/// The copies that the store is to have.
fn copies(serve: &ServeArgs) -> Result<Option<KvCopies>> {
    let durability = serve.durability.unwrap_or_default();
    let lacks = |what, next: &str| {
        Err(Failure::new(
            format!("--durability {durability} {what}"),
            next,
        ))
    };
    match (serve.copies, &serve.store) {
        _ if durability == Durability::Memory => Ok(serve.copies.map(KvCopies::from)),
        (None, _) => lacks("is about copies, and the store has none", "add --copies 3"),
        (_, None) => lacks("needs a folder for them", "add --store FOLDER"),
        (Some(count), Some(_)) => Ok(Some(KvCopies { count, durability })),
    }
}

/// Where servers listen.
#[derive(Clone, Copy)]
struct Places<'a> {
    /// For clients, by node.
    ports: &'a [u16],
    /// For each other, if they are to reach each other.
    links: Option<IpAddr>,
}

/// What is left to do with the store when its servers have ended.
type Save<'a> = Box<dyn FnOnce() -> Result<()> + 'a>;

/// Starts a server at every node, of the store that it opens. `None`: somebody wanted to stop
/// before.
fn start<'a, M: AtNode>(
    rack: &Rack,
    serve: &'a ServeArgs,
    places: Places<'_>,
    stop: &Stop,
    open: impl Fn(Node) -> Result<Store<M>>,
) -> Result<Option<(Vec<Server>, Save<'a>)>> {
    let first = open(rack.node(0).clone())?;
    if !serve.snapshots.load(&first, stop)? {
        return Ok(None);
    }
    let servers = bind_all(rack, serve, places, &first, open)?;
    Ok(Some((
        servers,
        Box::new(move || serve.snapshots.save(&first)),
    )))
}

fn bind_all<M: AtNode>(
    rack: &Rack,
    serve: &ServeArgs,
    Places { ports, links }: Places<'_>,
    first: &Store<M>,
    open: impl Fn(Node) -> Result<Store<M>>,
) -> Result<Vec<Server>> {
    let mut servers = Vec::with_capacity(ports.len());
    for (nth, (node, &port)) in rack.nodes().iter().zip(ports).enumerate() {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let opened = match nth {
            0 => Ok(first.clone()),
            _ => open(node.clone()),
        };
        let bound = opened.and_then(|store| {
            let tls = serve.secure.config(nth);
            let config = ServerConfig {
                tls,
                ..serve.config(&store, addr, links)
            };
            listen::bind(store, config)
        });
        match bound {
            Ok(server) => servers.push(server),
            Err(failure) => {
                listen::shutdown(servers);
                return Err(failure);
            }
        }
    }
    Ok(servers)
}

/// A port for each node: consecutive ones from the first, or any.
fn ports(first: u16, nodes: usize) -> Result<Vec<u16>> {
    let too_high = || {
        Failure::new(
            format!("{nodes} nodes do not fit the ports from {first} to 65535"),
            "choose a lower --port, or --port 0 for any free ones",
        )
    };
    (0..nodes)
        .map(|node| match first {
            0 => Ok(0),
            _ => u16::try_from(node)
                .ok()
                .and_then(|node| first.checked_add(node))
                .ok_or_else(too_high),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_one_another() {
        assert_eq!(ports(7379, 3).unwrap(), [7379, 7380, 7381]);
        assert_eq!(ports(0, 2).unwrap(), [0, 0]);
        assert_eq!(ports(65535, 1).unwrap(), [65535]);
        assert!(ports(65535, 2).is_err());
    }
}
