//! A member's place on a network: a socket, or memory that others write into.

use crate::config::{Config, Fabric, Settings};
use crate::error::OpenError;
use crate::membership::reach::{Knocking, Reach};
use crate::ports::wires::Wires;
use rackmem_fabric::shm::{self, Geometry, Hub, Member, ShmPort};
use rackmem_fabric::udp::{self, Peers, UdpPort};
use rackmem_fabric::{End, Handler, Net, Port, Service};
use rackmem_proto::wire::NodeId;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// What opens ports for requesters.
type OpenPort = Box<dyn Fn() -> std::io::Result<Box<dyn Port>> + Send + Sync>;

/// Whoever has a place is this member: a second process cannot have it.
pub(crate) enum Place {
    Udp(UdpSocket, Arc<Peers>),
    Shm(Arc<Member>),
}

impl Place {
    /// The place of a process of a rack.
    pub fn take(config: &Config, end: End) -> Result<Place, OpenError> {
        match config.fabric {
            Fabric::Shm => {
                let geometry = Geometry::new(config.nodes.len(), config.settings.block_size);
                let hub = Hub::on_this_host(&rack_name(config), geometry)?;
                match hub.claim(end) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => {
                        Err(OpenError::PlaceTaken {
                            place: format!("{}: {error}", name(end)),
                        })
                    }
                    claimed => Ok(Place::Shm(claimed?)),
                }
            }
            _ => {
                let addr = match end {
                    End::Switch => config.switch,
                    End::Node(node) => config.nodes.get(usize::from(node)).copied(),
                };
                let addr = addr.ok_or_else(no_address)?;
                let mtu = config.settings.mtu;
                let peers = Peers {
                    switch: config.switch,
                    agents: config.nodes.clone(),
                    mtu: mtu.unwrap_or_else(|| udp::path_mtu(addr.ip())),
                };
                let socket = udp::bind(addr).map_err(|error| unbound(end, addr, error))?;
                Ok(Place::Udp(socket, Arc::new(peers)))
            }
        }
    }

    /// The places of a rack whose members are all in this process: the nodes',
    /// and the switch's if it has one.
    pub fn take_all(
        fabric: Fabric,
        count: usize,
        settings: &Settings,
    ) -> Result<(Vec<Place>, Option<Place>), OpenError> {
        let has_switch = settings.mode.has_switch();
        if fabric == Fabric::Shm {
            let hub = Hub::in_process(Geometry::new(count, settings.block_size));
            let claim = |end| Ok(Place::Shm(hub.claim(end)?));
            let nodes = (0..count).map(|id| claim(End::Node(id as NodeId)));
            let nodes = nodes.collect::<Result<_, OpenError>>()?;
            return Ok((nodes, has_switch.then(|| claim(End::Switch)).transpose()?));
        }
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let bind = |_| udp::bind(loopback);
        let sockets = (0..count).map(bind).collect::<std::io::Result<Vec<_>>>()?;
        let switch = has_switch.then(|| udp::bind(loopback)).transpose()?;
        let address = |socket: &UdpSocket| socket.local_addr();
        let peers = Arc::new(Peers {
            switch: switch.as_ref().map(address).transpose()?,
            agents: sockets
                .iter()
                .map(address)
                .collect::<std::io::Result<_>>()?,
            mtu: settings.mtu.unwrap_or_else(|| udp::path_mtu(loopback.ip())),
        });
        let place = |socket| Place::Udp(socket, peers.clone());
        Ok((sockets.into_iter().map(place).collect(), switch.map(place)))
    }

    /// Bytes of body that packets have room for.
    pub fn room(&self) -> usize {
        match self {
            Place::Udp(_, peers) => udp::body_room(peers.mtu),
            Place::Shm(member) => member.geometry().body(),
        }
    }

    /// How processes of this host share memory, if they do.
    pub fn host(&self) -> Option<Arc<Member>> {
        match self {
            Place::Udp(..) => None,
            Place::Shm(member) => Some(member.clone()),
        }
    }

    /// Asks the others whether they can be reached, before the place is served. Nobody is asked
    /// where there are no cables.
    pub fn knock(&self, reach: Arc<Reach>) -> Result<Option<Knocking>, OpenError> {
        match self {
            Place::Udp(socket, peers) => Ok(Some(Knocking::start(socket, peers.clone(), reach)?)),
            Place::Shm(_) => Ok(None),
        }
    }

    /// What is between members and this network, of which this is one place.
    pub fn wires(&self, settings: &Settings, nodes: usize) -> Result<Wires, OpenError> {
        match self {
            Place::Udp(socket, peers) => Wires::new(settings, peers, || {
                let near = socket.local_addr()?.ip();
                Ok(Arc::new(udp::Outlet::open(near, peers.clone())?) as Arc<dyn Net + Send + Sync>)
            }),
            Place::Shm(member) => Wires::new(settings, &Peers::made_up(nodes), || {
                Ok(Arc::new(shm::Outlet::open(member)))
            }),
        }
    }

    /// What opens ports for the requesters of this node.
    pub fn ports(&self, id: NodeId) -> OpenPort {
        match self {
            Place::Udp(_, peers) => {
                let peers = peers.clone();
                Box::new(move || Ok(Box::new(UdpPort::open(id, peers.clone())?)))
            }
            Place::Shm(member) => {
                let member = member.clone();
                Box::new(move || Ok(Box::new(ShmPort::open(&member)?)))
            }
        }
    }

    /// Serves the place in a thread of its own, until the service is dropped.
    pub fn serve(self, name: &str, handler: Arc<dyn Handler>) -> Result<Service, OpenError> {
        Ok(match self {
            Place::Udp(socket, peers) => udp::serve(name, socket, peers, handler)?,
            Place::Shm(member) => shm::serve(name, member, handler)?,
        })
    }
}

fn no_address() -> OpenError {
    OpenError::Config("the configuration has no address for this process".into())
}

fn name(end: End) -> String {
    match end {
        End::Node(node) => format!("node {node}"),
        End::Switch => "the switch".into(),
    }
}

/// Why a member's address cannot be had.
fn unbound(end: End, addr: SocketAddr, error: std::io::Error) -> OpenError {
    match error.kind() {
        ErrorKind::AddrInUse => OpenError::PlaceTaken {
            place: format!(
                "{}: its address {addr} is in use by another process (UDP)",
                name(end)
            ),
        },
        ErrorKind::AddrNotAvailable => OpenError::Config(format!(
            "{}: its address is not one of this host: {error}",
            name(end)
        )),
        kind => OpenError::Io(std::io::Error::new(
            kind,
            format!("{}: its address {error}", name(end)),
        )),
    }
}

/// Short enough for the name of a file, whatever the rack is called.
fn rack_name(config: &Config) -> String {
    format!("{:016x}", config.number())
}
