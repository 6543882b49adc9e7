//! This process as one node of a rack of processes.

use super::{ServeArgs, listen};
use crate::commands::load;
use crate::ended::Ended;
use crate::failure::Result;
use crate::stop::Stop;
use crate::store;
use crate::watch::{self, Watch};
use crate::wire_args::WireArgs;
use rackmem::Rack;
use rackmem::membership::Role;
use std::net::SocketAddr;
use std::path::Path;

pub fn run(
    file: &Path,
    number: usize,
    addr: SocketAddr,
    serve: &ServeArgs,
    wires: &WireArgs,
    json: bool,
) -> Result<Ended> {
    let mut config = load(file)?;
    wires.apply(&mut config);
    let stop = Stop::on_signals()?;
    let rack = Rack::join(&config, number)?;
    let node = rack.try_node(number)?;
    let Some(store) = store::open_when_ready(&node, serve.buckets, &stop)? else {
        return Ok(Ended::Interrupted);
    };
    let servers = vec![{
        let config = serve.config(&store, addr);
        listen::bind(store, config)?
    }];
    let (nodes, mode) = (config.nodes.len(), config.mode().name());
    let what = format!("node {number} of {nodes}, {mode} mode");
    listen::announce(&servers, &what, json);
    Watch::new(&rack, json).wait(&stop);
    listen::shutdown(servers);
    let membership = &config.membership;
    watch::leave(
        rack,
        Role::Node(number as u16),
        membership.can_change(),
        membership.lease,
    );
    Ok(Ended::Interrupted)
}
