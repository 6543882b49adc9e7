//! A node that leaves takes what it has of the bus along.

use std::sync::PoisonError;

use super::directory::Head;
use super::lane;
use super::numbers::Arrival;
use crate::error::Result;
use crate::memory::Memory;
use crate::store::core::Core;

impl<M: Memory> Core<M> {
    /// Hears no more, and frees what was said to this node and its log of subscriptions. For the
    /// time when none of its clients is left.
    pub fn stop_listening(&self) -> Result<()> {
        let (block, mut bytes) = (self.map.block, Vec::new());
        for from in self.others() {
            let lane = self.my_lane(from);
            let took = self.memory.update(lane, block, |view| {
                lane::take(view, &mut bytes);
                lane::listen(view, false);
            });
            // What lay there may have died with its sender.
            if took.is_err() {
                self.memory.accept(lane)?;
                continue;
            }
            for (number, taken) in lane::unpack(&bytes) {
                if self.bus.numbers.hear(from, number) != Arrival::Again {
                    let _ = self.fetch(taken);
                }
            }
        }
        let mine = self.bus.directory.mine.lock();
        let mut mine = mine.unwrap_or_else(PoisonError::into_inner);
        let head = std::mem::take(&mut mine.head);
        if head.capacity != 0 {
            self.show(&Head::default())?;
            self.memory.free(head.addr, head.capacity)?;
        }
        Ok(())
    }

    /// Bytes of this node's log of subscriptions.
    pub fn log_bytes(&self) -> usize {
        let mine = self.bus.directory.mine.lock();
        mine.unwrap_or_else(PoisonError::into_inner).head.capacity
    }
}
