//! A rack of hosts on one machine: every host is a network namespace, and so is the switch.
//!
//! A cable is a pair of virtual Ethernet interfaces with an MTU of 1500 bytes.
//! The switch's ends have fixed numbers ([`port_index`]) and are ports of a bridge that has the
//! switch's address, so a switch in user space works at once; an XDP program attached to the ports
//! sees every packet first, and what it passes on the bridge forwards.
//!
//! ```no_run
//! # fn main() -> rackmem_hosts::Result<()> {
//! use rackmem_hosts::{Hosts, Place};
//!
//! let hosts = Hosts::start(4)?;
//! hosts.command(Place::Host(0), "ip").args(["neigh", "show"]).status()?;
//! hosts.cut(2)?;                    // pulls host 2's cable
//! hosts.mend(2)?;
//! hosts.kill(Place::Host(1))?;      // SIGKILL to all its processes
//! # Ok(())
//! # }                                // all is taken down here
//! ```
//!
//! It takes root, `ip` and `ethtool`; [`Hosts::probe`] says what is missing. Nothing is left when
//! the value is dropped, and nothing when its process is interrupted or killed: a guard process of
//! its own takes the rack down then. What even the guard could not remove, [`cleanup`] does.

mod error;
mod guard;
mod hosts;
mod loopback;
mod names;
pub mod rack;
mod run;
mod state;

pub use error::{Error, Result};
pub use hosts::Hosts;
pub use loopback::addresses;
pub use names::{MAX_HOSTS, MTU, Place, UPLINK, address, mac, port, port_index};
pub use state::{Found, cleanup, found};
