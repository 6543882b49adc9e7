//! Programs that do nothing but echo or forward: what benches compare with.

use crate::attach::{Mode, index_of};
use crate::error::{Error, Result};
use crate::load::{program, take};
use crate::run::{Ran, run};
use aya::maps::{Array, MapData};
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use aya::{Ebpf, EbpfLoader};
use std::net::SocketAddrV4;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/bare.bpf.o"));

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BareProgram {
    /// Passes everything on: the empty program.
    Pass,
    /// Sends a datagram for one address back to its sender.
    Echo,
    /// Does that with bytes of a map copied into it, as [`ObjectReads`](crate::ObjectReads) does.
    Copy,
    /// Sends it to one other host.
    Forward,
}

impl BareProgram {
    fn name(self) -> &'static str {
        match self {
            BareProgram::Pass => "pass",
            BareProgram::Echo => "echo",
            BareProgram::Copy => "copy",
            BareProgram::Forward => "forward",
        }
    }
}

/// One of them, loaded. Dropping it detaches it.
pub struct Bare {
    ebpf: Ebpf,
    which: BareProgram,
    map: Array<MapData, [u8; 24]>,
}

impl Bare {
    /// Loads a program for datagrams to `at`.
    ///
    /// # Errors
    /// Whatever makes the kernel refuse it.
    pub fn load(which: BareProgram, at: SocketAddrV4) -> Result<Bare> {
        let mut ebpf = EbpfLoader::new().load(OBJECT)?;
        program(&mut ebpf, which.name())?
            .load()
            .map_err(Error::of_load)?;
        let mut map = Array::try_from(take(&mut ebpf, "BARE")?)?;
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&at.ip().octets());
        bytes[4..6].copy_from_slice(&at.port().to_be_bytes());
        map.set(0, bytes, 0)?;
        Ok(Bare { ebpf, which, map })
    }

    /// Where [`BareProgram::Forward`] sends.
    ///
    /// # Errors
    /// [`Error::NoInterface`], [`Error::Map`].
    pub fn forward_to(&mut self, to: SocketAddrV4, mac: [u8; 6], interface: &str) -> Result<()> {
        let ifindex = index_of(interface)?;
        let mut bytes = self.map.get(&0, 0)?;
        bytes[6..8].copy_from_slice(&to.port().to_be_bytes());
        bytes[8..12].copy_from_slice(&to.ip().octets());
        bytes[12..16].copy_from_slice(&ifindex.to_ne_bytes());
        bytes[16..22].copy_from_slice(&mac);
        Ok(self.map.set(0, bytes, 0)?)
    }

    /// How many lines of 64 bytes [`BareProgram::Copy`] copies.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn copy_lines(&mut self, lines: u16) -> Result<()> {
        let mut bytes = self.map.get(&0, 0)?;
        bytes[22..24].copy_from_slice(&lines.to_ne_bytes());
        Ok(self.map.set(0, bytes, 0)?)
    }

    /// Attaches it.
    ///
    /// # Errors
    /// See [`crate::Switch::attach`]. `Auto` is native here.
    pub fn attach(&mut self, interface: &str, mode: Mode) -> Result<()> {
        let xdp_mode = match mode {
            Mode::Skb => XdpMode::Skb,
            _ => XdpMode::Driver,
        };
        let link = program(&mut self.ebpf, self.which.name())?.attach(interface, xdp_mode);
        link.map(drop)
            .map_err(|error| Error::of_attach(error, interface, mode))
    }

    /// Runs it on a frame, so often, without sending anything.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn run(&self, frame: &[u8], times: u32) -> Result<Ran> {
        let name = self.which.name();
        let program = self.ebpf.program(name);
        let program = program.ok_or_else(|| Error::Kernel(format!("no `{name}`")))?;
        let program: &Xdp = program.try_into().map_err(Error::of_load)?;
        run(program, frame, times)
    }
}
