//! What can be put between this process's part of a rack and its fabric: faults, a trace,
//! a capture.

use crate::config::Settings;
use crate::error::OpenError;
use rackmem_fabric::udp::Peers;
use rackmem_fabric::{End, FaultControl, Handler, Net, Pcap, Port, Tap, Taps, Trace, Wrapping};
use rackmem_proto::wire::NodeId;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

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
        late: impl FnOnce() -> Result<Arc<dyn Net + Send + Sync>, OpenError>,
    ) -> Result<Wires, OpenError> {
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
        let faults = faults.map_err(|bad| OpenError::Config(format!("faults: {bad}")))?;
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

fn create(path: &Path) -> Result<File, OpenError> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError::Config(format!("{}: {error}", path.display()))
}
