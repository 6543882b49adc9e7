//! The program in the kernel as a data plane.

use super::{KernelMetrics, KernelMode, KernelPlace, KernelSwitch};
use crate::config::Config;
use crate::data_plane::DataPlane;
use crate::error::OpenError;
use rackmem_fabric::{Body, Faults, PacketCounts};
use rackmem_proto::Outputs;
use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{
    Counted, LockCounters, Pipeline, Resources, SwitchConfig, SwitchCounters,
};
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, HomeId, NodeId, Record, Tag};
use rackmem_xdp::{Address, Counters, KernelFaults, Mode, Order, Switch};
use std::cell::Cell;
use std::net::{SocketAddr, SocketAddrV4};

struct Plane {
    switch: Switch,
    missed: u64,
    errors: Cell<u64>,
}

/// Loads the program and attaches it, for a rack that it does not serve before it is reset to an
/// epoch.
pub(crate) fn attach(
    kernel: &KernelSwitch,
    config: &Config,
    switch: SwitchConfig,
) -> Result<(Box<dyn DataPlane>, KernelPlace), OpenError> {
    let address = address(config)?;
    let mut switch = Switch::load(switch)?;
    if let Some(faults) = config.settings.extras.faults {
        switch.set_faults(in_kernel(&faults))?;
    }
    switch.serve(&address)?;
    let attached = switch.attach(&kernel.interfaces, interface_mode(kernel.mode))?;
    let place = KernelPlace {
        mode: attached.mode.to_string(),
        fell_back: attached
            .fell_back
            .map(|refused| (refused.interface, refused.why)),
        interfaces: attached.interfaces,
        no_blocks: None,
        no_copies: None,
    };
    let plane = Plane {
        switch,
        missed: 0,
        errors: Cell::new(0),
    };
    Ok((Box::new(plane), place))
}

pub(super) fn interface_mode(mode: KernelMode) -> Mode {
    match mode {
        KernelMode::Native => Mode::Native,
        KernelMode::Skb => Mode::Skb,
        KernelMode::Auto => Mode::Auto,
    }
}

/// An address that programs here understand.
pub(super) fn v4(addr: &SocketAddr) -> Result<SocketAddrV4, OpenError> {
    match addr {
        SocketAddr::V4(addr) => Ok(*addr),
        SocketAddr::V6(_) => Err(refused(
            "rack",
            format!("it speaks IPv4, and {addr} is IPv6"),
        )),
    }
}

fn address(config: &Config) -> Result<Address, OpenError> {
    let switch = config
        .switch
        .as_ref()
        .ok_or_else(|| OpenError::Config("the configuration names no `switch` address".into()));
    let switch = switch.and_then(v4)?;
    let agents = config
        .nodes
        .iter()
        .map(v4)
        .collect::<Result<Vec<SocketAddrV4>, OpenError>>()?;
    Ok(Address { switch, agents })
}

/// Loss alone the program can make. The rest it leaves to the control plane,
/// which can hold packets back.
fn in_kernel(faults: &Faults) -> KernelFaults {
    let only_loss = faults.duplication == 0.0 && faults.delay == 0.0;
    KernelFaults {
        lose_in: 0.0,
        lose_out: if only_loss { faults.loss } else { 0.0 },
        divert: if only_loss { 0.0 } else { 1.0 },
    }
}

fn refused(code: &'static str, why: String) -> OpenError {
    OpenError::Kernel { code, why }
}

impl From<rackmem_xdp::Error> for OpenError {
    fn from(error: rackmem_xdp::Error) -> Self {
        refused(error.code(), error.to_string())
    }
}

impl Plane {
    /// What a map says, or nothing, which is counted: it takes a defect of the kernel.
    fn or_default<T: Default>(&self, result: rackmem_xdp::Result<T>) -> T {
        result.unwrap_or_else(|_| {
            self.errors.set(self.errors.get() + 1);
            T::default()
        })
    }

    fn counted(&self) -> Counters {
        self.or_default(self.switch.counters())
    }
}

impl Pipeline for Plane {
    fn epoch(&self) -> u32 {
        self.switch.epoch()
    }

    fn frozen(&self) -> bool {
        self.switch.frozen()
    }

    fn freeze(&mut self) {
        let frozen = self.switch.freeze();
        self.or_default(frozen);
    }

    fn reset(&mut self, epoch: u32, shadow: Option<NodeId>) {
        let reset = self.switch.reset(epoch, shadow);
        self.or_default(reset);
    }

    fn set_shadow(&mut self, shadow: Option<NodeId>) {
        let set = self.switch.set_shadow(shadow);
        self.or_default(set);
    }

    fn tags(&self, from: usize, room: usize) -> (Vec<Record>, usize) {
        self.or_default(self.switch.tags(from, room))
    }

    fn entries_of(&self, home: HomeId) -> Vec<Record> {
        self.or_default(self.switch.entries_of(home))
    }

    fn next_locks(&mut self, epoch: u32) -> Vec<(Tag, Entry)> {
        let had = self.switch.next_locks(epoch);
        self.or_default(had)
    }
}

impl DataPlane for Plane {
    fn handle(&mut self, header: &Header, body: &Body<'_>) -> Outputs {
        let mut outputs = Outputs::default();
        let bytes = match body {
            Body::Bytes(bytes) => bytes,
            _ => &[][..],
        };
        match Order::read(header, bytes, self.switch.nonce()) {
            Some(Order(output)) => outputs.push(output),
            None => self.missed += u64::from(header.kind.in_data_plane()),
        }
        outputs
    }

    fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset)> {
        self.or_default(self.switch.inspect(tag))
    }

    fn entries(&self) -> usize {
        self.or_default(self.switch.entries())
    }

    fn counters(&self) -> SwitchCounters {
        self.counted().switch
    }

    fn resources(&self) -> Resources {
        self.switch.resources()
    }

    fn serves_locks(&self) -> bool {
        true
    }

    fn lock_counters(&self) -> LockCounters {
        self.counted().locks
    }

    fn counts(&mut self, group: u16, counted: Option<Counted>) -> bool {
        let told = self.switch.count(group, counted);
        self.or_default(told);
        // Also when it cannot be told: two that count would choose one stamp twice.
        true
    }

    fn lives(&mut self, incarnation: u32) {
        let told = self.switch.lives(incarnation);
        self.or_default(told);
    }

    fn in_kernel(&self) -> Option<(PacketCounts, KernelMetrics)> {
        let counted = self.counted();
        let metrics = KernelMetrics {
            malformed: counted.malformed,
            control: counted.control,
            orders: counted.orders,
            lost: counted.lost,
            missed: self.missed,
            errors: self.errors.get(),
        };
        Some((PacketCounts(counted.kinds), metrics))
    }
}
