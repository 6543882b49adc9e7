//! What a thread does between its accesses: what its program says.

use super::fabric::Fabric;
use super::node::Until;
use super::program::{Goal, Inside, Next, Steps};
use super::thread::{Around, Thread};
use crate::site::{Deed, Load};
use rackmem_proto::engine::LockCommand;

impl<P: Steps> Thread<P> {
    /// Does what its program says.
    pub(super) fn go_on(&mut self, around: &mut Around<'_, P::Shared>) {
        self.goal = None;
        loop {
            let (node, shared, fabric) = around;
            let now = self.cpu.free(fabric);
            match self.program.next(now, self.missed, node, shared) {
                Next::Work(time) => return self.cpu.schedule(time, fabric),
                Next::Access(Goal { block, writes }, look) => {
                    let tag = self.layout.tag(self.client.engine.id().node, block);
                    self.goal = Some((tag, writes));
                    self.missed = false;
                    if P::FORGETS_REFUSALS {
                        self.attempt = 0;
                    }
                    return self.cpu.schedule(look, fabric);
                }
                Next::Enter(lock, access) => {
                    let enter = LockCommand::Enter(self.cpu.thread, access);
                    return node.command(lock, enter, self.layout.locks_stay);
                }
                Next::Leave(lock, access, at_once) => {
                    node.command(lock, LockCommand::Leave(access), self.layout.locks_stay);
                    if at_once {
                        self.send(node, fabric);
                    }
                }
                Next::Tell(output) => {
                    self.cpu.work(self.platform.costs.trap, fabric);
                    node.site.deeds.push(Deed::Sent(output, Load::Nothing));
                    self.send(node, fabric);
                }
                Next::Wait => return,
                Next::Stop => return self.finished = true,
            }
        }
    }

    /// The block is here: does what the access is for. `false`: what it waits for is not in it.
    pub(super) fn execute(&mut self, fetched: bool, around: &mut Around<'_, P::Shared>) -> bool {
        let (node, shared, fabric) = around;
        let done = self.program.execute(shared, fetched);
        if let Some((tag, true)) = self.goal {
            node.wake(Until::Changed(tag), fabric);
        }
        done
    }

    /// GCP has let it in.
    pub fn let_in(&mut self, inside: &Inside, fabric: &mut Fabric) {
        let after = self.program.let_in(inside);
        self.cpu.schedule(after, fabric);
    }
}
