//! `--stay`: the demo's store, for whoever wants to look around in it.

use super::scene::Scene;
use crate::commands::kv::listen;
use crate::failure::Result;
use crate::store::NodeStore;
use rackmem_kv::{Server, ServerConfig};
use std::net::{Ipv4Addr, SocketAddr};

/// The port of node 0, if it is free, as with `rackmem kv`.
const FIRST_PORT: u16 = 7379;

/// Serves from every node until told to stop.
pub fn serve(scene: &Scene<'_>, json: bool) -> Result<()> {
    let mut servers = Vec::new();
    for (store, port) in scene.stores.iter().zip(FIRST_PORT..) {
        match bind(store, port).or_else(|_| bind(store, 0)) {
            Ok(server) => servers.push(server),
            Err(failure) => {
                listen::shutdown(servers);
                return Err(failure);
            }
        }
    }
    listen::announce(&servers, "try `get pkg:bash` and `get rank:libc6`", json);
    scene.stop.wait();
    listen::shutdown(servers);
    Ok(())
}

fn bind(store: &NodeStore, port: u16) -> Result<Server> {
    let config = ServerConfig {
        addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        ..ServerConfig::default()
    };
    listen::bind(store.clone(), config)
}
