//! This process as one node of a rack of processes.

use super::{ServeArgs, listen};
use crate::commands::load;
use crate::ended::Ended;
use crate::failure::Result;
use crate::fence::FenceArgs;
use crate::stop::Stop;
use crate::store;
use crate::watch::{self, Over, Watch};
use crate::wire_args::WireArgs;
use rackmem::Rack;
use rackmem::membership::Role;
use rackmem_kv::Server;
use std::net::SocketAddr;
use std::path::Path;

/// Which node, and where its clients connect.
pub struct Place<'a> {
    pub file: &'a Path,
    pub number: usize,
    pub addr: SocketAddr,
    pub fence: FenceArgs,
}

pub fn run(place: &Place<'_>, serve: &ServeArgs, wires: &WireArgs, json: bool) -> Result<Ended> {
    let &Place {
        number,
        addr,
        fence,
        ..
    } = place;
    let role = Role::Node(number as u16);
    let mut config = load(place.file)?;
    wires.apply(&mut config);
    let stop = Stop::on_signals()?;
    let Some(rack) = fence.join(&stop, || Rack::join(&config, number))? else {
        return Ok(Ended::Interrupted);
    };
    let node = rack.try_node(number)?;
    let opened = store::open_when_ready(&node, serve.buckets, &stop);
    if opened.is_err() && rack.is_fenced() {
        return fence.go_on(role, json, &[], || drop(rack));
    }
    let Some(store) = opened? else {
        return Ok(Ended::Interrupted);
    };
    let servers = vec![{
        let config = serve.config(&store, addr);
        listen::bind(store.clone(), config)?
    }];
    let (nodes, mode) = (config.nodes.len(), config.mode().name());
    let what = format!("node {number} of {nodes}, {mode} mode");
    listen::announce(&servers, &what, json);
    if Watch::new(&rack, json).of_store(&store).wait(&stop) == Over::Fenced {
        // Clients find it where it was.
        let addr = servers.first().map_or(addr, Server::local_addr);
        let again = ["--listen".to_owned(), addr.to_string()];
        return fence.go_on(role, json, &again, || {
            listen::shutdown(servers);
            drop(rack);
        });
    }
    listen::shutdown(servers);
    drop(store);
    let membership = &config.membership;
    watch::leave(rack, role, membership.can_change(), membership.lease);
    Ok(Ended::Interrupted)
}
