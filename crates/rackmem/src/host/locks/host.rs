//! What the engine needs of this process for its locks.

use super::cell::Fx;
use super::seat::Seat;
use super::table::Origin;
use crate::host::here::Here;
use rackmem_fabric::Nobody;
use rackmem_fabric::Whole;
use rackmem_proto::engine::{LockHost, NodeLock, Told};
use rackmem_proto::gcp::Life;
use rackmem_proto::wire::{Copyset, Tag};
use std::sync::Arc;

impl LockHost for Here<'_> {
    type Seat = Arc<Seat>;
    type Fx<'f> = Fx<'f>;

    #[inline]
    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>) -> R,
    ) -> Option<R> {
        let locks = &self.agents.locks;
        let cell = locks.find(tag)?;
        let mut result = None;
        let out = locks.turn(&cell, |state, out| {
            result = Some(state.act(&cell, self.body, out, section));
        });
        locks.send(out, self.net, self.reply);
        result
    }

    fn each_lock(&mut self, mut section: impl FnMut(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>)) {
        let locks = &self.agents.locks;
        for cell in locks.all() {
            let out = locks.step(&cell, &mut section);
            locks.send(out, self.net, &mut Nobody);
        }
    }

    fn each_due(&mut self, section: impl FnMut(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>)) {
        self.agents.locks.each_due(self.net, section);
    }

    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R {
        section(&mut self.agents.locks.told.lock().whole())
    }

    fn recall(&mut self, tag: Tag) -> bool {
        self.agents.locks.recall(tag).is_some()
    }

    fn hear_of(&mut self, tag: Tag, len: u32) -> bool {
        if !tag.home().is_own() && !self.agents.has_kept(tag) {
            return false;
        }
        let heard = self.agents.locks.open(tag, len as usize, Origin::Heard);
        heard.is_ok()
    }

    fn take_over(&mut self, tag: Tag) {
        self.agents.locks.take_over(tag);
    }

    fn all_told(&mut self) {
        self.agents.locks.all_told();
    }

    fn forget_forgotten(&mut self) {
        self.agents.locks.forget_ledger();
    }

    fn is_current(&self, tag: Tag) -> bool {
        self.agents.locks.is_current(tag)
    }

    fn remove(&mut self, tag: Tag) {
        self.agents.locks.remove(tag);
    }

    fn forget_room(&mut self, gone: Copyset) {
        self.agents.locks.forget_arrays(gone);
    }

    fn life_ended(&mut self, tag: Tag, life: Life) {
        self.agents.locks.ends.known(tag, life);
    }

    fn asked_home(&mut self, tag: Tag) {
        let locks = &self.agents.locks;
        let out = locks.find(tag).map(|cell| locks.offer(&cell));
        locks.send(out.unwrap_or_default(), self.net, self.reply);
    }

    fn unknown(&mut self) {
        self.agents.locks.drop_unknown();
    }

    fn locks_lost(&mut self, count: u64) {
        self.settled.locks_lost = count;
    }
}
