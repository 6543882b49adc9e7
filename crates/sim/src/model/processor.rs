//! The processor that an application thread runs on, and takes time of.

use super::agenda::Occurrence;
use super::fabric::Fabric;

/// See the module.
pub struct Processor {
    /// The thread's number.
    pub thread: u16,
    /// When it is free again.
    busy: u64,
    /// Time that it has spent.
    pub used: u64,
}

impl Processor {
    /// One that is free.
    pub fn new(thread: u16) -> Self {
        Processor {
            thread,
            busy: 0,
            used: 0,
        }
    }

    /// When it can do something else, at the earliest.
    pub fn free(&self, fabric: &Fabric) -> u64 {
        self.busy.max(fabric.now())
    }

    /// Is busy for so much longer.
    pub fn work(&mut self, time: u64, fabric: &Fabric) {
        self.busy = self.free(fabric) + time;
        self.used += time;
    }

    /// The thread goes on when all is done, and so much more.
    pub fn schedule(&mut self, more: u64, fabric: &mut Fabric) {
        self.work(more, fabric);
        self.pause(0, fabric);
    }

    /// The thread goes on when all is done and so much time has passed.
    pub fn pause(&self, time: u64, fabric: &mut Fabric) {
        let at = self.free(fabric) + time;
        fabric.agenda.enter(at, Occurrence::Step(self.thread));
    }
}
