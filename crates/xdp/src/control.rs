//! What the control plane does with the registers: the operations of `SwitchProgram`, in
//! crates/proto/src/switch/control.rs.

use crate::error::Result;
use crate::load::Switch;
use rackmem_proto::switch::{LockConfig, Resources, SwitchConfig, SwitchProgram, set_of};
use rackmem_wire::{Copyset, GlobalStatus, HomeId, NodeId, Record, Tag};

/// Sets that are read for one answer, a call of the kernel each: whoever asks goes on from there,
/// and what else the control plane has to do need not wait for all of them.
const SETS_A_READ: usize = 512;

/// The tag in a location: its low bit says that the location is taken.
fn tag_of(stored: u64) -> Tag {
    Tag(stored & !1)
}

impl Switch {
    /// Its epoch.
    pub fn epoch(&self) -> u32 {
        self.config.switch.epoch
    }

    /// Whether it is frozen.
    pub fn frozen(&self) -> bool {
        self.config.frozen
    }

    /// Executes nothing any more. When this returns, no packet is half executed.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn freeze(&mut self) -> Result<()> {
        self.config.frozen = true;
        self.write_config()
    }

    /// Starts over in a new epoch: owns nothing, and remembers nothing of the last one.
    ///
    /// # Errors
    /// [`crate::Error::Map`]; it is frozen then.
    pub fn reset(&mut self, epoch: u32, shadow: Option<NodeId>) -> Result<()> {
        self.freeze()?;
        self.clear()?;
        self.since = self.counters()?;
        self.config.switch.epoch = epoch;
        self.config.switch.shadow = shadow;
        self.config.frozen = false;
        self.write_config()
    }

    /// Starts over as another switch with as many registers: with another seed, for one.
    /// Says whether it has as many.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn become_another(&mut self, switch: SwitchConfig, locks: LockConfig) -> Result<bool> {
        let registers = |of: &SwitchConfig| (of.ways, of.sets, of.nodes, of.requesters);
        let of_locks = |of: &LockConfig| (of.ways, of.sets);
        let fits = registers(&switch) == registers(&self.config.switch)
            && of_locks(&locks) == of_locks(&self.config.locks);
        if fits {
            self.config.switch.seed = switch.seed;
            self.reset(switch.epoch, switch.shadow)?;
            self.next_locks(locks.epoch)?;
        }
        Ok(fits)
    }

    /// Whom to tell of migrations from now on.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn set_shadow(&mut self, shadow: Option<NodeId>) -> Result<()> {
        if self.config.switch.shadow == shadow {
            return Ok(());
        }
        self.config.switch.shadow = shadow;
        self.write_config()
    }

    /// How many entries it has taken over in this epoch and not given back.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn entries(&self) -> Result<usize> {
        let (now, then) = (self.counters()?.switch, self.since.switch);
        let added = now.added.wrapping_sub(then.added);
        let removed = now.removed.wrapping_sub(then.removed);
        // Processors are read one after the other, so a removal may be seen before what it removes.
        Ok(added.saturating_sub(removed) as usize)
    }

    /// The entry of a block as `(lock word, status, copyset)`.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn inspect(&self, tag: Tag) -> Result<Option<(u16, GlobalStatus, Copyset)>> {
        let set = self.set(set_of(tag, self.config.switch.sets))?;
        let way = set.tag.iter().position(|&stored| stored == tag.0 | 1);
        Ok(way.and_then(|way| {
            let status = GlobalStatus::from_byte(set.status[way])?;
            Some((set.lock[way], status, Copyset(set.copyset[way])))
        }))
    }

    /// See [`SwitchProgram::tags`]; of 512 sets at most.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn tags(&self, from: usize, room: usize) -> Result<(Vec<Record>, usize)> {
        let sets = self
            .config
            .switch
            .sets
            .min(from.saturating_add(SETS_A_READ));
        let mut records = Vec::new();
        for at in from..sets {
            let before = records.len();
            let taken = self.set(at)?.tag.into_iter().filter(|&stored| stored != 0);
            records.extend(taken.map(|stored| Record {
                tag: tag_of(stored),
                word: at as u64,
            }));
            if records.len() > room && before > 0 {
                records.truncate(before);
                return Ok((records, at));
            }
            records.truncate(room);
        }
        Ok((records, sets))
    }

    /// See [`SwitchProgram::entries_of`]. Of a switch that is not frozen it is what it was at no
    /// one moment.
    ///
    /// # Errors
    /// [`crate::Error::Map`].
    pub fn entries_of(&self, home: HomeId) -> Result<Vec<Record>> {
        if !self.config.frozen {
            return Ok(self.copy()?.entries_of(home));
        }
        // Every home asks once, and nothing changes meanwhile.
        let copy = match self.frozen.get() {
            Some(copy) => copy,
            None => {
                let copy = self.copy()?;
                self.frozen.get_or_init(|| copy)
            }
        };
        Ok(copy.entries_of(home))
    }

    /// The Rust program with the same registers.
    fn copy(&self) -> Result<SwitchProgram> {
        let mut copy = SwitchProgram::new(self.config.switch);
        for register in self
            .registers()?
            .into_iter()
            .filter(|r| !r.field.of_locks())
        {
            copy.set_register(register);
        }
        Ok(copy)
    }

    /// What a switch of this size asks of an ASIC.
    pub fn resources(&self) -> Resources {
        SwitchProgram::new(self.config.switch).resources()
    }
}
