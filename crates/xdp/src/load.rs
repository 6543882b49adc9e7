//! The program in the kernel, with its maps.

use crate::counters::{COUNTERS_LEN, Counters};
use crate::error::{Error, Result};
use crate::layout::{
    Address, CONFIG_LEN, Config, KernelFaults, LOCK_SET_LEN, LOCK_WAYS, NODES_LEN, Place, SET_LEN,
    WAYS, nodes_to_bytes, ports_of,
};
use crate::quorum::{QUORUM_ROW_LEN, STAMP_LINE_LEN};
use aya::maps::xdp::DevMap;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader};
use rackmem_proto::abd::GROUPS;
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::switch::{LINES, LockConfig, SwitchConfig};
use rackmem_wire::{MAX_NODES, MAX_REQUESTERS, NodeId};

/// What build.rs has compiled.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/rackmem.bpf.o"));

pub(crate) const MAIN: &str = "rackmem";
pub(crate) const EGRESS: &str = "egress";
pub(crate) const PROBE: &str = "egress_probe";

/// Under the lock that the program holds while it executes a packet (`BPF_F_LOCK`).
const LOCKED: u64 = 4;

/// The switch program, loaded, and its registers. It is executed where it
/// is [attached](Switch::attach). Dropping the value detaches and unloads it; so does the kernel
/// when the process ends in any way.
pub struct Switch {
    pub(crate) ebpf: Ebpf,
    pub(crate) config: Config,
    config_map: Array<MapData, [u8; CONFIG_LEN]>,
    nodes_map: Array<MapData, [u8; NODES_LEN]>,
    pub(crate) sets: Array<MapData, [u8; SET_LEN]>,
    pub(crate) locks: Array<MapData, [u8; LOCK_SET_LEN]>,
    pub(crate) scores: Array<MapData, u64>,
    pub(crate) moves: Array<MapData, u64>,
    pub(crate) rows: Array<MapData, [u8; QUORUM_ROW_LEN]>,
    pub(crate) stamps: Array<MapData, [u8; STAMP_LINE_LEN]>,
    counters: PerCpuArray<MapData, [u64; COUNTERS_LEN]>,
    pub(crate) probe: Array<MapData, u32>,
    /// The ports that make copies, once it is attached.
    pub(crate) ports: Option<DevMap<MapData>>,
    /// Entries taken over and given back when it began to own nothing.
    pub(crate) since: Counters,
    /// While it is frozen: a copy of its registers, to be read many times.
    pub(crate) frozen: std::cell::OnceCell<rackmem_proto::switch::SwitchProgram>,
}

impl Switch {
    /// Loads the program with an empty table. It serves nobody until it is told
    /// its [address](Switch::serve).
    ///
    /// # Errors
    /// Whatever makes the kernel refuse it; [`Error::Rack`] if the table is wider than the
    /// program's.
    pub fn load(switch: SwitchConfig) -> Result<Switch> {
        let epoch = switch.epoch;
        let locks = LockConfig::default();
        Switch::load_with(switch, LockConfig { epoch, ..locks })
    }

    /// The same with another directory of locks than the usual one.
    ///
    /// # Errors
    /// See [`Switch::load`].
    pub fn load_with(switch: SwitchConfig, locks: LockConfig) -> Result<Switch> {
        Switch::load_object(OBJECT, switch, locks)
    }

    /// The same of another object: tests load programs with planted differences.
    ///
    /// # Errors
    /// See [`Switch::load`].
    pub fn load_object(object: &[u8], switch: SwitchConfig, locks: LockConfig) -> Result<Switch> {
        Switch::load_sized(object, (switch, locks, LINES))
    }

    /// The same with room for the stamps of so many lines of replicated memory.
    ///
    /// # Errors
    /// See [`Switch::load`].
    pub fn load_lines(lines: usize, object: Option<&[u8]>) -> Result<Switch> {
        let locks = LockConfig::default();
        let small = SwitchConfig {
            sets: 4,
            ..SwitchConfig::default()
        };
        Switch::load_sized(object.unwrap_or(OBJECT), (small, locks, lines))
    }

    fn load_sized(
        object: &[u8],
        (switch, locks, lines): (SwitchConfig, LockConfig, usize),
    ) -> Result<Switch> {
        let switch = SwitchConfig {
            ways: switch.ways.max(1),
            sets: switch.sets.max(1).next_power_of_two(),
            nodes: switch.nodes.clamp(1, MAX_NODES as u16),
            requesters: switch.requesters.clamp(1, MAX_REQUESTERS as u16),
            ..switch
        };
        if usize::from(switch.ways) > WAYS {
            let why = format!("its sets have {WAYS} ways, not {}", switch.ways);
            return Err(Error::Rack(why));
        }
        let locks = LockConfig {
            ways: locks.ways.clamp(1, LOCK_WAYS as u8),
            sets: locks.sets.max(1).next_power_of_two(),
            ..locks
        };
        let of = |sets: usize| {
            u32::try_from(sets).map_err(|_| Error::Rack(format!("{sets} sets are too many")))
        };
        let (sets, lock_sets) = (of(switch.sets)?, of(locks.sets)?);
        let lines = of(lines.max(1).next_power_of_two())?;
        let nodes = u32::from(switch.nodes);
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("SETS", sets)
            .map_max_entries("LOCKS", lock_sets)
            .map_max_entries("STAMPS", lines)
            .map_max_entries("SCOREBOARD", nodes * u32::from(switch.requesters) * 2)
            .map_max_entries("MOVES", nodes * MAX_MOVES as u32)
            .load(object)?;
        for name in [MAIN, EGRESS, PROBE] {
            program(&mut ebpf, name)?.load().map_err(Error::of_load)?;
        }
        let config = Config {
            switch,
            frozen: false,
            address: None,
            can_multicast: false,
            nonce: fastrand::u32(..),
            faults: KernelFaults::default(),
            locks,
            serves_locks: true,
            lines,
            configs: 1,
            groups: [None; GROUPS],
            life: 0,
        };
        let mut switch = Switch {
            config_map: Array::try_from(take(&mut ebpf, "CONFIG")?)?,
            nodes_map: Array::try_from(take(&mut ebpf, "NODES")?)?,
            sets: Array::try_from(take(&mut ebpf, "SETS")?)?,
            locks: Array::try_from(take(&mut ebpf, "LOCKS")?)?,
            scores: Array::try_from(take(&mut ebpf, "SCOREBOARD")?)?,
            moves: Array::try_from(take(&mut ebpf, "MOVES")?)?,
            rows: Array::try_from(take(&mut ebpf, "QUORUM")?)?,
            stamps: Array::try_from(take(&mut ebpf, "STAMPS")?)?,
            counters: PerCpuArray::try_from(take(&mut ebpf, "COUNTERS")?)?,
            probe: Array::try_from(take(&mut ebpf, "PROBE")?)?,
            ports: None,
            since: Counters::default(),
            frozen: std::cell::OnceCell::new(),
            ebpf,
            config,
        };
        switch.write_config()?;
        Ok(switch)
    }

    /// Writes CONFIG when no packet is half executed.
    pub(crate) fn write_config(&mut self) -> Result<()> {
        self.frozen.take();
        let bytes = self.config.to_bytes();
        Ok(self.config_map.set(0, bytes, LOCKED)?)
    }

    /// Tells it its own address and those of the agents. From here on it executes what comes.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn serve(&mut self, address: &Address) -> Result<()> {
        let agents = address.agents.iter().enumerate();
        let places: Vec<Place> = agents
            .map(|(node, &agent)| Place {
                node: node as NodeId,
                agent,
                mac: [0; 6],
                ifindex: 0,
            })
            .collect();
        self.place(&places)?;
        self.config.address = Some(address.switch);
        self.write_config()
    }

    /// Tells it where nodes are.
    pub(crate) fn place(&mut self, places: &[Place]) -> Result<()> {
        Ok(self.nodes_map.set(0, nodes_to_bytes(places), 0)?)
    }

    /// Behind which port every node is, as far as it has learned: interface numbers,
    /// zero where it has not.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn learned(&self) -> Result<Vec<u32>> {
        Ok(ports_of(&self.nodes_map.get(&0, 0)?))
    }

    /// What orders to the control plane carry.
    pub fn nonce(&self) -> u32 {
        self.config.nonce
    }

    /// Makes faults from now on.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn set_faults(&mut self, faults: KernelFaults) -> Result<()> {
        self.config.faults = faults;
        self.write_config()
    }

    /// What it has counted.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counters(&self) -> Result<Counters> {
        let processors = self.counters.get(&0, 0)?;
        Ok(Counters::of(processors.iter().copied()))
    }
}

pub(crate) fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp> {
    let program = ebpf.program_mut(name);
    let program = program.ok_or_else(|| Error::Kernel(format!("the object has no `{name}`")))?;
    program.try_into().map_err(Error::of_load)
}

pub(crate) fn take(ebpf: &mut Ebpf, name: &str) -> Result<aya::maps::Map> {
    let map = ebpf.take_map(name);
    map.ok_or_else(|| Error::Map(format!("the object has no `{name}`")))
}
