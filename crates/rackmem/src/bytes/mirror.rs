//! Lines of this node's members of groups, in memory that a program in the kernel reads.

use crate::bytes::lent::LentWords;
use rackmem_fabric::shm::Lent;
use rackmem_proto::abd::mirror::Mirror;
use rackmem_proto::abd::{Effect, ReplicatedMemory};

/// See the module.
pub(crate) struct LentMirror {
    mirror: Mirror,
    words: LentWords,
}

impl LentMirror {
    /// In memory of so many slabs and what is in front of them.
    pub fn new(slabs: usize, lent: Lent) -> Self {
        LentMirror {
            mirror: Mirror::new(slabs),
            words: LentWords(lent),
        }
    }

    /// A section has left this. Whoever reads in the kernel finds it from now on, and so it is
    /// before anybody is told: the section's lock is still held.
    pub fn follow(&mut self, memory: &mut ReplicatedMemory, effects: &[Effect]) {
        self.mirror.follow(memory, effects, &mut self.words);
        let changes = |effect: &Effect| matches!(effect, Effect::Adopted(_) | Effect::Forgot(_));
        if effects.iter().any(changes) {
            memory.lines.kernels.are_here(self.mirror.groups());
        }
    }

    /// Groups that are here.
    pub fn groups(&self) -> u32 {
        self.mirror.groups().count_ones()
    }
}
