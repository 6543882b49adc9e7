//! Programs behind the driver of an interface, in the network stack: there one packet can become
//! several. They are attached by links, which end with the process.

use crate::error::{Error, Result};
use aya::Ebpf;
use aya::programs::SchedClassifier;
use aya::programs::links::LinkOrder;
use aya::programs::tc::{TcAttachOptions, TcAttachType};

/// The one of this name.
pub(crate) fn program<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut SchedClassifier> {
    let program = ebpf.program_mut(name);
    let program = program.ok_or_else(|| Error::Kernel(format!("no `{name}`")))?;
    program.try_into().map_err(Error::of_load)
}

/// The same, to run it.
pub(crate) fn loaded<'e>(ebpf: &'e Ebpf, name: &str) -> Result<&'e SchedClassifier> {
    let program = ebpf.program(name);
    let program = program.ok_or_else(|| Error::Kernel(format!("no `{name}`")))?;
    program.try_into().map_err(Error::of_load)
}

/// Attaches it to the interface that packets come by, before others that are there.
pub(crate) fn attach(ebpf: &mut Ebpf, name: &str, interface: &str) -> Result<()> {
    let order = TcAttachOptions::TcxOrder(LinkOrder::default());
    let attached =
        program(ebpf, name)?.attach_with_options(interface, TcAttachType::Ingress, order);
    attached
        .map(drop)
        .map_err(|error| Error::of_link(error, interface))
}
