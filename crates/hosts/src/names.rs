//! What everything is called: namespaces, interfaces and their numbers, addresses.
//!
//! Only the names of namespaces are seen outside of the rack. Interfaces and addresses are the same
//! in every rack, since no rack sees another.

use crate::error::{Error, Result};
use std::fmt;
use std::net::Ipv4Addr;

/// Hosts of a rack at most.
pub const MAX_HOSTS: usize = 32;
/// Bytes of an IP packet on every cable.
pub const MTU: u32 = 1500;
/// A host's interface.
pub const UPLINK: &str = "eth0";
/// The bridge in the switch's namespace, which has the switch's address.
pub(crate) const BRIDGE: &str = "br0";
/// Begins the name of every namespace.
pub(crate) const PREFIX: &str = "rackmem-";
/// The interface number of the switch's first port.
const FIRST_PORT: u32 = 100;

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The switch's namespace.
    Switch,
    /// A host's, by number from 0.
    Host(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Switch => write!(f, "switch"),
            Place::Host(number) => write!(f, "host{number}"),
        }
    }
}

impl std::str::FromStr for Place {
    type Err = Error;

    /// `switch`, `host2`, or just `2`.
    fn from_str(text: &str) -> Result<Place> {
        if text == "switch" {
            return Ok(Place::Switch);
        }
        let number = text.strip_prefix("host").unwrap_or(text);
        let number = number.parse().ok().filter(|&number| number < MAX_HOSTS);
        number
            .map(Place::Host)
            .ok_or_else(|| Error::Size(format!("`{text}` is neither a host's number nor `switch`")))
    }
}

/// A place's address, on a network of 24 bits that exists inside the rack only.
pub fn address(place: Place) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, low(place))
}

/// A place's Ethernet address.
pub fn mac(place: Place) -> [u8; 6] {
    [0x02, b'r', b'a', b'c', b'k', low(place)]
}

/// As `ip` writes it.
pub(crate) fn mac_text(place: Place) -> String {
    let bytes = mac(place).map(|byte| format!("{byte:02x}"));
    bytes.join(":")
}

fn low(place: Place) -> u8 {
    match place {
        Place::Switch => 254,
        // A number that does not fit belongs to no rack.
        Place::Host(number) => u8::try_from(number + 1).unwrap_or(u8::MAX),
    }
}

/// The switch's interface to this host.
pub fn port(host: usize) -> String {
    format!("s{host}")
}

/// Its number in the switch's namespace, which is what an XDP program sees: 100 for host 0,
/// and so on.
pub fn port_index(host: usize) -> u32 {
    FIRST_PORT + host as u32
}

/// The namespace of a place in the rack of this name.
pub(crate) fn namespace(rack: &str, place: Place) -> String {
    format!("{PREFIX}{rack}-{place}")
}

/// Which rack a namespace is part of, if it is of any.
pub(crate) fn rack_of(namespace: &str) -> Option<&str> {
    let (rack, place) = namespace.strip_prefix(PREFIX)?.rsplit_once('-')?;
    place.parse::<Place>().ok()?;
    check(rack).ok()
}

/// A name that is fit for a rack.
pub(crate) fn check(rack: &str) -> Result<&str> {
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let good = (1..=32).contains(&rack.len()) && !rack.starts_with('-') && rack.chars().all(fit);
    good.then_some(rack)
        .ok_or_else(|| Error::Name(rack.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_tells_its_rack() {
        for place in [Place::Switch, Place::Host(0), Place::Host(31)] {
            assert_eq!(rack_of(&namespace("a-b_1", place)), Some("a-b_1"));
        }
        for other in [
            "rackmem-",
            "rackmem-x",
            "rackmem-x-host32",
            "rackmem-x-bridge",
            "other-x-host1",
            "rackmem--host1",
        ] {
            assert_eq!(rack_of(other), None, "{other}");
        }
    }

    #[test]
    fn places_are_read_as_they_are_written_and_as_numbers() {
        for place in [Place::Switch, Place::Host(7)] {
            assert_eq!(place.to_string().parse::<Place>().unwrap(), place);
        }
        assert_eq!("7".parse::<Place>().unwrap(), Place::Host(7));
        for text in ["", "host", "32", "-1", "spine"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn no_two_places_share_an_address_or_a_port() {
        let places: Vec<Place> = (0..MAX_HOSTS)
            .map(Place::Host)
            .chain([Place::Switch])
            .collect();
        for (at, &one) in places.iter().enumerate() {
            for &other in &places[..at] {
                assert_ne!(address(one), address(other));
                assert_ne!(mac_text(one), mac_text(other));
            }
        }
        assert_eq!(mac_text(Place::Host(0)), "02:72:61:63:6b:01");
        assert_eq!((port(3), port_index(3)), ("s3".into(), 103));
    }

    #[test]
    fn a_name_cannot_be_an_option_or_a_path() {
        for bad in ["", "-x", "a/b", "a b", "..", &"x".repeat(33)] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check("demo-2_x").is_ok());
    }
}
