//! How a server is set up, and why it may refuse to be.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use super::tls::TlsConfig;

/// Writes a section of INFO: lines of `name:value`, each ended by `\r\n`.
pub type InfoSection = Arc<dyn Fn(&mut String) + Send + Sync>;

/// Worker threads at most.
const MAX_WORKERS: usize = 64;

/// A server's settings.
#[derive(Clone)]
pub struct ServerConfig {
    /// Where to listen. Port 0 takes any free port.
    pub addr: SocketAddr,
    /// What clients must say first. Needed wherever others than this machine can connect.
    pub password: Option<String>,
    /// A file with a line of rules for each user: read when the rack has no users yet, and by
    /// ACL LOAD; written by ACL SAVE.
    pub acl_file: Option<std::path::PathBuf>,
    /// Serves TLS. `None`: connections are not encrypted.
    pub tls: Option<TlsConfig>,
    /// Workers that serve connections: each is one thread, and up to 31 more while commands wait.
    pub workers: usize,
    /// Connections at a time.
    pub max_clients: usize,
    /// How many bytes the rack may keep of the store (`maxmemory`), 0 for no limit; left out: as
    /// the rack's other servers say.
    pub max_memory: Option<u64>,
    /// Where SAVE and BGSAVE write snapshots; without it they are refused.
    pub snapshot: Option<PathBuf>,
    /// Sends commands to the nodes where their keys are, where that costs less than to fetch these,
    /// and takes those of other nodes' servers at this address: this node's,
    /// as the others reach it. Nothing is encrypted there. `None`, and where the store has copies
    /// or one node: no commands are sent.
    pub links: Option<IpAddr>,
    /// Further sections of INFO, by name.
    pub sections: Vec<(String, InfoSection)>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let addr = SocketAddr::from(([127, 0, 0, 1], 6379));
        Self {
            addr,
            password: None,
            acl_file: None,
            tls: None,
            workers: 1,
            max_clients: 10_000,
            max_memory: None,
            snapshot: None,
            links: None,
            sections: Vec::new(),
        }
    }
}

/// Why a server did not start.
#[derive(Debug)]
pub enum BindError {
    /// Others could connect, and there is no password.
    Open(SocketAddr),
    /// A setting is out of range.
    BadOption(&'static str),
    /// The file of users cannot be read, or is none.
    Users(String),
    /// What every node is to know cannot be told to the rack: whose memory it is to be in is away,
    /// and has been waited for as long as for a bucket.
    Rack(&'static str, crate::Error),
    /// A certificate or key cannot be read, or is none.
    Tls(String),
    /// The system refused.
    Io(std::io::Error),
}

impl BindError {
    /// The system refused this address.
    pub(crate) fn at(addr: SocketAddr, error: &std::io::Error) -> Self {
        let why = format!("{addr}: {error}");
        Self::Io(std::io::Error::new(error.kind(), why))
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(addr) => {
                write!(
                    f,
                    "{addr} can be reached from outside this machine: set a password, or listen on 127.0.0.1"
                )
            }
            Self::BadOption(why) => f.write_str(why),
            Self::Tls(why) => write!(f, "TLS: {why}"),
            Self::Users(why) => write!(f, "users: {why}"),
            Self::Rack(what, why) => write!(f, "{what} cannot be set in the rack: {why}"),
            Self::Io(error) => write!(f, "cannot listen on {error}"),
        }
    }
}

impl std::error::Error for BindError {}

impl From<std::io::Error> for BindError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl ServerConfig {
    /// Whether a server with these settings could start now: what [`super::Server::bind`] would
    /// refuse, before there is a store to serve.
    ///
    /// # Errors
    /// Those of [`super::Server::bind`].
    pub fn probe(&self) -> Result<(), BindError> {
        self.check()?;
        self.load_tls()?;
        std::net::TcpListener::bind(self.addr)
            .map(drop)
            .map_err(|error| BindError::at(self.addr, &error))
    }

    pub(crate) fn load_tls(&self) -> Result<Option<Arc<rustls::ServerConfig>>, BindError> {
        let loaded = self.tls.as_ref().map(TlsConfig::load).transpose();
        loaded.map_err(BindError::Tls)
    }

    pub(crate) fn check(&self) -> Result<(), BindError> {
        if !self.addr.ip().is_loopback() && self.password.as_ref().is_none_or(String::is_empty) {
            return Err(BindError::Open(self.addr));
        }
        if self.workers == 0 || self.workers > MAX_WORKERS {
            return Err(BindError::BadOption("a server has 1 to 64 workers"));
        }
        if self.max_clients == 0 {
            return Err(BindError::BadOption(
                "a server that serves no client is no use",
            ));
        }
        Ok(())
    }
}
