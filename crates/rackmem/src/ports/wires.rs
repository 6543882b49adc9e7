//! What can be put between this process's part of a rack and its fabric: faults, a trace, a capture.

use crate::config::Settings;
use crate::error::{Error, Result};
use rackmem_fabric::udp::Peers;
use rackmem_fabric::{
    End, FaultControl, Faults, Handler, Net, Pcap, Port, Tap, Taps, Trace, Wrapping,
};
use rackmem_proto::wire::NodeId;
use serde::Deserialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    pub faults: Option<Faults>,
    pub capture: Option<PathBuf>,
    pub trace: Option<PathBuf>,
}

/// The section `[faults]` of a configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultsSection {
    loss: Option<f64>,
    duplication: Option<f64>,
    delay: Option<f64>,
    delay_up_to_us: Option<u64>,
    seed: Option<u64>,
}

impl From<FaultsSection> for Faults {
    fn from(section: FaultsSection) -> Faults {
        let none = Faults::NONE;
        Faults {
            loss: section.loss.unwrap_or(none.loss),
            duplication: section.duplication.unwrap_or(none.duplication),
            delay: section.delay.unwrap_or(none.delay),
            delay_up_to: section
                .delay_up_to_us
                .map_or(none.delay_up_to, Duration::from_micros),
            seed: section.seed.unwrap_or(none.seed),
        }
    }
}

/// What there is. Nothing, as a rule, and then nothing is in the way of a packet.
#[derive(Default)]
pub(crate) struct Wires {
    wrapping: Option<Arc<Wrapping>>,
    faults: Option<Arc<FaultControl>>,
}

impl Wires {
    /// As wanted, between `peers`. What is held back leaves through the net that `late` makes.
    pub fn new(
        settings: &Settings,
        peers: &Peers,
        late: impl FnOnce() -> Result<Arc<dyn Net + Send + Sync>>,
    ) -> Result<Wires> {
        let wanted = &settings.extras;
        let mut taps: Taps = Vec::new();
        if let Some(path) = &wanted.trace {
            taps.push(Arc::new(Trace::new(create(path)?)));
        }
        if let Some(path) = &wanted.capture {
            let pcap = Pcap::new(peers.clone(), create(path)?);
            taps.push(Arc::new(pcap.map_err(|error| unwritable(path, &error))?) as Arc<dyn Tap>);
        }
        let faults = wanted.faults.map(FaultControl::new).transpose();
        let faults = faults.map_err(|bad| Error::Config(format!("faults: {bad}")))?;
        let faults = faults.map(Arc::new);
        if taps.is_empty() && faults.is_none() {
            return Ok(Wires::default());
        }
        let wrapping = Wrapping::new(faults.clone(), late()?, taps)?;
        Ok(Wires {
            wrapping: Some(wrapping),
            faults,
        })
    }

    pub fn handler(&self, end: End, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        match &self.wrapping {
            Some(wrapping) => wrapping.handler(end, handler),
            None => handler,
        }
    }

    /// What wraps the ports of a node's requesters.
    pub fn ports(
        &self,
        node: NodeId,
    ) -> impl Fn(Box<dyn Port>) -> Box<dyn Port> + Send + Sync + 'static {
        let wrapping = self.wrapping.clone();
        move |port| match &wrapping {
            Some(wrapping) => wrapping.port(node, port),
            None => port,
        }
    }

    pub fn faults(&self) -> Option<&FaultControl> {
        self.faults.as_deref()
    }

    /// Makes files complete.
    pub fn flush(&self) {
        if let Some(wrapping) = &self.wrapping {
            wrapping.flush();
        }
    }
}

fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::Config(format!("{}: {error}", path.display()))
}
