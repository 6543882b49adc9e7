//! Attaching the program to interfaces, and what is said when that is refused.

use crate::error::{Error, Result};
use crate::load::{EGRESS, MAIN, Switch, program, take};
use aya::maps::xdp::DevMap;
use aya::programs::xdp::XdpMode;
use std::fmt;

/// Where in the kernel the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// In the driver, before there is a socket buffer.
    Native,
    /// In the network stack, with any driver.
    Skb,
    /// In the driver where all drivers can, otherwise in the stack.
    #[default]
    Auto,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Native => "native",
            Mode::Skb => "generic (skb)",
            Mode::Auto => "automatic",
        })
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "native" => Ok(Mode::Native),
            "skb" | "generic" => Ok(Mode::Skb),
            "auto" => Ok(Mode::Auto),
            _ => Err(format!("`{text}` is neither native, skb nor auto")),
        }
    }
}

/// Why native mode was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The interface.
    pub interface: String,
    /// What the kernel said.
    pub why: String,
}

/// Where the program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attached {
    /// In which mode, on all interfaces.
    pub mode: Mode,
    /// What kept it from native mode, if `Auto` fell back.
    pub fell_back: Option<Refused>,
    /// The interfaces.
    pub interfaces: Vec<String>,
}

impl Switch {
    /// Attaches the program to interfaces of this network namespace: to all, or to none.
    ///
    /// # Errors
    /// Whatever the kernel says about the first interface that refuses; [`Error::Rack`] for none,
    /// or for too many.
    pub fn attach(&mut self, interfaces: &[String], mode: Mode) -> Result<Attached> {
        if interfaces.is_empty() {
            return Err(Error::Rack(
                "it needs an interface to be attached to".into(),
            ));
        }
        let mut fell_back = None;
        let mode = match mode {
            Mode::Auto => match self.attach_all(interfaces, Mode::Native) {
                Ok(()) => Mode::Native,
                Err(Error::Driver { interface, why, .. }) => {
                    let why = why.to_string();
                    fell_back = Some(Refused { interface, why });
                    self.attach_all(interfaces, Mode::Skb)?;
                    Mode::Skb
                }
                Err(error) => return Err(error),
            },
            mode => {
                self.attach_all(interfaces, mode)?;
                mode
            }
        };
        self.open_ports(interfaces)?;
        Ok(Attached {
            mode,
            fell_back,
            interfaces: interfaces.to_vec(),
        })
    }

    fn attach_all(&mut self, interfaces: &[String], mode: Mode) -> Result<()> {
        let xdp_mode = match mode {
            Mode::Skb => XdpMode::Skb,
            _ => XdpMode::Driver,
        };
        let main = program(&mut self.ebpf, MAIN)?;
        let mut links = Vec::new();
        for interface in interfaces {
            let link = main.attach(interface, xdp_mode);
            match link.map_err(|error| Error::of_attach(error, interface, mode)) {
                Ok(link) => links.push(link),
                Err(error) => {
                    for link in links {
                        // What cannot be detached now is when the value is dropped.
                        let _ = main.detach(link);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Lets multicasts leave by these interfaces.
    fn open_ports(&mut self, interfaces: &[String]) -> Result<()> {
        let egress = program(&mut self.ebpf, EGRESS)?
            .fd()
            .map_err(Error::of_load)?;
        let egress = egress
            .try_clone()
            .map_err(|error| Error::Kernel(error.to_string()))?;
        let mut ports = DevMap::try_from(take(&mut self.ebpf, "PORTS")?)?;
        if interfaces.len() > ports.len() as usize {
            return Err(Error::Rack(format!("it has {} ports", ports.len())));
        }
        for (at, interface) in interfaces.iter().enumerate() {
            let ifindex = index_of(interface)?;
            ports.set(at as u32, ifindex, Some(&egress), 0)?;
        }
        self.ports = Some(ports);
        self.config.can_multicast = true;
        self.write_config()
    }
}

/// The kernel's number of an interface of this network namespace.
pub(crate) fn index_of(interface: &str) -> Result<u32> {
    let path = format!("/sys/class/net/{interface}/ifindex");
    let text = std::fs::read_to_string(path).map_err(|_| Error::NoInterface(interface.into()))?;
    let number = text.trim().parse();
    number.map_err(|_| Error::NoInterface(interface.into()))
}
