//! One listener a node.

use crate::failure::{Failure, Result};
use crate::out;
use rackmem_kv::memory::Memory;
use rackmem_kv::{BindError, Server, ServerConfig, Store};
use serde_json::json;
use std::net::SocketAddr;

/// Starts the server of one node.
pub fn bind<M: Memory>(store: Store<M>, config: ServerConfig) -> Result<Server> {
    Server::bind(store, config).map_err(|error| explain(&error))
}

/// Whether clients could connect there, before there is a store to serve.
pub fn probe(config: &ServerConfig) -> Result<()> {
    config.probe().map_err(|error| explain(&error))
}

fn explain(error: &BindError) -> Failure {
    let next = match error {
        BindError::Open(_) => "add --password, or listen on 127.0.0.1",
        BindError::BadOption(_) => "see `rackmem kv --help` for what is possible",
        BindError::Tls(_) => "give certificates and a key in PEM: --tls-cert, --tls-key, --tls-ca",
        BindError::Users(_) => "mend the file of --aclfile; `ACL SAVE` shows its form",
        BindError::Rack(..) => "start it again when the node is back",
        BindError::Io(_) => "choose another port, or --port 0 for any free one",
    };
    Failure::new(error.to_string(), next)
}

/// Says where clients can connect.
pub fn announce(servers: &[Server], what: &str, json: bool) {
    let addrs: Vec<SocketAddr> = servers.iter().map(Server::local_addr).collect();
    let secure: Vec<SocketAddr> = servers.iter().filter_map(Server::tls_addr).collect();
    if json {
        let list = |addrs: &[SocketAddr]| addrs.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut line = json!({"listening": list(&addrs)});
        if !secure.is_empty() {
            line["tls"] = json!(list(&secure));
        }
        out::line(line);
        return;
    }
    out::line(format!("kv: {what}. Every node serves every key:"));
    for addr in addrs.iter().filter(|addr| !secure.contains(addr)) {
        out::line(format!("  redis-cli -h {} -p {}", addr.ip(), addr.port()));
    }
    for addr in &secure {
        out::line(format!(
            "  redis-cli --tls -h {} -p {}",
            addr.ip(),
            addr.port()
        ));
    }
    out::line("Ctrl-C stops it.");
}

/// Ends the servers; returns when their threads have.
pub fn shutdown(servers: Vec<Server>) {
    servers.into_iter().for_each(Server::shutdown);
}
