//! What a thread of a world does with locks.

use super::judging::Locked;
use super::{ENTERED, LEFT, tag};
use crate::world::config::Config;
use crate::world::fabric::{Fabric, Occurrence};
use crate::world::node::WorldNode;
use crate::world::random::Random;
use crate::world::thread::Complaint;
use rackmem_proto::engine::{LockCommand, LockHost};
use rackmem_proto::gcp::{Access, Entered};
use rackmem_proto::wire::{RequesterId, Tag};

/// Time between two critical sections, at most, in nanoseconds, and inside one.
const OUTSIDE: u64 = 40_000;
const INSIDE: u64 = 20_000;
/// How soon to look again whether the thread is between two operations.
const LOOK: u64 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Outside,
    Waiting(Tag, Access),
    Inside(Tag, Access, u64),
    Done,
    Dead,
}

/// See the module.
pub struct Locker {
    /// The thread's.
    pub id: RequesterId,
    index: usize,
    config: Config,
    random: Random,
    left: u32,
    /// What it had left to do when its node began to leave.
    kept: u32,
    /// Locks that are still to be read at the end.
    audits: u32,
    at: At,
}

impl Locker {
    /// With all its work before it.
    pub fn new(index: usize, config: &Config, random: Random) -> Self {
        let per_node = usize::from(config.threads);
        Locker {
            id: RequesterId {
                node: (index / per_node) as u16,
                slot: (index % per_node) as u16,
            },
            index,
            config: *config,
            random,
            left: config.operations.div_ceil(4),
            kept: 0,
            audits: 0,
            at: At::Outside,
        }
    }

    /// Whether nothing is left to do.
    pub fn idle(&self) -> bool {
        matches!(self.at, At::Done | At::Dead)
    }

    /// Whether it is inside a lock.
    pub fn is_inside(&self) -> bool {
        matches!(self.at, At::Inside(..))
    }

    /// Whether it waits for one.
    pub fn waits(&self) -> bool {
        matches!(self.at, At::Waiting(..))
    }

    /// What it is doing, for a violation.
    pub fn describe(&self) -> String {
        format!("{}.{} {:?}", self.id.node, self.id.slot, self.at)
    }

    fn wake(&self, after: u64, fabric: &mut Fabric) {
        fabric.schedule(after, Occurrence::Lock(self.index));
    }

    /// Its turn. `between`: the thread is between two operations.
    pub fn advance(
        &mut self,
        between: bool,
        node: &mut WorldNode,
        fabric: &mut Fabric,
        locked: &mut Locked,
    ) {
        match self.at {
            At::Outside => self.enter(node, fabric),
            At::Inside(.., until) if until > fabric.now => {}
            At::Inside(..) if !between => self.wake(LOOK, fabric),
            At::Inside(tag, access, _) => self.leave(tag, access, node, fabric, locked),
            At::Waiting(..) | At::Done | At::Dead => {}
        }
    }

    /// What comes next.
    fn draw(&mut self) -> Option<(u32, Access)> {
        if self.left > 0 {
            self.left -= 1;
            let number = self.random.below(self.config.locks.into()) as u32;
            let writes = self.random.below(2) == 0;
            let access = if writes { Access::Write } else { Access::Read };
            return Some((number, access));
        }
        self.audits = self.audits.checked_sub(1)?;
        Some((self.audits, Access::Read))
    }

    fn enter(&mut self, node: &mut WorldNode, fabric: &mut Fabric) {
        let Some((number, access)) = self.draw() else {
            self.at = At::Done;
            return;
        };
        let homes = self.config.homes();
        let home = crate::world::block::home(number, homes);
        let Some(incarnation) = node.view.incarnation(home) else {
            return self.wake(OUTSIDE, fabric);
        };
        let tag = tag(number, homes, incarnation);
        let (who, slot) = (self.id.node, self.id.slot);
        fabric.tell_operation(Some(tag), || {
            format!("thread {who}.{slot} comes to {access:?}")
        });
        self.at = At::Waiting(tag, access);
        if !tag.home().is_of(node.id) && node.is_current(tag) {
            node.open_lock(tag, [0; 4], None);
        }
        node.lock_command(tag, LockCommand::Enter(slot, access), fabric);
        if !node.locks.cells.contains_key(&tag) {
            self.gone(tag, fabric);
        }
    }

    /// The lock is gone with its home.
    pub fn gone(&mut self, tag: Tag, fabric: &mut Fabric) {
        if matches!(self.at, At::Waiting(of, _) if of == tag) {
            self.at = At::Outside;
            self.wake(OUTSIDE, fabric);
        }
    }

    /// It is inside.
    pub fn let_in(
        &mut self,
        tag: Tag,
        (entered, found): (Entered, [u64; 2]),
        node: &mut WorldNode,
        fabric: &mut Fabric,
        locked: &mut Locked,
    ) -> Result<(), Complaint> {
        if self.at == At::Dead {
            return Ok(());
        }
        let (who, slot) = (self.id.node, self.id.slot);
        fabric.tell_operation(Some(tag), || {
            format!("thread {who}.{slot} is inside, told {:?}", entered.reason)
        });
        let until = fabric.now + self.random.below(INSIDE);
        self.at = At::Inside(tag, entered.access, until);
        self.wake(until - fabric.now, fabric);
        if let (Access::Write, Some(cell)) = (entered.access, node.locks.cells.get_mut(&tag)) {
            let data = &mut cell.fx.data;
            data[ENTERED] = data[ENTERED].wrapping_add(1);
        }
        locked.entered(tag, self.id, entered, found)
    }

    fn leave(
        &mut self,
        tag: Tag,
        access: Access,
        node: &mut WorldNode,
        fabric: &mut Fabric,
        locked: &mut Locked,
    ) {
        let (who, slot) = (self.id.node, self.id.slot);
        fabric.tell_operation(Some(tag), || format!("thread {who}.{slot} leaves"));
        let mut wrote = None;
        if let (Access::Write, Some(cell)) = (access, node.locks.cells.get_mut(&tag)) {
            let data = &mut cell.fx.data;
            data[LEFT] = data[ENTERED];
            wrote = Some(data[ENTERED]);
        }
        locked.left(tag, self.id, wrote);
        self.at = At::Outside;
        let pause = self.random.below(OUTSIDE);
        self.wake(pause, fabric);
        node.lock_command(tag, LockCommand::Leave(access), fabric);
    }

    /// Its node dies.
    pub fn die(&mut self, locked: &mut Locked) {
        if let At::Inside(tag, ..) = self.at {
            locked.left(tag, self.id, None);
        }
        self.at = At::Dead;
    }

    /// Its node has started again: it goes on with what was left to do.
    pub fn born_again(&mut self) {
        self.at = At::Outside;
        self.left += std::mem::take(&mut self.kept);
    }

    /// Its node asks it to do nothing new, or does not leave after all.
    pub fn retire(&mut self, leaves: bool) {
        match leaves {
            true => self.kept += std::mem::take(&mut self.left),
            false => self.left += std::mem::take(&mut self.kept),
        }
        if !leaves && self.at == At::Done {
            self.at = At::Outside;
        }
    }

    /// Reads every lock once more.
    pub fn audit(&mut self) {
        if self.idle() {
            self.at = At::Outside;
        }
        self.audits = self.config.locks;
    }
}
