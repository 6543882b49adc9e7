//! Addresses as people write them: a name or an address, and a port.

use crate::error::OpenError;
use serde::Deserialize;
use std::net::{SocketAddr, ToSocketAddrs};

/// As it stands in a file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Address(String);

impl Address {
    pub fn look_up(&self, what: &str) -> Result<SocketAddr, OpenError> {
        look_up(what, &self.0)
    }
}

/// Where a name or an address and a port is: `host1:7401`, `10.0.0.1:7401`, `[::1]:7401`. Of a name
/// that has several addresses, its first of IPv4, or its first.
///
/// # Errors
/// [`OpenError::Config`], which names `what` has this address.
pub fn look_up(what: &str, written: &str) -> Result<SocketAddr, OpenError> {
    let no = |why: String| OpenError::Config(format!("{what} = \"{written}\": {why}"));
    if !written.contains(':') {
        return Err(no(
            "the port is missing: write NAME:PORT, such as host1:7401".into(),
        ));
    }
    let found = written.to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|error| no(error.to_string()))?.collect();
    let first = found.iter().find(|addr| addr.is_ipv4()).or(found.first());
    first
        .copied()
        .ok_or_else(|| no("the name has no address".into()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_and_addresses_are_found_and_others_named() {
        let look_up = |text: &str| super::look_up("nodes[1]", text);
        assert_eq!(
            look_up("127.0.0.1:7401").unwrap().to_string(),
            "127.0.0.1:7401"
        );
        assert_eq!(look_up("[::1]:7401").unwrap().to_string(), "[::1]:7401");
        assert!(look_up("localhost:7401").unwrap().ip().is_loopback());
        for text in [
            "10.0.0.1",
            "10.0.0.1:",
            "10.0.0.1:x",
            ":7",
            "10.0.0.1:99999",
        ] {
            let why = look_up(text).unwrap_err().to_string();
            assert!(why.contains("nodes[1]") && why.contains(text), "{why}");
        }
    }
}
